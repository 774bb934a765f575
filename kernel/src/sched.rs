//! The scheduler: ready queues, the decision at the end of a kernel entry, time slices.
//!
//! While the kernel works it only notes a decision ([`Action`]): the current thread continues, a better one was woken (the
//! candidate), or somebody must be chosen anew. `leave` carries it out:
//! 1. a candidate worse than the current thread (or woken while the core idled) that is not among the best ready ones goes to the
//!    head of its queue, and the best is chosen;
//! 2. a candidate equal to a current thread that could continue goes to the tail of its queue, and the best is chosen, which is the
//!    current thread;
//! 3. any other candidate runs at once.
//!
//! A current thread that can continue is put at the head of its queue before. The thread that runs is in no queue.
//!
//! A thread of another core that becomes ready is handed over if that core idles: then it is in no queue either, and that core runs it
//! without a decision, for there is nobody else ([`take_handed`]). It goes into its queue after all ([`recall`]) as soon as another
//! thread of that core becomes ready, or somebody asks for it.

use abi::config::MAX_NUM_NODES;

use crate::arch::{Arch, register};
use crate::mem::Ref;
use crate::object::tcb::{self, Tcb, ThreadState};
use crate::object::vspace;
use crate::special;
use crate::state::{Action, Kernel, Next, ReadyQueue, ready_bit};

impl Kernel {
    #[inline(always)]
    fn ready_queue(&mut self, core: usize, priority: u8) -> &mut ReadyQueue {
        &mut self.queues[core % MAX_NUM_NODES][usize::from(priority)]
    }

    #[inline(always)]
    fn mark_ready(&mut self, core: usize, priority: u8) {
        let (word, bit) = ready_bit(priority);
        let core = &mut self.cores[core % MAX_NUM_NODES];
        core.ready_words[word] |= 1 << bit;
        core.ready_summary |= 1 << word;
    }

    #[inline(always)]
    fn mark_empty(&mut self, core: usize, priority: u8) {
        let (word, bit) = ready_bit(priority);
        let core = &mut self.cores[core % MAX_NUM_NODES];
        core.ready_words[word] &= !(1 << bit);
        if core.ready_words[word] == 0 {
            core.ready_summary &= !(1 << word);
        }
    }

    /// The first of the best ready threads of this core.
    #[inline(always)]
    pub fn best_ready(&self) -> Option<Ref<Tcb>> {
        let core = self.this();
        if core.ready_summary == 0 {
            return None;
        }
        let word = core.ready_summary.trailing_zeros() as usize % core.ready_words.len();
        let rank = word as u32 * 64 + core.ready_words[word].trailing_zeros();
        self.queues[self.core() % MAX_NUM_NODES][usize::from(!(rank as u8))].head
    }

    /// Whether a ready thread of this core has this priority.
    #[inline(always)]
    pub fn is_ready(&self, priority: u8) -> bool {
        self.this().is_ready(priority)
    }

    /// Whether no ready thread of this core is better than `priority`.
    #[inline(always)]
    pub fn is_best(&self, priority: u8) -> bool {
        let (core, (word, bit)) = (self.this(), ready_bit(priority));
        core.ready_words[word] & ((1 << bit) - 1) == 0 && core.ready_summary & ((1 << word) - 1) == 0
    }
}

/// A thread that another core was handed, and has not taken, becomes an ordinary ready one. That core comes to look.
fn recall(k: &mut Kernel, core: usize) {
    if let Some(thread) = k.arch.take_back(core) {
        push_front(k, thread);
    }
}

/// A thread of another core becomes ready: that core must look, if it does something less urgent.
fn notice_remote(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    let core = usize::from(tcb.core);
    let other = &k.cores[core];
    if other.current == other.idle || other.current.is_some_and(|current| k.get(current).priority < tcb.priority) {
        k.this_mut().reschedule |= 1 << core;
    }
}

/// Whether a thread of `priority` would run before every ready thread of this core.
pub fn nobody_better(k: &Kernel, priority: u8) -> bool {
    k.is_best(priority) && !k.is_ready(priority)
}

/// Puts a thread at the head of its ready queue, unless it is in it.
#[inline]
pub fn enqueue(k: &mut Kernel, thread: Ref<Tcb>) {
    put(k, thread, push_front);
}

