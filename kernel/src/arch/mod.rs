//! What each architecture supplies: the trait [`Arch`], implemented once per architecture, and the types that portable code shares
//! with it.
//!
//! `riscv64` runs on the machine. `host` gives the portable kernel an arena for physical memory and records every effect, so that
//! tests run anywhere; it uses the page-table format and the context layout of riscv64, which are plain data.
//!
//! How a trap reaches the kernel (riscv64/trap.rs):
//! 1. entry.S saves the registers in the [`Context`] that `sscratch` points to, a field of the TCB.
//! 2. The big lock is taken. The holder of the lock holds the token `Kernel`; `Kernel::enter` tells it the core. If
//!    `Kernel::current_context` is no longer the context that trapped (another core has stopped this thread meanwhile), the trap is
//!    forgotten: `sched::leave` chooses what runs.
//! 3. `next_pc` is set (for an `ecall` by entry.S): the trap's pc, plus 4 for an `ecall`. Then one of `api::syscall::fast_syscall` and
//!    `slow_syscall`, `handle_interrupt`, `handle_fault`. Each answers with what runs next on this core.
//! 4. `Next::Run(tcb)`: unlock, resume its context. `Next::Idle`: unlock, wait for an interrupt, lock, `handle_interrupt`, and so on.

pub mod riscv64;

#[cfg(not(target_arch = "riscv64"))]
pub mod host;

pub use riscv64::DIRECT_MAP;
pub use riscv64::context::{Context, FpuState, UserInterruptState, offset as context_offset};
pub use riscv64::sv39;

use crate::mem::{Kva, Paddr, Ref};
use crate::object::tcb::Tcb;

/// The architecture that this build runs on.
#[cfg(target_arch = "riscv64")]
pub type Current = riscv64::Riscv64;
/// The architecture that this build runs on.
#[cfg(not(target_arch = "riscv64"))]
pub type Current = host::Host;

/// Hardware register numbers that portable code names.
pub mod register {
    #![allow(missing_docs, reason = "the names are the ABI names of the registers")]
    /// Word 0 of a context: the program counter of the last trap (seL4's FaultIP).
    pub const PC: usize = 0;
    pub const RA: usize = 1;
    pub const SP: usize = 2;
    pub const TP: usize = 4;
    pub const A0: usize = 10;
    pub const A1: usize = 11;
    pub const A2: usize = 12;
    pub const A3: usize = 13;
    pub const A4: usize = 14;
    pub const A5: usize = 15;
    pub const A6: usize = 16;
    pub const A7: usize = 17;
}

/// What interrupted, in seL4's order of urgency: external, software, timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// A PLIC source; silent until [`Arch::complete_source`].
    Source(usize),
    /// Another core wants this one to look at its ready queues.
    Software,
    /// The time of [`Arch::set_timer`] has come.
    Timer,
}

/// The names that every architecture supplies. The kernel holds one value of this type; all calls are made under the big lock.
pub trait Arch {
    /// The memory behind `bytes` bytes of kernel address `address`. On riscv64 the address itself; on the host inside the arena.
    /// The kernel passes addresses of objects only, which lie in RAM.
    fn pointer(&self, address: Kva, bytes: usize) -> *mut u8;

    /// Cores that the kernel runs on.
    fn cores(&self) -> usize;
    /// The core that executes this.
    fn core(&self) -> usize;
    /// Calls the cores of `mask` (bit = core) into the kernel, by a software interrupt if they do not look.
    fn call_cores(&mut self, mask: usize);
    /// Hands a thread to another core, if that idles.
    fn hand_over(&mut self, core: usize, thread: Ref<Tcb>) -> bool;
    /// The thread that `core` was handed and has not taken yet.
    fn handed(&self, core: usize) -> Option<Ref<Tcb>>;
    /// Takes the thread that this core was handed.
    fn take_handed(&mut self) -> Option<Ref<Tcb>>;
    /// Takes back the thread that another core was handed and has not taken. That core comes into the kernel as if it had been called.
    fn take_back(&mut self, core: usize) -> Option<Ref<Tcb>>;
    /// The 8 bytes at `address` are going to be read and then written: brings their line into this core's cache for writing. A line
    /// that another core has changed would else be fetched twice.
    fn claim(&self, address: Kva);
    /// Stops another core that runs a thread in U-mode or waits for the lock. On return its thread's registers are in its context,
    /// its user-interrupt state is unloaded, its floating-point unit is off and saved, and it waits for the lock in the kernel's address space.
    fn stall_core(&mut self, core: usize);

