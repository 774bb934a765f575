//! Branch prediction of Rocket (BTB.scala, Frontend.scala): target buffer, 1-bit history table, return stack.
//!
//! The front end also decodes what it fetches: a direct jump, a return, or a branch predicted taken that misses in the target
//! buffer costs one cycle instead of a misprediction. The global history moves only with branches that hit in the buffer.

use super::Indirect;
use super::params::{BHT_ENTRIES, BHT_HISTORY, MISPREDICT, PREDECODE_REDIRECT, RAS_ENTRIES};
use super::target_buffer::TargetBuffer;
use crate::snapshot::array;
use serde::{Deserialize, Serialize};

/// Bits of history that enter the index (BTB.scala, historyBits).
const HISTORY_BITS: u32 = 3;
/// floor(sqrt(3) / 2 * 2^8), the multiplier of the history hash (BTB.scala).
const HISTORY_MULTIPLIER: u32 = 221;

/// Predictor state of one hart.
#[derive(Serialize, Deserialize)]
pub(crate) struct Predictor {
    targets: TargetBuffer,
    #[serde(with = "array")]
    taken: [bool; BHT_ENTRIES],
    history: u32,
    /// What the history contributes to the index into `taken`.
    history_index: usize,
    returns: [u64; RAS_ENTRIES],
    depth: usize,
    top: usize,
    /// The last transfer was a call.
    called: bool,
    pub mispredicts: u64,
}

impl Predictor {
    pub fn new() -> Self {
        Self {
            targets: TargetBuffer::new(),
            taken: [false; BHT_ENTRIES],
            history: 0,
            history_index: 0,
            returns: [0; RAS_ENTRIES],
            depth: 0,
            top: 0,
            called: false,
            mispredicts: 0,
        }
    }

    /// Forgets the targets: code has changed (`fence.i` flushes the buffer with the instruction cache).
    pub fn flush_targets(&mut self) {
        self.targets.clear();
    }

    /// A conditional branch.
    #[inline(always)]
    pub fn branch(&mut self, pc: u64, target: u64, taken: bool) -> u64 {
        self.called = false;
        let slot = self.history_slot(pc);
        let predicted = self.taken[slot];
        self.taken[slot] = taken;
        let hit = self.targets.find(pc).is_some();
        if hit || predicted != taken {
            self.history = self.history >> 1 | u32::from(taken) << (BHT_HISTORY - 1);
            let hashed =
                (HISTORY_MULTIPLIER * self.history) >> (BHT_HISTORY - HISTORY_BITS) & ((1 << HISTORY_BITS) - 1);
            self.history_index = (hashed as usize) << (BHT_ENTRIES.ilog2() - HISTORY_BITS);
        }
        if taken && !hit {
            self.targets.insert(pc, target);
        }
        match (predicted == taken, taken && !hit) {
            (false, _) => self.mispredicted(),
            (true, true) => PREDECODE_REDIRECT,
            (true, false) => 0,
        }
    }

    /// A direct jump.
    #[inline]
    pub fn jump(&mut self, pc: u64, target: u64, link: Option<u64>) -> u64 {
        let hit = self.targets.find(pc).is_some();
        if !hit {
            self.targets.insert(pc, target);
        }
        self.called = false;
        if let Some(link) = link {
            self.push(link);
        }
        if hit { 0 } else { PREDECODE_REDIRECT }
    }

    /// An indirect jump. `at_once`: right behind a taken transfer; a return then goes by the stack as it was before its call.
    #[inline]
    pub fn indirect(&mut self, pc: u64, target: u64, kind: Indirect, link: u64, at_once: bool) -> u64 {
        let hit = self.targets.find(pc);
        let stale = at_once && self.called;
        let guess = match (kind, hit) {
            (Indirect::Return, _) if stale => {
                self.pop();
                None
            }
            (Indirect::Return, _) => self.pop().or(hit.map(|place| self.targets.target(place))),
            (_, hit) => hit.map(|place| self.targets.target(place)),
        };
        match hit {
            Some(place) => self.targets.set_target(place, target),
            None => self.targets.insert(pc, target),
        }
        self.called = false;
        if kind == Indirect::Call {
            self.push(link);
        }
        match (guess == Some(target), hit) {
            (true, Some(_)) => 0,
            (true, None) => PREDECODE_REDIRECT,
            (false, _) => self.mispredicted(),
        }
    }

