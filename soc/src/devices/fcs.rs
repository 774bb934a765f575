//! The Ethernet frame check sequence: CRC-32 of IEEE 802.3, clause 3.2.9 (reflected polynomial 0xEDB88320).

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// The four bytes that follow `frame` on the wire.
pub(super) fn fcs(frame: &[u8]) -> [u8; 4] {
    let crc = frame.iter().fold(u32::MAX, |crc, &byte| crc >> 8 ^ TABLE[((crc ^ u32::from(byte)) & 0xFF) as usize]);
    (!crc).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_of_the_crc_catalogue() {
        assert_eq!(u32::from_le_bytes(fcs(b"123456789")), 0xCBF4_3926);
    }
}
