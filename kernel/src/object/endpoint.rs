//! Endpoints: a queue of threads that all wait to send, or all wait to receive. Strictly first in, first out.

use core::hint::cold_path;

use abi::object::bits;

use super::tcb::{Tcb, ThreadState};
use crate::api::error::{Preempted, Refusal};
use crate::api::invocation::Invocation;
use crate::mem::{Kva, Object, Ref};
use crate::object::cap::{Cap, Kind};
use crate::state::Kernel;
use crate::{sched, thread};

/// A queue of threads with a state in the low bits of its head; TCBs are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Queue {
    head: u64,
    tail: u64,
}

const STATE: u64 = 3;

fn thread_at(word: u64) -> Option<Ref<Tcb>> {
    let address = word & !STATE;
    // SAFETY: written from names of threads; a thread leaves its queue before it is deleted.
    (address != 0).then(|| unsafe { Ref::assume(Kva(address)) })
}

impl Queue {
    /// The state bits.
    #[inline(always)]
    pub const fn state(&self) -> u64 {
        self.head & STATE
    }
    /// Sets the state bits.
    #[inline(always)]
    pub fn set_state(&mut self, state: u64) {
        self.head = self.head & !STATE | state;
    }
    /// First in the queue.
    #[inline(always)]
    pub fn head(&self) -> Option<Ref<Tcb>> {
        thread_at(self.head)
    }
    /// Last in the queue.
    pub fn tail(&self) -> Option<Ref<Tcb>> {
        thread_at(self.tail)
    }
    #[inline(always)]
    fn set_head(&mut self, thread: Option<Ref<Tcb>>) {
        self.head = thread.map_or(0, Ref::word) | self.head & STATE;
    }
    #[inline(always)]
    fn set_tail(&mut self, thread: Option<Ref<Tcb>>) {
        self.tail = thread.map_or(0, Ref::word);
    }
}

/// Objects with a queue of threads.
pub trait Queued: Object {
    /// The queue.
    fn queue(&mut self) -> &mut Queue;
}

/// A rendezvous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Endpoint {
    /// Who waits.
    pub queue: Queue,
}

const _: () = assert!(size_of::<Endpoint>() == 1 << bits::ENDPOINT);
// SAFETY: plain words; zero is idle.
unsafe impl Object for Endpoint {}

impl Queued for Endpoint {
    #[inline(always)]
    fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

/// State bits of an endpoint: threads wait to send.
pub const SENDERS: u64 = 1;
/// State bits of an endpoint: threads wait to receive.
pub const RECEIVERS: u64 = 2;

impl Kernel {
    /// Puts a thread at the end of a queue and sets the queue's state.
    #[inline]
    pub fn queue_append<T: Queued>(&mut self, object: Ref<T>, thread: Ref<Tcb>, state: u64) {
        let queue = self.get_mut(object).queue();
        let tail = queue.tail();
        if tail.is_none() {
            queue.set_head(Some(thread));
        }
        queue.set_tail(Some(thread));
        queue.set_state(state);
        let tcb = self.get_mut(thread);
        tcb.blocked_on = object.word();
        tcb.queue_prev = tail;
        tcb.queue_next = None;
        if let Some(tail) = tail {
            cold_path();
            self.get_mut(tail).queue_next = Some(thread);
        }
    }

    /// Takes a thread out of a queue; an empty queue becomes idle (0).
    #[inline]
    pub fn queue_remove<T: Queued>(&mut self, object: Ref<T>, thread: Ref<Tcb>) {
        let tcb = self.get_mut(thread);
        let (prev, next) = (tcb.queue_prev.take(), tcb.queue_next.take());
        tcb.blocked_on = 0;
        if let Some(prev) = prev {
            self.get_mut(prev).queue_next = next;
        }
        if let Some(next) = next {
            self.get_mut(next).queue_prev = prev;
        }
        let queue = self.get_mut(object).queue();
        if prev.is_none() {
            queue.set_head(next);
        }
        if next.is_none() {
            queue.set_tail(prev);
        }
        if prev.is_none() && next.is_none() {
            queue.set_state(0);
        }
    }

