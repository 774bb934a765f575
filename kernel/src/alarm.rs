//! Alarms: threads that wait until a time at most (WaitUntil), and the timer of each core, which serves them and the tick.
//!
//! A thread in WaitUntil is in the queue of what it receives from, exactly as in Recv, and its saved registers say until when. All
//! that is kept beside is its *alarm*, the time at which the kernel looks at the thread again:
//!
//! ```text
//!         WaitUntil blocks                             the alarm's time comes
//!   off ───────────────────▶ set, not after `until` ──────────────────────────▶ in WaitUntil, `until` has come: badge 0, off
//!                              ▲                                                in WaitUntil, `until` is later ──┐ else: off
//!                              └─────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! So an alarm may be early or in vain, but never late, and whatever else ends a wait (a signal, a message, suspension, deletion of the
//! object) need not know of it. That is nearly every wait: deadlines are there in order not to be reached. A thread that waits again
//! with the same deadline or a later one finds its alarm set, so the fast paths of Recv and SignalRecv do for WaitUntil too, and the
//! price of a deadline is one look per alarm that goes off. Alarms stay with the core that set them, wherever the thread moves.
//!
//! The alarms of a core are a leftist heap (C. A. Crane, 1972; Knuth, TAOCP 3, 5.2.3) linked through the TCBs: setting one, taking
//! the first and taking any other out are bounded by the logarithm of their number, and need no memory.

use core::mem;

use abi::extension::WAIT_UNTIL;

use crate::arch::Arch;
use crate::arch::register::{A2, A7};
use crate::mem::Ref;
use crate::object::notification;
use crate::object::tcb::{Tcb, ThreadState};
use crate::sched;
use crate::state::Kernel;
use crate::thread;

/// Alarms that one interrupt looks at; what is left goes off with the next one, at once.
const LOOKS: usize = 32;

/// The alarm of a thread. All zero is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Alarm {
    /// When it goes off.
    pub at: u64,
    /// The alarm above, which goes off no later.
    pub parent: Option<Ref<Tcb>>,
    /// Alarms below; the left one's rank is not less than the right one's.
    pub left: Option<Ref<Tcb>>,
    /// See `left`.
    pub right: Option<Ref<Tcb>>,
    /// Alarms on the way down to the right, itself included; 0: off.
    pub rank: u8,
    /// Whose timer it waits for.
    pub core: u8,
}

impl Alarm {
    /// Whether it is set.
    pub const fn is_set(&self) -> bool {
        self.rank != 0
    }

    /// Whether it does for a wait until `until`.
    #[inline(always)]
    pub const fn covers(&self, until: u64) -> bool {
        self.is_set() && self.at <= until
    }
}

/// The timer of a core. Times are ticks of the time base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timer {
    /// When the tick of the scheduler comes.
    pub tick: u64,
    /// When the hardware interrupts.
    pub armed: u64,
    /// The alarm that goes off first.
    pub first: Option<Ref<Tcb>>,
}

impl Timer {
    /// As before `start_core`.
    pub const NEW: Self = Self { tick: 0, armed: 0, first: None };
}

/// Starts the timer of this core.
pub fn start_core(k: &mut Kernel) {
    next_tick(k);
    arm(k);
}

/// Until when a thread waits that is in WaitUntil.
pub fn waits_until(tcb: &Tcb) -> Option<u64> {
    let waits = matches!(tcb.state, ThreadState::BlockedOnNotification | ThreadState::BlockedOnReceive);
    let x = &tcb.context.x;
    (waits && x[A7] as isize == WAIT_UNTIL).then_some(x[A2])
}

/// Whether a WaitUntil that ends at `until` has to be over at once.
pub fn has_come(k: &Kernel, until: u64) -> bool {
    k.arch.now() >= until
}

/// If `thread`, the current one, has blocked in WaitUntil: makes sure that it is looked at in time.
pub fn set(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    let Some(until) = waits_until(tcb) else { return };
    if tcb.alarm.covers(until) {
        return;
    }
    forget(k, thread);
    insert(k, thread, until);
    if until < this(k).armed {
        arm(k);
    }
}

/// Turns the alarm of a thread off.
pub fn forget(k: &mut Kernel, thread: Ref<Tcb>) {
    if k.get(thread).alarm.is_set() {
        remove(k, thread);
    }
}

