//! The floating-point unit: whose registers a core holds, and when they move.
//!
//! ```text
//!              first floating-point instruction (a trap: the unit is off)
//!   unit off ─────────────────────────────────────────────────────────────▶ on, for the current thread
//!      ▲                                                                        │
//!      └── the core leaves the thread: registers saved if the thread changed them ┘
//! ```
//!
//! A thread that has used the unit gets it back with the core (special.rs); one that never did costs nothing, and its context is zero.
//! The registers are loaded only if the core holds another thread's. They are saved when the core leaves the thread, not when the
//! next one needs them: so what is in the TCB is always right for a thread that does not run, and neither deletion nor migration has
//! to ask another core. seL4 16 decides by the FPU flag alone (a switch to a thread with the flag clear moves 33 registers); users
//! see no difference but time.

use crate::arch::Arch;
use crate::mem::Ref;
use crate::object::tcb::{Tcb, flag};
use crate::state::Kernel;

/// Brings the unit in line with the thread that runs next (`None`: idle).
pub fn exchange(k: &mut Kernel, next: Option<Ref<Tcb>>) {
    let next = next.filter(|&next| k.get(next).uses_fpu());
    if k.this().fpu_on {
        if next == k.this().fpu {
            return;
        }
        leave(k);
    }
    if let Some(next) = next {
        enter(k, next);
    }
}

/// Turns the unit on for `thread`.
fn enter(k: &mut Kernel, thread: Ref<Tcb>) {
    let load = k.this().fpu != Some(thread);
    let (arch, tcb) = k.with_arch(thread);
    arch.enter_fpu(&mut tcb.fpu, load);
    let core = k.this_mut();
    (core.fpu, core.fpu_on, core.special) = (Some(thread), true, true);
}

/// Turns the unit off. The core still holds the registers of the thread, and so does its TCB.
fn leave(k: &mut Kernel) {
    k.this_mut().fpu_on = false;
    if let Some(thread) = k.this().fpu {
        let (arch, tcb) = k.with_arch(thread);
        arch.leave_fpu(&mut tcb.fpu);
    }
}

/// The current thread executed an illegal instruction. If that may be because the unit is off, it is on now, and the instruction is
/// to be executed again.
pub fn take(k: &mut Kernel) -> bool {
    let current = k.current();
    let allowed = k.get(current).flags & flag::FPU_DISABLED == 0;
    if k.this().fpu_on || !allowed || !k.arch.has_fpu() {
        return false;
    }
    let tcb = k.get_mut(current);
    tcb.fpu_used = true;
    tcb.note_special();
    enter(k, current);
    true
}

/// No core holds registers of `thread` any more: its TCB has them, and may go to another core or away. The thread does not run on
/// another core.
pub fn release(k: &mut Kernel, thread: Ref<Tcb>) {
    if k.this().fpu_on && k.this().fpu == Some(thread) {
        leave(k);
    }
    for core in &mut k.cores {
        if core.fpu == Some(thread) {
            core.fpu = None;
        }
    }
}

/// TCB_SetFlags: gives the flags of the thread afterwards.
pub fn set_flags(k: &mut Kernel, thread: Ref<Tcb>, clear: u64, set: u64) -> u64 {
    let known = if k.arch.has_fpu() { u64::from(flag::FPU_DISABLED) } else { 0 };
    let tcb = k.get_mut(thread);
    tcb.flags = (u64::from(tcb.flags) & !clear | set & known) as u8;
    tcb.note_special();
    let flags = tcb.flags;
    if flags & flag::FPU_DISABLED != 0 {
        release(k, thread);
    }
    u64::from(flags)
}
