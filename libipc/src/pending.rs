//! The calls in flight: from cookie to who waits.
//!
//! ```text
//!             begin              complete                finish (future polled)
//!   Free ───────────> InFlight ───────────> Answered ──────────────────────────> Free
//!                        │  │                                                     ^
//!                        │  │ fail (closed)                 finish                │
//!                        │  '────────────> Failed ───────────────────────────────>│
//!                        │ abandon (future dropped)      complete, fail           │
//!                        '────────────> Abandoned ────────────────────────────────'
//! ```
//!
//! Every call leaves InFlight exactly once. An abandoned call keeps its slot, hence its credit, until the reply comes: so
//! a late reply is recognised and dropped, and can never reach a younger call. A cookie is `generation << 16 | slot`; a
//! reply whose cookie is not that of a call in flight is misbehaviour.
//!
//! All state is in `Cell`s and no borrow is held while a waker is called.

use alloc::boxed::Box;
use core::cell::Cell;
use core::task::Waker;

use crate::entry::Arrival;
use crate::error::{CallError, PeerMisbehaviour};
use crate::message::{Message, WORDS};
use crate::waiter::Waiter;

const SLOT_BITS: u32 = 16;
const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    InFlight,
    Abandoned,
    Answered,
    Failed,
    /// Taken without a call: a credit kept for completions of a multishot call.
    Reserved,
}

/// One call and its reply, in one cache line.
#[repr(C, align(64))]
struct Slot {
    cookie: Cell<u64>,
    words: Cell<[u64; WORDS]>,
    op: Cell<u16>,
    next_free: Cell<u16>,
    len: Cell<u8>,
    state: Cell<State>,
    error: Cell<CallError>,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// The table; as many slots as the ring has entries.
pub(crate) struct Pending {
    slots: Box<[Slot]>,
    /// Who waits for the call in the slot of the same number.
    waiters: Box<[Waiter]>,
    first_free: Cell<u16>,
}

impl Pending {
    pub(crate) fn new(slots: usize) -> Self {
        assert!(slots < usize::from(NONE), "slot numbers have 16 bits");
        let slot = |index: usize| Slot {
            cookie: Cell::new(index as u64),
            words: Cell::new([0; WORDS]),
            op: Cell::new(0),
            next_free: Cell::new(if index + 1 == slots { NONE } else { index as u16 + 1 }),
            len: Cell::new(0),
            state: Cell::new(State::Free),
            error: Cell::new(CallError::Closed),
        };
        Self {
            slots: (0..slots).map(slot).collect(),
            waiters: (0..slots).map(|_| Waiter::new()).collect(),
            first_free: Cell::new(0),
        }
    }

    /// Takes a slot for a call; gives its number and cookie.
    #[inline] // hot path
    pub(crate) fn begin(&self) -> Option<(u16, u64)> {
        let number = self.first_free.get();
        let slot = self.slots.get(usize::from(number))?;
        self.first_free.set(slot.next_free.get());
        let cookie = slot.cookie.get().wrapping_add(1 << SLOT_BITS);
        slot.cookie.set(cookie);
        slot.state.set(State::InFlight);
        Some((number, cookie))
    }

    /// Takes a slot without a call; [`Pending::release`] gives it back.
    #[cold]
    pub(crate) fn reserve(&self) -> Option<u16> {
        let (number, _) = self.begin()?;
        self.slots[usize::from(number)].state.set(State::Reserved);
        Some(number)
    }

    /// Ends the call that `reply` answers.
    ///
    /// # Errors
    /// If no call with its cookie is in flight.
    #[inline] // hot path: the words go from the ring's line to the slot's
    pub(crate) fn answer(&self, reply: &Arrival<'_>) -> Result<(), PeerMisbehaviour> {
        let (number, slot) = self.find(reply.cookie())?;
        if slot.state.get() != State::InFlight {
            return self.late(number, slot);
        }
        slot.op.set(reply.op());
        slot.len.set(reply.len());
        slot.words.set(reply.words());
        slot.state.set(State::Answered);
        self.waiters[number].wake();
        Ok(())
    }

    /// Ends the call with this cookie without a reply.
    ///
    /// # Errors
    /// If no call with this cookie is in flight.
    #[cold]
    pub(crate) fn fail(&self, cookie: u64, error: CallError) -> Result<(), PeerMisbehaviour> {
        let (number, slot) = self.find(cookie)?;
        if slot.state.get() != State::InFlight {
            return self.late(number, slot);
        }
        slot.error.set(error);
        slot.state.set(State::Failed);
        self.waiters[number].wake();
        Ok(())
    }

