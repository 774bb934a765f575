//! UDP through the gateway. Datagrams need no stack: they are taken out of the guest's frames, and put into frames for it.
//!
//! ```text
//!   guest port p ──▶ anybody:   a socket of the host for each p; what comes back to it goes to p, from whoever sent it
//!   host port q ──▶ guest:      forwarded; each sender gets a port of the gateway, to which the guest answers
//! ```

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket,
    UdpRepr,
};

use super::{Forward, GATEWAY, GATEWAY_MAC, for_guest, on_host};
use crate::time::SimTime;

/// What fits into a frame of 1514 bytes; longer datagrams of the host are dropped, as by a network that does not fragment.
const MAX_DATAGRAM_BYTES: usize = 1472;
/// Ports of the guest, and senders to it, that are remembered; the longest unused is forgotten first.
const FLOWS: usize = 256;
/// Ports of the gateway for senders to forwarded ports.
const FIRST_PORT: u16 = 49_152;
const HOPS: u8 = 64;

/// All flows.
pub(super) struct UdpFlows {
    guest: Ipv4Addr,
    /// Known from its first frame on.
    guest_mac: Option<EthernetAddress>,
    asked: bool,
    outgoing: Vec<Outgoing>,
    forwarded: Vec<(UdpSocket, u16)>,
    senders: Vec<Sender>,
    next_port: u16,
}

/// A port of the guest.
struct Outgoing {
    guest: SocketAddrV4,
    host: UdpSocket,
    used: SimTime,
}

/// Somebody who sends to a forwarded port.
struct Sender {
    /// Index of the forwarded port.
    forward: usize,
    from: SocketAddr,
    gateway_port: u16,
    used: SimTime,
}

