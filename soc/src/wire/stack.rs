//! The network stack of a peer: one smoltcp interface over two frame queues, driven by simulated time.
//!
//! smoltcp takes the time as an argument, in whole microseconds. The stack is told the present rounded down and woken at its own
//! deadlines exactly, so only its timers (retransmission, delayed acknowledgement) are on a microsecond grid; what it sends in answer to
//! a frame leaves at the very picosecond of the arrival.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, HardwareAddress,
    IpCidr,
};

use crate::time::SimTime;

/// Largest frame of the stack, without check sequence: standard Ethernet.
const MAX_FRAME_BYTES: usize = 1514;

/// Frames in and out of the stack. Neither queue has a limit: the peer is an infinitely fast host, TCP's windows bound what
/// is queued.
#[derive(Default)]
struct Queues {
    incoming: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
}

impl Device for Queues {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Incoming, Outgoing<'_>)> {
        let frame = self.incoming.pop_front()?;
        Some((Incoming(frame), Outgoing(&mut self.outgoing)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME_BYTES;
        capabilities
    }
}

struct Incoming(Vec<u8>);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Outgoing<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        self.0.push_back(frame);
        result
    }
}

/// The stack with its sockets.
pub(super) struct Stack {
    queues: Queues,
    pub(super) interface: Interface,
    pub(super) sockets: SocketSet<'static>,
    mac: EthernetAddress,
    address: Ipv4Addr,
}

impl Stack {
    /// A stack at `address`, whose network has a prefix of `prefix` bits (at most 32). `seed` decides sequence numbers and ports.
    pub(super) fn new(mac: [u8; 6], address: Ipv4Addr, prefix: u8, seed: u64) -> Self {
        let mac = EthernetAddress(mac);
        let mut queues = Queues::default();
        let mut settings = Config::new(HardwareAddress::Ethernet(mac));
        settings.random_seed = seed;
        let mut interface = Interface::new(settings, &mut queues, Instant::ZERO);
        let cidr = IpCidr::new(address.into(), prefix);
        interface.update_ip_addrs(|addresses| {
            // The list is empty and holds at least one entry.
            let _ = addresses.push(cidr);
        });
        Self { queues, interface, sockets: SocketSet::new(Vec::new()), mac, address }
    }

    /// Takes all addresses for its own, as a gateway that ends connections for others.
    pub(super) fn answer_for_all(&mut self) {
        self.interface.set_any_ip(true);
        // The table is empty and holds at least one route.
        let _ = self.interface.routes_mut().add_default_ipv4_route(self.address);
    }

    /// Takes a frame from the wire; [`Self::poll`] handles it.
    pub(super) fn push(&mut self, frame: &[u8]) {
        self.queues.incoming.push_back(frame.to_vec());
    }

    /// The next frame for the wire.
    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        self.queues.outgoing.pop_front()
    }

    /// Nothing waits for the wire.
    pub(super) fn drained(&self) -> bool {
        self.queues.outgoing.is_empty()
    }

    /// Runs the stack at `now`.
    pub(super) fn poll(&mut self, now: SimTime) {
        self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
    }

    /// When the stack wants to run next, after `now`.
    pub(super) fn wake(&mut self, now: SimTime) -> Option<SimTime> {
        let present = instant(now);
        let at = self.interface.poll_at(present, &self.sockets)?;
        // After a poll nothing is due; a deadline that claims otherwise waits for the next microsecond rather than spin.
        Some(SimTime::from_us(at.total_micros().max(present.total_micros() + 1) as u64))
    }

    /// Sends "who has `wanted`?".
    pub(super) fn ask_for(&mut self, wanted: Ipv4Addr) {
        let arp = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: self.mac,
            source_protocol_addr: self.address,
            target_hardware_addr: EthernetAddress([0; 6]),
            target_protocol_addr: wanted,
        };
        let ethernet =
            EthernetRepr { src_addr: self.mac, dst_addr: EthernetAddress::BROADCAST, ethertype: EthernetProtocol::Arp };
        let mut frame = EthernetFrame::new_unchecked(vec![0; ethernet.buffer_len() + arp.buffer_len()]);
        ethernet.emit(&mut frame);
        arp.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
        self.queues.outgoing.push_back(frame.into_inner());
    }
}

/// `frame` is the ARP reply of `host`.
pub(super) fn is_arp_reply(frame: &[u8], host: Ipv4Addr) -> bool {
    let Ok(frame) = EthernetFrame::new_checked(frame) else { return false };
    let Ok(packet) = ArpPacket::new_checked(frame.payload()) else { return false };
    frame.ethertype() == EthernetProtocol::Arp
        && matches!(ArpRepr::parse(&packet), Ok(ArpRepr::EthernetIpv4 { operation: ArpOperation::Reply, source_protocol_addr, .. })
            if source_protocol_addr == host)
}

fn instant(now: SimTime) -> Instant {
    // 64 bits of picoseconds are 45 bits of microseconds.
    Instant::from_micros(now.as_us() as i64)
}
