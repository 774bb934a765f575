//! The text form of a network: what is plugged into the NIC, as a command line says it.
//!
//! ```text
//!   [NIC,]none                                    no cable; NIC is axi (the default), virtio or gem
//!   [NIC,]sink | echo | loopback                  the peers of that name
//!   [NIC,]loadgen:connections=1,2,4;requests=200  the load generator
//!   [NIC,]nat:forward=tcp:8080:80,udp:5353:53     the host's network, through a gateway at 10.0.2.2
//!   [NIC,]dgram:local=127.0.0.1:7001;remote=127.0.0.1:7002      a cable of UDP datagrams, as QEMU's -netdev dgram
//!   [NIC,]tap:name=tap0                           a tap device
//!   KIND:...;rate=1G;delay=5us;loss=0.01;damage=0.001;reorder=0.01;duplicate=0.01;link-seed=7;pcap=run.pcap      with any kind but none
//! ```
//!
//! Key of `nat` besides `forward`: `guest` (10.0.2.15).
//!
//! Keys of `loadgen`: `connections` (list), `requests`, `warmup`, `size`, `proto` (tcp, udp, ping), `op` (call, read, write), `server` (address:port),
//! `port`, `address` (a.b.c.d/prefix), `think`, `timeout`, `patience`, `seed`; what they mean and their defaults: [`LoadGenConfig`].

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::loadgen::{ConfigError, LoadGenConfig, Operation, Protocol, ReportHandle};
use super::nat::forward::ForwardError;
use super::{Dgram, DgramConfig, Echo, Link, LinkConfig, LoadGen, Loopback, Nat, NatConfig, Peer, Sink, Tap, Tee};
use crate::time::SimTime;

/// What is at the far end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerSpec {
    /// [`Sink`].
    Sink,
    /// [`Echo`].
    Echo,
    /// [`Loopback`].
    Loopback,
    /// [`LoadGen`].
    LoadGen(LoadGenConfig),
    /// [`Nat`].
    Nat(NatConfig),
    /// [`Dgram`]; both ends must be said.
    Dgram {
        /// Where datagrams are received.
        local: Option<SocketAddr>,
        /// Where they are sent.
        remote: Option<SocketAddr>,
    },
    /// [`Tap`]: the name of the device, which must be said.
    Tap(Option<String>),
}

/// The NIC of the board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nic {
    /// AXI DMA and AXI Ethernet.
    #[default]
    Axi,
    /// virtio-net.
    Virtio,
    /// Cadence GEM.
    Gem,
}

/// A network: a NIC, and nothing or a peer behind a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetSpec {
    /// What the cable is plugged into; the board has this NIC and no other.
    pub nic: Nic,
    /// The peer; `None` = no cable.
    pub peer: Option<PeerSpec>,
    /// The link.
    pub link: LinkConfig,
    /// Where to write a packet capture.
    pub pcap: Option<PathBuf>,
}

/// A network ready for a NIC.
#[derive(Default)]
pub struct Network {
    /// The link to the peer; `None` = no cable.
    pub link: Option<Link>,
    /// The load generator's report, if there is one.
    pub report: Option<ReportHandle>,
}

/// A refused network description.
#[derive(Debug, Error)]
pub enum NetError {
    /// Unknown peer.
    #[error("\"{kind}\" is no network: choose none, sink, echo, loopback, loadgen, nat, dgram or tap")]
    Kind {
        /// What was given.
        kind: String,
    },
    /// A part that is not `key=value`.
    #[error("\"{part}\" is not key=value")]
    Syntax {
        /// What was given.
        part: String,
    },
    /// Unknown key for this peer.
    #[error("{kind} has no setting \"{key}\"")]
    Key {
        /// The peer.
        kind: String,
        /// The key given.
        key: String,
    },
    /// A value that cannot be read.
    #[error("{key}=\"{value}\": expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A setting without which there is no such network.
    #[error("{kind} needs {key}=...")]
    Missing {
        /// The peer.
        kind: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A bad port to forward.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// The host refuses what the peer needs of it.
    #[error("{kind}: {source}")]
    Host {
        /// The peer.
        kind: &'static str,
        /// The host's answer.
        source: std::io::Error,
    },
    /// The load generator refuses its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The capture file cannot be created.
    #[error("cannot create packet capture {path}: {source}")]
    Pcap {
        /// The file.
        path: String,
        /// The host's answer.
        source: std::io::Error,
    },
}

impl FromStr for NetSpec {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        let (nic, text) = match text.split_once(',') {
            Some(("axi", rest)) => (Nic::Axi, rest),
            Some(("virtio", rest)) => (Nic::Virtio, rest),
            Some(("gem", rest)) => (Nic::Gem, rest),
            _ => (Nic::Axi, text),
        };
        let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
        let peer = match kind {
            "none" => None,
            "sink" => Some(PeerSpec::Sink),
            "echo" => Some(PeerSpec::Echo),
            "loopback" => Some(PeerSpec::Loopback),
            "loadgen" => Some(PeerSpec::LoadGen(LoadGenConfig::default())),
            "nat" => Some(PeerSpec::Nat(NatConfig::default())),
            "dgram" => Some(PeerSpec::Dgram { local: None, remote: None }),
            "tap" => Some(PeerSpec::Tap(None)),
            _ => return Err(NetError::Kind { kind: kind.to_owned() }),
        };
        let mut spec = Self { nic, peer, ..Self::default() };
        for part in settings.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| NetError::Syntax { part: part.to_owned() })?;
            spec.set(kind, key.trim(), value.trim())?;
        }
        if let Some(PeerSpec::LoadGen(config)) = &spec.peer {
            config.check()?;
        }
        Ok(spec)
    }
}