    fn mispredicted(&mut self) -> u64 {
        self.mispredicts += 1;
        MISPREDICT
    }

    #[inline(always)]
    fn history_slot(&self, pc: u64) -> usize {
        let high = pc >> 2;
        let address = (high % BHT_ENTRIES as u64) ^ (high / BHT_ENTRIES as u64) & 3;
        (address as usize ^ self.history_index) % BHT_ENTRIES
    }

    fn push(&mut self, address: u64) {
        self.called = true;
        self.top = (self.top + 1) % RAS_ENTRIES;
        self.returns[self.top] = address;
        self.depth = (self.depth + 1).min(RAS_ENTRIES);
    }

    fn pop(&mut self) -> Option<u64> {
        if self.depth == 0 {
            return None;
        }
        let address = self.returns[self.top];
        self.top = (self.top + RAS_ENTRIES - 1) % RAS_ENTRIES;
        self.depth -= 1;
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Average extra cycles of a branch with this pattern in a counted loop, in hundredths.
    fn pattern(outcomes: &str) -> u64 {
        let mut p = Predictor::new();
        let mut cost = 0;
        let mut steps = 0;
        for round in 0..400 {
            for outcome in outcomes.bytes() {
                let extra = p.branch(0x8000_0010, 0x8000_0020, outcome == b'T');
                p.branch(0x8000_0030, 0x8000_0000, true);
                if round >= 200 {
                    cost += extra;
                    steps += 1;
                }
            }
        }
        cost * 100 / steps
    }

    /// The measured rows (M1), in hundredths of a cycle per branch: alternating patterns are always wrong, period 3 is learned,
    /// one odd outcome costs two misses of the 1-bit counter.
    #[test]
    fn patterns() {
        for (outcomes, hundredths) in
            [("T", 0), ("N", 0), ("TN", 300), ("TTNN", 300), ("TTN", 0), ("TNNN", 150), ("NTTT", 150), ("NNNNNNNT", 75)]
        {
            assert_eq!(pattern(outcomes), hundredths, "{outcomes}");
        }
    }

    /// Chains of direct jumps: free up to the buffer's size, one cycle each beyond it.
    #[test]
    fn jump_chains() {
        let chain = |length: u64| {
            let mut p = Predictor::new();
            let mut pass = || (0..length).map(|n| p.jump(0x8000_0000 + 8 * n, 0x8000_0008 + 8 * n, None)).sum::<u64>();
            pass();
            pass();
            pass()
        };
        assert_eq!(chain(27), 0);
        assert_eq!(chain(32), 32);
        assert_eq!(chain(64), 64);
    }

    #[test]
    fn calls_and_returns() {
        let mut p = Predictor::new();
        let mut call =
            |from: u64| p.jump(from, 0x9000, Some(from + 4)) + p.indirect(0x9010, from + 4, Indirect::Return, 0, false);
        call(0x1000);
        call(0x2000);
        assert_eq!(call(0x1000), 0);
        assert_eq!(call(0x2000), 0, "two call sites, one return");
        p.jump(0x1000, 0x9000, Some(0x1004));
        assert_eq!(p.indirect(0x9010, 0x1004, Indirect::Return, 0, true), MISPREDICT, "a function of a return only");
    }

    #[test]
    fn alternating_indirect_jumps_always_miss() {
        let mut p = Predictor::new();
        let cost: u64 = (0..10).map(|n| p.indirect(0x1000, 0x2000 + 16 * (n & 1), Indirect::Jump, 0, false)).sum();
        assert_eq!(cost, 30);
        let again: u64 = (0..10).map(|_| p.indirect(0x1000, 0x3000, Indirect::Jump, 0, false)).sum();
        assert_eq!(again, 3);
    }
}
