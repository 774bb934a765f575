//! Frames from the wire into each NIC, and from a NIC into each peer.

use super::board::Board;
use super::input::Input;
use super::step;
use crate::board::{self as map, MAC_ADDRESS, RAM_BASE};
use crate::time::SimTime;
use crate::wire::loadgen::{LoadGenConfig, Operation, Protocol};
use crate::wire::nat::GATEWAY;
use crate::wire::{Echo, LoadGen, Loopback, MIN_FRAME_BYTES, Nat, NatConfig, Next, Nic, Peer, Sink};
use smoltcp::wire::{ArpPacket, EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, TcpPacket, UdpPacket};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Frames of one input.
const MAX_FRAMES: usize = 48;
/// Longest frame: beyond the jumbo frames of all NICs.
const MAX_FRAME_BYTES: usize = 20_000;
/// UDP and TCP port of the discard service: whatever the gateway is told, it knocks at no other door of the host.
const DISCARD: u16 = 9;
const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

/// Sends frames to a NIC, and to each peer.
pub fn frames(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let target = input.byte() % 12;
    let frames: Vec<(u16, Vec<u8>)> = core::iter::from_fn(|| {
        (!input.is_empty()).then(|| {
            let pause = input.half();
            (pause, frame(&mut input))
        })
    })
    .take(MAX_FRAMES)
    .collect();
    match target {
        0 | 1 => into_nic(Nic::Axi, frames, target == 1),
        2 | 3 => into_nic(Nic::Gem, frames, target == 3),
        4 | 5 => into_nic(Nic::Virtio, frames, target == 5),
        6 => into_peer(&mut Echo::new(), frames),
        7 => into_peer(&mut Loopback::new(), frames),
        8 => into_peer(&mut Sink::new().0, frames),
        9 => {
            // Without a socket of the host there is no gateway to test.
            if let Ok(mut gateway) = Nat::new(&NatConfig::default()) {
                into_peer(&mut gateway, frames.into_iter().filter(|(_, frame)| stays_here(frame)).collect());
            }
        }
        _ => {
            let protocols = [
                (Protocol::Tcp, Operation::Call),
                (Protocol::Tcp, Operation::Read),
                (Protocol::Tcp, Operation::Write),
                (Protocol::Udp, Operation::Call),
                (Protocol::Ping, Operation::Call),
            ];
            for (protocol, operation) in protocols {
                let config = LoadGenConfig { protocol, operation, ..LoadGenConfig::default() };
                let (mut generator, _report) = LoadGen::new(config).expect("a good configuration");
                into_peer(&mut generator, frames.clone());
            }
        }
    }
}