/// Puts a thread at the tail of its ready queue, unless it is in it.
#[inline]
pub fn append(k: &mut Kernel, thread: Ref<Tcb>) {
    put(k, thread, push_back);
}

#[inline(always)]
fn put(k: &mut Kernel, thread: Ref<Tcb>, push: fn(&mut Kernel, Ref<Tcb>)) {
    let tcb = k.get(thread);
    if tcb.queued {
        return;
    }
    let core = usize::from(tcb.core);
    if core == k.core() {
        return push(k, thread);
    }
    recall(k, core);
    push(k, thread);
    notice_remote(k, thread);
}

/// Puts a thread that is in no ready queue at the head of its own. Its core, if that is another one, is not told.
pub fn push_front(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    debug_assert!(!tcb.queued);
    let (core, priority) = (usize::from(tcb.core), tcb.priority);
    let queue = k.ready_queue(core, priority);
    let head = queue.head.replace(thread);
    if head.is_none() {
        queue.tail = Some(thread);
        k.mark_ready(core, priority);
    }
    let tcb = k.get_mut(thread);
    tcb.queued = true;
    (tcb.ready_prev, tcb.ready_next) = (None, head);
    if let Some(head) = head {
        k.get_mut(head).ready_prev = Some(thread);
    }
}

/// As [`push_front`], at the tail.
pub fn push_back(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    debug_assert!(!tcb.queued);
    let (core, priority) = (usize::from(tcb.core), tcb.priority);
    let queue = k.ready_queue(core, priority);
    let tail = queue.tail.replace(thread);
    if tail.is_none() {
        queue.head = Some(thread);
        k.mark_ready(core, priority);
    }
    let tcb = k.get_mut(thread);
    tcb.queued = true;
    (tcb.ready_prev, tcb.ready_next) = (tail, None);
    if let Some(tail) = tail {
        k.get_mut(tail).ready_next = Some(thread);
    }
}

/// Takes a thread out of its ready queue, if it is in it.
pub fn dequeue(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get_mut(thread);
    if !tcb.queued {
        return;
    }
    tcb.queued = false;
    let (core, priority) = (usize::from(tcb.core), tcb.priority);
    let (prev, next) = (tcb.ready_prev.take(), tcb.ready_next.take());
    if let Some(prev) = prev {
        k.get_mut(prev).ready_next = next;
    }
    if let Some(next) = next {
        k.get_mut(next).ready_prev = prev;
    }
    let queue = k.ready_queue(core, priority);
    if prev.is_none() {
        queue.head = next;
    }
    if next.is_none() {
        queue.tail = prev;
    }
    if prev.is_none() && next.is_none() {
        k.mark_empty(core, priority);
    }
}

/// Notes that somebody must be chosen anew; a candidate so far is just ready.
pub fn reschedule_required(k: &mut Kernel) {
    if let Action::Candidate(candidate) = k.this().action {
        enqueue(k, candidate);
    }
    k.this_mut().action = Action::ChooseNew;
}

/// `thread` has become runnable, and runs on the way out if it is good enough (seL4 `possibleSwitchTo`).
#[inline]
pub fn possible_switch_to(k: &mut Kernel, thread: Ref<Tcb>) {
    if usize::from(k.get(thread).core) != k.core() {
        ready_elsewhere(k, thread);
    } else if k.this().action != Action::Resume {
        reschedule_required(k);
        enqueue(k, thread);
    } else {
        k.this_mut().action = Action::Candidate(thread);
    }
}

/// A thread of another core has become runnable. A core that idles gets it right away: it has nobody else.
#[inline(always)]
pub fn ready_elsewhere(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    if tcb.queued || !k.arch.hand_over(usize::from(tcb.core), thread) {
        enqueue(k, thread);
    }
}

/// Runs the thread that this core, which idled, was handed; gives whether there was one.
pub fn take_handed(k: &mut Kernel) -> bool {
    let Some(thread) = k.arch.take_handed() else { return false };
    debug_assert!(k.current() == k.idle() && k.this().ready_summary == 0);
    k.claim(thread, tcb::STATE);
    k.claim(thread, tcb::MESSAGE);
    switch_to(k, thread);
    true
}

