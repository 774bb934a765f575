//! The cost model of an in-order Rocket at 100 MHz: what each event costs beyond the static pipeline cost.
//!
//! Per hart: branch predictor, L1I and L1D tags, two TLBs with the walker's cache, the one slot for uncached accesses, and the
//! late result that a block leaves behind. Between harts: the broadcast hub without directory or L2. A miss probes every other
//! L1D; a line that is dirty there is written to memory and read back, so it costs RL + WL; an upgrade reads the whole line.
//! Transactions on one line follow each other, and lines of several harts pass through the hub one by one.

use super::cache::{Cache, State};
use super::pipeline::{FAR, Tail};
use super::predictor::Predictor;
use super::translation::{PteCache, TlbModel};
use super::{Indirect, Path, Timing, Touch, params, wait_for};
use crate::config::MAX_HARTS;
use crate::hart::block::Block;
use crate::hart::insn::Ahead;
use crate::hart::mmu::Walk;
use crate::memory::LINE_BYTES;
use crate::outcome::HartStatistics;
use serde::{Deserialize, Serialize};

/// Model state of one hart.
#[derive(Serialize, Deserialize)]
struct Model {
    predictor: Predictor,
    l1i: Cache,
    l1d: Cache,
    itlb: TlbModel,
    dtlb: TlbModel,
    pte_cache: PteCache,
    /// Line of the last fetch: straight code in it needs no look-up.
    fetch_line: u64,
    tail: Tail,
    /// The block that runs was reached by a taken branch or jump.
    transferred: bool,
    /// Instructions since the last unordered AMO, and since the last memory access.
    behind_amo: u64,
    behind_access: u64,
    /// Cycle at which the slot for uncached accesses is free.
    io_free: u64,
    /// The latest hub transaction: line, and when it is over.
    transaction: (u64, u64),
    statistics: HartStatistics,
}

/// Model state of all harts.
#[derive(Serialize, Deserialize)]
pub(crate) struct Rocket {
    models: [Model; MAX_HARTS],
    /// How many of them there are.
    harts: usize,
    /// Cycle at which the hub can take the next line; with one hart it never has to wait.
    hub_free: u64,
    rl: u64,
    wl: u64,
}

impl Rocket {
    pub fn new(harts: usize, rl: u32, wl: u32) -> Self {
        let model = || Model {
            predictor: Predictor::new(),
            l1i: Cache::new(),
            l1d: Cache::new(),
            itlb: TlbModel::new(),
            dtlb: TlbModel::new(),
            pte_cache: PteCache::default(),
            fetch_line: u64::MAX,
            tail: Tail::default(),
            transferred: false,
            behind_amo: FAR,
            behind_access: FAR,
            io_free: 0,
            transaction: (u64::MAX, 0),
            statistics: HartStatistics::default(),
        };
        Self { models: std::array::from_fn(|_| model()), harts, hub_free: 0, rl: rl.into(), wl: wl.into() }
    }

    /// Of hart `hart`, without a test of the range.
    #[inline(always)]
    fn model(&mut self, hart: usize) -> &mut Model {
        &mut self.models[hart % MAX_HARTS]
    }

    /// Of all harts there are.
    fn all(&mut self) -> &mut [Model] {
        &mut self.models[..self.harts]
    }