/// Any bytes; or a frame of a protocol that the peers speak, with lengths and check sums that fit.
fn frame(input: &mut Input) -> Vec<u8> {
    let kind = input.byte();
    let mut frame = input.bytes(if kind & 0x10 == 0 { 128 } else { MAX_FRAME_BYTES }).to_vec();
    if kind & 7 == 0 {
        return frame;
    }
    frame.resize(frame.len().max(MIN_FRAME_BYTES), 0);
    let mut ethernet = EthernetFrame::new_unchecked(&mut frame[..]);
    let destination = match kind & 0x60 {
        0 => [0xFF; 6],
        0x20 => MAC_ADDRESS,
        0x40 => LoadGenConfig::default().mac,
        _ => [0x52, 0x55, 10, 0, 2, 2], // the gateway
    };
    ethernet.set_dst_addr(smoltcp::wire::EthernetAddress(destination));
    ethernet.set_src_addr(smoltcp::wire::EthernetAddress(MAC_ADDRESS));
    ethernet.set_ethertype(if kind & 7 == 1 { EthernetProtocol::Arp } else { EthernetProtocol::Ipv4 });
    let payload = ethernet.payload_mut();
    if kind & 7 == 1 {
        let mut arp = ArpPacket::new_unchecked(payload);
        arp.set_hardware_type(smoltcp::wire::ArpHardware::Ethernet);
        arp.set_protocol_type(EthernetProtocol::Ipv4);
        arp.set_hardware_len(6);
        arp.set_protocol_len(4);
        arp.set_operation(smoltcp::wire::ArpOperation::Reply);
        arp.set_source_hardware_addr(&MAC_ADDRESS);
        arp.set_source_protocol_addr(&GUEST.octets());
        return frame;
    }
    let next = [IpProtocol::Tcp, IpProtocol::Udp, IpProtocol::Icmp][usize::from(kind % 3)];
    let length = payload.len().min(usize::from(u16::MAX)) as u16;
    let mut packet = Ipv4Packet::new_unchecked(payload);
    packet.set_version(4);
    packet.set_header_len(20);
    packet.set_total_len(length);
    packet.clear_flags();
    packet.set_frag_offset(0);
    packet.set_next_header(next);
    packet.set_hop_limit(64);
    packet.set_src_addr(GUEST);
    packet.set_dst_addr(GATEWAY);
    packet.fill_checksum();
    let (source, destination) = (GUEST.into(), GATEWAY.into());
    let body = packet.payload_mut();
    match next {
        IpProtocol::Udp => {
            let length = body.len() as u16;
            let mut datagram = UdpPacket::new_unchecked(body);
            datagram.set_len(length);
            datagram.fill_checksum(&source, &destination);
        }
        IpProtocol::Tcp => {
            let mut segment = TcpPacket::new_unchecked(body);
            // The local port of the generator's first connection, from the server.
            segment.set_src_port(7);
            if kind & 8 != 0 {
                segment.set_dst_port(49_152);
            }
            segment.fill_checksum(&source, &destination);
        }
        _ => smoltcp::wire::Icmpv4Packet::new_unchecked(body).fill_checksum(),
    }
    frame
}

/// The gateway would send nothing of this to anybody but the discard port of this host.
fn stays_here(frame: &[u8]) -> bool {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return true };
    let Ok(packet) = Ipv4Packet::new_checked(ethernet.payload()) else { return true };
    let port = match packet.next_header() {
        IpProtocol::Tcp => TcpPacket::new_checked(packet.payload()).map(|segment| segment.dst_port()),
        IpProtocol::Udp => UdpPacket::new_checked(packet.payload()).map(|datagram| datagram.dst_port()),
        _ => return true,
    };
    port.is_ok_and(|port| packet.dst_addr() == GATEWAY && port == DISCARD)
}

fn into_peer(peer: &mut dyn Peer, frames: Vec<(u16, Vec<u8>)>) {
    let mut now = SimTime::ZERO;
    // Asked as a link asks: until it has nothing more to send.
    let ask = |peer: &mut dyn Peer, now: SimTime, most: usize| {
        for _ in 0..most {
            match peer.next(now) {
                Next::Frame(frame) => assert!(frame.len() <= MAX_FRAME_BYTES, "{} bytes", frame.len()),
                Next::At(_) | Next::Idle => return,
            }
        }
        panic!("the peer sends without an end");
    };
    ask(peer, now, 1000);
    for (pause, frame) in frames {
        now += SimTime::from_us(pause.into());
        if frame.len() >= MIN_FRAME_BYTES {
            peer.deliver(now, &frame);
        }
        ask(peer, now, 1000);
        let _ = peer.finished();
    }
}

/// A peer that sends what it was given.
struct Script {
    frames: VecDeque<(u16, Vec<u8>)>,
    due: SimTime,
}

impl Peer for Script {
    fn deliver(&mut self, _now: SimTime, _frame: &[u8]) {}

    fn next(&mut self, now: SimTime) -> Next {
        if now < self.due {
            return Next::At(self.due);
        }
        let Some((pause, frame)) = self.frames.pop_front() else { return Next::Idle };
        self.due = now + SimTime::from_ns(pause.into());
        Next::Frame(frame)
    }
}

