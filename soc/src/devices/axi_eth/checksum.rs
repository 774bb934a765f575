//! Checksum offload (PG138, "Checksum Offload" and the AXI4-Stream control and status words): what a transmit packet asks for in its
//! APP words, and what a received one is told.
//!
//! What is looked into tells [`internet_checksum`].

use crate::devices::internet_checksum::{self, ETHERNET_BYTES, Verdict, sum};
use serde::{Deserialize, Serialize};

/// What a direction can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The raw sum that the status stream carries in APP3.
pub(super) fn raw_sum(frame: &[u8]) -> u16 {
    frame.get(ETHERNET_BYTES..).map_or(0, |rest| sum(0, rest) as u16)
}

/// APP2 bits 5:3 of a received frame.
pub(super) fn status(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::NotChecked => 0,
        Verdict::IpGood => 1,
        Verdict::TcpGood => 2,
        Verdict::UdpGood => 3,
        Verdict::IpBad => 5,
        Verdict::TcpBad => 6,
        Verdict::UdpBad => 7,
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
        (CONTROL_FULL, Offload::Full) => {
            // What is no TCP or UDP packet goes out as it is.
            let _ = internet_checksum::fill(frame);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::internet_checksum::check;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};
    use std::net::Ipv4Addr;

    fn set(frame: &mut [u8], at: usize, value: u16) {
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

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
