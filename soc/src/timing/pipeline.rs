//! Static part of the pipeline model: what a block costs before caches, branches and operands are known.
//!
//! Rocket issues one instruction per cycle in order with full bypass; only results of loads, `sc`, CSR reads and the FPU come
//! late (numbers and sources in [`super::params`]). Bubbles between neighbours are added here once, at decode.
//!
//! Registers are numbered from 0 to 63: x0 to x31, then f0 to f31. x0 is never late, so 0 also stands for none.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::params;
use crate::hart::float::instruction::{self, File, Unit};
use crate::hart::insn::{Ahead, Insn, Op};

/// A result that is not ready when the block ends: register slot and cycles still to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Register number; 0 if nothing is late.
    pub register: u8,
    /// Bubbles for an instruction that needs it at once.
    pub bubbles: u8,
}

/// How a block changes a distance, in instructions, back to something before its end: `behind` = `behind & keep` + `more`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    keep: u64,
    more: u64,
}

impl Behind {
    /// `found`: how far before the end of the block, of `length` instructions, the thing itself lies, if it is in there.
    fn of(found: Option<usize>, length: usize) -> Self {
        match found {
            Some(distance) => Self { keep: 0, more: distance as u64 },
            None => Self { keep: u64::MAX, more: length as u64 },
        }
    }

    /// The distance behind the block if it is `behind` before.
    #[inline(always)]
    pub fn after(self, behind: u64) -> u64 {
        (behind & self.keep) + self.more
    }
}

/// Distances, in instructions, over which memory accesses of neighbouring blocks meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first load or AMO is replayed if there are fewer instructions than this between the block and an unordered AMO.
    pub amo_window: u64,
    /// From the last unordered AMO to the end.
    pub behind_amo: Behind,
    /// From the last memory access to the end.
    pub behind_access: Behind,
    /// The block starts with a `fence`.
    pub fence: bool,
}

/// x and f registers.
const REGISTERS: usize = 64;
/// A distance too far to matter.
pub const FAR: u64 = 1 << 32;

impl Reach {
    /// Of a decoded block.
    pub(crate) fn of(insns: &[Insn]) -> Self {
        let insns = match insns.split_last() {
            Some((last, rest)) if last.op == Op::End => rest,
            _ => insns,
        };
        let access = |insn: &Insn| insn.op.is_load() || insn.op.is_amo() || insn.op.is_store();
        let first_access = insns.iter().position(|insn| insn.op.is_load() || insn.op.is_amo());
        let last_amo = insns.iter().rev().position(|insn| insn.op.is_amo() && !insn.ordered);
        Self {
            amo_window: first_access.map_or(0, |distance| params::AMO_WINDOW.saturating_sub(distance)) as u64,
            behind_amo: Behind::of(last_amo, insns.len()),
            behind_access: Behind::of(insns.iter().rev().position(access), insns.len()),
            fence: insns.first().is_some_and(|insn| insn.op == Op::Fence),
        }
    }
}

/// Bubbles that an instruction needing the result right behind `insn` meets.
fn late_result(insn: &Insn) -> u64 {
    match insn.op {
        Op::Flw | Op::Fld => params::FLOAT_LOAD_BUBBLES,
        Op::Float => float_latency(instruction::unit(insn.imm as u32)) - 1,
        op if op.is_narrow_load() => params::NARROW_LOAD_BUBBLES,
        op if (op.is_amo() || matches!(op, Op::LrW | Op::LrD)) && insn.ordered => params::ORDERED_AMO_BUBBLES,
        op if op.is_load() || op.is_amo() => params::LOAD_BUBBLES,
        Op::LrW | Op::LrD => params::LOAD_BUBBLES,
        Op::ScW | Op::ScD => params::NARROW_LOAD_BUBBLES,
        Op::Csr => params::CSR_READ_BUBBLES,
        _ => 0,
    }
}