    /// A load, store or walk that misses in the L1D of `hart`, or a store to a line that it only shares.
    fn data_miss(&mut self, hart: usize, now: u64, physical: u64, touch: Touch) -> u64 {
        let line = physical / LINE_BYTES;
        let (mut elsewhere, mut dirty, mut wait) = (false, false, self.hub_free.saturating_sub(now));
        for (_, other) in self.all().iter_mut().enumerate().filter(|&(id, _)| id != hart) {
            let Some(state) = other.l1d.state(physical) else { continue };
            elsewhere = true;
            dirty |= state == State::Modified;
            other.l1d.set_state(physical, (touch == Touch::Read).then_some(State::Shared));
            if other.transaction.0 == line {
                wait = wait.max(other.transaction.1.saturating_sub(params::HUB_OVERLAP).saturating_sub(now));
            }
        }
        let several = self.harts > 1;
        let (rl, wl) = (self.rl, self.wl);
        let model = self.model(hart);
        model.statistics.l1d_misses += 1;
        let mut cost = wait
            + match (several, dirty) {
                (false, _) => params::L1D_MISS_ONE_HART + rl,
                (true, false) => params::L1D_MISS + rl,
                (true, true) => {
                    model.statistics.l1d_dirty_elsewhere += 1;
                    params::L1D_MISS_DIRTY_ELSEWHERE + rl + wl
                }
            };
        if touch == Touch::WriteRun {
            cost += params::REPLAY;
        }
        let state = match (touch, elsewhere) {
            (Touch::Write | Touch::WriteRun, _) => State::Modified,
            (Touch::Read, true) => State::Shared,
            (Touch::Read, false) | (Touch::Reserve, _) => State::Exclusive,
        };
        let mut occupied = params::HUB_LINE;
        if model.l1d.state(physical).is_some() {
            model.l1d.set_state(physical, Some(state));
        } else if model.l1d.insert(physical, state) {
            cost += params::DIRTY_VICTIM;
            occupied += params::HUB_VICTIM;
        }
        model.transaction = (line, now + cost);
        if several {
            self.hub_free = self.hub_free.max(now) + occupied;
        }
        cost
    }

    /// An access to RAM that is not plainly a hit.
    #[cold]
    #[inline(never)]
    fn data_slow(&mut self, hart: usize, now: u64, physical: u64, touch: Touch) -> u64 {
        let l1d = &mut self.model(hart).l1d;
        match (l1d.state(physical), touch) {
            (Some(_), Touch::Read) | (Some(State::Modified), _) | (Some(State::Exclusive), Touch::Reserve) => 0,
            (Some(State::Exclusive), _) => {
                l1d.set_state(physical, Some(State::Modified));
                0
            }
            _ => self.data_miss(hart, now, physical, touch),
        }
    }

    #[cold]
    #[inline(never)]
    fn fetch_miss(&mut self, hart: usize, now: u64, physical: u64) -> u64 {
        let dirty = self.all().iter_mut().any(|other| {
            let dirty = other.l1d.state(physical) == Some(State::Modified);
            if dirty {
                other.l1d.set_state(physical, Some(State::Shared));
            }
            dirty
        });
        let several = self.harts > 1;
        let model = self.model(hart);
        model.statistics.l1i_misses += 1;
        model.l1i.insert(physical, State::Shared);
        let wait = self.hub_free.saturating_sub(now);
        if several {
            self.hub_free = self.hub_free.max(now) + params::HUB_LINE;
        }
        wait + match (dirty, several) {
            (true, _) => params::L1D_MISS_DIRTY_ELSEWHERE + self.rl + self.wl,
            (false, true) => params::L1I_MISS + self.rl,
            (false, false) => params::L1I_MISS_ONE_HART + self.rl,
        }
    }

    /// The lines from `first` to `last` are fetched one after the other.
    #[inline(always)]
    fn fetch(&mut self, hart: usize, now: u64, first: u64, last: u64) -> u64 {
        let mut cost = 0;
        let mut line = first;
        while line <= last {
            if !self.model(hart).l1i.holds(line * LINE_BYTES) {
                cost += self.fetch_miss(hart, now + cost, line * LINE_BYTES);
            }
            line += 1;
        }
        self.model(hart).fetch_line = last;
        cost
    }
}

fn device_read_cycles(path: Path, latency: u64) -> u64 {
    latency
        + match path {
            Path::Control => params::READ_CLINT,
            Path::Plic => params::READ_PLIC,
            Path::Axi => params::READ_AXI,
        }
}

impl Timing for Rocket {
    const TIMED: bool = true;

