//! The branch target buffer: fully associative, the entry used longest ago is replaced (BTB.scala).
//!
//! Hardware compares all entries at once; here they hang in chains by a hash of their pc, so that a branch that is not in
//! the buffer, as most that are not taken, is found out as quickly as one that is.

use super::params::BTB_ENTRIES;
use crate::snapshot::array;
use serde::{Deserialize, Serialize};

/// Room for entries; a power of two, so that any index is in range without a test.
const ROOM: usize = BTB_ENTRIES.next_power_of_two();
const HASH_SLOTS: usize = 256;
/// End of a chain.
const NO_ENTRY: u8 = u8::MAX;
/// The pc of an empty entry: no instruction has it.
const NO_PC: u64 = u64::MAX;

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Entry {
    pc: u64,
    target: u64,
    /// Time of the last use.
    used: u64,
    /// Next entry of the chain.
    next: u8,
}

const EMPTY: Entry = Entry { pc: NO_PC, target: 0, used: 0, next: NO_ENTRY };

/// The entries of one hart.
#[derive(Serialize, Deserialize)]
pub(crate) struct TargetBuffer {
    entries: [Entry; ROOM],
    /// First entry of each chain.
    #[serde(with = "array")]
    chains: [u8; HASH_SLOTS],
    time: u64,
}

/// Where an entry is, until the next [`TargetBuffer::insert`].
#[derive(Clone, Copy)]
pub(crate) struct Place(u8);

impl TargetBuffer {
    pub fn new() -> Self {
        Self { entries: [EMPTY; ROOM], chains: [NO_ENTRY; HASH_SLOTS], time: 0 }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.chains.fill(NO_ENTRY);
    }

    /// The entry of `pc`, which is used now.
    #[inline(always)]
    pub fn find(&mut self, pc: u64) -> Option<Place> {
        let mut at = self.chains[hash(pc)];
        while at != NO_ENTRY {
            let entry = &mut self.entries[usize::from(at) % ROOM];
            if entry.pc == pc {
                self.time += 1;
                entry.used = self.time;
                return Some(Place(at));
            }
            at = entry.next;
        }
        None
    }

    /// Where the instruction at `place` goes.
    pub fn target(&self, place: Place) -> u64 {
        self.entries[usize::from(place.0) % ROOM].target
    }

    /// The instruction at `place` goes to `target` now.
    pub fn set_target(&mut self, place: Place, target: u64) {
        self.entries[usize::from(place.0) % ROOM].target = target;
    }

    /// Puts `pc` in, which is not there.
    #[inline(never)]
    pub fn insert(&mut self, pc: u64, target: u64) {
        self.time += 1;
        let oldest = (0..BTB_ENTRIES).min_by_key(|&entry| self.entries[entry].used).unwrap_or(0);
        self.unlink(oldest);
        let chain = &mut self.chains[hash(pc)];
        self.entries[oldest] = Entry { pc, target, used: self.time, next: *chain };
        *chain = oldest as u8;
    }

    /// Takes an entry out of its chain.
    fn unlink(&mut self, entry: usize) {
        let Entry { pc, next, .. } = self.entries[entry];
        let mut link = &mut self.chains[hash(pc)];
        // The chain of an empty entry's pc does not hold it.
        while *link != NO_ENTRY {
            if usize::from(*link) == entry {
                *link = next;
                return;
            }
            link = &mut self.entries[usize::from(*link) % ROOM].next;
        }
    }
}

fn hash(pc: u64) -> usize {
    (pc >> 1 ^ pc >> 9) as usize % HASH_SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list that is searched from end to end.
    #[test]
    fn chains_hold_what_a_list_holds() {
        let mut buffer = TargetBuffer::new();
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Some share a chain.
            let pc = 0x8000_0000 + (random >> 60) * 2 + (random >> 58 & 3) * 512;
            let known = list.iter().position(|&(other, _)| other == pc);
            let found = buffer.find(pc);
            assert_eq!(found.map(|place| buffer.target(place)), known.map(|at| list[at].1));
            match known {
                // The end of the list is what was used last.
                Some(at) => {
                    let entry = list.remove(at);
                    list.push(entry);
                }
                None => {
                    buffer.insert(pc, random);
                    list.push((pc, random));
                    if list.len() > BTB_ENTRIES {
                        list.remove(0);
                    }
                }
            }
        }
        buffer.clear();
        assert!(list.iter().all(|&(pc, _)| buffer.find(pc).is_none()));
    }
}
