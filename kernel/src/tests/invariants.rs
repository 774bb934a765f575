//! What is true of the kernel's state between any two kernel entries.

use std::collections::{HashMap, HashSet};

use crate::arch::Arch;
use crate::mem::Ref;
use crate::object::cap::{Cap, Cte, Kind};
use crate::object::endpoint::{self, Endpoint, Queue};
use crate::object::mdb::{is_parent, same_region};
use crate::object::notification::{self, Notification};
use crate::object::tcb::{SLOT_COUNT, Slot, Tcb, ThreadState};
use crate::state::{Action, IRQS, Kernel};

/// All slots that can be reached, and the objects that they name.
#[derive(Default)]
struct Survey {
    slots: Vec<Ref<Cte>>,
    seen: HashSet<u64>,
    threads: HashMap<u64, Ref<Tcb>>,
    endpoints: HashMap<u64, Ref<Endpoint>>,
    notifications: HashMap<u64, Ref<Notification>>,
}

impl Survey {
    fn visit(&mut self, k: &Kernel, slot: Ref<Cte>) {
        let Cte { cap, mdb } = *k.get(slot);
        if cap.is_null() {
            assert!(mdb.prev().is_none() && mdb.next().is_none(), "an empty slot has relatives");
            return;
        }
        if !self.seen.insert(slot.word()) {
            return;
        }
        self.slots.push(slot);
        match cap.kind() {
            Kind::CNode => (0..1 << cap.radix()).for_each(|index| self.visit(k, cap.slot(index))),
            Kind::Zombie => (0..cap.zombie_slots()).for_each(|index| self.visit(k, cap.zombie_slot(index))),
            Kind::Tcb => self.visit_thread(k, cap.object().expect("a TCB")),
            Kind::Endpoint => {
                self.endpoints.insert(cap.address().0, cap.object().expect("an endpoint"));
            }
            Kind::Notification => {
                self.notifications.insert(cap.address().0, cap.object().expect("a notification"));
            }
            Kind::Reply => self.visit_thread(k, cap.reply_caller()),
            _ => {}
        }
        // Relatives outside of any CSpace: entries of sender tables.
        for relative in [mdb.prev(), mdb.next()].into_iter().flatten() {
            self.visit(k, relative);
        }
    }

    fn visit_thread(&mut self, k: &Kernel, thread: Ref<Tcb>) {
        if self.threads.insert(thread.word(), thread).is_none() {
            for slot in [Slot::CSpace, Slot::VSpace, Slot::Reply, Slot::Caller, Slot::Buffer, Slot::SenderTable] {
                self.visit(k, thread.slot(slot));
            }
            const _: () = assert!(SLOT_COUNT == 6);
        }
    }
}

/// Checks everything. `root`: a CNode from which the rest can be reached.
pub fn check(k: &Kernel, root: Cap) {
    let mut survey = Survey::default();
    (0..1 << root.radix()).for_each(|index| survey.visit(k, root.slot(index)));
    (0..IRQS).for_each(|irq| survey.visit(k, k.irq_slot(irq)));
    let mut ready = HashSet::new();
    for core in 0..k.arch.cores() {
        check_core(k, core, &mut ready);
        if let Some(current) = k.cores[core].current.filter(|_| k.cores[core].current != k.cores[core].idle) {
            survey.visit_thread(k, current);
        }
    }
    survey.slots.iter().for_each(|&slot| check_slot(k, slot));
    let mut waiting = HashMap::new();
    for (&address, &object) in &survey.endpoints {
        let queue = k.get(object).queue;
        let threads = check_queue(k, &queue, address, &mut waiting);
        match queue.state() {
            endpoint::SENDERS => assert!(threads.iter().all(|&t| k.get(t).state == ThreadState::BlockedOnSend)),
            endpoint::RECEIVERS => assert!(threads.iter().all(|&t| k.get(t).state == ThreadState::BlockedOnReceive)),
            _ => assert!(threads.is_empty()),
        }
        assert_eq!(queue.state() != 0, !threads.is_empty());
    }
    for (&address, &object) in &survey.notifications {
        let (head, _) = k.get(object).waiters();
        let queue = *endpoint::Queued::queue(&mut k.get(object).clone());
        let threads = check_queue(k, &queue, address, &mut waiting);
        assert!(threads.iter().all(|&t| k.get(t).state == ThreadState::BlockedOnNotification));
        assert_eq!(k.get(object).state() == notification::WAITING, head.is_some());
        if let Some(thread) = k.get(object).bound_thread() {
            assert_eq!(k.get(thread).bound_notification, Some(object), "bound on one side");
        }
    }
    survey.threads.values().for_each(|&thread| check_thread(k, thread, &ready, &waiting));
}