/// The timer of this core has interrupted.
pub fn interrupt(k: &mut Kernel) {
    let now = k.arch.now();
    if now >= this(k).tick {
        // Counted from now: a core that was held up gets one tick, not all that it missed.
        next_tick(k);
        sched::tick(k);
    }
    for _ in 0..LOOKS {
        let Some(thread) = this(k).first.filter(|&first| k.get(first).alarm.at <= now) else { break };
        remove(k, thread);
        match waits_until(k.get(thread)) {
            Some(until) if until <= now => {
                thread::cancel_ipc(k, thread);
                notification::wake(k, thread, 0);
            }
            Some(until) => insert(k, thread, until),
            None => {}
        }
    }
    arm(k);
}

fn this(k: &mut Kernel) -> &mut Timer {
    let core = k.core();
    &mut k.timers[core]
}

fn next_tick(k: &mut Kernel) {
    let tick = k.arch.now().saturating_add(k.arch.tick_length());
    this(k).tick = tick;
}

/// Sets the hardware to what comes first. It is a call into the firmware, made only if nothing earlier is set or an interrupt has come.
fn arm(k: &mut Kernel) {
    let timer = *this(k);
    let at = timer.first.map_or(timer.tick, |first| timer.tick.min(k.get(first).alarm.at));
    this(k).armed = at;
    k.arch.set_timer(at);
}

fn insert(k: &mut Kernel, thread: Ref<Tcb>, at: u64) {
    let core = k.core() as u8;
    k.get_mut(thread).alarm = Alarm { at, rank: 1, core, ..Alarm::default() };
    let first = this(k).first;
    this(k).first = merge(k, first, Some(thread));
}

fn remove(k: &mut Kernel, thread: Ref<Tcb>) {
    let Alarm { parent, left, right, core, .. } = mem::take(&mut k.get_mut(thread).alarm);
    for below in [left, right].into_iter().flatten() {
        k.get_mut(below).alarm.parent = None;
    }
    let rest = merge(k, left, right);
    if let Some(rest) = rest {
        k.get_mut(rest).alarm.parent = parent;
    }
    let Some(mut above) = parent else {
        k.timers[usize::from(core)].first = rest;
        return;
    };
    let alarm = &mut k.get_mut(above).alarm;
    *if alarm.left == Some(thread) { &mut alarm.left } else { &mut alarm.right } = rest;
    // Each rank that changes is one more than the last: there are few.
    while settle(k, above) {
        let Some(next) = k.get(above).alarm.parent else { break };
        above = next;
    }
}

/// Makes one heap of two whose roots have no parent.
fn merge(k: &mut Kernel, one: Option<Ref<Tcb>>, other: Option<Ref<Tcb>>) -> Option<Ref<Tcb>> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    let (root, mut rest) = in_order(k, one, other);
    // Down to the right, where it is short.
    let mut node = root;
    while let Some(right) = k.get(node).alarm.right {
        let (first, second) = in_order(k, right, rest);
        put_right(k, node, first);
        (node, rest) = (first, second);
    }
    put_right(k, node, rest);
    // And back up.
    loop {
        settle(k, node);
        let Some(above) = k.get(node).alarm.parent else { return Some(root) };
        node = above;
    }
}

fn in_order(k: &Kernel, one: Ref<Tcb>, other: Ref<Tcb>) -> (Ref<Tcb>, Ref<Tcb>) {
    if k.get(other).alarm.at < k.get(one).alarm.at { (other, one) } else { (one, other) }
}

fn put_right(k: &mut Kernel, node: Ref<Tcb>, below: Ref<Tcb>) {
    k.get_mut(node).alarm.right = Some(below);
    k.get_mut(below).alarm.parent = Some(node);
}

/// Brings sides and rank of a node in line with what is below; gives whether its rank has changed.
fn settle(k: &mut Kernel, node: Ref<Tcb>) -> bool {
    let Alarm { left, right, rank, .. } = k.get(node).alarm;
    let rank_of = |below: Option<Ref<Tcb>>| below.map_or(0, |below| k.get(below).alarm.rank);
    let (of_left, of_right) = (rank_of(left), rank_of(right));
    let alarm = &mut k.get_mut(node).alarm;
    if of_left < of_right {
        (alarm.left, alarm.right) = (right, left);
    }
    alarm.rank = of_left.min(of_right) + 1;
    alarm.rank != rank
}
