//! The checksums of IPv4, TCP and UDP (RFC 791, 793, 768) in an Ethernet frame, as a MAC's offload engine finds and fills them in.
//!
//! Only IPv4 without fragments is looked into; anything else passes untouched and is reported as not checked.

/// Ethernet header.
pub(super) const ETHERNET_BYTES: usize = 14;

/// What a receiver finds out about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not IPv4, or a fragment, or malformed.
    NotChecked,
    /// Header right, and no TCP or UDP checksum.
    IpGood,
    TcpGood,
    UdpGood,
    IpBad,
    TcpBad,
    UdpBad,
}

/// Why a transmitter left a transport checksum alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfilled {
    /// Not an IPv4 packet, or one whose header is wrong.
    NotIpv4,
    /// A fragment; nothing was filled in.
    Fragment,
    /// Neither TCP nor UDP; the header's checksum was filled in.
    OtherProtocol,
}

/// One's complement sum of big-endian 16-bit words, folded; an odd last byte counts as the upper half of a word.
pub(super) fn sum(start: u32, bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from));
    words.fold(start, |sum, word| {
        let next = sum + word;
        (next & 0xFFFF) + (next >> 16)
    })
}

/// Where the parts of an unfragmented IPv4 packet lie in its frame.
struct Ipv4 {
    header_end: usize,
    end: usize,
    protocol: u8,
}

impl Ipv4 {
    fn find(frame: &[u8]) -> Result<Self, Unfilled> {
        match Self::parse(frame).ok_or(Unfilled::NotIpv4)? {
            (packet, false) => Ok(packet),
            (_, true) => Err(Unfilled::Fragment),
        }
    }

    /// The packet, and whether it is a fragment.
    fn parse(frame: &[u8]) -> Option<(Self, bool)> {
        let header = frame.get(ETHERNET_BYTES..)?;
        let is_ipv4 = frame[12..14] == [0x08, 0x00] && header.first()? >> 4 == 4;
        let header_bytes = usize::from(header.first()? & 0xF) * 4;
        let total = usize::from(u16::from_be_bytes([*header.get(2)?, *header.get(3)?]));
        // More-fragments flag or an offset.
        let fragment = u16::from_be_bytes([*header.get(6)?, *header.get(7)?]) & 0x3FFF != 0;
        let fits = header_bytes >= 20 && total >= header_bytes && header.len() >= total;
        let packet =
            || Self { header_end: ETHERNET_BYTES + header_bytes, end: ETHERNET_BYTES + total, protocol: header[9] };
        (is_ipv4 && fits).then(|| (packet(), fragment))
    }

    /// Position of the transport checksum, if there is one.
    fn transport_checksum(&self) -> Option<usize> {
        let (offset, header) = match self.protocol {
            6 => (16, 20),
            17 => (6, 8),
            _ => return None,
        };
        (self.end - self.header_end >= header).then_some(self.header_end + offset)
    }

    fn transport_sum(&self, frame: &[u8]) -> u32 {
        let length = (self.end - self.header_end) as u32;
        let addresses = &frame[ETHERNET_BYTES + 12..ETHERNET_BYTES + 20];
        sum(sum(u32::from(self.protocol) + length, addresses), &frame[self.header_end..self.end])
    }
}

/// Fills in the checksums of header and transport.
pub(super) fn fill(frame: &mut [u8]) -> Result<(), Unfilled> {
    let packet = Ipv4::find(frame)?;
    set(frame, ETHERNET_BYTES + 10, 0);
    let header = !(sum(0, &frame[ETHERNET_BYTES..packet.header_end]) as u16);
    set(frame, ETHERNET_BYTES + 10, header);
    let at = packet.transport_checksum().ok_or(Unfilled::OtherProtocol)?;
    set(frame, at, 0);
    let checksum = !(packet.transport_sum(frame) as u16);
    // UDP writes a sum of zero as ones; zero means "no checksum" (RFC 768).
    set(frame, at, if packet.protocol == 17 && checksum == 0 { 0xFFFF } else { checksum });
    Ok(())
}

fn set(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Checks a received frame.
pub(super) fn check(frame: &[u8]) -> Verdict {
    let Ok(packet) = Ipv4::find(frame) else { return Verdict::NotChecked };
    if sum(0, &frame[ETHERNET_BYTES..packet.header_end]) != 0xFFFF {
        return Verdict::IpBad;
    }
    let Some(at) = packet.transport_checksum() else { return Verdict::IpGood };
    let unused = packet.protocol == 17 && frame[at..at + 2] == [0, 0];
    let good = packet.transport_sum(frame) == 0xFFFF;
    match (packet.protocol, good) {
        _ if unused => Verdict::IpGood,
        (6, true) => Verdict::TcpGood,
        (6, false) => Verdict::TcpBad,
        (_, true) => Verdict::UdpGood,
        (_, false) => Verdict::UdpBad,
    }
}