impl NetSpec {
    fn set(&mut self, kind: &str, key: &str, value: &str) -> Result<(), NetError> {
        let unknown = || NetError::Key { kind: kind.to_owned(), key: key.to_owned() };
        let setting = Setting { key, value };
        match (&mut self.peer, key) {
            (None, _) => return Err(unknown()),
            (_, "rate") => self.link.byte_ps = setting.rate()?,
            (_, "delay") => self.link.delay = setting.time()?,
            (_, "loss") => self.link.loss_ppm = setting.share()?,
            (_, "damage") => self.link.damage_ppm = setting.share()?,
            (_, "reorder") => self.link.reorder_ppm = setting.share()?,
            (_, "duplicate") => self.link.duplicate_ppm = setting.share()?,
            (_, "link-seed") => self.link.seed = setting.number("a number")?,
            (_, "pcap") => self.pcap = Some(PathBuf::from(value)),
            (Some(PeerSpec::LoadGen(config)), _) => match key {
                "connections" => config.connections = setting.list()?,
                "requests" => config.requests = setting.number("a number of requests")?,
                "warmup" => config.warmup = setting.number("a number of requests")?,
                "size" => config.size = setting.number("a number of bytes")?,
                "proto" => config.protocol = setting.protocol()?,
                "op" => config.operation = setting.operation()?,
                "server" => config.server = setting.number("address:port")?,
                "port" => config.server.set_port(setting.number("a port")?),
                "address" => (config.address, config.prefix) = setting.network()?,
                "think" => config.think = setting.time()?,
                "timeout" => config.timeout = setting.time()?,
                "patience" => config.patience = setting.time()?,
                "seed" => config.seed = setting.number("a number")?,
                _ => return Err(unknown()),
            },
            (Some(PeerSpec::Nat(config)), "guest") => config.guest = setting.number("an IPv4 address")?,
            (Some(PeerSpec::Nat(config)), "forward") => {
                for forward in value.split(',') {
                    config.forwards.push(forward.trim().parse()?);
                }
            }
            (Some(PeerSpec::Dgram { local, .. }), "local") => *local = Some(setting.number("address:port")?),
            (Some(PeerSpec::Dgram { remote, .. }), "remote") => *remote = Some(setting.number("address:port")?),
            (Some(PeerSpec::Tap(name)), "name") => *name = Some(value.to_owned()),
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// Makes the peer and its link. Errors: [`NetError::Config`], [`NetError::Missing`], [`NetError::Host`],
    /// [`NetError::Pcap`].
    pub fn build(self) -> Result<Network, NetError> {
        let Some(peer) = self.peer else { return Ok(Network::default()) };
        let mut report = None;
        let mut peer: Box<dyn Peer> = match peer {
            PeerSpec::Sink => Box::new(Sink::new().0),
            PeerSpec::Echo => Box::new(Echo::new()),
            PeerSpec::Loopback => Box::new(Loopback::new()),
            PeerSpec::LoadGen(config) => {
                let (generator, handle) = LoadGen::new(config)?;
                report = Some(handle);
                Box::new(generator)
            }
            PeerSpec::Nat(config) => Box::new(Nat::new(&config).map_err(refused_by_host("nat"))?),
            PeerSpec::Dgram { local, remote } => {
                let local = local.ok_or(NetError::Missing { kind: "dgram", key: "local" })?;
                let remote = remote.ok_or(NetError::Missing { kind: "dgram", key: "remote" })?;
                Box::new(Dgram::new(DgramConfig { local, remote }).map_err(refused_by_host("dgram"))?)
            }
            PeerSpec::Tap(name) => {
                let name = name.ok_or(NetError::Missing { kind: "tap", key: "name" })?;
                Box::new(Tap::new(&name).map_err(refused_by_host("tap"))?)
            }
        };
        if let Some(path) = self.pcap {
            // Not buffered: the capture is complete to the last frame however the process ends.
            let tee = File::create(&path).and_then(|file| Tee::new(peer, file));
            peer = Box::new(tee.map_err(|source| NetError::Pcap { path: path.display().to_string(), source })?);
        }
        Ok(Network { link: Some(Link::new(self.link, peer)), report })
    }
}

fn refused_by_host(kind: &'static str) -> impl Fn(std::io::Error) -> NetError {
    move |source| NetError::Host { kind, source }
}

/// One `key=value`, and how to read the value.
struct Setting<'a> {
    key: &'a str,
    value: &'a str,
}

impl Setting<'_> {
    fn refuse(&self, expected: &'static str) -> NetError {
        NetError::Value { key: self.key.to_owned(), value: self.value.to_owned(), expected }
    }

