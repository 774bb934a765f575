//! `--profile`: where the cycles went, by function.
//!
//! A [`Debug`] that never stops anything, as the tracer: before each block of a hart it gives the cycles and instructions since the last
//! look to the place of that look. So nothing is sampled, waiting for memory counts where it was waited, and a profiled run has the
//! cycles and the digest of a plain one. Cycles in `wfi` are left out.
//!
//! Programs are linked at the same addresses, and the machine does not know which of them lies in an address space. It is taken
//! to be the one of which most blocks executed there begin a function.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use crate::bus::Bus;
use crate::debug::{Debug, Stop};
use crate::hart::Hart;
use crate::hart::exec::Flow;
use crate::outcome::Privilege;
use crate::symbols::Symbols;

/// An address space: none for M-mode, else `satp`, and whether it is the user's part.
type Space = Option<(u64, bool)>;

#[derive(Clone, Copy, Default)]
struct Spent {
    blocks: u64,
    instructions: u64,
    cycles: u64,
}

/// The place of the last look at a hart, and its counters then.
#[derive(Clone, Copy)]
struct Look {
    place: (Space, u64),
    instructions: u64,
    busy: u64,
}

/// What was spent, by space and address of a block.
pub(crate) struct Profiler {
    window: Range<u64>,
    spent: BTreeMap<(Space, u64), Spent>,
    last: Vec<Option<Look>>,
}

impl Profiler {
    /// A profiler of `harts` harts, for the cycles in `window`.
    pub fn new(harts: usize, window: Range<u64>) -> Self {
        Self { window, spent: BTreeMap::new(), last: vec![None; harts] }
    }

    /// Writes a table, most cycles first: cycles, instructions, blocks, program, function; columns are separated by tabs. Errors: of
    /// writing.
    pub fn write(&self, symbols: &Symbols, mut out: impl Write) -> io::Result<()> {
        let programs = self.programs(symbols);
        let mut functions: BTreeMap<(&str, String), Spent> = BTreeMap::new();
        for ((space, pc), spent) in &self.spent {
            let program = programs.get(space).copied().unwrap_or("?");
            let name = symbols.name(program, *pc).map_or_else(|| format!("{pc:#x}"), str::to_owned);
            let total = functions.entry((program, name)).or_default();
            total.blocks += spent.blocks;
            total.instructions += spent.instructions;
            total.cycles += spent.cycles;
        }
        let mut rows: Vec<_> = functions.into_iter().collect();
        rows.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.cycles));
        writeln!(out, "cycles\tinstructions\tblocks\tprogram\tfunction")?;
        for ((program, name), Spent { blocks, instructions, cycles }) in rows {
            writeln!(out, "{cycles}\t{instructions}\t{blocks}\t{program}\t{name}")?;
        }
        Ok(())
    }

    /// The program of each space.
    fn programs<'s>(&self, symbols: &'s Symbols) -> BTreeMap<Space, &'s str> {
        let mut votes: BTreeMap<Space, BTreeMap<&str, u64>> = BTreeMap::new();
        for ((space, pc), spent) in &self.spent {
            for program in symbols.starting_at(*pc) {
                *votes.entry(*space).or_default().entry(program).or_default() += spent.blocks;
            }
        }
        let best = |votes: BTreeMap<&'s str, u64>| votes.into_iter().max_by_key(|(_, blocks)| *blocks);
        votes.into_iter().filter_map(|(space, votes)| Some((space, best(votes)?.0))).collect()
    }
}

impl Debug for Profiler {
    const ACTIVE: bool = true;

    fn before(&mut self, hart: &Hart, _bus: &Bus) -> Result<u64, Stop> {
        let busy = hart.clock - hart.statistics.idle_cycles;
        if let Some(last) = self.last[hart.id].take() {
            let spent = self.spent.entry(last.place).or_default();
            spent.blocks += 1;
            spent.instructions += hart.instructions - last.instructions;
            spent.cycles += busy - last.busy;
        }
        if self.window.contains(&hart.clock) {
            let space = match hart.privilege {
                Privilege::M => None,
                // The kernel is the same in every space.
                Privilege::S => Some((0, false)),
                Privilege::U => Some((hart.csrs.satp, true)),
            };
            self.last[hart.id] = Some(Look { place: (space, hart.pc), instructions: hart.instructions, busy });
        }
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