/// Gives the core to a thread.
#[inline]
pub fn switch_to(k: &mut Kernel, thread: Ref<Tcb>) {
    vspace::enter(k, thread);
    dequeue(k, thread);
    special::switch(k, Some(thread));
    k.this_mut().current = Some(thread);
}

/// The core stays in the address space that it is in: when that goes away, `Arch::evict_space` moves idle cores too, and the
/// thread that ran last is often the next one.
fn switch_to_idle(k: &mut Kernel) {
    special::switch(k, None);
    let idle = k.idle();
    k.this_mut().current = Some(idle);
}

fn choose(k: &mut Kernel) {
    match k.best_ready() {
        Some(thread) => switch_to(k, thread),
        None => switch_to_idle(k),
    }
}

fn decide(k: &mut Kernel, action: Action) {
    let current = k.current();
    let tcb = k.get(current);
    let (continues, priority, idle) = (tcb.is_runnable(), tcb.priority, current == k.idle());
    if continues {
        enqueue(k, current);
    }
    let Action::Candidate(candidate) = action else { return choose(k) };
    let rank = k.get(candidate).priority;
    if (idle || rank < priority) && !k.is_best(rank) {
        enqueue(k, candidate);
        choose(k);
    } else if continues && rank == priority {
        append(k, candidate);
        choose(k);
    } else {
        switch_to(k, candidate);
    }
}

/// Ends a kernel entry: carries the decision out and tells what this core does.
#[inline]
pub fn leave(k: &mut Kernel) -> Next {
    let action = k.this().action;
    if action != Action::Resume {
        decide(k, action);
        k.this_mut().action = Action::Resume;
    }
    call_others(k);
    let current = k.current();
    let tcb = k.get_mut(current);
    match tcb.state {
        ThreadState::Idle => Next::Idle,
        ThreadState::Restart => {
            tcb.context.next_pc = tcb.context.x[register::PC];
            tcb.state = ThreadState::Running;
            Next::Run(current)
        }
        _ => {
            debug_assert!(tcb.state == ThreadState::Running);
            Next::Run(current)
        }
    }
}

/// Calls the cores that have to come into the kernel.
#[inline(always)]
pub fn call_others(k: &mut Kernel) {
    if k.this().reschedule != 0 {
        call_cores(k);
    }
}

#[inline(never)] // seldom, and the fast paths would save registers for it
fn call_cores(k: &mut Kernel) {
    let cores = core::mem::take(&mut k.this_mut().reschedule);
    // A core that was handed a thread would come for that only.
    (0..k.arch.cores()).filter(|&core| cores & 1 << core != 0).for_each(|core| recall(k, core));
    k.arch.call_cores(cores);
}

/// A timer tick (seL4 `timerTick`).
pub fn tick(k: &mut Kernel) {
    let slice = k.config.time_slice;
    let current = k.current();
    let tcb = k.get_mut(current);
    if tcb.state != ThreadState::Running {
        return;
    }
    if tcb.time_slice > 1 {
        tcb.time_slice -= 1;
    } else {
        tcb.time_slice = slice;
        append(k, current);
        reschedule_required(k);
    }
}

/// Stops the core on which `thread` runs, if it runs on another one (seL4 `remoteTCBStall`). Its registers, special ones
/// too, are in the TCB then, and it is an ordinary ready thread.
pub fn stall(k: &mut Kernel, thread: Ref<Tcb>) {
    let core = usize::from(k.get(thread).core);
    if core == k.core() {
        return;
    }
    if k.arch.handed(core) == Some(thread) {
        return recall(k, core);
    }
    if k.cores[core].current != Some(thread) {
        return;
    }
    k.arch.stall_core(core);
    let other = &mut k.cores[core];
    other.current = other.idle;
    (other.loaded, other.fpu_on, other.special) = (None, false, false);
    other.action = Action::ChooseNew;
    let tcb = k.get_mut(thread);
    if tcb.state == ThreadState::Running {
        tcb.state = ThreadState::Restart;
    }
    enqueue(k, thread);
    k.this_mut().reschedule |= 1 << core;
}
