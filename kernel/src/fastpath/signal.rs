//! Send and NBSend where no message moves: a signal, or an empty slot.

use abi::rights::Rights;

use super::{CAPS_BITS, claim_fp, lookup_fp, run_fp, space_fp};
use crate::mem::Ref;
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::sched;
use crate::state::{Kernel, Next};
use crate::thread;

/// Send or NBSend by `sender`, the current thread. `None`: the slow path has to do it.
#[inline(always)]
pub fn send<const SEVERAL: bool>(k: &mut Kernel, sender: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next> {
    // No extra capability whose address could lead nowhere.
    if info & CAPS_BITS != 0 {
        return None;
    }
    let cap = lookup_fp(k, k.get(sender).cap(Slot::CSpace), cptr)?;
    if cap.is_null() {
        // Refused, and a Send is not told.
        return Some(Next::Run(sender));
    }
    let object = cap.object::<Notification>().filter(|_| cap.rights().contains(Rights::WRITE))?;
    signal::<SEVERAL>(k, sender, object, cap.badge())
}

#[inline(never)] // so that `send` of nothing saves no registers for it
fn signal<const SEVERAL: bool>(
    k: &mut Kernel,
    sender: Ref<Tcb>,
    object: Ref<Notification>,
    badge: u64,
) -> Option<Next> {
    if SEVERAL {
        k.claim(object, 0);
    }
    let Some(waiter) = k.get(object).first_waiter() else {
        // Nobody wakes, unless a thread receives that it is bound to.
        if notification::bound_receives(k, object) {
            return None;
        }
        notification::set_signal(k, object, badge);
        return Some(Next::Run(sender));
    };
    claim_fp::<SEVERAL>(k, waiter);
    let (from, to) = (k.get(sender).priority, k.get(waiter).priority);
    let elsewhere = SEVERAL && usize::from(k.get(waiter).core) != k.core();
    let space = if to > from && !elsewhere { Some(space_fp(k, waiter)?) } else { None };
    // Else the sender, which is as good or better, continues.
    if space.is_none() && !elsewhere && !k.is_best(from) {
        return None;
    }

    // ---- Commit: from here on nothing falls back. ----

    k.queue_pop(object);
    k.get_mut(waiter).state = ThreadState::Running;
    thread::set_badge(k, waiter, badge);
    if let Some(space) = space {
        sched::push_front(k, sender);
        return run_fp(k, waiter, space);
    }
    if elsewhere {
        sched::ready_elsewhere(k, waiter);
        sched::call_others(k);
    } else if to == from {
        sched::push_back(k, waiter);
    } else {
        sched::push_front(k, waiter);
    }
    Some(Next::Run(sender))
}
