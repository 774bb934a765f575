//! What a debugger asks of the run loop: where to stop, and how far a hart may run before it is asked again.
//!
//! The run loop is generic over [`Debug`]. [`Off`] answers every question with "go on" and compiles away. [`Debugger`] never
//! changes guest memory or decoded code: a block that holds a breakpoint is executed up to it, and under a step or a
//! watchpoint every instruction is a piece of its own. Without any of the three the blocks are those of a plain run, and
//! a run that is only interrupted and continued has the same cycles and the same digest.

use crate::bus::Bus;
use crate::hart::Hart;
use crate::hart::exec::Flow;
use crate::hart::inspect::Operand;
use crate::memory::Memory;
use crate::outcome::End;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks between two returns to whoever listens to the user. At some ten million blocks a second that is a millisecond or two.
const QUANTUM: u32 = 16_384;
/// A piece of one instruction, whatever its length: the instruction at offset 0 of its block.
const ONE_INSTRUCTION: u64 = 1;

/// Why the machine came back from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The run has ended.
    End(End),
    /// The debugger wants to be asked; the run can go on where it was.
    Stop(Stop),
}

/// Why a debugger stopped the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing happened: time to look whether the user wants something.
    Quantum,
    /// A moment that was waited for has come.
    Moment,
    /// The hart is about to execute the instruction at a breakpoint.
    Breakpoint { hart: usize },
    /// The hart has executed the one instruction that it was to step.
    Stepped { hart: usize },
    /// The hart is about to access a watched range: gdb expects RISC-V to stop before the access, and steps over it.
    Watchpoint { hart: usize, watch: Watch },
}

/// A watched range of virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub address: u64,
    pub bytes: u64,
    pub reads: bool,
    pub writes: bool,
}

impl Watch {
    fn sees(&self, operand: &Operand) -> bool {
        // Distances instead of ends: an operand at the top of the address space has no end.
        let meets = operand.address.wrapping_sub(self.address) < self.bytes
            || self.address.wrapping_sub(operand.address) < operand.bytes;
        meets && (self.reads && operand.reads || self.writes && operand.writes)
    }
}

/// The run loop's questions.
pub(crate) trait Debug {
    /// False: nothing is ever asked.
    const ACTIVE: bool;

    /// `hart` is about to execute at its pc. Gives the number of bytes from there that it may execute.
    fn before(&mut self, hart: &Hart, bus: &Bus) -> Result<u64, Stop>;
    /// `hart` has executed what it was allowed to.
    fn after(&mut self, hart: &Hart, flow: Flow);
    /// Between two turns of harts, at cycle `now`.
    fn between(&mut self, now: u64, bus: &Bus) -> Option<Stop>;
    /// The only hart that may run, if the others are held.
    fn only(&self) -> Option<usize>;
}

/// No debugger.
pub(crate) struct Off;

impl Debug for Off {
    const ACTIVE: bool = false;

    fn before(&mut self, _hart: &Hart, _bus: &Bus) -> Result<u64, Stop> {
        Ok(u64::MAX)
    }
    fn after(&mut self, _hart: &Hart, _flow: Flow) {}
    fn between(&mut self, _now: u64, _bus: &Bus) -> Option<Stop> {
        None
    }
    fn only(&self) -> Option<usize> {
        None
    }
}

/// A debugger's wishes.
#[derive(Default)]
pub(crate) struct Debugger {
    /// Virtual addresses, in whatever address space.
    pub breakpoints: BTreeSet<u64>,
    pub watches: Vec<Watch>,
    /// Addresses whose breakpoints and watches are of one address space: its `satp`.
    pub spaces: BTreeMap<u64, u64>,
    /// The core cycle at which to stop.
    pub until: Option<u64>,
    /// The hart that is to execute one instruction.
    pub step: Option<usize>,
    /// The only hart that may run.
    pub lock: Option<usize>,
    left: u32,
    /// Found after an instruction, reported before the next one.
    pending: Option<Stop>,
    /// Hart, pc and instruction count of the latest stop, and what was reported there: that is passed when the run goes on. gdb steps by
    /// breakpoints of its own, so what was not reported is not passed.
    passed: ((usize, u64, u64), Vec<Stop>),
}