    /// Takes the first thread out of a queue; an empty queue becomes idle.
    #[inline]
    pub fn queue_pop<T: Queued>(&mut self, object: Ref<T>) -> Option<Ref<Tcb>> {
        let thread = self.get_mut(object).queue().head()?;
        let tcb = self.get_mut(thread);
        let next = tcb.queue_next.take();
        tcb.blocked_on = 0;
        match next {
            Some(next) => {
                cold_path();
                self.get_mut(next).queue_prev = None;
                self.get_mut(object).queue().set_head(Some(next));
            }
            None => *self.get_mut(object).queue() = Queue::default(),
        }
        Some(thread)
    }
}

/// What the capability of a sender allows.
#[derive(Clone, Copy, Debug)]
pub struct SendRights {
    /// Badge that the receiver sees.
    pub badge: u64,
    /// May transfer capabilities.
    pub grant: bool,
    /// May be replied to.
    pub grant_reply: bool,
}

impl SendRights {
    /// Those of an endpoint capability.
    pub const fn of(cap: Cap) -> Self {
        use abi::rights::Rights;
        let rights = cap.rights();
        Self {
            badge: cap.badge(),
            grant: rights.contains(Rights::GRANT),
            grant_reply: rights.contains(Rights::GRANT_REPLY),
        }
    }
}

/// Sends the message or fault of `sender` (seL4 `sendIPC`).
pub fn send(k: &mut Kernel, sender: Ref<Tcb>, endpoint: Ref<Endpoint>, rights: SendRights, call: bool, blocking: bool) {
    if k.get(endpoint).queue.state() != RECEIVERS {
        if blocking {
            let tcb = k.get_mut(sender);
            tcb.badge = rights.badge;
            tcb.can_grant = rights.grant;
            tcb.can_grant_reply = rights.grant_reply;
            tcb.is_call = call;
            tcb.visited_by = 0;
            thread::set_state(k, sender, ThreadState::BlockedOnSend);
            k.queue_append(endpoint, sender, SENDERS);
        }
        return;
    }
    let Some(receiver) = k.queue_pop(endpoint) else { return };
    let reply_grant = k.get(receiver).can_grant;
    thread::transfer(k, sender, Some(endpoint), rights.badge, rights.grant, receiver);
    thread::set_state(k, receiver, ThreadState::Running);
    sched::possible_switch_to(k, receiver);
    if call {
        thread::wait_for_reply(k, sender, receiver, rights, reply_grant);
    }
}

/// Receives for `receiver` through `cap` (seL4 `receiveIPC`).
pub fn receive(k: &mut Kernel, receiver: Ref<Tcb>, endpoint: Ref<Endpoint>, cap: Cap, blocking: bool) {
    use abi::rights::Rights;
    if super::notification::take_bound_signal(k, receiver) {
        return;
    }
    let grant = cap.rights().contains(Rights::GRANT);
    if k.get(endpoint).queue.state() != SENDERS {
        if blocking {
            k.get_mut(receiver).can_grant = grant;
            thread::set_state(k, receiver, ThreadState::BlockedOnReceive);
            k.queue_append(endpoint, receiver, RECEIVERS);
        } else {
            thread::set_badge(k, receiver, 0);
        }
        return;
    }
    let Some(sender) = k.queue_pop(endpoint) else { return };
    let tcb = k.get(sender);
    let rights = SendRights { badge: tcb.badge, grant: tcb.can_grant, grant_reply: tcb.can_grant_reply };
    let call = tcb.is_call;
    thread::transfer(k, sender, Some(endpoint), rights.badge, rights.grant, receiver);
    if call {
        thread::wait_for_reply(k, sender, receiver, rights, grant);
    } else {
        thread::set_state(k, sender, ThreadState::Running);
        sched::possible_switch_to(k, sender);
    }
}

/// Restarts the first thread in the queue of an object that goes away; gives whether there was one (a step of seL4 `cancelAllIPC`).
pub fn restart_first<T: Queued>(k: &mut Kernel, object: Ref<T>) -> bool {
    let Some(thread) = k.queue_pop(object) else { return false };
    thread::set_state(k, thread, ThreadState::Restart);
    sched::enqueue(k, thread);
    sched::reschedule_required(k);
    true
}

/// CNode_CancelBadgedSends, requested by `call` (seL4 `cancelBadgedSends`): restarts the senders whose badge is `badge`.
///
/// Every sender is visited once: one that stays goes to the end of the queue with the number of this cancellation, so a sender with
/// that number at the head means that all are through, and the order is what it was. A cancellation that was preempted goes on with
/// its number; senders that come meanwhile may overtake those that have not been visited.
pub fn cancel_badged_sends(
    k: &mut Kernel,
    call: &Invocation,
    endpoint: Ref<Endpoint>,
    badge: u64,
) -> Result<(), Preempted> {
    if *call.cancellation(k) == 0 {
        k.cancellations += 1;
        *call.cancellation(k) = k.cancellations;
    }
    let number = *call.cancellation(k);
    sched::reschedule_required(k);
    while k.get(endpoint).queue.state() == SENDERS {
        let Some(thread) = k.get(endpoint).queue.head().filter(|&head| k.get(head).visited_by != number) else { break };
        k.queue_pop(endpoint);
        let tcb = k.get_mut(thread);
        if tcb.badge == badge {
            thread::set_state(k, thread, ThreadState::Restart);
            sched::enqueue(k, thread);
        } else {
            tcb.visited_by = number;
            k.queue_append(endpoint, thread, SENDERS);
        }
        k.preemption_point()?;
    }
    *call.cancellation(k) = 0;
    Ok(())
}

/// The endpoint of a capability that may be sent to.
pub fn sendable(cap: Cap) -> Result<Ref<Endpoint>, Refusal> {
    use abi::rights::Rights;
    debug_assert!(cap.is(Kind::Endpoint));
    cap.object().filter(|_| cap.rights().contains(Rights::WRITE)).ok_or(Refusal::InvalidCapability(0))
}
