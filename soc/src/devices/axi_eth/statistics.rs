//! The statistics counters (PG138, "Statistics Counters"): 64-bit pairs from 0x200 on, low word first. Reading a low word latches
//! its high word, so that a pair reads consistently.

use crate::snapshot::array;
use crate::wire::FCS_BYTES;
use serde::{Deserialize, Serialize};

/// Number of counters.
const COUNTERS: usize = 46;

/// Index of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the product guide")]
pub(super) enum Counter {
    RxBytes = 0,
    TxBytes = 1,
    RxUndersize = 2,
    RxOversize = 10,
    TxOversize = 17,
    RxGood = 18,
    RxFcsErrors = 19,
    RxBroadcast = 20,
    RxMulticast = 21,
    RxControl = 22,
    RxLengthErrors = 23,
    RxVlan = 24,
    RxPause = 25,
    TxGood = 27,
    TxBroadcast = 28,
    TxMulticast = 29,
    TxVlan = 32,
}

/// First of the six size buckets: 64, 65-127, 128-255, 256-511, 512-1023, 1024 and more bytes, check sequence included.
const RX_SIZES: usize = 4;
const TX_SIZES: usize = 11;

/// The counters.
#[derive(Serialize, Deserialize)]
pub(super) struct Statistics {
    #[serde(with = "array")]
    values: [u64; COUNTERS],
    latched_high: u32,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { values: [0; COUNTERS], latched_high: 0 }
    }
}

impl Statistics {
    /// Counts one.
    pub(super) fn count(&mut self, counter: Counter) {
        self.values[counter as usize] += 1;
    }

    /// Counts a good frame sent, without check sequence.
    pub(super) fn sent(&mut self, frame: &[u8]) {
        self.frame(frame, Counter::TxBytes, TX_SIZES);
        self.count(Counter::TxGood);
        self.kinds(frame, Counter::TxBroadcast, Counter::TxMulticast, Counter::TxVlan);
    }

    /// Counts a good frame received, without check sequence.
    pub(super) fn received(&mut self, frame: &[u8]) {
        self.frame(frame, Counter::RxBytes, RX_SIZES);
        self.count(Counter::RxGood);
        self.kinds(frame, Counter::RxBroadcast, Counter::RxMulticast, Counter::RxVlan);
    }

    fn frame(&mut self, frame: &[u8], bytes: Counter, sizes: usize) {
        let length = frame.len() + FCS_BYTES;
        self.values[bytes as usize] += length as u64;
        let bucket = match length {
            ..=64 => 0,
            65..=127 => 1,
            128..=255 => 2,
            256..=511 => 3,
            512..=1023 => 4,
            _ => 5,
        };
        self.values[sizes + bucket] += 1;
    }

    fn kinds(&mut self, frame: &[u8], broadcast: Counter, multicast: Counter, vlan: Counter) {
        if frame.starts_with(&[0xFF; 6]) {
            self.count(broadcast);
        } else if frame.first().is_some_and(|first| first & 1 != 0) {
            self.count(multicast);
        }
        if frame.get(12..14) == Some(&[0x81, 0x00]) {
            self.count(vlan);
        }
    }

    /// Reads the word at `offset` from the first counter.
    pub(super) fn read(&mut self, offset: u64) -> u32 {
        let Some(&value) = self.values.get((offset / 8) as usize) else { return 0 };
        if offset.is_multiple_of(8) {
            self.latched_high = (value >> 32) as u32;
            value as u32
        } else {
            self.latched_high
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_reads_consistently_across_a_carry() {
        let mut statistics = Statistics::default();
        statistics.values[Counter::RxGood as usize] = 0x1_FFFF_FFFF;
        let low = statistics.read(18 * 8);
        statistics.count(Counter::RxGood);
        assert_eq!((low, statistics.read(18 * 8 + 4)), (0xFFFF_FFFF, 1));
        assert_eq!((statistics.read(18 * 8), statistics.read(18 * 8 + 4)), (0, 2));
        assert_eq!(statistics.read(COUNTERS as u64 * 8), 0);
    }

    #[test]
    fn sizes_count_the_check_sequence() {
        let mut statistics = Statistics::default();
        for (length, bucket) in [(60, 0), (61, 1), (123, 1), (124, 2), (1019, 4), (1020, 5), (9000, 5)] {
            let before = statistics.values[RX_SIZES + bucket];
            statistics.received(&vec![0; length]);
            assert_eq!(statistics.values[RX_SIZES + bucket], before + 1, "{length}");
        }
    }
}