impl Debugger {
    /// One that stops at `addresses`.
    pub fn with_breakpoints(addresses: impl IntoIterator<Item = u64>) -> Self {
        Self { breakpoints: addresses.into_iter().collect(), ..Self::default() }
    }

    /// A breakpoint or watch at `address` counts in the address space that `hart` executes in.
    fn is_in_space(&self, hart: &Hart, address: u64) -> bool {
        self.spaces.is_empty() || self.spaces.get(&address).is_none_or(|&satp| satp == hart.space_in_use())
    }

    /// The cycle that was waited for, once.
    fn reach(&mut self, now: u64) -> Result<(), Stop> {
        match self.until {
            Some(cycle) if now >= cycle => {
                self.until = None;
                Err(Stop::Moment)
            }
            _ => Ok(()),
        }
    }

    /// Forgets how the last run was to proceed; breakpoints and watches stay.
    pub fn clear_resume(&mut self) {
        self.step = None;
        self.lock = None;
        self.pending = None;
    }

    /// The breakpoint or watchpoint that the instruction at `hart`'s pc meets, and that was not reported of this very execution of it.
    fn hit(&mut self, hart: &Hart, ram: &Memory) -> Option<Stop> {
        let here = (hart.id, hart.pc, hart.instructions);
        if self.passed.0 != here {
            self.passed = (here, Vec::new());
        }
        let breakpoint = self.breakpoints.contains(&hart.pc) && self.is_in_space(hart, hart.pc);
        let breakpoint = breakpoint.then_some(Stop::Breakpoint { hart: hart.id });
        let operand = if self.watches.is_empty() { None } else { hart.memory_operand(ram) };
        let watchpoints = self.watches.iter().filter(|watch| {
            operand.is_some_and(|operand| watch.sees(&operand)) && self.is_in_space(hart, watch.address)
        });
        let watchpoints = watchpoints.map(|&watch| Stop::Watchpoint { hart: hart.id, watch });
        let stop = breakpoint.into_iter().chain(watchpoints).find(|stop| !self.passed.1.contains(stop))?;
        self.passed.1.push(stop);
        Some(stop)
    }

    fn tick(&mut self) -> Result<(), Stop> {
        if let Some(stop) = self.pending.take() {
            return Err(stop);
        }
        if self.left == 0 {
            self.left = QUANTUM;
            return Err(Stop::Quantum);
        }
        self.left -= 1;
        Ok(())
    }
}

impl Debug for Debugger {
    const ACTIVE: bool = true;

    fn before(&mut self, hart: &Hart, bus: &Bus) -> Result<u64, Stop> {
        self.tick()?;
        self.reach(hart.clock)?;
        if !(self.breakpoints.is_empty() && self.watches.is_empty())
            && let Some(stop) = self.hit(hart, &bus.ram)
        {
            return Err(stop);
        }
        if self.step == Some(hart.id) || !self.watches.is_empty() {
            return Ok(ONE_INSTRUCTION);
        }
        let next = hart
            .pc
            .checked_add(1)
            .and_then(|from| self.breakpoints.range(from..).find(|&&at| self.is_in_space(hart, at)));
        Ok(next.map_or(u64::MAX, |at| at - hart.pc))
    }

    fn after(&mut self, hart: &Hart, flow: Flow) {
        if self.step == Some(hart.id) && flow != Flow::Again {
            self.pending = Some(Stop::Stepped { hart: hart.id });
        }
    }

    fn between(&mut self, now: u64, _bus: &Bus) -> Option<Stop> {
        self.tick().and_then(|()| self.reach(now)).err()
    }

    fn only(&self) -> Option<usize> {
        self.lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_see_overlaps_of_their_kind() {
        let watch = Watch { address: 0x1004, bytes: 4, reads: false, writes: true };
        let store = |address, bytes| Operand { address, bytes, reads: false, writes: true };
        assert!(watch.sees(&store(0x1000, 8)) && watch.sees(&store(0x1007, 1)) && watch.sees(&store(0x1004, 4)));
        assert!(
            !watch.sees(&store(0x1000, 4)) && !watch.sees(&store(0x1008, 8)) && !watch.sees(&store(u64::MAX - 7, 8))
        );
        assert!(!watch.sees(&Operand { reads: true, writes: false, ..store(0x1004, 4) }));
    }
}