    /// Ends the call in slot `number` with the reply of a system call.
    #[cfg(target_os = "none")]
    #[inline] // hot path of the other transport
    pub(crate) fn settle(&self, number: u16, result: Result<Message, CallError>) {
        let slot = &self.slots[usize::from(number)];
        match result {
            Ok(message) => {
                slot.op.set(message.op);
                slot.len.set(message.len);
                slot.words.set(message.words);
                slot.state.set(State::Answered);
            }
            Err(error) => {
                slot.error.set(error);
                slot.state.set(State::Failed);
            }
        }
    }

    #[inline] // hot path
    fn find(&self, cookie: u64) -> Result<(usize, &Slot), PeerMisbehaviour> {
        let number = usize::from(cookie as u16);
        match self.slots.get(number) {
            Some(slot) if slot.cookie.get() == cookie => Ok((number, slot)),
            _ => Err(PeerMisbehaviour::Cookie),
        }
    }

    /// An answer to a call that nobody waits for: abandoned, or answered before.
    #[cold]
    fn late(&self, number: usize, slot: &Slot) -> Result<(), PeerMisbehaviour> {
        if slot.state.get() != State::Abandoned {
            return Err(PeerMisbehaviour::Cookie);
        }
        self.release(number as u16);
        Ok(())
    }

    /// Ends every call in flight with `error`.
    #[cold]
    pub(crate) fn fail_all(&self, error: CallError) {
        for (number, slot) in self.slots.iter().enumerate() {
            match slot.state.get() {
                State::InFlight => {
                    slot.error.set(error);
                    slot.state.set(State::Failed);
                    self.waiters[number].wake();
                }
                State::Abandoned => self.release(number as u16),
                State::Free | State::Answered | State::Failed | State::Reserved => (),
            }
        }
    }

    /// The result of the call in slot `number`, if there is one: the slot is free then. Otherwise `waker` will be called.
    #[inline(always)] // hot path: as `Call::poll`
    pub(crate) fn finish(&self, number: u16, waker: &Waker) -> Option<Result<Message, CallError>> {
        let slot = &self.slots[usize::from(number)];
        match slot.state.get() {
            State::Answered => {
                let reply = Message { op: slot.op.get(), len: slot.len.get(), words: slot.words.get() };
                self.release(number);
                Some(Ok(reply))
            }
            State::Failed => {
                self.release(number);
                Some(Err(slot.error.get()))
            }
            State::InFlight | State::Abandoned | State::Free | State::Reserved => {
                self.waiters[usize::from(number)].register(waker);
                None
            }
        }
    }

    /// The future of the call in slot `number` is gone before its result was taken. Gives the cookie of the call if the server still
    /// owes its end.
    #[cold]
    pub(crate) fn abandon(&self, number: u16) -> Option<u64> {
        let slot = &self.slots[usize::from(number)];
        if slot.state.get() == State::InFlight {
            slot.state.set(State::Abandoned);
            Some(slot.cookie.get())
        } else {
            self.release(number);
            None
        }
    }

    /// Whether the server still owes the end of the call with this cookie.
    #[cold]
    pub(crate) fn is_owed(&self, cookie: u64) -> bool {
        self.find(cookie).is_ok_and(|(_, slot)| matches!(slot.state.get(), State::InFlight | State::Abandoned))
    }

    /// Wakes who waits for the call with this cookie, which goes on. False if nobody does: it was abandoned.
    ///
    /// # Errors
    /// If no call with this cookie is in flight.
    #[cold]
    pub(crate) fn nudge(&self, cookie: u64) -> Result<bool, PeerMisbehaviour> {
        let (number, slot) = self.find(cookie)?;
        match slot.state.get() {
            State::InFlight => self.waiters[number].wake(),
            State::Abandoned => return Ok(false),
            State::Free | State::Answered | State::Failed | State::Reserved => return Err(PeerMisbehaviour::Cookie),
        }
        Ok(true)
    }

    /// Calls of `count` more that could begin now.
    #[cold]
    pub(crate) fn free(&self, count: usize) -> usize {
        let next = |number: &u16| self.slots.get(usize::from(*number)).map(|slot| slot.next_free.get());
        core::iter::successors(Some(self.first_free.get()), next)
            .take(count + 1)
            .filter(|number| *number != NONE)
            .count()
            .min(count)
    }

    /// Slots that are not free.
    pub(crate) fn used(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state.get() != State::Free).count()
    }

