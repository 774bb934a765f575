//! A conversation in datagrams: UDP, or ICMP echo. One request is under way at a time; the generator does not repeat a lost one.
//!
//! ```text
//!             first answer            reply, or too late
//!   Knocking ──────────────▶ Ready ◀──────────────────── Waiting
//!                              └─────── request ────────────▶
//! ```
//!
//! Nothing tells when a server has begun to listen, so the flow knocks: it sends one datagram every millisecond until the first
//! answer. Late answers to knocks are known by their content.

use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::{icmp, udp};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr};

use super::config::{LoadGenConfig, Operation, Protocol, REPLY_XOR, request_content};
use super::flow::Flow;
use super::tally::Tally;
use crate::time::SimTime;
use crate::wire::stack::Stack;

/// Time between two knocks.
const KNOCK_INTERVAL: SimTime = SimTime::from_us(1000);
/// The request number of a knock; requests proper count from 0 and never get there.
const KNOCK: u64 = u32::MAX as u64;
/// Datagrams that a socket holds each way: the request or reply under way and late answers to knocks.
const DATAGRAMS: usize = 8;
/// ICMP header.
const ICMP_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Knocking { again_at: SimTime, give_up_at: SimTime },
    Ready { at: SimTime },
    Waiting { started: SimTime, deadline: SimTime },
    Done,
}

/// The conversation.
pub(super) struct DatagramFlow {
    phase: usize,
    index: usize,
    /// Local UDP port, or ICMP identifier.
    local: u16,
    handle: SocketHandle,
    state: State,
    requests: u64,
    answered: u64,
    /// The reply that must come.
    expected: Vec<u8>,
    /// The reply to a knock.
    knock_reply: Vec<u8>,
}

impl DatagramFlow {
    /// A flow that knocks at its first [`Flow::step`].
    pub(super) fn new(
        host: &mut Stack,
        config: &LoadGenConfig,
        phase: usize,
        index: usize,
        local: u16,
        now: SimTime,
    ) -> Self {
        let bytes = (config.size as usize + ICMP_BYTES) * DATAGRAMS;
        let handle = if config.protocol == Protocol::Udp {
            let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; DATAGRAMS], vec![0; bytes]);
            let mut socket = udp::Socket::new(buffer(), buffer());
            socket.bind(local).expect("a fresh socket and a port that is not 0");
            host.sockets.add(socket)
        } else {
            let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; DATAGRAMS], vec![0; bytes]);
            let mut socket = icmp::Socket::new(buffer(), buffer());
            socket.bind(icmp::Endpoint::Ident(local)).expect("a fresh socket and an identifier");
            host.sockets.add(socket)
        };
        Self {
            phase,
            index,
            local,
            handle,
            state: State::Knocking { again_at: now, give_up_at: now + config.timeout },
            requests: 0,
            answered: 0,
            expected: Vec::new(),
            knock_reply: Vec::new(),
        }
    }

    /// Sends request `number` and returns the reply to expect.
    fn send(&self, host: &mut Stack, config: &LoadGenConfig, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; config.size as usize];
        request_content(config.seed, self.phase, self.index, number, &mut bytes);
        // The socket holds more datagrams than are ever queued; what it refuses would be missed as a reply, not overlooked.
        if config.protocol == Protocol::Udp {
            let _ = host.sockets.get_mut::<udp::Socket>(self.handle).send_slice(&bytes, config.server);
            bytes.iter_mut().for_each(|byte| *byte ^= REPLY_XOR);
        } else {
            let echo = Icmpv4Repr::EchoRequest { ident: self.local, seq_no: number as u16, data: &bytes };
            let socket = host.sockets.get_mut::<icmp::Socket>(self.handle);
            if let Ok(packet) = socket.send(echo.buffer_len(), (*config.server.ip()).into()) {
                echo.emit(&mut Icmpv4Packet::new_unchecked(packet), &ChecksumCapabilities::default());
            }
        }
        bytes
    }

    /// The next reply that has arrived, from whomever it claims to be.
    fn receive(&self, host: &mut Stack, protocol: Protocol) -> Option<Vec<u8>> {
        if protocol == Protocol::Udp {
            let (bytes, _) = host.sockets.get_mut::<udp::Socket>(self.handle).recv().ok()?;
            return Some(bytes.to_vec());
        }
        let (bytes, _) = host.sockets.get_mut::<icmp::Socket>(self.handle).recv().ok()?;
        let packet = Icmpv4Packet::new_checked(bytes).ok()?;
        match Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()) {
            Ok(Icmpv4Repr::EchoReply { data, .. }) => Some(data.to_vec()),
            // Anything else is not an answer.
            _ => Some(Vec::new()),
        }
    }

    /// Returns true if there were any.
    fn take_replies(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool {
        let mut any = false;
        while let Some(reply) = self.receive(host, config.protocol) {
            match self.state {
                State::Knocking { .. } if reply == self.knock_reply => self.state = State::Ready { at: now },
                _ if reply == self.knock_reply => {}
                State::Waiting { started, .. } => {
                    tally.finished(now, started, reply == self.expected);
                    self.answered += 1;
                    self.state = State::Ready { at: now + config.think };
                }
                // Nobody asked for it.
                State::Knocking { .. } | State::Ready { .. } | State::Done => tally.broken(0),
            }
            any = true;
        }
        any
    }
}

impl Flow for DatagramFlow {
    fn ready(&self) -> bool {
        !matches!(self.state, State::Knocking { .. })
    }

    fn quiet(&self) -> bool {
        !matches!(self.state, State::Waiting { .. })
    }

    fn closing(&self) -> bool {
        false
    }

    fn done(&self) -> bool {
        self.state == State::Done
    }

    fn answered(&self) -> u64 {
        self.answered
    }

    fn wake(&self, _operation: Operation, work_left: bool) -> Option<SimTime> {
        match self.state {
            State::Knocking { again_at, .. } => Some(again_at),
            State::Ready { at } => work_left.then_some(at),
            State::Waiting { deadline, .. } => Some(deadline),
            State::Done => None,
        }
    }

    fn step(&mut self, host: &mut Stack, config: &LoadGenConfig, tally: &mut Tally, now: SimTime) -> bool {
        let received = self.take_replies(host, config, tally, now);
        match self.state {
            State::Knocking { again_at, give_up_at } if now >= again_at => {
                if now >= give_up_at {
                    tally.broken(0);
                    self.state = State::Done;
                    return true;
                }
                if !self.knock_reply.is_empty() {
                    tally.refused();
                }
                self.knock_reply = self.send(host, config, KNOCK);
                self.state = State::Knocking { again_at: now + KNOCK_INTERVAL, give_up_at };
                true
            }
            State::Ready { at } if now >= at && tally.work_left() => {
                tally.start();
                self.expected = self.send(host, config, self.requests);
                self.requests += 1;
                self.state = State::Waiting { started: now, deadline: now + config.timeout };
                true
            }
            State::Waiting { deadline, .. } if now >= deadline => {
                tally.broken(1);
                self.state = State::Ready { at: now };
                true
            }
            _ => received,
        }
    }

    fn close(&mut self, _host: &mut Stack, _config: &LoadGenConfig, _now: SimTime) {
        self.state = State::Done;
    }

    fn remove(&self, host: &mut Stack) {
        host.sockets.remove(self.handle);
    }
}
