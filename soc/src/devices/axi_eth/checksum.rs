//! Checksum offload (PG138, "Checksum Offload" and the AXI4-Stream control and status words): what a transmit packet asks for in its
//! APP words, and what a received one is told.
//!
//! Only IPv4 without fragments is looked into; anything else passes untouched and is reported as not checked.

/// What a direction can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Nothing.
    None,
    /// One sum over a part of the frame, positions given by software (transmit) or from byte 14 on (receive).
    Partial,
    /// IPv4 header, TCP and UDP.
    Full,
}

/// APP0 of a transmit packet: partial offload wanted.
const CONTROL_PARTIAL: u32 = 1;
/// APP0 of a transmit packet: full offload wanted.
const CONTROL_FULL: u32 = 2;
/// Ethernet header.
const ETHERNET_BYTES: usize = 14;

/// State of a received frame, as in APP2 bits 5:3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    NotChecked = 0,
    IpGood = 1,
    TcpGood = 2,
    UdpGood = 3,
    IpBad = 5,
    TcpBad = 6,
    UdpBad = 7,
}

/// One's complement sum of big-endian 16-bit words, folded; an odd last byte counts as the upper half of a word.
fn sum(start: u32, bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from));
    words.fold(start, |sum, word| {
        let next = sum + word;
        (next & 0xFFFF) + (next >> 16)
    })
}

/// The raw sum that the status stream carries in APP3.
pub(super) fn raw_sum(frame: &[u8]) -> u16 {
    frame.get(ETHERNET_BYTES..).map_or(0, |rest| sum(0, rest) as u16)
}

/// Where the parts of an unfragmented IPv4 packet lie in its frame.
struct Ipv4 {
    header_end: usize,
    end: usize,
    protocol: u8,
}

impl Ipv4 {
    fn find(frame: &[u8]) -> Option<Self> {
        let header = frame.get(ETHERNET_BYTES..)?;
        let is_ipv4 = frame[12..14] == [0x08, 0x00] && header.first()? >> 4 == 4;
        let header_bytes = usize::from(header.first()? & 0xF) * 4;
        let total = usize::from(u16::from_be_bytes([*header.get(2)?, *header.get(3)?]));
        // More-fragments flag or an offset.
        let fragment = u16::from_be_bytes([*header.get(6)?, *header.get(7)?]) & 0x3FFF != 0;
        let fits = header_bytes >= 20 && total >= header_bytes && header.len() >= total;
        (is_ipv4 && fits && !fragment).then(|| Self {
            header_end: ETHERNET_BYTES + header_bytes,
            end: ETHERNET_BYTES + total,
            protocol: header[9],
        })
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

/// Does for a transmit frame what its APP words ask for, as far as the build can.
pub(super) fn complete(frame: &mut [u8], app: &[u32; 5], offload: Offload) {
    match (app[0] & 3, offload) {
        (CONTROL_PARTIAL, Offload::Partial | Offload::Full) => {
            let (start, insert) = ((app[1] >> 16) as usize, (app[1] & 0xFFFF) as usize);
            if let Some(covered) = frame.get(start..) {
                let checksum = !(sum(app[2] & 0xFFFF, covered) as u16);
                if let Some(field) = frame.get_mut(insert..insert + 2) {
                    field.copy_from_slice(&checksum.to_be_bytes());
                }
            }
        }
        (CONTROL_FULL, Offload::Full) => complete_fully(frame),
        _ => {}
    }
}

fn complete_fully(frame: &mut [u8]) {
    let Some(packet) = Ipv4::find(frame) else { return };
    set(frame, ETHERNET_BYTES + 10, 0);
    let header = !(sum(0, &frame[ETHERNET_BYTES..packet.header_end]) as u16);
    set(frame, ETHERNET_BYTES + 10, header);
    if let Some(at) = packet.transport_checksum() {
        set(frame, at, 0);
        let checksum = !(packet.transport_sum(frame) as u16);
        // UDP writes a sum of zero as ones; zero means "no checksum" (RFC 768).
        set(frame, at, if packet.protocol == 17 && checksum == 0 { 0xFFFF } else { checksum });
    }
}

fn set(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Checks a received frame.
pub(super) fn check(frame: &[u8]) -> Verdict {
    let Some(packet) = Ipv4::find(frame) else { return Verdict::NotChecked };
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

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};
    use std::net::Ipv4Addr;

    /// A TCP segment by another implementation, with right checksums.
    fn segment(payload: &[u8]) -> Vec<u8> {
        let (from, to) = (Ipv4Addr::new(10, 0, 2, 2), Ipv4Addr::new(10, 0, 2, 15));
        let tcp = TcpRepr {
            src_port: 1000,
            dst_port: 7,
            control: TcpControl::Psh,
            seq_number: TcpSeqNumber(77),
            ack_number: Some(TcpSeqNumber(99)),
            window_len: 4096,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload,
        };
        let length = tcp.buffer_len();
        let ip =
            Ipv4Repr { src_addr: from, dst_addr: to, next_header: IpProtocol::Tcp, payload_len: length, hop_limit: 64 };
        let mut frame = vec![0; ETHERNET_BYTES + 20 + length];
        frame[12] = 0x08;
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &ChecksumCapabilities::default());
        let mut packet = TcpPacket::new_unchecked(&mut frame[34..]);
        tcp.emit(&mut packet, &from.into(), &to.into(), &ChecksumCapabilities::default());
        frame
    }

    #[test]
    fn full_transmit_offload_gives_what_another_stack_computes() {
        for payload in [&b""[..], b"x", b"ninety-nine"] {
            let right = segment(payload);
            let mut frame = right.clone();
            set(&mut frame, 24, 0xDEAD);
            set(&mut frame, 50, 0xBEEF);
            complete(&mut frame, &[CONTROL_FULL, 0, 0, 0, 0], Offload::Full);
            assert_eq!(frame, right);
            // Without the hardware nothing is touched.
            let mut frame = right.clone();
            set(&mut frame, 50, 0xBEEF);
            let before = frame.clone();
            complete(&mut frame, &[CONTROL_FULL, 0, 0, 0, 0], Offload::Partial);
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn partial_transmit_offload_finishes_a_pseudo_header_sum() {
        let right = segment(b"odd");
        let mut frame = right.clone();
        let pseudo = sum(6 + (frame.len() - 34) as u32, &frame[26..34]) as u16;
        set(&mut frame, 50, pseudo);
        complete(&mut frame, &[CONTROL_PARTIAL, 34 << 16 | 50, 0, 0, 0], Offload::Partial);
        assert_eq!(frame, right);
        // Positions beyond the frame do nothing.
        complete(&mut frame, &[CONTROL_PARTIAL, 0xFFFF_FFFF, 0, 0, 0], Offload::Partial);
        assert_eq!(frame, right);
    }

    #[test]
    fn received_frames_are_judged() {
        let good = segment(b"payload");
        assert_eq!(check(&good), Verdict::TcpGood);
        let bad = |at: usize| {
            let mut frame = good.clone();
            frame[at] ^= 1;
            check(&frame)
        };
        assert_eq!((bad(22), bad(60)), (Verdict::IpBad, Verdict::TcpBad));
        assert_eq!(bad(12), Verdict::NotChecked);
        for cut in 0..good.len() {
            assert_ne!(check(&good[..cut]), Verdict::TcpGood, "{cut}");
        }
    }
}