    /// Puts this core into an address space; nothing if it is there already.
    fn switch_space(&mut self, root: Paddr, asid: u16);
    /// Puts this core into the kernel's own address space, which maps nothing for U.
    fn switch_to_kernel_space(&mut self);
    /// Address space `asid` goes away: when this returns, no core uses its tables or keeps its translations.
    fn evict_space(&mut self, asid: u16);
    /// The leaf that maps `vaddr` in `asid` has changed.
    fn fence_page(&mut self, asid: u16, vaddr: u64);
    /// Tables or many leaves of `asid` have changed.
    fn fence_space(&mut self, asid: u16);
    /// Until `release_fences`, what `fence_page` owes to other cores is only noted.
    fn hold_fences(&mut self);
    /// Whether some were noted.
    fn owes_fences(&self) -> bool;
    /// The other cores drop the translations that were noted, if there are any; nothing is held any more.
    fn release_fences(&mut self);
    /// The kernel half (entries 256 to 511) that every root holds.
    fn kernel_half(&self) -> [sv39::Pte; sv39::ENTRIES / 2];
    /// A page was mapped for execution: instruction fetches must see what was written there.
    fn code_changed(&mut self);

    /// The most urgent interrupt that this core has pending. An external one is claimed, a software one acknowledged.
    fn pending_interrupt(&mut self) -> Option<Interrupt>;
    /// Whether an external or timer interrupt is pending: a long operation stops and lets it in.
    fn preempts(&self) -> bool;
    /// Whether another core waits for the big lock.
    fn lock_is_wanted(&self) -> bool;
    /// Lets a PLIC source interrupt this core.
    fn enable_source(&mut self, source: usize);
    /// Keeps a PLIC source from interrupting any core.
    fn disable_source(&mut self, source: usize);
    /// Lets a claimed PLIC source interrupt again; harmless if it was not claimed.
    fn complete_source(&mut self, source: usize);
    /// The time, in ticks of the time base; the same on all cores.
    fn now(&self) -> u64;
    /// Ticks of the time base from one tick of the scheduler to the next.
    fn tick_length(&self) -> u64;
    /// From this time on the timer of this core interrupts; not before.
    fn set_timer(&mut self, at: u64);

    /// The cycle counter of this core.
    fn cycles(&self) -> u64;
    /// Prints one byte on the console.
    fn put_char(&mut self, byte: u8);
    /// Ends the machine (`seL4_DebugHalt`).
    fn halt(&mut self) -> !;

    /// Whether the harts have floating point (F and D).
    fn has_fpu(&self) -> bool;
    /// Turns this core's floating-point unit on for the thread with `state`; `load`: the unit holds other registers.
    fn enter_fpu(&mut self, state: &mut FpuState, load: bool);
    /// Turns it off; `state` holds the registers then, and so does the unit.
    fn leave_fpu(&mut self, state: &mut FpuState);

    /// Receivers of the UINTC, with number 0, which is never used; 0 if there is no UINTC.
    fn receivers(&self) -> u16;
    /// Makes a receiver inactive and empty: before its first use and after its last.
    fn reset_receiver(&mut self, receiver: u16);
    /// Posts bits to a receiver.
    fn post_receiver(&mut self, receiver: u16, bits: u64);
    /// Takes the pending bits of a receiver, leaving none.
    fn take_receiver(&mut self, receiver: u16) -> u64;
    /// Whether a receiver has pending bits; they stay.
    fn receiver_pending(&mut self, receiver: u16) -> bool;
    /// No core may be inside a `uipi.send` that read a sender table before the last stores of this core.
    fn fence_senders(&mut self);
    /// Moves the user-interrupt state of this core into `state`, and leaves the core with none.
    fn unload_user_interrupts(&mut self, state: &mut UserInterruptState);
    /// Gives this core the user-interrupt state of the thread that runs next. The core had none.
    fn load_user_interrupts(&mut self, state: &mut UserInterruptState);
}
