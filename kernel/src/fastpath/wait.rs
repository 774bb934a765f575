//! Recv and NBRecv where no message moves: a signal, or nothing yet; and Yield.

use abi::rights::Rights;

use super::{go_fp, lookup_fp, next_fp};
use crate::mem::Ref;
use crate::object::endpoint::{self, Endpoint};
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::sched;
use crate::state::{Kernel, Next};
use crate::thread;

/// Recv or NBRecv by `receiver`, the current thread. `None`: the slow path has to do it.
#[inline(always)]
pub fn receive<const SEVERAL: bool>(k: &mut Kernel, receiver: Ref<Tcb>, cptr: u64, blocking: bool) -> Option<Next> {
    let cap = lookup_fp(k, k.get(receiver).cap(Slot::CSpace), cptr)?;
    if !cap.rights().contains(Rights::READ) {
        return None;
    }
    if let Some(object) = cap.object::<Notification>() {
        if SEVERAL {
            k.claim(object, 0);
        }
        return wait(k, receiver, object, blocking);
    }
    let endpoint = cap.object::<Endpoint>()?;
    if SEVERAL {
        k.claim(endpoint, 0);
    }
    let tcb = k.get(receiver);
    // Nobody waits to send, there is no caller to forget, and no signal to take first.
    if k.get(endpoint).queue.state() == endpoint::SENDERS || !tcb.cap(Slot::Caller).is_null() {
        return None;
    }
    let bound = tcb.bound_notification;
    if !blocking {
        if bound.is_some_and(|bound| notification::has_signal(k, bound)) {
            return None;
        }
        thread::set_badge(k, receiver, 0);
        return Some(Next::Run(receiver));
    }
    let successor = next_fp(k)?;
    if bound.is_some_and(|bound| notification::has_signal(k, bound)) {
        return None;
    }

    // ---- Commit: from here on nothing falls back. ----

    let tcb = k.get_mut(receiver);
    tcb.state = ThreadState::BlockedOnReceive;
    tcb.can_grant = cap.rights().contains(Rights::GRANT);
    k.queue_append(endpoint, receiver, endpoint::RECEIVERS);
    go_fp(k, successor)
}

#[inline(always)]
fn wait(k: &mut Kernel, waiter: Ref<Tcb>, object: Ref<Notification>, blocking: bool) -> Option<Next> {
    if k.get(object).bound_thread().is_some_and(|bound| bound != waiter) {
        return None;
    }
    if let Some(bits) = notification::take(k, object) {
        thread::set_badge(k, waiter, bits);
        return Some(Next::Run(waiter));
    }
    if !blocking {
        thread::set_badge(k, waiter, 0);
        return Some(Next::Run(waiter));
    }
    let successor = next_fp(k)?;

    // ---- Commit: from here on nothing falls back. ----

    k.get_mut(waiter).state = ThreadState::BlockedOnNotification;
    k.queue_append(object, waiter, notification::WAITING);
    go_fp(k, successor)
}

/// Yield by `current`. `None`: the slow path has to do it.
#[inline(always)]
pub fn yield_now(k: &mut Kernel, current: Ref<Tcb>) -> Option<Next> {
    let priority = k.get(current).priority;
    if k.this().ready_summary == 0 || !k.is_ready(priority) && k.is_best(priority) {
        // Nobody else of this priority, nor better.
        return Some(Next::Run(current));
    }
    let successor = next_fp(k)?;

    // ---- Commit: from here on nothing falls back. ----

    sched::push_back(k, current);
    go_fp(k, successor)
}