/// Cycles from a floating-point instruction to a dependent one.
fn float_latency(unit: Unit) -> u64 {
    match unit {
        Unit::MultiplyAdd { double: false } => params::FMA_SINGLE_BUBBLES + 1,
        Unit::MultiplyAdd { double: true } => params::FMA_DOUBLE_BUBBLES + 1,
        Unit::Move => params::FLOAT_MOVE_BUBBLES + 1,
        Unit::FromInteger => params::INTEGER_TO_FLOAT_BUBBLES + 1,
        Unit::ToInteger => params::FLOAT_TO_INTEGER_BUBBLES + 1,
        Unit::Divide { double: false } | Unit::SquareRoot { double: false } => params::DIVIDE_SINGLE,
        Unit::Divide { double: true } => params::DIVIDE_DOUBLE,
        Unit::SquareRoot { double: true } => params::ROOT_DOUBLE,
    }
}

/// True for operations of the one unit that is not pipelined.
fn iterates(insn: &Insn) -> bool {
    insn.op == Op::Float && matches!(instruction::unit(insn.imm as u32), Unit::Divide { .. } | Unit::SquareRoot { .. })
}

/// True if `insn` reads x-register `register`, which is not x0. Floating-point arithmetic is not asked here.
fn reads(insn: &Insn, register: u8) -> bool {
    match insn.op {
        Op::Nop | Op::Li | Op::Auipc | Op::Jal | Op::Fence | Op::Pause | Op::FenceI | Op::End | Op::Illegal => false,
        Op::Ecall | Op::Ebreak | Op::Uret | Op::Sret | Op::Mret | Op::Wfi => false,
        // rs1 of the immediate forms is a number.
        Op::Csr => (insn.imm as u32 >> 12) & 4 == 0 && insn.rs1 == register,
        Op::Mv | Op::Jalr | Op::LrW | Op::LrD | Op::UipiSend | Op::UipiWrite => insn.rs1 == register,
        Op::Fsw | Op::Fsd => insn.rs1 == register,
        op if op.is_load() => insn.rs1 == register,
        op if (op as u8) >= Op::Addi as u8 && (op as u8) <= Op::Sraiw as u8 => insn.rs1 == register,
        _ => insn.rs1 == register || insn.rs2 == register,
    }
}

/// Number of f-register `register`.
fn float_slot(register: u8) -> u8 {
    32 + register
}

/// The registers that `insn` reads, one bit each.
pub(crate) fn sources(insn: &Insn) -> u64 {
    if insn.op == Op::Float {
        let slots = instruction::operands(insn.imm as u32).map(|operand| match operand {
            Some((File::Integer, register)) => register,
            Some((File::Float, register)) => float_slot(register),
            None => 0,
        });
        return slots.into_iter().filter(|&slot| slot != 0).fold(0, |mask, slot| mask | 1 << slot);
    }
    let stored = if matches!(insn.op, Op::Fsw | Op::Fsd) { 1 << float_slot(insn.rs2) } else { 0 };
    (1..32u8).filter(|&register| reads(insn, register)).fold(stored, |mask, register| mask | 1 << register)
}

/// The register that `insn` writes, if any. In branches and stores the field is part of the offset.
fn destination(insn: &Insn) -> Option<u8> {
    if insn.op.is_store() || insn.op.is_branch() {
        return None;
    }
    let float = match insn.op {
        Op::Flw | Op::Fld => true,
        Op::Float => instruction::destination(insn.imm as u32) == File::Float,
        _ => false,
    };
    match insn.rd {
        register @ 0..32 if float => Some(float_slot(register)),
        register @ 1..32 => Some(register),
        _ => None,
    }
}