fn check_core(k: &Kernel, core: usize, ready: &mut HashSet<u64>) {
    let state = &k.cores[core];
    if core == k.core {
        assert_eq!(state.action, Action::Resume, "a decision is left over");
    }
    let current = state.current.expect("set by start");
    assert!(!k.get(current).queued, "the current thread is in a queue");
    assert_eq!(usize::from(k.get(current).core), core);
    assert!(state.special || !state.fpu_on && state.loaded.is_none(), "a core forgets that it holds special registers");
    if state.fpu_on {
        assert!(state.fpu == Some(current) && k.get(current).uses_fpu(), "the unit is on for somebody else");
    }
    if let Some(owner) = state.fpu {
        assert_eq!(usize::from(k.get(owner).core), core, "a core holds registers of a thread that has moved");
    }
    for priority in 0..256usize {
        let queue = k.queues[core][priority];
        let bit = state.ready_words[priority / 64] >> (priority % 64) & 1 != 0;
        assert_eq!(bit, queue.head.is_some(), "bit of priority {priority}");
        let (mut last, mut next) = (None, queue.head);
        while let Some(thread) = next {
            let tcb = k.get(thread);
            assert!(tcb.queued && tcb.is_runnable(), "not ready: {:?}", tcb.state);
            assert_eq!((usize::from(tcb.priority), usize::from(tcb.core)), (priority, core));
            assert_eq!(tcb.ready_prev, last);
            assert!(ready.insert(thread.word()), "in a ready queue twice");
            (last, next) = (Some(thread), tcb.ready_next);
        }
        assert_eq!(queue.tail, last);
    }
    for word in 0..4 {
        assert_eq!(state.ready_summary >> word & 1 != 0, state.ready_words[word] != 0);
    }
}

fn check_slot(k: &Kernel, slot: Ref<Cte>) {
    let cte = k.get(slot);
    if let Some(prev) = cte.mdb.prev() {
        assert_eq!(k.get(prev).mdb.next(), Some(slot), "the slot before does not know this one");
    }
    if let Some(next) = cte.mdb.next() {
        let other = k.get(next);
        assert_eq!(other.mdb.prev(), Some(slot), "the slot behind does not know this one");
        assert!(!other.cap.is_null());
        // In depth-first order, whoever names the same object or lies in this one's region follows without a gap.
        if is_parent(cte, other) {
            assert!(same_region(cte.cap, other.cap));
        }
    }
    match cte.cap.kind() {
        Kind::Reply if !cte.cap.reply_master() => {
            let caller = cte.cap.reply_caller();
            assert_eq!(k.get(caller).state, ThreadState::BlockedOnReply, "a reply capability to nobody who waits");
            assert_eq!(cte.mdb.prev(), Some(caller.slot(Slot::Reply)));
        }
        Kind::SenderEntry => {
            let parent = core::iter::successors(cte.mdb.prev(), |&prev| k.get(prev).mdb.prev())
                .find(|&prev| !k.cap(prev).is(Kind::SenderEntry))
                .expect("an entry has a parent");
            assert_eq!(k.cap(parent).badge(), cte.cap.badge());
            assert_eq!(k.cap(parent).object(), Some(cte.cap.entry_notification()));
            assert_ne!(k.get(cte.cap.entry_notification()).receiver(), 0, "an entry without receiver");
        }
        _ => {}
    }
}

fn check_queue(k: &Kernel, queue: &Queue, object: u64, waiting: &mut HashMap<u64, u64>) -> Vec<Ref<Tcb>> {
    let (mut last, mut next, mut threads) = (None, queue.head(), Vec::new());
    while let Some(thread) = next {
        let tcb = k.get(thread);
        assert_eq!(tcb.queue_prev, last);
        assert!(waiting.insert(thread.word(), object).is_none(), "a thread waits twice");
        threads.push(thread);
        (last, next) = (Some(thread), tcb.queue_next);
    }
    assert_eq!(queue.tail(), last);
    threads
}

fn check_thread(k: &Kernel, thread: Ref<Tcb>, ready: &HashSet<u64>, waiting: &HashMap<u64, u64>) {
    let tcb = k.get(thread);
    let current = k.cores.iter().any(|core| core.current == Some(thread));
    assert_eq!(tcb.queued, ready.contains(&thread.word()));
    if tcb.is_runnable() {
        assert!(tcb.queued || current, "runnable and nowhere");
    }
    match tcb.state {
        ThreadState::BlockedOnReceive | ThreadState::BlockedOnSend | ThreadState::BlockedOnNotification => {
            // An object whose last capability is gone has restarted its waiters.
            assert_eq!(waiting.get(&thread.word()), Some(&tcb.blocked_on), "blocked and not in the queue");
        }
        _ => assert!(!waiting.contains_key(&thread.word()), "in a queue as {:?}", tcb.state),
    }
    if let Some(bound) = tcb.bound_notification {
        assert_eq!(k.get(bound).bound_thread(), Some(thread));
    }
    assert_eq!(tcb.special, tcb.user_interrupt.in_use() || tcb.uses_fpu());
    let caller = tcb.cap(Slot::Caller);
    assert!(caller.is_null() || caller.is(Kind::Reply) && !caller.reply_master());
}