    #[inline(always)]
    fn block(&mut self, hart: usize, now: u64, block: &Block, transferred: bool) -> u64 {
        let model = self.model(hart);
        let mut cost = 0;
        if transferred && block.split_head {
            cost += params::SPLIT_TARGET;
        }
        if block.head >> model.tail.register & 1 != 0 {
            cost += u64::from(model.tail.bubbles);
        }
        model.tail = block.tail;
        model.transferred = transferred;
        let reach = &block.reach;
        if model.behind_amo < reach.amo_window {
            cost += params::REPLAY;
        }
        if reach.fence {
            cost += params::FENCE_BEHIND_ACCESS.saturating_sub(model.behind_access);
        }
        model.behind_amo = reach.behind_amo.after(model.behind_amo);
        model.behind_access = reach.behind_access.after(model.behind_access);
        if block.only_line != model.fetch_line {
            cost += self.fetch(hart, now + cost, block.first_line, block.last_line);
        }
        cost
    }

    #[inline(always)]
    fn fetch_misses(&mut self, hart: usize, va: u64) -> bool {
        self.model(hart).itlb.misses(va)
    }

    #[inline(always)]
    fn data_misses(&mut self, hart: usize, va: u64) -> bool {
        self.model(hart).dtlb.misses(va)
    }

    fn refill(&mut self, hart: usize, now: u64, va: u64, walk: &Walk, fetch: bool) -> u64 {
        let mut cost = params::WALK_BASE;
        for (level, &entry) in walk.entries[..walk.depth].iter().enumerate() {
            let leaf = level + 1 == walk.depth;
            cost += if !leaf && self.model(hart).pte_cache.touch(entry) {
                params::WALK_CACHED
            } else {
                params::WALK_LEVEL + self.data(hart, now + cost, entry, Touch::Read)
            };
        }
        let model = self.model(hart);
        if fetch {
            model.statistics.itlb_misses += 1;
            model.itlb.fill(va, walk);
        } else {
            model.statistics.dtlb_misses += 1;
            model.dtlb.fill(va, walk);
        }
        cost
    }

    #[inline(always)]
    fn data(&mut self, hart: usize, now: u64, physical: u64, touch: Touch) -> u64 {
        let l1d = &mut self.model(hart).l1d;
        let hit = if touch == Touch::Read { l1d.holds(physical) } else { l1d.holds_modified(physical) };
        if hit { 0 } else { self.data_slow(hart, now, physical, touch) }
    }

    #[inline(always)]
    fn branch(&mut self, hart: usize, pc: u64, target: u64, taken: bool) -> u64 {
        self.model(hart).predictor.branch(pc, target, taken)
    }

    #[inline(always)]
    fn jump(&mut self, hart: usize, pc: u64, target: u64, link: Option<u64>) -> u64 {
        self.model(hart).predictor.jump(pc, target, link)
    }

    #[inline(always)]
    fn indirect(&mut self, hart: usize, pc: u64, target: u64, kind: Indirect, link: u64, first: bool) -> u64 {
        let model = self.model(hart);
        model.predictor.indirect(pc, target, kind, link, first && model.transferred)
    }

    fn mul(&mut self, a: u64, high: bool, word: bool) -> u64 {
        if high {
            return params::MULH;
        }
        let (bits, most) = if word { (u64::from(a as u32), 4) } else { (a, 8) };
        let significant = 64 - bits.leading_zeros();
        let iterations = (u64::from(significant.div_ceil(params::MUL_BITS)) + 1).clamp(params::MUL_MIN, most);
        params::MUL_BASE + iterations
    }

    fn div(&mut self, a: u64, b: u64, signed: bool, remainder: bool) -> u64 {
        let negative = |value: u64| signed && (value as i64) < 0;
        let magnitude = |value: u64| if negative(value) { value.wrapping_neg() } else { value };
        let highest = |value: u64| u64::from(magnitude(value).max(1).ilog2());
        let steps =
            if b == 0 { params::DIV_MAX } else { (highest(a).wrapping_sub(highest(b)) % 64).min(params::DIV_MAX) };
        let result_negative = if remainder { negative(a) } else { negative(a) != negative(b) };
        let fix = u64::from(negative(a) || negative(b)) + u64::from(result_negative);
        params::DIV_BASE + steps + fix
    }

