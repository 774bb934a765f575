//! Notifications: a word of bits that signals set and a waiter takes. One that owns a receiver of user interrupts is a doorbell.
//!
//! ```text
//!            signal                  wait
//!   Idle ─────────────▶ Active ─────────────▶ Idle          signals to an active one are ORed
//!    │ wait                      Waiting: signal wakes the first; the queue empty again: Idle
//!    └──────▶ Waiting
//! ```
//!
//! Doorbells: the pending bits of the receiver count as signalled. `Wait` and `Poll` collect them; a signal that nobody waits for
//! is posted to the receiver too, so that the handler of the bound thread runs.

use abi::object::bits;
use abi::rights::Rights;

use super::cap::Cap;
use super::endpoint::{Queue, Queued};
use super::tcb::{Tcb, ThreadState};
use super::user_interrupt;
use crate::api::error::{Preempted, Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::Arch;
use crate::mem::{Kva, Object, Ref};
use crate::state::Kernel;
use crate::{sched, thread};

/// State bits: threads wait.
pub const WAITING: u64 = 1;
/// State bits: the word holds a signal.
pub const ACTIVE: u64 = 2;

const FIELD: u32 = 48;
const ADDRESS_MASK: u64 = (1 << FIELD) - 1;

/// A notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Notification {
    queue: Queue,
    /// The signalled bits, while active.
    pub word: u64,
    /// Bound TCB in 47:0, receiver in 63:48.
    bound: u64,
}

const _: () = assert!(size_of::<Notification>() == 1 << bits::NOTIFICATION);
// SAFETY: plain words; zero is idle.
unsafe impl Object for Notification {}

impl Queued for Notification {
    fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

impl Notification {
    /// Idle (0), [`WAITING`] or [`ACTIVE`].
    #[inline(always)]
    pub const fn state(&self) -> u64 {
        self.queue.state()
    }
    /// Who waits.
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }
    /// Who would be woken.
    #[inline(always)]
    pub fn first_waiter(&self) -> Option<Ref<Tcb>> {
        if self.state() == WAITING { self.queue.head() } else { None }
    }
    /// The bound thread.
    #[inline(always)]
    pub const fn bound_thread(&self) -> Option<Ref<Tcb>> {
        if self.bound & ADDRESS_MASK == 0 {
            return None;
        }
        let address = ((self.bound << (64 - FIELD)) as i64 >> (64 - FIELD)) as u64;
        // SAFETY: written from the name of a TCB; unbound before the TCB is deleted.
        Some(unsafe { Ref::assume(Kva(address)) })
    }
    /// Sets or clears the bound thread.
    pub fn set_bound_thread(&mut self, thread: Option<Ref<Tcb>>) {
        self.bound = self.bound & !ADDRESS_MASK | thread.map_or(0, Ref::word) & ADDRESS_MASK;
    }
    /// The receiver in the UINTC; 0 if it is no doorbell.
    #[inline(always)]
    pub const fn receiver(&self) -> u16 {
        (self.bound >> FIELD) as u16
    }
    /// Sets the receiver.
    pub fn set_receiver(&mut self, receiver: u16) {
        self.bound = self.bound & ADDRESS_MASK | u64::from(receiver) << FIELD;
    }
}

/// A request on a notification, with any label: Signal.
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    let object = signallable(call.cap).ok_or(Refusal::InvalidCapability(0))?;
    call.commit(k);
    signal(k, object, call.cap.badge());
    Ok(Answer::Empty)
}

/// Signals (seL4 `sendSignal`): Send on a notification capability, or an interrupt.
pub fn signal(k: &mut Kernel, notification: Ref<Notification>, badge: u64) {
    if let Some(waiter) = k.get(notification).first_waiter() {
        k.queue_pop(notification);
        wake(k, waiter, badge);
    } else if let Some(thread) = k.get(notification).bound_thread().filter(|_| bound_receives(k, notification)) {
        thread::cancel_ipc(k, thread);
        wake(k, thread, badge);
    } else {
        set_signal(k, notification, badge);
    }
}

