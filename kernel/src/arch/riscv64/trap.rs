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

/// `scause` of an `ecall` from U-mode.
const USER_CALL: usize = 8;
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

/// Called by entry.S with the context of the thread that trapped; gives the context to resume.
pub extern "C" fn trap(context: *mut Context, cause: usize) -> *mut Context {
    let next = with_kernel(|kernel| {
        // Another core may have stopped this thread while this one waited for the lock: then there is nothing to handle.
        let next = if kernel.current_context() == Some(context) { handle(kernel, cause) } else { sched::leave(kernel) };
        resumed(kernel, next)
    });
    run(next)
}

#[inline(always)]
fn handle(kernel: &mut Kernel, cause: usize) -> Next {
    let current = kernel.current();
    let context = &mut kernel.get_mut(current).context;
    let pc = context.x[register::PC];
    if cause == USER_CALL {
        context.next_pc = pc + CALL_BYTES;
        return syscall::handle_syscall(kernel);
    }
    context.next_pc = pc;
    if cause & INTERRUPT != 0 {
        syscall::handle_interrupt(kernel)
    } else {
        syscall::handle_fault(kernel, cause as u64, csr::read!("stval") as u64)
    }
}

/// The context of the thread that runs next, or `None` to idle.
#[inline(always)]
fn resumed(kernel: &mut Kernel, next: Next) -> Option<*mut Context> {
    match next {
        Next::Run(thread) => Some(&raw mut kernel.get_mut(thread).context),
        Next::Idle => None,
    }
}

/// Idles until there is a thread to run.
#[inline(always)]
pub fn run(mut next: Option<*mut Context>) -> *mut Context {
    loop {
        if let Some(context) = next {
            mmu::catch_up_with_code();
            return context;
        }
        irq::wait();
        next = with_kernel(|kernel| {
            let next = syscall::handle_interrupt(kernel);
            resumed(kernel, next)
        });
    }
}

/// The first decision of a core after boot.
pub fn first() -> *mut Context {
    let next = with_kernel(|kernel| {
        let next = sched::leave(kernel);
        resumed(kernel, next)
    });
    run(next)
}