    fn csr_write(&mut self, number: u32) -> u64 {
        // Scratch, epc, cause and tval of any privilege level do not flush (CSR.scala, write_flush).
        if (0x40..=0x43).contains(&(number & 0xFF)) { 0 } else { params::CSR_FLUSH }
    }

    fn exception(&mut self, hart: usize) -> u64 {
        self.model(hart).tail = Tail::default();
        // The slot of the trapping instruction is already counted.
        params::TRAP - 1
    }

    fn interrupt(&mut self, hart: usize, woken: bool) -> u64 {
        self.model(hart).tail = Tail::default();
        if woken { 0 } else { params::INTERRUPT }
    }

    fn trap_return(&mut self, hart: usize) -> u64 {
        self.model(hart).tail = Tail::default();
        params::SYSTEM_FLUSH
    }

    fn wake(&mut self) -> u64 {
        params::WFI_WAKE
    }

    fn fence(&mut self, hart: usize, now: u64) -> u64 {
        self.model(hart).io_free.saturating_sub(now)
    }

    fn fence_i(&mut self, hart: usize) -> u64 {
        let model = self.model(hart);
        model.l1i.clear();
        model.fetch_line = u64::MAX;
        model.predictor.flush_targets();
        params::SYSTEM_FLUSH
    }

    fn sfence(&mut self, hart: usize, va: Option<u64>, keep_global: bool) -> u64 {
        let model = self.model(hart);
        model.itlb.flush(va, keep_global);
        model.dtlb.flush(va, keep_global);
        if va.is_none() {
            model.pte_cache.clear();
        }
        params::SYSTEM_FLUSH
    }

    fn device_read(&mut self, hart: usize, now: u64, path: Path, latency: u64, ahead: Ahead) -> u64 {
        let model = self.model(hart);
        let wait = model.io_free.saturating_sub(now);
        let total = device_read_cycles(path, latency);
        model.io_free = now + wait + total;
        wait + wait_for(total, ahead)
    }

    fn device_write(&mut self, hart: usize, now: u64, _path: Path, latency: u64) -> u64 {
        let model = self.model(hart);
        let wait = model.io_free.saturating_sub(now);
        model.io_free = now + wait + params::WRITE_OCCUPANCY + latency;
        wait
    }

    fn uipi(&mut self, hart: usize, now: u64, read: bool) -> u64 {
        let transfer = if read { device_read_cycles(Path::Control, 1) } else { params::UIPI_STORE };
        let model = self.model(hart);
        let wait = model.io_free.saturating_sub(now);
        wait + params::UIPI_ISSUE + transfer
    }

    fn dma_write(&mut self, physical: u64, len: u64) {
        if len == 0 {
            return;
        }
        for line in physical / LINE_BYTES..=(physical + len - 1) / LINE_BYTES {
            for model in self.all() {
                model.l1d.set_state(line * LINE_BYTES, None);
            }
        }
    }