/// Fills in `cost` of each instruction and tells what is late at the end.
pub(crate) fn schedule(insns: &mut [Insn]) -> Tail {
    let mut clock = 0u64;
    // Cycle at which each register can be read by an instruction issued then.
    let mut ready = [0u64; REGISTERS];
    // Cycle at which the unit that divides can start.
    let mut divider = 0;
    let mut stores = PendingStores::default();
    for at in 0..insns.len() {
        let insn = insns[at];
        if insn.op == Op::End {
            insns[at].cost = clock as u16;
            continue;
        }
        let read = sources(&insn);
        let latest = (1..REGISTERS).filter(|register| read >> register & 1 != 0).map(|register| ready[register]).max();
        let unit = if iterates(&insn) { divider } else { 0 };
        let stall = latest.unwrap_or(0).max(unit).saturating_sub(clock + 1);
        clock += 1 + stall;
        clock += stores.pass(clock, &insn).max(replay_behind_amo(&insns[..at], &insn));
        if let Some(register) = destination(&insn) {
            ready[usize::from(register)] = clock + 1 + late_result(&insn);
        }
        if iterates(&insn) {
            divider = clock + 1 + late_result(&insn);
        }
        insns[at].cost = clock as u16;
    }
    for at in 0..insns.len() {
        insns[at].ahead = ahead(insns, at, clock);
    }
    (1..REGISTERS)
        .map(|at| Tail { register: at as u8, bubbles: ready[at].saturating_sub(clock + 1) as u8 })
        .filter(|tail| tail.bubbles > 0)
        .max_by_key(|tail| tail.bubbles)
        .unwrap_or_default()
}

/// What instruction `at` must know of those behind it; the block takes `end` cycles.
fn ahead(insns: &[Insn], at: usize, end: u64) -> Ahead {
    let insn = &insns[at];
    let behind = &insns[at + 1..];
    if insn.op.is_store() {
        return if behind.first().is_some_and(|next| next.op.is_store()) {
            Ahead::store_follows()
        } else {
            Ahead::default()
        };
    }
    let multiplies = insn.op.is_multiply_or_divide();
    if !multiplies && !insn.op.is_load() {
        return Ahead::default();
    }
    let result = destination(insn);
    let wants = |other: &Insn| {
        let reads = result.is_some_and(|register| sources(other) >> register & 1 != 0);
        let writes = result.is_some() && destination(other) == result;
        reads || writes || (multiplies && other.op.is_multiply_or_divide())
    };
    match behind.iter().position(|other| other.op != Op::End && wants(other)) {
        Some(between) => {
            let distance = u64::from(behind[between].cost - insn.cost);
            let writes = |other: &Insn| destination(other).is_some_and(|register| register < 32);
            let busy = between > 0 && distance == between as u64 + 1 && behind[..between].iter().all(writes);
            Ahead::of_result(distance, busy)
        }
        // The block behind is not known: its first instruction is taken to want the result.
        None => Ahead::of_result(end - u64::from(insn.cost) + 1, false),
    }
}

/// Extra cycles of a load or AMO that must be replayed because of an unordered AMO close by (M1).
fn replay_behind_amo(before: &[Insn], insn: &Insn) -> u64 {
    let needs_port = insn.op.is_load() || insn.op.is_amo();
    let mut recent = before.iter().rev().take(params::AMO_WINDOW);
    if needs_port && recent.any(|amo| amo.op.is_amo() && !amo.ordered) { params::REPLAY } else { 0 }
}

/// Stores on their way to the cache: each waits for a cycle without a load.
#[derive(Default)]
struct PendingStores {
    /// The store, and the first cycle in which it can be written.
    stores: VecDeque<(u64, Insn)>,
    clock: u64,
}

impl PendingStores {
    /// `insn` issues in cycle `clock`; gives the cycles of its replay.
    fn pass(&mut self, clock: u64, insn: &Insn) -> u64 {
        let takes_port = insn.op.is_load() || insn.op.is_amo();
        for cycle in self.clock + 1..=clock {
            let free = cycle < clock || !takes_port;
            if free && self.stores.front().is_some_and(|&(ready, _)| ready <= cycle) {
                self.stores.pop_front();
            }
        }
        self.clock = clock;
        if insn.op.is_load() && self.stores.iter().any(|(_, store)| overlap(store, insn)) {
            self.stores.clear();
            self.clock += params::REPLAY;
            return params::REPLAY;
        }
        if insn.op.is_store() {
            self.stores.push_back((clock + params::STORE_DRAIN, *insn));
        }
        // An address whose base has changed is no longer known.
        if let Some(register) = destination(insn) {
            self.stores.retain(|(_, store)| store.rs1 != register);
        }
        0
    }
}

