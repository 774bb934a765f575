//! A port of the host that leads to one of the guest, written `tcp:8080:80`: transport, port of the host's loopback address,
//! port of the guest.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

use thiserror::Error;

/// What is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// One forwarded port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// What is forwarded.
    pub transport: Transport,
    /// Port on 127.0.0.1; 0: one that is free.
    pub host_port: u16,
    /// Port of the guest.
    pub guest_port: u16,
}

/// Not a forward.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not tcp:HOST_PORT:GUEST_PORT or udp:HOST_PORT:GUEST_PORT")]
pub struct ForwardError(String);

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let parse = || {
            let mut parts = text.split(':');
            let transport = match parts.next()? {
                "tcp" => Transport::Tcp,
                "udp" => Transport::Udp,
                _ => return None,
            };
            let host_port = parts.next()?.parse().ok()?;
            let guest_port = parts.next()?.parse().ok().filter(|port| *port != 0)?;
            parts.next().is_none().then_some(Self { transport, host_port, guest_port })
        };
        parse().ok_or_else(|| ForwardError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form() {
        let forward = Forward { transport: Transport::Udp, host_port: 0, guest_port: 53 };
        assert_eq!("udp:0:53".parse(), Ok(forward));
        for bad in ["", "tcp", "tcp:1", "tcp:1:0", "tcp:1:70000", "icmp:1:2", "tcp:1:2:3", "tcp:a:2"] {
            let error = bad.parse::<Forward>().unwrap_err();
            assert!(error.to_string().contains(&format!("\"{bad}\"")), "{error}");
        }
    }
}