    fn count(&self, hart: usize, statistics: &mut HartStatistics) {
        let model = &self.models[hart % MAX_HARTS];
        let counted = &model.statistics;
        statistics.l1i_misses = counted.l1i_misses;
        statistics.l1d_misses = counted.l1d_misses;
        statistics.l1d_dirty_elsewhere = counted.l1d_dirty_elsewhere;
        statistics.itlb_misses = counted.itlb_misses;
        statistics.dtlb_misses = counted.dtlb_misses;
        statistics.mispredicts = model.predictor.mispredicts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 0x8000_1000;

    /// Multiply and divide rows of the measured table, as cycles to a dependent instruction.
    #[test]
    fn operand_dependent_units() {
        let mut r = Rocket::new(1, 1, 1);
        let ones = |bits: u32| (1u64 << bits) - 1;
        for (bits, cycles) in [(2, 4), (13, 5), (29, 7), (45, 9), (61, 10)] {
            assert_eq!(r.mul(ones(bits), false, false), cycles, "{bits} bits");
        }
        assert_eq!(r.mul(u64::MAX, false, false), 10);
        for (bits, cycles) in [(2, 4), (13, 5), (32, 6)] {
            assert_eq!(r.mul(ones(bits), false, true), cycles, "{bits} bits, word");
        }
        let mut div = |a: i64, b: i64, rem| r.div(a as u64, b as u64, true, rem);
        for (a, b, cycles) in [
            (7, 3, 6),
            (1 << 62, 1 << 61, 6),
            (1000, 1000, 5),
            (0, 1, 5),
            (1000, 10, 11),
            (1_000_000_000, 1000, 25),
            (1 << 62, 1, 67),
            (0, 3, 67),
            (5, 0, 67),
            (3, 1000, 61),
            (-1000, 10, 13),
            (-7, -3, 7),
        ] {
            assert_eq!(div(a, b, false), cycles, "{a} / {b}");
        }
        assert_eq!(div(-7, 3, true), 8);
    }

    #[test]
    fn one_hart_misses() {
        let mut r = Rocket::new(1, 30, 10);
        assert_eq!(r.data(0, 0, LINE, Touch::Read), 43);
        assert_eq!(r.data(0, 0, LINE + 8, Touch::Read), 0);
        assert_eq!(r.data(0, 0, LINE + 8, Touch::Write), 0, "a lone load gets the line exclusive");
        let costs: Vec<u64> = (1..40).map(|n| r.data(0, 0, LINE + n * 4096, Touch::Read)).collect();
        assert!(costs.contains(&56), "a dirty victim costs 13 more: {costs:?}");
    }

    /// Measured (M4) at RL = WL = 30.
    #[test]
    fn several_harts() {
        let mut r = Rocket::new(4, 30, 30);
        let far = 10_000;
        assert_eq!(r.data(0, 0, LINE, Touch::Write), 52);
        assert_eq!(r.data(1, far, LINE, Touch::Read), 90, "dirty elsewhere");
        assert_eq!(r.data(2, 2 * far, LINE, Touch::Read), 52, "clean elsewhere");
        assert_eq!(r.data(1, 3 * far, LINE, Touch::Write), 52, "upgrade");
        assert_eq!(r.data(2, 4 * far, LINE, Touch::Read), 90, "the upgrade took it away");
    }

    #[test]
    fn transactions_on_one_line_queue() {
        let mut r = Rocket::new(2, 30, 30);
        let first = r.data(0, 0, LINE, Touch::Write);
        let second = r.data(1, 1, LINE, Touch::Write);
        assert!(second > first + 30, "{second}");
    }

    #[test]
    fn uncached_accesses() {
        let mut r = Rocket::new(1, 30, 20);
        let ahead = Ahead::of_result(2, false);
        assert_eq!(r.device_read(0, 0, Path::Control, 1, ahead) + 2, 9);
        assert_eq!(r.device_read(0, 100, Path::Plic, 1, ahead) + 2, 10);
        assert_eq!(r.device_read(0, 200, Path::Axi, 10, ahead) + 2, 20);
        assert_eq!(r.device_read(0, 250, Path::Axi, 10, Ahead::of_result(30, false)), 0, "used when it is there");
        assert_eq!(r.device_write(0, 300, Path::Axi, 10), 0, "a write does not wait for its answer");
        assert_eq!(r.device_write(0, 301, Path::Axi, 10), 15, "the next one waits for the slot");
    }

    /// Measured (M1), entries in the L1D.
    #[test]
    fn walks() {
        let mut r = Rocket::new(1, 30, 20);
        let walk = |depth| Walk { physical: 0, entries: [LINE, LINE + 8, LINE + 16], depth, global: false };
        r.data(0, 0, LINE, Touch::Read);
        assert_eq!(r.refill(0, 0, 0x1000, &walk(3), false), 17);
        assert_eq!(r.refill(0, 0, 0x9000, &walk(3), false), 11);
        r.sfence(0, None, false);
        assert_eq!(r.refill(0, 0, 0x1000, &walk(2), false), 13);
        r.sfence(0, None, false);
        assert_eq!(r.refill(0, 0, 0x1000, &walk(1), false), 9);
    }
}
