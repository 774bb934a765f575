//! From a trap in U-mode to the portable kernel and back: lock, dispatch by cause, idle.
//!
//! Interrupts are never enabled while the kernel runs. A core without work waits in `wfi`, which wakes by what is pending and
//! enabled in `sie` all the same; so a trap out of S-mode is always a bug (panic.rs), and idling needs no thread of its own.

use core::cell::UnsafeCell;
use core::hint::cold_path;

use abi::extension::{SIGNAL_RECV, WAIT_UNTIL};
use abi::syscall as number;

use super::context::Context;
use super::lock::Ticket;
use super::port::Riscv64;
use super::uintc::virtual_hart;
use super::{csr, irq, mmu, smp};
use crate::api::syscall::{self, FastPath};
use crate::arch::register;
use crate::fastpath::Size;
use crate::mem::Ref;
use crate::object::tcb::Tcb;
use crate::sched;
use crate::special;
use crate::state::{Kernel, Next};

const INTERRUPT: usize = 1 << (usize::BITS - 1);
/// `scause` of an illegal instruction.
const ILLEGAL_INSTRUCTION: usize = 2;

/// The token, at a place in its page where what the fast path reads of it meets neither the page tables of programs nor TCBs in the
/// cache (`object/tcb.rs`), wherever the linker puts it.
#[repr(C, align(4096))]
struct Shared {
    lead: [u8; 1024],
    kernel: UnsafeCell<Kernel>,
}
// SAFETY: reached through `Held` only, by the holder of the lock.
unsafe impl Sync for Shared {}
static KERNEL: Shared = Shared { lead: [0; 1024], kernel: UnsafeCell::new(Kernel::new(Riscv64::new(None, false))) };

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

impl Held {
    /// Ends it. Without `SEVERAL` cores there is nothing to give back, and not even a look.
    #[inline(always)]
    fn give_back<const SEVERAL: bool>(self) {
        if SEVERAL {
            return drop(self);
        }
        #[cfg(debug_assertions)]
        checks::before_unlock(self.0);
        core::mem::forget(self);
    }

    /// # Safety
    /// This core has just taken the lock, and makes one value of it.
    #[inline(always)]
    unsafe fn assume() -> Self {
        // SAFETY: the lock is held until the value is dropped; with one core it needs no taking. Nothing that has it comes back here.
        Self(unsafe { &mut *KERNEL.kernel.get() })
    }

    /// Takes the lock.
    #[inline(always)]
    fn new() -> Self {
        smp::lock();
        // SAFETY: taken.
        unsafe { Self::assume() }
    }
}

/// The kernel's state, for its last words.
///
/// # Safety
/// No other core changes it, and the caller does not go back to who may be changing it on this core.
pub unsafe fn look() -> &'static Kernel {
    // SAFETY: the caller's promise.
    unsafe { &*KERNEL.kernel.get() }
}

/// Builds with debug assertions check the kernel's state at every exit.
#[cfg(debug_assertions)]
mod checks {
    use core::cell::UnsafeCell;

    use super::smp;
    use crate::invariants::{self, Survey};
    use crate::state::Kernel;

    /// A look that relies on no journal comes every so many exits: what it finds and the others have not is a mistake of theirs.
    const EVERYTHING_EVERY: u64 = 256;

    struct Memory(UnsafeCell<(Survey, u64)>);
    // SAFETY: used by the holder of the big lock only.
    unsafe impl Sync for Memory {}
    static MEMORY: Memory = Memory(UnsafeCell::new((Survey::new(), 0)));

    #[inline(never)]
    pub fn before_unlock(kernel: &mut Kernel) {
        if !smp::is_open() {
            return;
        }
        // SAFETY: the lock is held, and a check does not come back here.
        let (survey, exits) = unsafe { &mut *MEMORY.0.get() };
        if exits.is_multiple_of(EVERYTHING_EVERY) {
            invariants::check(kernel, survey);
        } else {
            invariants::check_changes(kernel, survey);
        }
        *exits += 1;
        kernel.journal.clear();
    }
}

/// Runs `work` with the big lock.
pub fn with_kernel<R>(work: impl FnOnce(&mut Kernel) -> R) -> R {
    let held = Held::new();
    work(held.0)
}

/// Whether `context` is that of the thread which this core runs. Another core may have stopped it while this one waited for the
/// lock: then there is nothing to handle.
#[inline(always)]
fn still_runs(kernel: &mut Kernel, context: *mut Context) -> bool {
    kernel.current_context() == Some(context)
}

/// Called by entry.S for Call, with two registers of the thread that executed it and its context; gives the context to resume. So do the other system calls: each is a function of its own, which saves no more registers than it needs.
pub extern "C" fn call(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    match Size::of(info) {
        Some(Size::Short) => attempt::<syscall::Call>(context, cptr, info),
        _ => long_call(cptr, info, context),
    }
}

#[inline(never)]
fn long_call(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::Call>(context, cptr, info)
}

/// Called by entry.S for ReplyRecv.
pub extern "C" fn reply_recv(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    match Size::of(info) {
        Some(Size::Short) => attempt::<syscall::ReplyRecv>(context, cptr, info),
        _ => long_reply_recv(cptr, info, context),
    }
}

#[inline(never)]
fn long_reply_recv(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::ReplyRecv>(context, cptr, info)
}

