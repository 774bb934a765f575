//! Threads: each is where its state says, in one queue at most; cores and bindings agree with them.

use abi::config::NUM_PRIORITIES;

use super::survey::{Mark, Survey};
use super::tree;
use crate::arch::Arch;
use crate::mem::{Kva, Ref};
use crate::object::cap::Kind;
use crate::object::endpoint::{self, Endpoint, Queue};
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::state::{Action, Kernel};

/// Checks cores, queues and threads.
pub fn check(k: &Kernel, survey: &mut Survey) {
    (0..k.arch.cores()).for_each(|core| check_core(k, survey, core));
    let mut next = k.threads;
    while let Some(thread) = next {
        check_waits_for(k, survey, thread);
        next = k.get(thread).all_next;
    }
    for index in 0..survey.len() {
        let slot = survey.slot(index);
        let cap = k.cap(slot);
        if let Some(endpoint) = cap.object::<Endpoint>() {
            check_endpoint(k, survey, endpoint);
        } else if let Some(notification) = cap.object::<Notification>() {
            check_notification(k, survey, notification);
        } else if cap.is(Kind::Reply) {
            tree::check_reply(k, slot, cap);
        }
    }
    let mut next = k.threads;
    while let Some(thread) = next {
        check_thread(k, survey, thread);
        next = k.get(thread).all_next;
    }
}

/// Checks the object that a thread is said to wait for.
fn check_waits_for(k: &Kernel, survey: &mut Survey, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    let object = Kva(tcb.blocked_on);
    match tcb.state {
        ThreadState::BlockedOnReceive | ThreadState::BlockedOnSend => {
            // SAFETY: in these states it is an endpoint, which is part of what is checked: it exists if a capability to it does.
            check_endpoint(k, survey, unsafe { Ref::assume(object) });
        }
        ThreadState::BlockedOnNotification => {
            // SAFETY: as above, for notifications.
            check_notification(k, survey, unsafe { Ref::assume(object) });
        }
        _ => {}
    }
}

fn check_core(k: &Kernel, survey: &mut Survey, core: usize) {
    let state = &k.cores[core];
    if core == k.core() {
        assert_eq!(state.action, Action::Resume, "a decision is left over");
    }
    let current = state.current.expect("set by start");
    let tcb = k.get(current);
    assert!(!tcb.queued, "the current thread is in a queue");
    assert!(state.current == state.idle || survey.has(current.word(), Mark::Thread), "a core runs no thread");
    assert_eq!(usize::from(tcb.core), core);
    assert!(state.special || !state.fpu_on && state.loaded.is_none(), "a core forgets that it holds special registers");
    if state.fpu_on {
        assert!(state.fpu == Some(current) && tcb.uses_fpu(), "the unit is on for somebody else");
    }
    for owner in [state.fpu, state.loaded].into_iter().flatten() {
        assert!(survey.has(owner.word(), Mark::Thread), "a core holds registers of no thread");
        assert_eq!(usize::from(k.get(owner).core), core, "a core holds registers of a thread that has moved");
    }
    if let Some(owner) = state.ring {
        assert!(survey.has(owner.word(), Mark::Thread), "a core works on the ring of no thread");
        assert_eq!(k.get(owner).ring.helper(), Some(core), "a core works on a ring that is not its own");
    }
    if let Some(thread) = k.arch.handed(core) {
        assert!(survey.has(thread.word(), Mark::Thread), "a core is handed no thread");
        let tcb = k.get(thread);
        assert!(tcb.is_runnable() && !tcb.queued && usize::from(tcb.core) == core, "a core is handed a wrong thread");
        assert!(state.current == state.idle && state.ready_summary == 0, "a core is handed a thread and has others");
    }
    for word in 0..NUM_PRIORITIES / 64 {
        assert_eq!(state.ready_summary >> word & 1 != 0, state.ready_words[word] != 0, "ready summary");
    }
    for priority in 0..NUM_PRIORITIES {
        let head = k.queues[core][priority].head;
        let bit = state.is_ready(priority as u8);
        assert_eq!(bit, head.is_some(), "bit of priority {priority}");
        if bit {
            check_ready_queue(k, survey, core, priority);
        }
    }
}

