//! From a trap in U-mode to the portable kernel and back: lock, dispatch by cause, idle.
//!
//! Interrupts are never enabled while the kernel runs. A core without work waits in `wfi`, which wakes by what is pending and
//! enabled in `sie` all the same; so a trap out of S-mode is always a bug (panic.rs), and idling needs no thread of its own.

use core::cell::UnsafeCell;

use super::context::Context;
use super::port::Riscv64;
use super::uintc::virtual_hart;
use super::{core_number, csr, irq, mmu, smp};
use crate::api::syscall;
use crate::arch::register;
use crate::sched;
use crate::state::{Kernel, Next};

const INTERRUPT: usize = 1 << (usize::BITS - 1);
/// `scause` of an illegal instruction.
const ILLEGAL_INSTRUCTION: usize = 2;

struct Shared(UnsafeCell<Kernel>);
// SAFETY: reached through `Held` only, by the holder of the lock.
unsafe impl Sync for Shared {}
static KERNEL: Shared = Shared(UnsafeCell::new(Kernel::new(Riscv64::new(None, false))));

/// The big lock, held, and with it the token. A value, so that a function can hand it on by a jump and end: what a slow path needs
/// saved is saved there, and the fast path saves nothing.
struct Held(&'static mut Kernel);

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        checks::before_unlock(self.0);
        smp::unlock();
    }
}

/// Takes the lock.
#[inline(always)]
fn hold() -> Held {
    smp::lock();
    // SAFETY: the lock is held until `Held` is dropped; with one core it needs no taking. Nothing that has it comes back here.
    let kernel = unsafe { &mut *KERNEL.0.get() };
    kernel.enter(core_number());
    Held(kernel)
}

/// The kernel's state, for its last words.
///
/// # Safety
/// No other core changes it, and the caller does not go back to who may be changing it on this core.
pub unsafe fn look() -> &'static Kernel {
    // SAFETY: the caller's promise.
    unsafe { &*KERNEL.0.get() }
}

/// Builds with debug assertions check the kernel's state at every exit.
#[cfg(debug_assertions)]
mod checks {
    use core::cell::UnsafeCell;

    use super::smp;
    use crate::invariants::{self, Depth, Survey};
    use crate::state::Kernel;

    /// A look at all capabilities costs time in proportion to their number: there is one at every exit while there are no more than
    /// these, at every second up to twice as many, and so on.
    const SLOTS_PER_EXIT: u64 = 192;
    /// Of those looks, every so many go through the page tables too.
    const FULL_EVERY: u64 = 16;

    struct Memory(UnsafeCell<Survey>);
    // SAFETY: used by the holder of the big lock only.
    unsafe impl Sync for Memory {}
    static SURVEY: Memory = Memory(UnsafeCell::new(Survey::new()));

    #[inline(never)]
    pub fn before_unlock(kernel: &Kernel) {
        if smp::is_open() {
            // SAFETY: the lock is held, and a check does not come back here.
            let survey = unsafe { &mut *SURVEY.0.get() };
            let every = 1 + survey.len() as u64 / SLOTS_PER_EXIT;
            let depth = match survey.round() {
                round if round.is_multiple_of(every * FULL_EVERY) => Depth::Full,
                round if round.is_multiple_of(every) => Depth::Tree,
                _ => Depth::Threads,
            };
            invariants::check(kernel, survey, depth);
        }
    }
}

/// Runs `work` with the big lock.
pub fn with_kernel<R>(work: impl FnOnce(&mut Kernel) -> R) -> R {
    let held = hold();
    work(held.0)
}

/// Whether `context` is that of the thread which this core runs. Another core may have stopped it while this one waited for the
/// lock: then there is nothing to handle.
#[inline(always)]
fn still_runs(kernel: &mut Kernel, context: *mut Context) -> bool {
    smp::cores() == 1 || kernel.current_context() == Some(context)
}

/// Called by entry.S for an `ecall`, with the context of the thread that executed it and three registers that it holds; gives the
/// context to resume.
pub extern "C" fn system_call(context: *mut Context, cptr: u64, info: u64, number: isize) -> *mut Context {
    let held = hold();
    if !still_runs(held.0, context) {
        return leave(held);
    }
    let current = held.0.current();
    match syscall::fast_syscall(held.0, current, number, cptr, info) {
        Some(thread) => &raw mut held.0.get_mut(thread).context,
        None => slow_system_call(held),
    }
}

#[inline(never)]
fn slow_system_call(held: Held) -> *mut Context {
    let next = syscall::slow_syscall(held.0);
    go_on(held, next)
}

#[cold]
#[inline(never)]
fn leave(held: Held) -> *mut Context {
    let next = sched::leave(held.0);
    go_on(held, next)
}

/// Called by entry.S for every other trap: interrupts and faults.
pub extern "C" fn trap(context: *mut Context, cause: usize) -> *mut Context {
    let held = hold();
    if !still_runs(held.0, context) {
        return leave(held);
    }
    let kernel = &mut *held.0;
    let registers = &mut kernel.get_mut(kernel.current()).context;
    registers.next_pc = registers.x[register::PC];
    let next = if cause & INTERRUPT != 0 {
        syscall::handle_interrupt(kernel)
    } else {
        syscall::handle_fault(kernel, cause as u64, csr::read!("stval") as u64)
    };
    go_on(held, next)
}

/// As [`system_call`], where user interrupts are emulated.
pub extern "C" fn system_call_emulating(context: *mut Context, cptr: u64, info: u64, number: isize) -> *mut Context {
    let next = system_call(context, cptr, info, number);
    // SAFETY: entry.S enters the thread of this context at once.
    unsafe { virtual_hart::take_interrupt(next) }
}

/// As [`trap`], where user interrupts are emulated.
pub extern "C" fn trap_emulating(context: *mut Context, cause: usize) -> *mut Context {
    let emulated = cause == ILLEGAL_INSTRUCTION && with_kernel(|kernel| emulate(kernel, context));
    let next = if emulated { context } else { trap(context, cause) };
    // SAFETY: as above.
    unsafe { virtual_hart::take_interrupt(next) }
}

fn emulate(kernel: &mut Kernel, context: *mut Context) -> bool {
    let current = kernel.current();
    still_runs(kernel, context) && virtual_hart::execute(kernel.get_mut(current))
}

/// The context of the thread that runs next, once there is one.
#[inline(always)]
fn go_on(held: Held, next: Next) -> *mut Context {
    mmu::catch_up_with_code();
    match next {
        Next::Run(thread) => &raw mut held.0.get_mut(thread).context,
        Next::Idle => idle(held),
    }
}

/// Idles until there is a thread to run.
#[inline(never)]
fn idle(mut held: Held) -> *mut Context {
    loop {
        drop(held);
        irq::wait();
        held = hold();
        let next = syscall::handle_interrupt(held.0);
        mmu::catch_up_with_code();
        if let Next::Run(thread) = next {
            return &raw mut held.0.get_mut(thread).context;
        }
    }
}

/// The first decision of a core after boot.
pub fn first() -> *mut Context {
    leave(hold())
}
