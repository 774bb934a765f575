//! User-mode network: the guest is behind a gateway that needs no rights on the host.
//!
//! ```text
//!   guest 10.0.2.15 ── frames ── gateway 10.0.2.2 ──┬── TCP: a stack (smoltcp) ends the guest's connections, sockets of the
//!                                                   │   host go on with them; the gateway's own address is the host's loopback
//!                                                   ├── UDP: datagrams, forth and back
//!                                                   └── ARP, ICMP echo: answered by the stack
//!   host 127.0.0.1:8080 ── forward tcp:8080:80 ──▶ guest port 80
//! ```
//!
//! TCP ends on both sides of the gateway, so what counts is the order of bytes, not of segments: a flow copies what one side
//! has to where the other has room ([`tcp`]). UDP needs no stack ([`udp`]).
//!
//! A run with it depends on the host: see [`super::pace`].

use serde::{Deserialize, Serialize};

pub mod forward;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use std::io;
use std::net::Ipv4Addr;

use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet};

pub use forward::{Forward, Transport};

use super::pace::Pace;
use super::stack::Stack;
use super::{Next, Peer};
use crate::time::SimTime;
use tcp::TcpFlows;
use udp::UdpFlows;

/// The gateway, which stands for the host.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const GATEWAY_MAC: [u8; 6] = [0x52, 0x55, 10, 0, 2, 2];
const PREFIX: u8 = 24;

/// What the gateway does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatConfig {
    /// The guest, for forwarding.
    pub guest: Ipv4Addr,
    /// Ports of the host's loopback address that lead to the guest.
    pub forwards: Vec<Forward>,
}

impl Default for NatConfig {
    fn default() -> Self {
        Self { guest: Ipv4Addr::new(10, 0, 2, 15), forwards: Vec::new() }
    }
}

/// The gateway.
pub struct Nat {
    stack: Stack,
    tcp: TcpFlows,
    udp: UdpFlows,
    pace: Pace,
}

impl Nat {
    /// A gateway. Errors: the host's, if a port to be forwarded cannot be opened; the message names it.
    pub fn new(config: &NatConfig) -> io::Result<Self> {
        let mut stack = Stack::new(GATEWAY_MAC, GATEWAY, PREFIX, 1);
        stack.answer_for_all();
        let forwards = |transport| {
            let of_transport = move |forward: &&Forward| forward.transport == transport;
            config.forwards.iter().filter(of_transport)
        };
        Ok(Self {
            stack,
            tcp: TcpFlows::new(config.guest, forwards(Transport::Tcp))?,
            udp: UdpFlows::new(config.guest, forwards(Transport::Udp))?,
            pace: Pace::default(),
        })
    }

    /// Moves what can be moved; gives a frame for the guest, if there is one.
    fn pump(&mut self, now: SimTime) -> Option<Vec<u8>> {
        self.tcp.pump(&mut self.stack);
        self.stack.poll(now);
        // What the stack has just taken in goes to the host at once.
        self.tcp.pump(&mut self.stack);
        self.stack.poll(now);
        if self.udp.seeks_guest() {
            self.stack.ask_for(self.udp.guest());
        }
        self.stack.pop().or_else(|| self.udp.receive(now))
    }
}

impl Peer for Nat {
    fn deliver(&mut self, now: SimTime, frame: &[u8]) {
        let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return };
        self.udp.learn(ethernet.src_addr());
        if ethernet.ethertype() == EthernetProtocol::Ipv4
            && let Ok(packet) = Ipv4Packet::new_checked(ethernet.payload())
        {
            match packet.next_header() {
                IpProtocol::Udp => return self.udp.send(now, &packet),
                // An opening waits until the host's side is open.
                IpProtocol::Tcp if self.tcp.takes_opening(frame, &packet) => return,
                _ => {}
            }
        }
        self.stack.push(frame);
    }

    fn next(&mut self, now: SimTime) -> Next {
        loop {
            if let Some(frame) = self.pump(now) {
                return Next::Frame(frame);
            }
            if !self.pace.brake(now) {
                let look = self.pace.next_look(now);
                return Next::At(self.stack.wake(now).map_or(look, |at| at.min(look)));
            }
        }
    }

    fn repeatable(&self) -> bool {
        false
    }
}

/// Where the guest's `address` is on the host.
fn on_host(address: Ipv4Addr) -> Ipv4Addr {
    if address == GATEWAY { Ipv4Addr::LOCALHOST } else { address }
}

/// What the guest calls the host's `address`.
fn for_guest(address: Ipv4Addr) -> Ipv4Addr {
    if address.is_loopback() { GATEWAY } else { address }
}