/// Same base register, which has not changed in between, and overlapping bytes.
fn overlap(store: &Insn, load: &Insn) -> bool {
    store.rs1 == load.rs1
        && store.imm < load.imm + i32::from(load.op.access_bytes())
        && load.imm < store.imm + i32::from(store.op.access_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(program: &[Insn]) -> u16 {
        let mut insns = program.to_vec();
        schedule(&mut insns);
        insns.last().map_or(0, |insn| insn.cost)
    }

    /// The measured rows (M1) that the static part alone decides.
    #[test]
    fn load_use() {
        let ld = Insn::new(Op::Ld, 5, 10, 0, 0);
        let lb = Insn::new(Op::Lb, 5, 10, 0, 0);
        let dependent = Insn::new(Op::Add, 6, 5, 5, 0);
        let other = Insn::new(Op::Add, 7, 8, 8, 0);
        assert_eq!(cycles(&[ld, dependent]), 3);
        assert_eq!(cycles(&[ld, other, dependent]), 3);
        assert_eq!(cycles(&[lb, dependent]), 4);
        assert_eq!(cycles(&[lb, other, dependent]), 4);
        assert_eq!(cycles(&[other, dependent, other]), 3);
    }

    /// The offset bits of a store may look like a register; it does not make that register's result come earlier.
    #[test]
    fn a_store_or_branch_writes_no_register() {
        let lb = Insn::new(Op::Lb, 5, 10, 0, 0);
        let store = Insn::new(Op::Sd, 5, 11, 9, 0);
        let dependent = Insn::new(Op::Add, 6, 5, 5, 0);
        assert_eq!(cycles(&[lb, store, dependent]), 4);
        let branch = Insn::new(Op::Beq, 5, 8, 9, 0);
        assert_eq!(schedule(&mut [lb, branch]), Tail { register: 5, bubbles: 1 });
    }

    #[test]
    fn store_to_load_replay() {
        let store = Insn::new(Op::Sd, 0, 10, 5, 8);
        let load = Insn::new(Op::Lw, 6, 10, 0, 12);
        let elsewhere = Insn::new(Op::Lw, 6, 10, 0, 16);
        let nop = Insn::new(Op::Nop, 0, 0, 0, 0);
        assert_eq!(cycles(&[store, load]), 7);
        assert_eq!(cycles(&[store, nop, load]), 8);
        assert_eq!(cycles(&[store, nop, nop, load]), 4);
        assert_eq!(cycles(&[store, elsewhere]), 2);
        let stores = [0, 8, 16, 24].map(|offset| Insn::new(Op::Sd, 0, 10, 5, offset));
        let loads = [0, 8, 16, 24].map(|offset| Insn::new(Op::Ld, 6, 10, 0, offset));
        assert_eq!(cycles(&[stores, loads].concat()), 13, "the last two stores find no free cycle");
    }

    #[test]
    fn what_follows_a_slow_result() {
        let mul = Insn::new(Op::Mul, 5, 8, 9, 0);
        let other = Insn::new(Op::Add, 7, 8, 8, 0);
        let store = Insn::new(Op::Sd, 0, 10, 8, 8);
        let user = Insn::new(Op::Add, 6, 5, 5, 0);
        let ahead = |program: &[Insn]| {
            let mut insns = program.to_vec();
            schedule(&mut insns);
            insns[0].ahead
        };
        assert_eq!(ahead(&[mul, user]), Ahead::of_result(1, false));
        assert_eq!(ahead(&[mul, other, other, user]), Ahead::of_result(3, true));
        assert_eq!(ahead(&[mul, other, store, user]), Ahead::of_result(3, false));
        assert_eq!(ahead(&[mul, other, mul]), Ahead::of_result(2, true));
        assert_eq!(ahead(&[mul, other]), Ahead::of_result(2, false), "the end of the block");
        assert!(ahead(&[store, store]).is_store() && !ahead(&[store, other]).is_store());
    }

    #[test]
    fn late_results_cross_blocks() {
        let mut insns = [Insn::new(Op::Nop, 0, 0, 0, 0), Insn::new(Op::Lb, 5, 10, 0, 0)];
        assert_eq!(schedule(&mut insns), Tail { register: 5, bubbles: 2 });
    }
}
