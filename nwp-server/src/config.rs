//! What the server is told: addresses and limits, from the arguments of its program in the system's manifest.
//!
//! | argument | default | meaning |
//! |---|---|---|
//! | `address` | `10.0.2.15/24` | own IPv4 address and prefix length |
//! | `gateway` | `10.0.2.2` | router for everything outside the prefix |
//! | `mac` | the device tree's, else `02:00:00:00:00:01` | station address |
//! | `sockets` | `128` | TCP sockets in all, each with its buffers |
//! | `per-client` | `64` | connections that one client may hold |
//!
//! The defaults are those of the user-mode network that emulators offer, so that a guest works there unchanged.

use core::str::FromStr;

use smoltcp::wire::{EthernetAddress, Ipv4Address, Ipv4Cidr};

/// Bytes of a socket's receive buffer and of its transmit buffer: five full segments and a little.
pub const SOCKET_BUFFER: usize = 8192;

/// Frames taken from the device before the stack sends and other tasks get their turn.
pub const INGRESS_BUDGET: usize = 32;

/// Most connections that wait on one listener, whatever its owner asks for.
pub const MAX_BACKLOG: usize = 64;

/// A quiet connection's peer is asked this often whether it is still there.
pub const KEEP_ALIVE_SECONDS: u64 = 60;

/// A connection whose peer has not been heard for this long, though asked or sent to, is given up: sockets are few. Above the 100 s that RFC 9293,
/// section 3.8.3, demands before data is given up.
pub const PEER_TIMEOUT_SECONDS: u64 = 180;

/// Receive and transmit descriptors of the NIC.
pub const DESCRIPTORS: usize = 128;

/// Addresses and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Own address and prefix length.
    pub address: Ipv4Cidr,
    /// Default router.
    pub gateway: Ipv4Address,
    /// Station address.
    pub mac: EthernetAddress,
    /// TCP sockets in all.
    pub sockets: usize,
    /// Connections that one client may hold.
    pub per_client: usize,
}

/// An argument that cannot be understood: its name and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadArgument<'a> {
    /// Name of the argument.
    pub key: &'static str,
    /// What the manifest says.
    pub value: &'a str,
}

impl core::fmt::Display for BadArgument<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "argument {} = {:?} cannot be understood", self.key, self.value)
    }
}

impl Config {
    /// Reads the arguments through `arg`; those not given have the defaults above. `mac` is the address that the device tree
    /// gives the device, if it does.
    pub fn from_args<'a>(
        mac: Option<EthernetAddress>,
        arg: impl Fn(&'static str) -> Option<&'a str>,
    ) -> Result<Self, BadArgument<'a>> {
        fn read<'a, T: FromStr>(key: &'static str, given: Option<&'a str>, default: T) -> Result<T, BadArgument<'a>> {
            given.map_or(Ok(default), |value| value.parse().map_err(|_| BadArgument { key, value }))
        }
        let address = Ipv4Cidr::new(Ipv4Address::new(10, 0, 2, 15), 24);
        // Locally administered (IEEE 802, second bit of the first byte).
        let mac = mac.unwrap_or(EthernetAddress([0x02, 0, 0, 0, 0, 1]));
        Ok(Self {
            address: read("address", arg("address"), address)?,
            gateway: read("gateway", arg("gateway"), Ipv4Address::new(10, 0, 2, 2))?,
            mac: read("mac", arg("mac"), mac)?,
            sockets: read("sockets", arg("sockets"), 128)?,
            per_client: read("per-client", arg("per-client"), 64)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_user_mode_network() {
        let config = Config::from_args(None, |_| None).unwrap();
        assert_eq!(config.address, "10.0.2.15/24".parse().unwrap());
        assert_eq!(config.gateway, Ipv4Address::new(10, 0, 2, 2));
    }

    #[test]
    fn the_device_trees_station_address_is_used_unless_the_manifest_has_one() {
        let told = EthernetAddress([2, 3, 4, 5, 6, 7]);
        assert_eq!(Config::from_args(Some(told), |_| None).unwrap().mac, told);
    }

    #[test]
    fn arguments_replace_defaults() {
        let config = Config::from_args(Some(EthernetAddress([2; 6])), |key| match key {
            "address" => Some("192.168.7.9/16"),
            "mac" => Some("02:00:00:00:00:07"),
            "sockets" => Some("5"),
            _ => None,
        })
        .unwrap();
        assert_eq!(config.address, "192.168.7.9/16".parse().unwrap());
        assert_eq!(config.mac.as_bytes(), [2, 0, 0, 0, 0, 7]);
        assert_eq!((config.sockets, config.per_client), (5, 64));
    }

    #[test]
    fn nonsense_is_named() {
        for (name, value) in [("address", "10.0.2.15/33"), ("gateway", "router"), ("mac", "02"), ("sockets", "-1")] {
            let refused = Config::from_args(None, |key| (key == name).then_some(value)).unwrap_err();
            assert_eq!((refused.key, refused.value), (name, value));
        }
    }
}
