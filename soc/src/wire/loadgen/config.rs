//! What the load generator does: its parameters, their limits and the content of the messages.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};

use thiserror::Error;

use crate::time::SimTime;
use crate::wire::random::Random;

/// What the requests travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// One TCP connection each.
    Tcp,
    /// One local UDP port each; a request is a datagram.
    Udp,
    /// ICMP echo requests, one identifier each. The reply carries the request's bytes as they are.
    Ping,
}

/// Who speaks on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The peer sends a request and waits for the whole reply: byte i of the reply is byte i of the request xor
    /// [`REPLY_XOR`].
    Call,
    /// Only the peer sends: the guest reads. A request counts as done when the guest's TCP has acknowledged all of it.
    Read,
    /// Only the guest sends: the guest writes. Byte i of each connection's stream must be [`stream_byte`]`(i)`.
    Write,
}

/// A reply differs from its request by this in every byte, so that a reflected segment does not pass for an answer.
pub const REPLY_XOR: u8 = 0x5A;

/// Byte `index` of the stream that a guest sends in [`Operation::Write`]: the index in base 251, so that a lost, repeated or
/// moved block is seen (251 is prime, no power-of-two buffer divides it).
pub const fn stream_byte(index: u64) -> u8 {
    (index % 251) as u8
}

/// Fills `bytes` with the request number `request` of connection `connection` of phase `phase`.
pub(super) fn request_content(seed: u64, phase: usize, connection: usize, request: u64, bytes: &mut [u8]) {
    let index = ((phase as u64) << 48) ^ ((connection as u64) << 32) ^ request;
    Random::split(seed, index).fill(bytes);
}

/// Parameters of a [`super::LoadGen`]. Start from [`LoadGenConfig::default`] and change fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadGenConfig {
    /// The peer's address.
    pub address: Ipv4Addr,
    /// Length of the common network prefix.
    pub prefix: u8,
    /// The peer's station address.
    pub mac: [u8; 6],
    /// The guest's address and port.
    pub server: SocketAddrV4,
    /// What the requests travel in.
    pub protocol: Protocol,
    /// Who speaks; UDP and ping can only call.
    pub operation: Operation,
    /// One phase for each entry: the number of connections open at a time.
    pub connections: Vec<u32>,
    /// Measured requests of a phase: this many times the number of connections.
    pub requests: u32,
    /// Replies that every connection has before anything is measured.
    pub warmup: u32,
    /// Bytes of a request, and of its reply.
    pub size: u32,
    /// Time between a reply and the next request of the same connection.
    pub think: SimTime,
    /// A request, an opening or a closing that takes longer is an error and ends its connection.
    pub timeout: SimTime,
    /// How long the generator asks for a guest that does not answer before it gives up.
    pub patience: SimTime,
    /// Seed of contents, sequence numbers and ports.
    pub seed: u64,
}

impl Default for LoadGenConfig {
    /// One connection, 64-byte calls to 10.0.2.15 port 7.
    fn default() -> Self {
        Self {
            address: Ipv4Addr::new(10, 0, 2, 2),
            prefix: 24,
            mac: [0x02, 0, 0, 0, 0, 0x02],
            server: SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 15), 7),
            protocol: Protocol::Tcp,
            operation: Operation::Call,
            connections: vec![1],
            requests: 1000,
            warmup: 100,
            size: 64,
            think: SimTime::ZERO,
            timeout: SimTime::from_us(2_000_000),
            patience: SimTime::from_us(20_000_000),
            seed: 1,
        }
    }
}

/// Most connections of a phase; the local ports of two neighbouring phases must not meet.
pub const MAX_CONNECTIONS: u32 = 1024;
/// Largest request over TCP.
pub const MAX_SIZE_BYTES: u32 = 1 << 20;
/// Largest request in one datagram: a 1500-byte packet without the headers of IPv4 and UDP or ICMP echo.
pub const MAX_DATAGRAM_BYTES: u32 = 1472;

