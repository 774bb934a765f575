//! A tap device of the host at the far end of the cable (Linux, `--tap NAME`). The device must be there and the process
//! allowed to open it: `ip tuntap add NAME mode tap user $USER`, then give it an address and set it up.
//!
//! smoltcp's device cannot leave the thread that opened it, so it has one of its own, which carries frames between the device and
//! two queues. The thread ends with the peer.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use smoltcp::phy::{self, Device, Medium, RxToken, TunTapInterface, TxToken};
use smoltcp::time::{Duration, Instant};

use super::pace::Pace;
use super::{Next, Peer};
use crate::time::SimTime;

/// How long a frame of the guest may lie in its queue while the device is silent.
const LINGER: Duration = Duration::from_micros(200);

/// The peer.
pub struct Tap {
    to_device: Sender<Vec<u8>>,
    from_device: Receiver<Vec<u8>>,
    pace: Pace,
}

impl Tap {
    /// Opens the tap device `name`. Errors: the host's.
    pub fn new(name: &str) -> io::Result<Self> {
        let (to_device, outgoing) = mpsc::channel();
        let (incoming, from_device) = mpsc::channel();
        let (opened, result) = mpsc::channel();
        let name = name.to_owned();
        std::thread::spawn(move || match TunTapInterface::new(&name, Medium::Ethernet) {
            Ok(device) => {
                // The receiver waits for exactly this.
                let _ = opened.send(Ok(()));
                carry(device, &outgoing, &incoming);
            }
            Err(error) => drop(opened.send(Err(error))),
        });
        result.recv().map_err(io::Error::other)??;
        Ok(Self { to_device, from_device, pace: Pace::default() })
    }
}

/// Carries frames until one of the queues is gone.
fn carry(mut device: TunTapInterface, outgoing: &Receiver<Vec<u8>>, incoming: &Sender<Vec<u8>>) {
    // The device stamps nothing: any time will do.
    let now = Instant::ZERO;
    loop {
        while let Some((token, _)) = device.receive(now) {
            if incoming.send(token.consume(<[u8]>::to_vec)).is_err() {
                return;
            }
        }
        loop {
            match outgoing.try_recv() {
                Ok(frame) => {
                    if let Some(token) = device.transmit(now) {
                        token.consume(frame.len(), |buffer| buffer.copy_from_slice(&frame));
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        // An interrupted wait is a short one.
        let _ = phy::wait(device.as_raw_fd(), Some(LINGER));
    }
}

impl Peer for Tap {
    fn deliver(&mut self, _now: SimTime, frame: &[u8]) {
        // The thread is gone only if the device is: then the cable is cut.
        let _ = self.to_device.send(frame.to_vec());
    }

    fn next(&mut self, now: SimTime) -> Next {
        loop {
            if let Ok(frame) = self.from_device.try_recv() {
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