/// Called by entry.S for every other system call.
pub extern "C" fn system_call(cptr: u64, info: u64, context: *mut Context, number: isize) -> *mut Context {
    match number {
        number::CALL => call(cptr, info, context),
        number::REPLY_RECV => reply_recv(cptr, info, context),
        number::SEND | number::NB_SEND => send(cptr, info, context),
        number::RECV => receive(cptr, info, context),
        number::NB_RECV => try_receive(cptr, info, context),
        number::YIELD => yield_now(cptr, info, context),
        SIGNAL_RECV => signal_recv(cptr, info, context),
        WAIT_UNTIL => wait_until(cptr, info, context),
        _ => other(cptr, info, context),
    }
}

/// Called by entry.S for Send and NBSend.
pub extern "C" fn send(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::Send>(context, cptr, info)
}

#[inline(never)]
fn receive(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::Recv>(context, cptr, info)
}

#[inline(never)]
fn try_receive(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::NbRecv>(context, cptr, info)
}

#[inline(never)]
fn yield_now(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::Yield>(context, cptr, info)
}

#[inline(never)]
fn signal_recv(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::SignalRecv>(context, cptr, info)
}

#[inline(never)]
fn wait_until(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<syscall::WaitUntil>(context, cptr, info)
}

#[inline(never)]
fn other(cptr: u64, info: u64, context: *mut Context) -> *mut Context {
    attempt::<NoPath>(context, cptr, info)
}

/// Of system calls that have no fast path.
struct NoPath;

impl FastPath for NoPath {
    const MAY_GO_ON: bool = false;

    fn follow<const SEVERAL: bool>(_: &mut Kernel, _: Ref<Tcb>, _cptr: u64, _info: u64) -> Option<Next> {
        None
    }
}

/// Tries the fast path of one system call. Whatever does not lead through it ends in a jump.
#[inline(always)]
fn attempt<P: FastPath>(context: *mut Context, cptr: u64, info: u64) -> *mut Context {
    if smp::several() {
        cold_path();
        return attempt_locked::<P>(context, cptr, info);
    }
    // SAFETY: with one core there is nothing to take.
    follow::<P, false>(unsafe { Held::assume() }, cptr, info)
}

/// The same with several cores. Apart, so that one core passes it without a jump.
#[inline(never)]
fn attempt_locked<P: FastPath>(context: *mut Context, cptr: u64, info: u64) -> *mut Context {
    if let Err(ticket) = smp::line_up() {
        return wait(context, ticket);
    }
    // SAFETY: taken.
    let held = unsafe { Held::assume() };
    if still_runs(held.0, context) { follow::<P, true>(held, cptr, info) } else { leave(held) }
}

#[inline(always)]
fn follow<P: FastPath, const SEVERAL: bool>(held: Held, cptr: u64, info: u64) -> *mut Context {
    let current = held.0.current();
    match P::follow::<SEVERAL>(held.0, current, cptr, info) {
        // Who goes on has its special registers; after a Call that is nobody.
        Some(Next::Run(thread)) if P::MAY_GO_ON && thread == current => run::<SEVERAL>(held, thread),
        Some(Next::Run(thread)) => switched::<SEVERAL>(held, thread),
        Some(Next::Idle) => {
            cold_path();
            rest(held)
        }
        None => {
            cold_path();
            slow_system_call(held)
        }
    }
}

/// A system call for which the lock was not free: there is time to look which it was.
#[cold]
#[inline(never)]
fn wait(context: *mut Context, ticket: Ticket) -> *mut Context {
    smp::wait_for_lock(ticket);
    // SAFETY: taken.
    let held = unsafe { Held::assume() };
    if !still_runs(held.0, context) {
        return leave(held);
    }
    match syscall::fast_syscall(held.0) {
        Some(Next::Run(thread)) => switched::<true>(held, thread),
        Some(Next::Idle) => rest(held),
        None => slow_system_call(held),
    }
}

/// The end of the fast path: special registers, and out.
#[inline(always)]
fn switched<const SEVERAL: bool>(held: Held, thread: Ref<Tcb>) -> *mut Context {
    if special::must_switch(held.0, thread) {
        cold_path();
        return exchange(held, thread);
    }
    run::<SEVERAL>(held, thread)
}

/// Out of the kernel, as the current thread.
#[inline(always)]
fn run<const SEVERAL: bool>(held: Held, thread: Ref<Tcb>) -> *mut Context {
    let context = &raw mut held.0.get_mut(thread).context;
    held.give_back::<SEVERAL>();
    context
}

#[inline(never)]
fn exchange(held: Held, thread: Ref<Tcb>) -> *mut Context {
    special::switch(held.0, Some(thread));
    &raw mut held.0.get_mut(thread).context
}

/// The end of the fast path where nobody runs.
#[inline(never)]
fn rest(held: Held) -> *mut Context {
    special::switch(held.0, None);
    idle(held)
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
    let held = Held::new();
    if smp::several() && !still_runs(held.0, context) {
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
pub extern "C" fn system_call_emulating(cptr: u64, info: u64, context: *mut Context, number: isize) -> *mut Context {
    let next = system_call(cptr, info, context, number);
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
    (!smp::several() || still_runs(kernel, context)) && virtual_hart::execute(kernel.get_mut(current))
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
        held = Held::new();
        let next = syscall::handle_wake(held.0);
        mmu::catch_up_with_code();
        if let Next::Run(thread) = next {
            return &raw mut held.0.get_mut(thread).context;
        }
    }
}

/// The first decision of a core after boot.
pub fn first() -> *mut Context {
    leave(Held::new())
}