/// A refused [`LoadGenConfig`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// No phase at all.
    #[error("no phase: give at least one number of connections")]
    NoPhase,
    /// A phase with too few or too many connections.
    #[error("{asked} connections: a phase has 1 to {MAX_CONNECTIONS}")]
    Connections {
        /// The number asked for.
        asked: u32,
    },
    /// Nothing to measure.
    #[error("0 requests: nothing would be measured")]
    NoRequests,
    /// Message size out of range.
    #[error("{asked} bytes a message: choose 1 to {MAX_SIZE_BYTES}, at most {MAX_DATAGRAM_BYTES} for UDP and ping")]
    Size {
        /// The size asked for.
        asked: u32,
    },
    /// A one-way operation without a connection.
    #[error("UDP and ping can only call: read and write need TCP")]
    OneWay,
    /// Peer and guest do not share a network.
    #[error("peer {peer} and server {server} are not two hosts of one /{prefix} network")]
    Network {
        /// The peer's address.
        peer: Ipv4Addr,
        /// The server's address.
        server: Ipv4Addr,
        /// Prefix length.
        prefix: u8,
    },
    /// The station address is a group address.
    #[error("the peer's station address is a group address: clear the lowest bit of its first byte")]
    GroupAddress,
    /// A time of zero where time must pass.
    #[error("the timeout must be longer than zero")]
    NoTimeout,
    /// Port 0 cannot be connected to.
    #[error("port 0 is no server port")]
    NoPort,
}

impl LoadGenConfig {
    /// Checks every field. Errors: one variant of [`ConfigError`] each.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.connections.is_empty() {
            return Err(ConfigError::NoPhase);
        }
        if let Some(&asked) = self.connections.iter().find(|count| !(1..=MAX_CONNECTIONS).contains(count)) {
            return Err(ConfigError::Connections { asked });
        }
        if self.requests == 0 {
            return Err(ConfigError::NoRequests);
        }
        let largest = if self.protocol == Protocol::Tcp { MAX_SIZE_BYTES } else { MAX_DATAGRAM_BYTES };
        if !(1..=largest).contains(&self.size) {
            return Err(ConfigError::Size { asked: self.size });
        }
        if self.protocol != Protocol::Tcp && self.operation != Operation::Call {
            return Err(ConfigError::OneWay);
        }
        let (peer, server) = (self.address, *self.server.ip());
        let host_bits = 32u32.checked_sub(u32::from(self.prefix));
        let same_network = |bits| u64::from(peer.to_bits() ^ server.to_bits()) >> bits == 0;
        if peer == server || !host_bits.is_some_and(same_network) {
            return Err(ConfigError::Network { peer, server, prefix: self.prefix });
        }
        if self.mac[0] & 1 != 0 {
            return Err(ConfigError::GroupAddress);
        }
        if self.timeout == SimTime::ZERO {
            return Err(ConfigError::NoTimeout);
        }
        if self.server.port() == 0 {
            return Err(ConfigError::NoPort);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal() {
        let good = LoadGenConfig::default();
        assert_eq!(good.check(), Ok(()));
        let bad = [
            LoadGenConfig { connections: vec![], ..good.clone() },
            LoadGenConfig { connections: vec![1, 0], ..good.clone() },
            LoadGenConfig { connections: vec![MAX_CONNECTIONS + 1], ..good.clone() },
            LoadGenConfig { requests: 0, ..good.clone() },
            LoadGenConfig { size: 0, ..good.clone() },
            LoadGenConfig { size: MAX_SIZE_BYTES + 1, ..good.clone() },
            LoadGenConfig { protocol: Protocol::Udp, size: MAX_DATAGRAM_BYTES + 1, ..good.clone() },
            LoadGenConfig { protocol: Protocol::Ping, operation: Operation::Read, ..good.clone() },
            LoadGenConfig { address: Ipv4Addr::new(10, 0, 3, 2), ..good.clone() },
            LoadGenConfig { address: *good.server.ip(), ..good.clone() },
            LoadGenConfig { prefix: 33, ..good.clone() },
            LoadGenConfig { mac: [1, 0, 0, 0, 0, 1], ..good.clone() },
            LoadGenConfig { timeout: SimTime::ZERO, ..good.clone() },
            LoadGenConfig { server: SocketAddrV4::new(*good.server.ip(), 0), ..good.clone() },
        ];
        for config in bad {
            assert!(config.check().is_err(), "{config:?}");
        }
    }

    #[test]
    fn contents_differ_between_requests_connections_and_phases() {
        let content = |seed, phase, connection, request| {
            let mut bytes = [0; 64];
            request_content(seed, phase, connection, request, &mut bytes);
            bytes
        };
        let all =
            [content(1, 0, 0, 0), content(2, 0, 0, 0), content(1, 1, 0, 0), content(1, 0, 1, 0), content(1, 0, 0, 1)];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one));
        }
        assert_eq!(content(1, 0, 0, 0), content(1, 0, 0, 0));
    }
}
