//! The message-info word (`seL4_MessageInfo_t`).

/// Most message words: `seL4_MsgMaxLength`.
pub const MAX_LENGTH: usize = 120;
/// Most capabilities in a message: `seL4_MsgMaxExtraCaps`.
pub const MAX_EXTRA_CAPS: usize = 3;
/// Message words that travel in registers (a2..a5).
pub const REGISTERS: usize = 4;

/// Bits 6:0 length, 8:7 extra capabilities, 11:9 capabilities unwrapped, 63:12 label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MessageInfo(pub u64);

impl MessageInfo {
    /// Packs the fields. `label` is cut to 52 bits, `length` to 7, `extra_caps` to 2, `caps_unwrapped` to 3.
    pub const fn new(label: u64, caps_unwrapped: usize, extra_caps: usize, length: usize) -> Self {
        Self(label << 12 | ((caps_unwrapped as u64 & 7) << 9) | ((extra_caps as u64 & 3) << 7) | (length as u64 & 0x7F))
    }
    /// The 52-bit label.
    pub const fn label(self) -> u64 {
        self.0 >> 12
    }
    /// Bit i set: capability slot i of the buffer holds a badge.
    pub const fn caps_unwrapped(self) -> usize {
        (self.0 >> 9 & 7) as usize
    }
    /// Number of extra capabilities, 0 to 3.
    pub const fn extra_caps(self) -> usize {
        (self.0 >> 7 & 3) as usize
    }
    /// Number of message words; values above [`MAX_LENGTH`] count as [`MAX_LENGTH`].
    pub const fn length(self) -> usize {
        let raw = (self.0 & 0x7F) as usize;
        if raw > MAX_LENGTH { MAX_LENGTH } else { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_sel4_puts_them() {
        let info = MessageInfo::new(0x99, 0, 1, 3);
        assert_eq!(info.0, 0x99083);
        assert_eq!((info.label(), info.extra_caps(), info.length()), (0x99, 1, 3));
        assert_eq!(MessageInfo(127).length(), 120);
    }
}