    fn number<T: FromStr>(&self, expected: &'static str) -> Result<T, NetError> {
        self.value.parse().map_err(|_| self.refuse(expected))
    }

    fn list(&self) -> Result<Vec<u32>, NetError> {
        let numbers: Result<_, _> = self.value.split(',').map(|item| item.trim().parse()).collect();
        numbers.map_err(|_| self.refuse("numbers separated by commas"))
    }

    fn protocol(&self) -> Result<Protocol, NetError> {
        match self.value {
            "tcp" => Ok(Protocol::Tcp),
            "udp" => Ok(Protocol::Udp),
            "ping" => Ok(Protocol::Ping),
            _ => Err(self.refuse("tcp, udp or ping")),
        }
    }

    fn operation(&self) -> Result<Operation, NetError> {
        match self.value {
            "call" => Ok(Operation::Call),
            "read" => Ok(Operation::Read),
            "write" => Ok(Operation::Write),
            _ => Err(self.refuse("call, read or write")),
        }
    }

    fn network(&self) -> Result<(Ipv4Addr, u8), NetError> {
        let parsed = self
            .value
            .split_once('/')
            .and_then(|(address, prefix)| Some((address.parse().ok()?, prefix.parse().ok()?)));
        parsed.ok_or_else(|| self.refuse("address/prefix, such as 10.0.2.2/24"))
    }

