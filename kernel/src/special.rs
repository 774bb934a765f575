//! Special registers: what a core holds for its thread beside the integer registers. That is the user-interrupt registers
//! (object/user_interrupt.rs) and the floating-point unit (fpu.rs).
//!
//! Most threads have neither, and a switch between two such threads costs the test of two flags: `Core::special`, something has to be
//! taken away, and `Tcb::special`, something has to be brought. A core that idles holds neither.

use crate::mem::Ref;
use crate::object::tcb::Tcb;
use crate::object::user_interrupt;
use crate::state::Kernel;

/// Brings this core's special registers in line with the thread that runs next (`None`: idle).
#[inline(always)]
pub fn switch(k: &mut Kernel, next: Option<Ref<Tcb>>) {
    if k.this().special || next.is_some_and(|next| k.get(next).special) {
        exchange(k, next);
    }
}

/// Whether `switch` to `next` has anything to do.
#[inline(always)]
pub fn must_switch(k: &Kernel, next: Ref<Tcb>) -> bool {
    k.this().special || k.get(next).special
}

#[cold]
fn exchange(k: &mut Kernel, next: Option<Ref<Tcb>>) {
    user_interrupt::exchange(k, next);
    crate::fpu::exchange(k, next);
    let core = k.this_mut();
    core.special = core.loaded.is_some() || core.fpu_on;
}

/// The thread leaves this core: its special registers are in memory when this returns.
pub fn take_from_core(k: &mut Kernel, thread: Ref<Tcb>) {
    user_interrupt::take_from_core(k, thread);
    crate::fpu::release(k, thread);
}
