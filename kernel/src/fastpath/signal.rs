//! Send and NBSend where no message moves: a signal, or an empty slot.

use abi::rights::Rights;

use super::{CAPS_BITS, lookup_fp, run_fp, space_fp};
use crate::mem::Ref;
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::sched;
use crate::state::Kernel;
use crate::thread;

/// Send or NBSend by `sender`, the current thread. `None`: the slow path has to do it.
#[inline(always)]
pub fn send(k: &mut Kernel, sender: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    // No extra capability whose address could lead nowhere.
    if info & CAPS_BITS != 0 {
        return None;
    }
    let cap = lookup_fp(k, k.get(sender).cap(Slot::CSpace), cptr)?;
    if cap.is_null() {
        // Refused, and a Send is not told.
        return Some(sender);
    }
    let object = cap.object::<Notification>().filter(|_| cap.rights().contains(Rights::WRITE))?;
    signal(k, sender, object, cap.badge())
}

#[inline(never)] // so that `send` of nothing saves no registers for it
fn signal(k: &mut Kernel, sender: Ref<Tcb>, object: Ref<Notification>, badge: u64) -> Option<Ref<Tcb>> {
    let Some(waiter) = k.get(object).first_waiter() else {
        // Nobody wakes, unless a thread receives that it is bound to.
        if notification::bound_receives(k, object) {
            return None;
        }
        notification::set_signal(k, object, badge);
        return Some(sender);
    };
    let (from, to) = (k.get(sender).priority, k.get(waiter).priority);
    if usize::from(k.get(waiter).core) != k.core() {
        return None;
    }
    let space = if to > from { Some(space_fp(k, waiter)?) } else { None };
    // Else the sender, which is as good or better, continues.
    if space.is_none() && !k.is_best(from) {
        return None;
    }

    // ---- Commit: from here on nothing falls back. ----

    k.queue_pop(object);
    k.get_mut(waiter).state = ThreadState::Running;
    thread::set_badge(k, waiter, badge);
    if let Some(space) = space {
        sched::enqueue(k, sender);
        return run_fp(k, waiter, space);
    }
    if to == from {
        sched::append(k, waiter);
    } else {
        sched::enqueue(k, waiter);
    }
    Some(sender)
}
