//! A cable made of UDP datagrams, one for each frame, as QEMU's `-netdev dgram` back end sends them: with QEMU or another `soc` at the
//! other end, any of their guests is the peer. Addresses are the host's; datagrams of anybody but `remote` are dropped.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use super::pace::Pace;
use super::{Next, Peer};
use crate::time::SimTime;

/// More than the longest frame that any NIC of ours takes.
const MAX_FRAME_BYTES: usize = 1 << 16;

/// Both ends of the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DgramConfig {
    /// Where datagrams are received.
    pub local: SocketAddr,
    /// Where they are sent, and who may send.
    pub remote: SocketAddr,
}

/// The peer.
pub struct Dgram {
    socket: UdpSocket,
    pace: Pace,
}

impl Dgram {
    /// Opens the near end. Errors: the host's, if `local` cannot be bound or no route leads to `remote`.
    pub fn new(config: DgramConfig) -> io::Result<Self> {
        let socket = UdpSocket::bind(config.local)?;
        socket.connect(config.remote)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, pace: Pace::default() })
    }

    fn receive(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; MAX_FRAME_BYTES];
        loop {
            match self.socket.recv(&mut frame) {
                Ok(length) => {
                    frame.truncate(length);
                    return Some(frame);
                }
                // Nobody listened when we last sent: as a cable that is not plugged in at the other end.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => return None,
            }
        }
    }
}

impl Peer for Dgram {
    fn deliver(&mut self, _now: SimTime, frame: &[u8]) {
        // A frame that does not get through is lost, as on a cable.
        let _ = self.socket.send(frame);
    }

    fn next(&mut self, now: SimTime) -> Next {
        loop {
            if let Some(frame) = self.receive() {
                return Next::Frame(frame);
            }
            if !self.pace.brake(now) {
                return Next::At(self.pace.next_look(now));
            }
        }
    }

    fn repeatable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_a_frame() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // free again when dropped
        let config = DgramConfig { local: near, remote: far.local_addr().unwrap() };
        let mut peer = Dgram::new(config).unwrap();
        peer.deliver(SimTime::ZERO, &[7; 60]);
        let mut buffer = [0; 100];
        let (length, from) = far.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from), (&[7; 60][..], near));
        stranger.send_to(&[9; 60], near).unwrap();
        far.send_to(&[8; 64], near).unwrap();
        // Datagrams on the loopback interface are there when `send_to` returns.
        assert_eq!(peer.next(SimTime::ZERO), Next::Frame(vec![8; 64]));
        assert_eq!(peer.next(SimTime::ZERO), Next::At(SimTime::from_us(100)));
    }

    #[test]
    fn a_far_end_that_is_not_there_loses_frames_only() {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = DgramConfig { local: "127.0.0.1:0".parse().unwrap(), remote: gone };
        let mut peer = Dgram::new(config).unwrap();
        for _ in 0..3 {
            peer.deliver(SimTime::ZERO, &[7; 60]);
            assert_eq!(peer.next(SimTime::ZERO), Next::At(SimTime::from_us(100)));
        }
    }
}