fn check_ready_queue(k: &Kernel, survey: &mut Survey, core: usize, priority: usize) {
    let queue = &k.queues[core][priority];
    let (mut last, mut next) = (None, queue.head);
    while let Some(thread) = next {
        assert!(survey.has(thread.word(), Mark::Thread), "no thread is in a ready queue");
        let tcb = k.get(thread);
        assert!(tcb.queued && tcb.is_runnable(), "in a ready queue as {:?}", tcb.state);
        assert_eq!((usize::from(tcb.priority), usize::from(tcb.core)), (priority, core), "in a wrong ready queue");
        assert_eq!(tcb.ready_prev, last, "ready queue is broken");
        assert!(survey.set(thread.word(), Mark::Ready, 0), "in a ready queue twice");
        (last, next) = (Some(thread), tcb.ready_next);
    }
    assert_eq!(queue.tail, last, "tail of a ready queue");
}

fn check_endpoint(k: &Kernel, survey: &mut Survey, endpoint: Ref<Endpoint>) {
    if !survey.set(endpoint.word(), Mark::Visited, 0) {
        return;
    }
    let queue = k.get(endpoint).queue;
    let state = match queue.state() {
        endpoint::SENDERS => ThreadState::BlockedOnSend,
        endpoint::RECEIVERS => ThreadState::BlockedOnReceive,
        _ => ThreadState::Inactive,
    };
    let count = check_queue(k, survey, &queue, endpoint.word(), state);
    assert_eq!(queue.state() != 0, count != 0, "state of an endpoint");
}

fn check_notification(k: &Kernel, survey: &mut Survey, notification: Ref<Notification>) {
    if !survey.set(notification.word(), Mark::Visited, 0) {
        return;
    }
    let object = k.get(notification);
    let queue = *object.queue();
    let count = check_queue(k, survey, &queue, notification.word(), ThreadState::BlockedOnNotification);
    assert_eq!(object.state() == notification::WAITING, count != 0, "state of a notification");
    if let Some(thread) = object.bound_thread() {
        assert!(survey.has(thread.word(), Mark::Thread), "bound to no thread");
        assert_eq!(k.get(thread).bound_notification, Some(notification), "bound on one side");
    }
}

/// Gives the number of threads in the queue.
fn check_queue(k: &Kernel, survey: &mut Survey, queue: &Queue, object: u64, state: ThreadState) -> usize {
    let (mut last, mut next, mut count) = (None, queue.head(), 0);
    while let Some(thread) = next {
        assert!(survey.has(thread.word(), Mark::Thread), "no thread waits");
        let tcb = k.get(thread);
        assert_eq!(tcb.queue_prev, last, "queue is broken");
        assert_eq!(tcb.state, state, "in a wrong queue");
        assert!(survey.set(thread.word(), Mark::Waiting, object), "a thread waits twice");
        (last, next, count) = (Some(thread), tcb.queue_next, count + 1);
    }
    assert_eq!(queue.tail(), last, "tail of a queue");
    count
}

fn check_thread(k: &Kernel, survey: &Survey, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    let current = k.cores.iter().any(|core| core.current == Some(thread));
    assert_eq!(tcb.queued, survey.has(thread.word(), Mark::Ready), "queued flag");
    if tcb.is_runnable() {
        // A core that has not left the kernel for the first time has its candidate still.
        let candidate = k.cores.iter().any(|core| core.action == Action::Candidate(thread));
        let handed = k.arch.handed(usize::from(tcb.core)) == Some(thread);
        assert!(tcb.queued || current || candidate || handed, "runnable and nowhere");
    }
    match tcb.state {
        ThreadState::BlockedOnReceive | ThreadState::BlockedOnSend | ThreadState::BlockedOnNotification => {
            // An object whose last capability is gone has restarted its waiters.
            assert_eq!(survey.get(thread.word(), Mark::Waiting), Some(tcb.blocked_on), "blocked and not in the queue");
        }
        state => assert!(!survey.has(thread.word(), Mark::Waiting), "in a queue as {state:?}"),
    }
    if let Some(bound) = tcb.bound_notification {
        assert_eq!(k.get(bound).bound_thread(), Some(thread), "bound on one side");
    }
    assert_eq!(tcb.special, tcb.user_interrupt.in_use() || tcb.uses_fpu(), "special flag");
    if let Some(core) = tcb.ring.helper() {
        assert_eq!(k.cores[core].ring, Some(thread), "a core that does not know whose ring it works on");
    }
    assert!(matches!(tcb.cap(Slot::SyscallRing).kind(), Kind::Null | Kind::Frame), "ring slot");
    assert!(
        matches!(tcb.cap(Slot::RingNotification).kind(), Kind::Null | Kind::Notification | Kind::Zombie),
        "slot of a ring's notification"
    );
    let caller = tcb.cap(Slot::Caller);
    assert!(caller.is_null() || caller.is(Kind::Reply) && !caller.reply_master(), "caller slot");
}
