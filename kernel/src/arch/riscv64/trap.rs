//! From a trap in U-mode to the portable kernel and back: lock, dispatch by cause, idle.
//!
//! Interrupts are never enabled while the kernel runs. A core without work waits in `wfi`, which wakes by what is pending and
//! enabled in `sie` all the same; so a trap out of S-mode is always a bug (panic.rs), and idling needs no thread of its own.

use core::cell::UnsafeCell;

use super::context::Context;
use super::port::Riscv64;
use super::{core_number, csr, irq, mmu, smp};
use crate::api::syscall;
use crate::arch::register;
use crate::sched;
use crate::state::{Kernel, Next};

const INTERRUPT: usize = 1 << (usize::BITS - 1);
/// Bytes of the `ecall` instruction.
const CALL_BYTES: u64 = 4;

struct Shared(UnsafeCell<Kernel>);
// SAFETY: reached through `with_kernel` only, by the holder of the lock.
unsafe impl Sync for Shared {}
static KERNEL: Shared = Shared(UnsafeCell::new(Kernel::new(Riscv64::new(None))));

/// Runs `work` with the big lock.
#[inline(always)]
pub fn with_kernel<R>(work: impl FnOnce(&mut Kernel) -> R) -> R {
    smp::lock();
    // SAFETY: the lock is held; with one core it needs no taking. Nothing that `work` calls comes back here.
    let kernel = unsafe { &mut *KERNEL.0.get() };
    kernel.enter(core_number());
    let result = work(kernel);
    smp::unlock();
    result
}

/// Whether `context` is that of the thread which this core runs. Another core may have stopped it while this one waited for the
/// lock: then there is nothing to handle.
#[inline(always)]
fn still_runs(kernel: &mut Kernel, context: *mut Context) -> bool {
    smp::cores() == 1 || kernel.current_context() == Some(context)
}

/// Called by entry.S for an `ecall`, with the context of the thread that executed it; gives the context to resume.
///
/// All but the fast path is out of line, so that this function needs few registers: each that it saves costs a store and a load.
pub extern "C" fn system_call(context: *mut Context) -> *mut Context {
    let next = with_kernel(|kernel| {
        if !still_runs(kernel, context) {
            return leave(kernel);
        }
        let registers = &mut kernel.get_mut(kernel.current()).context;
        registers.next_pc = registers.x[register::PC] + CALL_BYTES;
        match syscall::fast_syscall(kernel) {
            Some(thread) => Some(&raw mut kernel.get_mut(thread).context),
            None => slow_system_call(kernel),
        }
    });
    match next {
        Some(context) => context,
        None => idle(),
    }
}

#[inline(never)]
fn slow_system_call(kernel: &mut Kernel) -> Option<*mut Context> {
    let next = syscall::slow_syscall(kernel);
    resumed(kernel, next)
}

#[cold]
fn leave(kernel: &mut Kernel) -> Option<*mut Context> {
    let next = sched::leave(kernel);
    resumed(kernel, next)
}

/// Called by entry.S for every other trap: interrupts and faults.
pub extern "C" fn trap(context: *mut Context, cause: usize) -> *mut Context {
    let next = with_kernel(|kernel| {
        if !still_runs(kernel, context) {
            return leave(kernel);
        }
        let registers = &mut kernel.get_mut(kernel.current()).context;
        registers.next_pc = registers.x[register::PC];
        let next = if cause & INTERRUPT != 0 {
            syscall::handle_interrupt(kernel)
        } else {
            syscall::handle_fault(kernel, cause as u64, csr::read!("stval") as u64)
        };
        resumed(kernel, next)
    });
    match next {
        Some(context) => context,
        None => idle(),
    }
}

/// The context of the thread that runs next, or `None` to idle.
#[inline(always)]
fn resumed(kernel: &mut Kernel, next: Next) -> Option<*mut Context> {
    mmu::catch_up_with_code();
    match next {
        Next::Run(thread) => Some(&raw mut kernel.get_mut(thread).context),
        Next::Idle => None,
    }
}

/// Idles until there is a thread to run.
#[inline(never)]
fn idle() -> *mut Context {
    loop {
        irq::wait();
        let next = with_kernel(|kernel| {
            let next = syscall::handle_interrupt(kernel);
            resumed(kernel, next)
        });
        if let Some(context) = next {
            return context;
        }
    }
}

/// The first decision of a core after boot.
pub fn first() -> *mut Context {
    with_kernel(leave).unwrap_or_else(idle)
}
