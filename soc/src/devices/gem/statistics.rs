//! The statistics registers 0x100 to 0x1B0: 32 bits each, cleared by reading, stuck at their largest value; the octet counters have
//! 48 bits in two registers.

use crate::snapshot::array;
use crate::wire::FCS_BYTES;
use serde::{Deserialize, Serialize};

/// Registers from 0x100 on.
const REGISTERS: usize = 45;

/// Register index of a counter of receive errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Undersize = 33,
    Oversize = 34,
    FcsErrors = 36,
    LengthErrors = 37,
    ResourceErrors = 40,
    Overruns = 41,
    IpErrors = 42,
    TcpErrors = 43,
    UdpErrors = 44,
}

/// Where the counters of one direction begin: octets (two), frames, broadcast, multicast, pause, then sizes.
const TX: usize = 0;
const RX: usize = 20;

/// The counters.
#[derive(Serialize, Deserialize)]
pub(super) struct Statistics {
    #[serde(with = "array")]
    values: [u32; REGISTERS],
}

impl Default for Statistics {
    fn default() -> Self {
        Self { values: [0; REGISTERS] }
    }
}

impl Statistics {
    /// Counts one.
    pub(super) fn count(&mut self, counter: Counter) {
        self.bump(counter as usize);
    }

    /// Counts a frame sent, without check sequence.
    pub(super) fn sent(&mut self, frame: &[u8]) {
        self.frame(TX, frame);
    }

    /// Counts a good frame received, without check sequence.
    pub(super) fn received(&mut self, frame: &[u8]) {
        self.frame(RX, frame);
    }

    fn bump(&mut self, index: usize) {
        self.values[index] = self.values[index].saturating_add(1);
    }

    fn frame(&mut self, base: usize, frame: &[u8]) {
        let length = frame.len() + FCS_BYTES;
        let octets = (u64::from(self.values[base + 1]) << 32 | u64::from(self.values[base])) + length as u64;
        let octets = octets.min((1 << 48) - 1);
        (self.values[base], self.values[base + 1]) = (octets as u32, (octets >> 32) as u32);
        self.bump(base + 2);
        if frame.starts_with(&[0xFF; 6]) {
            self.bump(base + 3);
        } else if frame.first().is_some_and(|first| first & 1 != 0) {
            self.bump(base + 4);
        }
        let size = match length {
            ..=64 => 0,
            65..=127 => 1,
            128..=255 => 2,
            256..=511 => 3,
            512..=1023 => 4,
            1024..=1518 => 5,
            _ => 6,
        };
        self.bump(base + 6 + size);
    }

    /// Reads and clears the register at `offset` from 0x100.
    pub(super) fn read(&mut self, offset: u64) -> u32 {
        self.values.get_mut((offset / 4) as usize).map_or(0, core::mem::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_once() {
        let mut statistics = Statistics::default();
        statistics.received(&[0xFF; 60]);
        statistics.received(&[0; 1514]);
        let read = |statistics: &mut Statistics, at: u64| statistics.read(at - 0x100);
        for (at, value) in [(0x150, 64 + 1518), (0x158, 2), (0x15C, 1), (0x160, 0), (0x168, 1), (0x17C, 1), (0x180, 0)]
        {
            assert_eq!((read(&mut statistics, at), read(&mut statistics, at)), (value, 0), "{at:#x}");
        }
        assert_eq!(read(&mut statistics, 0x1B4), 0);
    }

    #[test]
    fn a_counter_sticks() {
        let mut statistics = Statistics::default();
        statistics.values[Counter::Overruns as usize] = u32::MAX;
        statistics.count(Counter::Overruns);
        assert_eq!(statistics.read(0xA4), u32::MAX);
    }
}