    /// Calls `visit` with the cookie of each call that somebody waits for, and the waker.
    pub(crate) fn waits(&self, visit: &mut dyn FnMut(u64, &Waker)) {
        for (slot, waiter) in self.slots.iter().zip(&self.waiters) {
            if slot.state.get() == State::InFlight {
                waiter.show(&mut |waker| visit(slot.cookie.get(), waker));
            }
        }
    }

    /// Gives a slot back. The server must not owe anything for it.
    #[inline] // hot path
    pub(crate) fn release(&self, number: u16) {
        let slot = &self.slots[usize::from(number)];
        slot.state.set(State::Free);
        slot.next_free.set(self.first_free.get());
        self.first_free.set(number);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::entry::{Entry, Kind, Packet};

    fn message(value: u64) -> Message {
        Message::new(1, [value])
    }

    fn answer(pending: &Pending, cookie: u64, value: u64) -> Result<(), PeerMisbehaviour> {
        let entry = Entry::new();
        entry.store(1, &Packet { kind: Kind::Reply, cookie, message: message(value) });
        pending.answer(&entry.load(1, 1).unwrap().unwrap())
    }

    #[test]
    fn a_call_ends_once() {
        let pending = Pending::new(2);
        let (slot, cookie) = pending.begin().unwrap();
        assert_eq!(pending.finish(slot, Waker::noop()), None);
        assert_eq!(answer(&pending, cookie, 5), Ok(()));
        assert_eq!(answer(&pending, cookie, 6), Err(PeerMisbehaviour::Cookie));
        assert_eq!(pending.finish(slot, Waker::noop()), Some(Ok(message(5))));
        assert_eq!(answer(&pending, cookie, 7), Err(PeerMisbehaviour::Cookie));
        assert_eq!(pending.fail(cookie, CallError::Dropped), Err(PeerMisbehaviour::Cookie));
    }

    #[test]
    fn an_abandoned_call_keeps_its_credit_until_the_late_reply() {
        let pending = Pending::new(1);
        let (slot, cookie) = pending.begin().unwrap();
        pending.abandon(slot);
        assert!(pending.begin().is_none());
        assert_eq!(answer(&pending, cookie, 1), Ok(()));
        let (slot, younger) = pending.begin().unwrap();
        assert_eq!(answer(&pending, cookie, 1), Err(PeerMisbehaviour::Cookie));
        assert_eq!(answer(&pending, younger, 2), Ok(()));
        assert_eq!(pending.finish(slot, Waker::noop()), Some(Ok(message(2))));
    }

    #[test]
    fn a_dropped_call_fails() {
        let pending = Pending::new(1);
        let (slot, cookie) = pending.begin().unwrap();
        assert_eq!(pending.fail(cookie, CallError::Dropped), Ok(()));
        assert_eq!(pending.finish(slot, Waker::noop()), Some(Err(CallError::Dropped)));
    }

    #[test]
    fn made_up_cookies_are_refused() {
        let pending = Pending::new(2);
        let (_, cookie) = pending.begin().unwrap();
        for wrong in [0, 1, cookie ^ 1, cookie + 2, cookie + (1 << SLOT_BITS), u64::MAX] {
            assert_eq!(answer(&pending, wrong, 0), Err(PeerMisbehaviour::Cookie), "{wrong:#x}");
        }
    }

    #[test]
    fn failure_ends_all_and_frees_the_abandoned() {
        let pending = Pending::new(2);
        let (first, _) = pending.begin().unwrap();
        let (second, _) = pending.begin().unwrap();
        pending.abandon(second);
        pending.fail_all(CallError::Closed);
        assert_eq!(pending.finish(first, Waker::noop()), Some(Err(CallError::Closed)));
        assert!(pending.begin().is_some() && pending.begin().is_some() && pending.begin().is_none());
    }

    /// The waker of the last poll is the one that counts.
    #[test]
    fn a_call_that_moves_to_another_task_wakes_that_task() {
        use alloc::sync::Arc;
        use alloc::task::Wake;
        use core::sync::atomic::{AtomicU32, Ordering};
        struct Count(AtomicU32);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let counts = [0, 1].map(|_| Arc::new(Count(AtomicU32::new(0))));
        let wakers = counts.clone().map(Waker::from);
        let pending = Pending::new(1);
        for turn in 0..3 {
            let (slot, cookie) = pending.begin().unwrap();
            assert_eq!(pending.finish(slot, &wakers[0]), None);
            assert_eq!(pending.finish(slot, &wakers[1]), None);
            assert_eq!(answer(&pending, cookie, 0), Ok(()));
            assert!(pending.finish(slot, &wakers[1]).is_some());
            assert_eq!(counts.each_ref().map(|count| count.0.load(Ordering::Relaxed)), [0, turn + 1]);
        }
    }
}