    /// A time such as 500ns, 10us, 2ms, 1s.
    fn time(&self) -> Result<SimTime, NetError> {
        let units = [("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000), ("ps", 1)];
        let parsed = units.iter().find_map(|&(unit, ps)| {
            let number: u64 = self.value.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(ps)
        });
        // A day is far below the 213 days that `SimTime` holds.
        let limit = 86_400 * 1_000_000_000_000;
        parsed
            .filter(|&ps| ps <= limit)
            .map(SimTime::from_ps)
            .ok_or_else(|| self.refuse("a time up to a day, such as 500ns, 10us, 2ms or 1s"))
    }

    /// Bits per second, such as 1G, 100M or 10M; the byte time must be whole picoseconds.
    fn rate(&self) -> Result<u64, NetError> {
        let expected = "bits per second, such as 10M, 100M, 1G or 10G";
        let (digits, unit) = match self.value.strip_suffix('G') {
            Some(digits) => (digits, 1_000_000_000u64),
            None => (self.value.strip_suffix('M').ok_or_else(|| self.refuse(expected))?, 1_000_000),
        };
        let bits: Option<u64> = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let picoseconds = 8_000_000_000_000u64;
        match bits {
            Some(bits) if bits > 0 && picoseconds.is_multiple_of(bits) => Ok(picoseconds / bits),
            _ => Err(self.refuse(expected)),
        }
    }

    /// A share such as 0.01, in parts of a million.
    fn share(&self) -> Result<u32, NetError> {
        let share: f64 = self.number("a share from 0 to 1")?;
        // The comparison is false for "nan", and the product is at most a million.
        if (0.0..=1.0).contains(&share) {
            Ok((share * 1e6).round() as u32)
        } else {
            Err(self.refuse("a share from 0 to 1"))
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Network").field("link", &self.link.is_some()).field("report", &self.report).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_said() {
        let spec: NetSpec = "loadgen:connections=1,2,4; requests=200;warmup=10;size=128;proto=tcp;op=read;server=10.0.2.20:80;\
             address=10.0.2.9/16;think=3us;timeout=10ms;patience=1s;seed=9;rate=100M;delay=500ns;loss=0.01;damage=0.000001;reorder=0.5;duplicate=1;\
             link-seed=3;pcap=a.pcap"
            .parse()
            .unwrap();
        let Some(PeerSpec::LoadGen(config)) = &spec.peer else { panic!("{spec:?}") };
        assert_eq!(config.connections, [1, 2, 4]);
        assert_eq!((config.requests, config.warmup, config.size, config.seed), (200, 10, 128, 9));
        assert_eq!((config.operation, config.prefix), (Operation::Read, 16));
        assert_eq!((config.server.to_string(), config.address.to_string()), ("10.0.2.20:80".into(), "10.0.2.9".into()));
        assert_eq!((config.think, config.timeout), (SimTime::from_us(3), SimTime::from_us(10_000)));
        assert_eq!(config.patience, SimTime::from_us(1_000_000));
        assert_eq!((spec.link.byte_ps, spec.link.delay), (80_000, SimTime::from_ns(500)));
        assert_eq!((spec.link.loss_ppm, spec.link.damage_ppm, spec.link.seed), (10_000, 1, 3));
        assert_eq!((spec.link.reorder_ppm, spec.link.duplicate_ppm), (500_000, 1_000_000));
        assert_eq!(spec.pcap, Some(PathBuf::from("a.pcap")));
    }

    #[test]
    fn short_forms() {
        assert_eq!("none".parse::<NetSpec>().unwrap(), NetSpec::default());
        assert_eq!("echo".parse::<NetSpec>().unwrap().peer, Some(PeerSpec::Echo));
        for (text, nic) in
            [("echo", Nic::Axi), ("axi,echo", Nic::Axi), ("virtio,echo:rate=10M", Nic::Virtio), ("gem,echo", Nic::Gem)]
        {
            let spec = text.parse::<NetSpec>().unwrap();
            assert_eq!((spec.nic, spec.peer), (nic, Some(PeerSpec::Echo)));
        }
        assert!("none".parse::<NetSpec>().unwrap().build().unwrap().link.is_none());
        let network = "loadgen".parse::<NetSpec>().unwrap().build().unwrap();
        assert!(network.link.is_some() && !network.report.unwrap().finished());
    }

    #[test]
    fn refusals_name_the_culprit() {
        for (text, word) in [
            ("bogus", "bogus"),
            ("token-ring,echo", "token-ring"),
            ("sink:connections=1", "connections"),
            ("none:rate=1G", "rate"),
            ("loadgen:speed=9", "speed"),
            ("loadgen:requests", "requests"),
            ("loadgen:requests=many", "many"),
            ("loadgen:connections=1,,2", "1,,2"),
            ("loadgen:connections=0", "0 connections"),
            ("loadgen:op=shout", "shout"),
            ("loadgen:proto=ipx", "ipx"),
            ("loadgen:proto=udp;op=read", "TCP"),
            ("loadgen:address=10.0.2.2", "10.0.2.2"),
            ("loadgen:port=99999", "99999"),
            ("sink:rate=3G", "3G"),
            ("sink:rate=0G", "0G"),
            ("sink:delay=5", "delay"),
            ("sink:delay=99999999999999s", "delay"),
            ("sink:loss=1.5", "1.5"),
            ("sink:loss=nan", "nan"),
            ("nat:forward=tcp:80", "tcp:80"),
            ("nat:guest=here", "here"),
            ("dgram:local=7001", "7001"),
            ("tap:local=127.0.0.1:1", "local"),
        ] {
            let error = text.parse::<NetSpec>().expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        for (text, word) in
            [("dgram:local=127.0.0.1:0", "remote="), ("tap", "name="), ("tap:name=longer-than-any-interface", "tap:")]
        {
            let error = text.parse::<NetSpec>().unwrap().build().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let error = "sink:pcap=/nonexistent/x".parse::<NetSpec>().unwrap().build().unwrap_err();
        assert!(error.to_string().contains("/nonexistent/x"), "{error}");
    }
}