/// Whether a signal would wake the bound thread out of a receive on an endpoint.
#[inline(always)]
pub fn bound_receives(k: &Kernel, notification: Ref<Notification>) -> bool {
    let object = k.get(notification);
    let receiving = |thread: Ref<Tcb>| k.get(thread).state == ThreadState::BlockedOnReceive;
    object.state() != ACTIVE && object.bound_thread().is_some_and(receiving)
}

/// Leaves a signal that nobody waits for.
#[inline(always)]
pub fn set_signal(k: &mut Kernel, notification: Ref<Notification>, badge: u64) {
    let object = k.get_mut(notification);
    let active = object.state() == ACTIVE;
    object.word = badge | if active { object.word } else { 0 };
    object.queue.set_state(ACTIVE);
    let receiver = object.receiver();
    if receiver != 0 {
        k.arch.post_receiver(receiver, badge);
    }
}

/// A thread goes on that has waited, with a badge.
pub fn wake(k: &mut Kernel, thread: Ref<Tcb>, badge: u64) {
    thread::set_state(k, thread, ThreadState::Running);
    thread::set_badge(k, thread, badge);
    sched::possible_switch_to(k, thread);
}

/// The signalled bits, if there are any; the notification is idle then.
#[inline(always)]
pub fn take(k: &mut Kernel, notification: Ref<Notification>) -> Option<u64> {
    let object = k.get_mut(notification);
    let signalled = (object.state() == ACTIVE).then_some(object.word);
    let receiver = object.receiver();
    if signalled.is_some() {
        object.word = 0;
        object.queue.set_state(0);
    }
    if receiver == 0 {
        return signalled;
    }
    match (signalled, k.arch.take_receiver(receiver)) {
        (None, 0) => None,
        (signalled, pending) => Some(signalled.unwrap_or(0) | pending),
    }
}

/// Whether `take` would find something. Nothing changes.
#[inline(always)]
pub fn has_signal(k: &mut Kernel, notification: Ref<Notification>) -> bool {
    let object = k.get(notification);
    let receiver = object.receiver();
    object.state() == ACTIVE || receiver != 0 && k.arch.receiver_pending(receiver)
}

/// Waits (seL4 `receiveSignal`).
pub fn wait(k: &mut Kernel, waiter: Ref<Tcb>, notification: Ref<Notification>, blocking: bool) {
    if let Some(bits) = take(k, notification) {
        thread::set_badge(k, waiter, bits);
    } else if blocking {
        thread::set_state(k, waiter, ThreadState::BlockedOnNotification);
        k.queue_append(notification, waiter, WAITING);
    } else {
        thread::set_badge(k, waiter, 0);
    }
}

/// A thread that receives on an endpoint takes the signal of its bound notification first; gives whether there was one.
pub fn take_bound_signal(k: &mut Kernel, thread: Ref<Tcb>) -> bool {
    let Some(notification) = k.get(thread).bound_notification else { return false };
    let bits = take(k, notification);
    if let Some(bits) = bits {
        thread::set_badge(k, thread, bits);
    }
    bits.is_some()
}

/// Binds (TCB_BindNotification).
pub fn bind(k: &mut Kernel, thread: Ref<Tcb>, notification: Ref<Notification>) {
    k.get_mut(notification).set_bound_thread(Some(thread));
    k.get_mut(thread).bound_notification = Some(notification);
}

/// Unbinds the notification of a thread, if it has one.
pub fn unbind_thread(k: &mut Kernel, thread: Ref<Tcb>) {
    if let Some(notification) = k.get_mut(thread).bound_notification.take() {
        k.get_mut(notification).set_bound_thread(None);
    }
}

/// The last capability goes away: nobody is bound, no receiver. Who waits is restarted after that.
pub fn finalise(k: &mut Kernel, notification: Ref<Notification>) -> Result<(), Preempted> {
    if let Some(thread) = k.get(notification).bound_thread() {
        unbind_thread(k, thread);
    }
    user_interrupt::release(k, k.get(notification).receiver())
}

/// The notification of a capability that may be signalled.
pub fn signallable(cap: Cap) -> Option<Ref<Notification>> {
    cap.object().filter(|_| cap.rights().contains(Rights::WRITE))
}
