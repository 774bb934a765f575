//! Peers that send back what they get: [`Loopback`] unchanged, as a loopback plug; [`Echo`] with the addresses swapped, as a
//! station would, so that a NIC that filters by address accepts the answer.

use std::collections::VecDeque;

use super::{Next, Peer};
use crate::time::SimTime;

/// Returns each frame unchanged.
#[derive(Default)]
pub struct Loopback {
    queue: VecDeque<Vec<u8>>,
}

impl Loopback {
    /// A loopback plug.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Peer for Loopback {
    fn deliver(&mut self, _now: SimTime, frame: &[u8]) {
        self.queue.push_back(frame.to_vec());
    }
    fn next(&mut self, _now: SimTime) -> Next {
        self.queue.pop_front().map_or(Next::Idle, Next::Frame)
    }
}

/// Returns each frame to its sender.
#[derive(Default)]
pub struct Echo {
    queue: VecDeque<Vec<u8>>,
}

impl Echo {
    /// An echoing station.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Peer for Echo {
    fn deliver(&mut self, _now: SimTime, frame: &[u8]) {
        let mut answer = frame.to_vec();
        // A delivered frame has at least `MIN_FRAME_BYTES`; two addresses are 12.
        let (destination, rest) = answer.split_at_mut(6);
        destination.swap_with_slice(&mut rest[..6]);
        self.queue.push_back(answer);
    }
    fn next(&mut self, _now: SimTime) -> Next {
        self.queue.pop_front().map_or(Next::Idle, Next::Frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_swaps_the_addresses_and_loopback_does_not() {
        let mut frame = vec![0u8; 60];
        frame[..6].fill(1);
        frame[6..12].fill(2);
        let (mut echo, mut loopback) = (Echo::new(), Loopback::new());
        echo.deliver(SimTime::ZERO, &frame);
        loopback.deliver(SimTime::ZERO, &frame);
        assert_eq!(loopback.next(SimTime::ZERO), Next::Frame(frame.clone()));
        frame[..6].fill(2);
        frame[6..12].fill(1);
        assert_eq!(echo.next(SimTime::ZERO), Next::Frame(frame));
        assert_eq!(echo.next(SimTime::ZERO), Next::Idle);
    }
}