impl UdpFlows {
    /// Opens the forwarded ports. Errors: the host's, with the port.
    pub(super) fn new<'a>(guest: Ipv4Addr, forwards: impl Iterator<Item = &'a Forward>) -> io::Result<Self> {
        let open = |forward: &Forward| {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("udp port {}: {error}", forward.host_port));
            Ok((bind((Ipv4Addr::LOCALHOST, forward.host_port)).map_err(named)?, forward.guest_port))
        };
        Ok(Self {
            guest,
            guest_mac: None,
            asked: false,
            outgoing: Vec::new(),
            forwarded: forwards.map(open).collect::<io::Result<_>>()?,
            senders: Vec::new(),
            next_port: FIRST_PORT,
        })
    }

    /// The guest that ports are forwarded to.
    pub(super) fn guest(&self) -> Ipv4Addr {
        self.guest
    }

    /// The host's ends of the forwarded ports.
    #[cfg(test)]
    pub(super) fn forwarded(&self) -> Vec<SocketAddr> {
        self.forwarded.iter().filter_map(|(socket, _)| socket.local_addr().ok()).collect()
    }

    /// Whether somebody should ask for the guest's station address: once, if ports are forwarded and it has not been heard of.
    pub(super) fn seeks_guest(&mut self) -> bool {
        !self.forwarded.is_empty() && self.guest_mac.is_none() && !core::mem::replace(&mut self.asked, true)
    }

    /// The guest's station address.
    pub(super) fn learn(&mut self, mac: EthernetAddress) {
        self.guest_mac = Some(mac);
    }

    /// Sends a datagram of the guest. What cannot be sent is lost, as on a network.
    pub(super) fn send(&mut self, now: SimTime, packet: &Ipv4Packet<&[u8]>) {
        let Ok(datagram) = UdpPacket::new_checked(packet.payload()) else { return };
        let to = SocketAddrV4::new(packet.dst_addr(), datagram.dst_port());
        let answered = |sender: &&mut Sender| *to.ip() == GATEWAY && sender.gateway_port == to.port();
        if let Some(sender) = self.senders.iter_mut().find(answered) {
            sender.used = now;
            let _ = self.forwarded[sender.forward].0.send_to(datagram.payload(), sender.from);
            return;
        }
        let from = SocketAddrV4::new(packet.src_addr(), datagram.src_port());
        let known = self.outgoing.iter().position(|flow| flow.guest == from);
        let Some(index) = known.or_else(|| self.open(now, from)) else { return };
        let flow = &mut self.outgoing[index];
        flow.used = now;
        let _ = flow.host.send_to(datagram.payload(), SocketAddrV4::new(on_host(*to.ip()), to.port()));
    }

    fn open(&mut self, now: SimTime, guest: SocketAddrV4) -> Option<usize> {
        let host = bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        make_room(&mut self.outgoing, |flow| flow.used);
        self.outgoing.push(Outgoing { guest, host, used: now });
        Some(self.outgoing.len() - 1)
    }

    /// A frame for the guest, if a datagram for it has come.
    pub(super) fn receive(&mut self, now: SimTime) -> Option<Vec<u8>> {
        let mac = self.guest_mac?;
        let mut datagram = [0; MAX_DATAGRAM_BYTES + 1];
        for flow in &mut self.outgoing {
            while let Ok((length, SocketAddr::V4(from))) = flow.host.recv_from(&mut datagram) {
                if length <= MAX_DATAGRAM_BYTES {
                    flow.used = now;
                    let from = SocketAddrV4::new(for_guest(*from.ip()), from.port());
                    return Some(frame(mac, from, flow.guest, &datagram[..length]));
                }
            }
        }
        for index in 0..self.forwarded.len() {
            while let Ok((length, from)) = self.forwarded[index].0.recv_from(&mut datagram) {
                if length <= MAX_DATAGRAM_BYTES {
                    let from = SocketAddrV4::new(GATEWAY, self.sender(now, index, from));
                    let to = SocketAddrV4::new(self.guest, self.forwarded[index].1);
                    return Some(frame(mac, from, to, &datagram[..length]));
                }
            }
        }
        None
    }

    /// The gateway's port for a sender to a forwarded port.
    fn sender(&mut self, now: SimTime, forward: usize, from: SocketAddr) -> u16 {
        if let Some(sender) = self.senders.iter_mut().find(|sender| (sender.forward, sender.from) == (forward, from)) {
            sender.used = now;
            return sender.gateway_port;
        }
        make_room(&mut self.senders, |sender| sender.used);
        let gateway_port = self.next_port;
        self.next_port = gateway_port.checked_add(1).unwrap_or(FIRST_PORT);
        self.senders.push(Sender { forward, from, gateway_port, used: now });
        gateway_port
    }
}

fn bind(address: (Ipv4Addr, u16)) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Forgets the longest unused of as many as there may be.
fn make_room<T>(flows: &mut Vec<T>, used: impl Fn(&T) -> SimTime) {
    if flows.len() >= FLOWS
        && let Some((oldest, _)) = flows.iter().enumerate().min_by_key(|(_, flow)| used(flow))
    {
        flows.remove(oldest);
    }
}

fn frame(mac: EthernetAddress, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let udp = UdpRepr { src_port: from.port(), dst_port: to.port() };
    let ip = Ipv4Repr {
        src_addr: *from.ip(),
        dst_addr: *to.ip(),
        next_header: IpProtocol::Udp,
        payload_len: udp.header_len() + payload.len(),
        hop_limit: HOPS,
    };
    let ethernet =
        EthernetRepr { src_addr: EthernetAddress(GATEWAY_MAC), dst_addr: mac, ethertype: EthernetProtocol::Ipv4 };
    let mut frame = EthernetFrame::new_unchecked(vec![0; ethernet.buffer_len() + ip.buffer_len() + ip.payload_len]);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    let checksums = ChecksumCapabilities::default();
    ip.emit(&mut packet, &checksums);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    let (source, destination) = (ip.src_addr.into(), ip.dst_addr.into());
    udp.emit(&mut datagram, &source, &destination, payload.len(), |room| room.copy_from_slice(payload), &checksums);
    frame.into_inner()
}