/// Receives the frames in a ring; `promiscuous` or not.
fn into_nic(nic: Nic, frames: Vec<(u16, Vec<u8>)>, promiscuous: bool) {
    let decisions: Vec<u8> = frames.iter().flat_map(|(_, frame)| frame.iter().copied().take(8)).collect();
    let mut board = Board::new(nic, Box::new(Script { frames: frames.into(), due: SimTime::ZERO }));
    let window = match nic {
        Nic::Axi => {
            receive_on_axi(&mut board, promiscuous);
            map::AXI_ETHERNET
        }
        Nic::Gem => {
            receive_on_gem(&mut board, promiscuous);
            map::GEM
        }
        Nic::Virtio => {
            receive_on_virtio(&mut board, if promiscuous { 2048 } else { 256 });
            map::virtio(map::VIRTIO_NET_SLOT)
        }
    };
    board.pass(100_000);
    // A driver that does odd things while more frames come.
    let mut input = Input::new(&decisions);
    while !input.is_empty() {
        step(&mut board, &mut input, &[window]);
    }
    board.pass(100_000);
    board.check_after_reset();
}

const RING: u64 = RAM_BASE + 0x1000;
const BUFFERS: u64 = RAM_BASE + 0x1_0000;
const SLOTS: u64 = 32;

fn receive_on_axi(board: &mut Board, promiscuous: bool) {
    let (channel, ethernet) = (map::AXI_DMA.base + 0x30, map::AXI_ETHERNET.base);
    for slot in 0..SLOTS {
        let at = RING + 64 * slot;
        board.write(at, 4, RING + 64 * ((slot + 1) % SLOTS));
        board.write(at + 8, 4, BUFFERS + 0x4000 * slot);
        board.write(at + 0x18, 4, 0x4000);
    }
    board.write(ethernet + 0x708, 4, u64::from(promiscuous) << 31);
    // Enabled, jumbo frames too.
    board.write(ethernet + 0x404, 4, 5 << 28);
    board.write(channel + 8, 4, RING);
    board.write(channel, 4, 0x0001_7001);
    board.write(channel + 0x10, 4, RING + 64 * (SLOTS - 1));
}

fn receive_on_gem(board: &mut Board, promiscuous: bool) {
    let gem = map::GEM.base;
    for slot in 0..SLOTS {
        let wrap = u64::from(slot + 1 == SLOTS) << 1;
        board.write(RING + 8 * slot, 4, (BUFFERS + 0x4000 * slot) | wrap);
        board.write(RING + 8 * slot + 4, 4, 0);
    }
    board.write(gem + 4, 4, 1 << 10 | 1 << 1 | 1 << 3 | u64::from(promiscuous) << 4 | 1 << 24);
    board.write(gem + 0x10, 4, 0x0020_0784);
    board.write(gem + 0x18, 4, RING);
    board.write(gem, 4, 0x1C);
}

fn receive_on_virtio(board: &mut Board, piece: u64) {
    let base = map::virtio(map::VIRTIO_NET_SLOT).base;
    for (offset, word) in [(0x70, 3), (0x24, 1), (0x20, 1), (0x24, 0), (0x20, 1 << 28), (0x70, 11)] {
        board.write(base + offset, 4, word);
    }
    for slot in 0..SLOTS {
        let at = RING + 16 * slot;
        board.write(at, 8, BUFFERS + 0x4000 * slot);
        board.write(at + 8, 4, piece);
        board.write(at + 12, 2, 2);
        board.write(RING + 0x1004 + 2 * slot, 2, slot);
    }
    board.write(RING + 0x1002, 2, SLOTS);
    for (offset, word) in [
        (0x30, 0),
        (0x38, SLOTS),
        (0x80, RING),
        (0x90, RING + 0x1000),
        (0xA0, RING + 0x2000),
        (0x44, 1),
        (0x70, 15),
        (0x50, 0),
    ] {
        board.write(base + offset, 4, word);
    }
}
