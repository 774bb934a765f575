//! Branch prediction of Rocket (BTB.scala, Frontend.scala): target buffer, 1-bit history table, return stack.
//!
//! The front end also decodes what it fetches: a direct jump, a return, or a branch predicted taken that misses in the target
//! buffer costs one cycle instead of a misprediction. The global history moves only with branches that hit in the buffer.

use super::Indirect;
use super::params::{BHT_ENTRIES, BHT_HISTORY, BTB_ENTRIES, MISPREDICT, PREDECODE_REDIRECT, RAS_ENTRIES};

/// Bits of history that enter the index (BTB.scala, historyBits).
const HISTORY_BITS: u32 = 3;
/// floor(sqrt(3) / 2 * 2^8), the multiplier of the history hash (BTB.scala).
const HISTORY_MULTIPLIER: u32 = 221;
const HASH_SLOTS: usize = 256;
const NO_ENTRY: u8 = u8::MAX;

#[derive(Clone, Copy, Default)]
struct Target {
    pc: u64,
    target: u64,
    used: u64,
}

/// Predictor state of one hart.
pub(crate) struct Predictor {
    targets: [Target; BTB_ENTRIES],
    /// Where the entry of a pc probably is; saves the associative search.
    hint: [u8; HASH_SLOTS],
    time: u64,
    taken: [bool; BHT_ENTRIES],
    history: u32,
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
            targets: [Target { pc: u64::MAX, ..Target::default() }; BTB_ENTRIES],
            hint: [NO_ENTRY; HASH_SLOTS],
            time: 0,
            taken: [false; BHT_ENTRIES],
            history: 0,
            returns: [0; RAS_ENTRIES],
            depth: 0,
            top: 0,
            called: false,
            mispredicts: 0,
        }
    }

    /// Forgets the targets: code has changed (`fence.i` flushes the buffer with the instruction cache).
    pub fn flush_targets(&mut self) {
        self.targets.fill(Target { pc: u64::MAX, ..Target::default() });
        self.hint.fill(NO_ENTRY);
    }

    /// A conditional branch.
    #[inline]
    pub fn branch(&mut self, pc: u64, target: u64, taken: bool) -> u64 {
        self.called = false;
        let slot = self.history_slot(pc);
        let predicted = self.taken[slot];
        self.taken[slot] = taken;
        let hit = self.find(pc).is_some();
        if hit || predicted != taken {
            self.history = (self.history >> 1 | u32::from(taken) << (BHT_HISTORY - 1)) & ((1 << BHT_HISTORY) - 1);
        }
        if taken && !hit {
            self.insert(pc, target);
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
        let hit = self.find(pc).is_some();
        if !hit {
            self.insert(pc, target);
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
        let hit = self.find(pc);
        let stale = at_once && self.called;
        let guess = match (kind, hit) {
            (Indirect::Return, _) if stale => {
                self.pop();
                None
            }
            (Indirect::Return, _) => self.pop().or(hit.map(|entry| self.targets[entry].target)),
            (_, hit) => hit.map(|entry| self.targets[entry].target),
        };
        match hit {
            Some(entry) => self.targets[entry].target = target,
            None => self.insert(pc, target),
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

    fn history_slot(&self, pc: u64) -> usize {
        let high = pc >> 2;
        let address = (high % BHT_ENTRIES as u64) ^ (high / BHT_ENTRIES as u64) & 3;
        let hashed = (HISTORY_MULTIPLIER * self.history) >> (BHT_HISTORY - HISTORY_BITS) & ((1 << HISTORY_BITS) - 1);
        (address as usize ^ (hashed as usize) << (BHT_ENTRIES.ilog2() - HISTORY_BITS)) % BHT_ENTRIES
    }

    #[inline]
    fn find(&mut self, pc: u64) -> Option<usize> {
        let entry = usize::from(self.hint[hash(pc)]);
        let entry = if self.targets.get(entry).is_some_and(|target| target.pc == pc) {
            entry
        } else {
            let entry = self.targets.iter().position(|target| target.pc == pc)?;
            self.hint[hash(pc)] = entry as u8;
            entry
        };
        self.time += 1;
        self.targets[entry].used = self.time;
        Some(entry)
    }

    fn insert(&mut self, pc: u64, target: u64) {
        self.time += 1;
        let oldest = (0..BTB_ENTRIES).min_by_key(|&entry| self.targets[entry].used).unwrap_or(0);
        self.targets[oldest] = Target { pc, target, used: self.time };
        self.hint[hash(pc)] = oldest as u8;
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

fn hash(pc: u64) -> usize {
    (pc >> 1 ^ pc >> 9) as usize % HASH_SLOTS
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
