//! The fast path of SignalRecv: one thread wakes another of its core and waits on its own notification, and the result is a
//! plain switch.
//!
//! Two threads that work for each other over shared rings pass a core back and forth like this. Neither trusts the other: the
//! woken one owes nothing, and who waits is woken by whoever may signal its notification. So there is no reply capability, no
//! queue of callers and no message; what is left of a Call is the switch.
//!
//! As in [`crate::fastpath`]: gather, conditions of which every one falls back to the slow path with nothing changed, the commit line,
//! and then exactly what the slow path would have done (`tests/fastpath_equiv.rs`).

use abi::rights::Rights;

use crate::arch::register::{A0, A6};
use crate::fastpath::{claim_fp, finish_fp, follower_fp, lookup_fp};
use crate::mem::Ref;
use crate::object::notification::{self, Notification, WAITING};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::state::{Kernel, Next};

/// SignalRecv by `caller`, the current thread; `cptr` names what it receives from. `None`: the slow path has to do it.
#[inline(always)]
pub fn signal_recv<const SEVERAL: bool>(k: &mut Kernel, caller: Ref<Tcb>, cptr: u64) -> Option<Next> {
    // Gather.
    let tcb = k.get(caller);
    let root = tcb.cap(Slot::CSpace);
    let (own, other) = (lookup_fp(k, root, cptr)?, lookup_fp(k, root, tcb.context.x[A6])?);
    // Somebody waits for the signal.
    let target = notification::signallable(other)?;
    if SEVERAL {
        k.claim(target, 0);
    }
    if k.get(target).state() != WAITING {
        return None;
    }
    let woken = k.get(target).queue().head()?;
    // It can run, and would be chosen.
    claim_fp::<SEVERAL>(k, woken);
    let successor = follower_fp::<SEVERAL>(k, caller, woken)?;
    // We may wait on our own, and shall.
    let source = own.object::<Notification>()?;
    let foreign = k.get(source).bound_thread().is_some_and(|bound| bound != caller);
    if !own.rights().contains(Rights::READ) || foreign || notification::has_signal(k, source) {
        return None;
    }

    // ---- Commit: from here on nothing falls back. ----

    k.queue_pop(target);
    let tcb = k.get_mut(woken);
    tcb.context.x[A0] = other.badge();
    tcb.state = ThreadState::Running;
    k.get_mut(caller).state = ThreadState::BlockedOnNotification;
    k.queue_append(source, caller, WAITING);
    finish_fp::<SEVERAL>(k, woken, successor)
}
