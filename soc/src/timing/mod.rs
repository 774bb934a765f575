//! Time: what instructions cost. The model observes execution and never changes what an instruction means.
//!
//! [`Timing`] is the list of places where the interpreter asks; each answer is a number of core cycles beyond the static
//! cost that [`pipeline`] found at decode. [`Functional`] answers 0 everywhere and compiles away; [`rocket::Rocket`] is the
//! cost model. All constants are in [`params`].

mod cache;
pub mod params;
pub mod pipeline;
mod predictor;
pub(crate) mod rocket;
mod target_buffer;
mod translation;

use crate::hart::block::Block;
use crate::hart::insn::Ahead;
use crate::hart::mmu::Walk;
use crate::outcome::HartStatistics;

/// Which path a device access takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Control bus, as the CLINT and UINTC.
    Control,
    /// Control bus through the PLIC.
    Plic,
    /// The memory-mapped AXI port.
    Axi,
}

/// Kind of an access to RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Load.
    Read,
    /// `lr`: asks for the line as a store does, but leaves it clean.
    Reserve,
    /// Store, `sc`, AMO.
    Write,
    /// Store with another one right behind it.
    WriteRun,
}

/// Cycles that the pipeline waits for a result that takes `latency` cycles to its first use, given what it can do meanwhile.
#[inline(always)]
pub(crate) fn wait_for(latency: u64, ahead: Ahead) -> u64 {
    let floor = if ahead.port_busy() { params::WRITE_PORT_WAIT } else { 0 };
    latency.saturating_sub(ahead.distance()).max(floor)
}

/// How control reached an indirect target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indirect {
    /// Links: a call.
    Call,
    /// `ret`.
    Return,
    /// Anything else.
    Jump,
}

/// The questions of the interpreter. Default answers: nothing costs anything.
#[allow(unused_variables, reason = "an empty default names its arguments for those who implement it")]
pub(crate) trait Timing {
    /// False lets the compiler drop every question.
    const TIMED: bool;
    /// A block starts at `now`. `transferred`: reached by a taken branch or jump.
    fn block(&mut self, hart: usize, now: u64, block: &Block, transferred: bool) -> u64 {
        0
    }
    /// True if the page of `va` misses in the instruction TLB.
    fn fetch_misses(&mut self, hart: usize, va: u64) -> bool {
        false
    }
    /// True if the page of `va` misses in the data TLB.
    fn data_misses(&mut self, hart: usize, va: u64) -> bool {
        false
    }
    /// A walk fills a TLB.
    fn refill(&mut self, hart: usize, now: u64, va: u64, walk: &Walk, fetch: bool) -> u64 {
        0
    }
    /// An access to RAM at `physical`, at `now`.
    fn data(&mut self, hart: usize, now: u64, physical: u64, touch: Touch) -> u64 {
        0
    }
    /// A conditional branch at `pc`.
    fn branch(&mut self, hart: usize, pc: u64, target: u64, taken: bool) -> u64 {
        0
    }
    /// `jal` at `pc`; `link`: the return address if it is a call.
    fn jump(&mut self, hart: usize, pc: u64, target: u64, link: Option<u64>) -> u64 {
        0
    }
    /// `jalr` at `pc`; `first` in its block.
    fn indirect(&mut self, hart: usize, pc: u64, target: u64, kind: Indirect, link: u64, first: bool) -> u64 {
        0
    }
    /// A multiply, to a dependent instruction; `high` for the upper half, `word` for 32 bits.
    fn mul(&mut self, a: u64, high: bool, word: bool) -> u64 {
        0
    }
    /// A divide or remainder of the given (already extended) operands, to a dependent instruction.
    fn div(&mut self, a: u64, b: u64, signed: bool, remainder: bool) -> u64 {
        0
    }
    /// A write of CSR `number`.
    fn csr_write(&mut self, number: u32) -> u64 {
        0
    }
    /// Trap entry by an exception.
    fn exception(&mut self, hart: usize) -> u64 {
        0
    }
    /// Trap entry by an interrupt; `woken`: out of `wfi`.
    fn interrupt(&mut self, hart: usize, woken: bool) -> u64 {
        0
    }
    /// `uret sret mret`.
    fn trap_return(&mut self, hart: usize) -> u64 {
        0
    }
    /// End of `wfi`.
    fn wake(&mut self) -> u64 {
        0
    }
    /// `fence` at `now`.
    fn fence(&mut self, hart: usize, now: u64) -> u64 {
        0
    }
    /// `fence.i`.
    fn fence_i(&mut self, hart: usize) -> u64 {
        0
    }
    /// `sfence.vma`; `va`: only that page, `keep_global`: rs2 given.
    fn sfence(&mut self, hart: usize, va: Option<u64>, keep_global: bool) -> u64 {
        0
    }
    /// An uncached read at `now`, with what follows it.
    fn device_read(&mut self, hart: usize, now: u64, path: Path, latency: u64, ahead: Ahead) -> u64 {
        0
    }
    /// An uncached write at `now`.
    fn device_write(&mut self, hart: usize, now: u64, path: Path, latency: u64) -> u64 {
        0
    }
    /// A `uipi` instruction that reaches the UINTC with a read (`uipi.read`) or a write.
    fn uipi(&mut self, hart: usize, now: u64, read: bool) -> u64 {
        0
    }
    /// A device wrote RAM.
    fn dma_write(&mut self, physical: u64, len: u64) {}
    /// Adds the model's counters.
    fn count(&self, hart: usize, statistics: &mut HartStatistics) {}
}

/// Nothing costs anything beyond the instruction itself.
pub(crate) struct Functional;

impl Timing for Functional {
    const TIMED: bool = false;
}
