//! Tags of an L1 cache: 64 sets of 4 ways of 64 bytes, random replacement. No data: that is always in RAM.

use super::params::{L1_SETS, L1_WAYS};
use crate::memory::LINE_BYTES;
use crate::snapshot::array;
use serde::{Deserialize, Serialize};

/// What a hart may do with a line it holds (the MESI states; invalid lines are absent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Shared = 1,
    Exclusive = 2,
    Modified = 3,
}

const INVALID: u64 = 0;
const STATE_BITS: u64 = LINE_BYTES - 1;

/// The tags.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cache {
    /// Line address with its state in the low bits.
    #[serde(with = "array")]
    tags: [[u64; L1_WAYS]; L1_SETS],
    /// Of each set, a copy of the tag that was found last, or [`INVALID`]: the usual case is one comparison.
    #[serde(with = "array")]
    recent: [u64; L1_SETS],
    /// 16-bit Fibonacci shift register with taps 16, 14, 13, 11, stepped at each miss (S: Replacement.scala).
    lfsr: u16,
}

fn set(physical: u64) -> usize {
    (physical / LINE_BYTES) as usize % L1_SETS
}

fn line(physical: u64) -> u64 {
    physical & !STATE_BITS
}

impl Cache {
    pub fn new() -> Self {
        Self { tags: [[INVALID; L1_WAYS]; L1_SETS], recent: [INVALID; L1_SETS], lfsr: 1 }
    }

    /// True if the line of `physical` is here. There is no RAM in the line at address 0.
    #[inline(always)]
    pub fn holds(&mut self, physical: u64) -> bool {
        self.recent[set(physical)] & !STATE_BITS == line(physical) || self.search(physical)
    }

    /// True if the line of `physical` is here and modified.
    #[inline(always)]
    pub fn holds_modified(&mut self, physical: u64) -> bool {
        let wanted = line(physical) | State::Modified as u64;
        self.recent[set(physical)] == wanted || (self.search(physical) && self.recent[set(physical)] == wanted)
    }

    /// Searches all ways, and makes what it finds the recent one.
    fn search(&mut self, physical: u64) -> bool {
        let found = self.tags[set(physical)].iter().find(|&tag| tag & !STATE_BITS == line(physical));
        if let Some(&tag) = found {
            self.recent[set(physical)] = tag;
        }
        found.is_some()
    }

    /// State of the line of `physical`, if it is here.
    pub fn state(&self, physical: u64) -> Option<State> {
        let wanted = line(physical);
        for &tag in &self.tags[set(physical)] {
            if tag & !STATE_BITS == wanted {
                return match tag & STATE_BITS {
                    1 => Some(State::Shared),
                    2 => Some(State::Exclusive),
                    _ => Some(State::Modified),
                };
            }
        }
        None
    }

    /// Changes the state of a line that is here; `None` drops it.
    pub fn set_state(&mut self, physical: u64, state: Option<State>) {
        let wanted = line(physical);
        let tags = self.tags[set(physical)].iter_mut().chain([&mut self.recent[set(physical)]]);
        for tag in tags.filter(|tag| **tag & !STATE_BITS == wanted) {
            *tag = state.map_or(INVALID, |state| wanted | state as u64);
        }
    }

    /// Puts a line in, in place of a random one. True if that one was modified.
    pub fn insert(&mut self, physical: u64, state: State) -> bool {
        let bit = (self.lfsr >> 15 ^ self.lfsr >> 13 ^ self.lfsr >> 12 ^ self.lfsr >> 10) & 1;
        self.lfsr = self.lfsr << 1 | bit;
        let way = &mut self.tags[set(physical)][usize::from(self.lfsr) % L1_WAYS];
        let victim_modified = *way & STATE_BITS == State::Modified as u64;
        *way = line(physical) | state as u64;
        // If it was the victim, it is gone.
        self.recent[set(physical)] = *way;
        victim_modified
    }

    pub fn clear(&mut self) {
        self.tags.fill([INVALID; L1_WAYS]);
        self.recent.fill(INVALID);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_after_insert_and_random_victims() {
        let mut cache = Cache::new();
        assert_eq!(cache.state(0x8000_0040), None);
        cache.insert(0x8000_0044, State::Exclusive);
        assert_eq!(cache.state(0x8000_007F), Some(State::Exclusive));
        assert!(cache.holds(0x8000_0040) && !cache.holds_modified(0x8000_0040));
        cache.set_state(0x8000_0040, Some(State::Modified));
        assert!(cache.holds_modified(0x8000_0040));
        // Lines of the same set, 4 KiB apart, push it out sooner or later, and are told that it was modified.
        let evicted = (1..64).filter(|n| cache.insert(0x8000_0040 + n * 4096, State::Shared)).count();
        assert_eq!(evicted, 1);
        assert_eq!(cache.state(0x8000_0040), None);
        assert!(!cache.holds(0x8000_0040));
        let last = 0x8000_0040 + 63 * 4096;
        assert!(cache.holds(last) && !cache.holds_modified(last));
        cache.set_state(last, None);
        assert!(!cache.holds(last), "a probe reaches the recent one");
    }
}
