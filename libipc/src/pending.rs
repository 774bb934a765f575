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

use crate::error::{CallError, PeerMisbehaviour};
use crate::message::Message;

const SLOT_BITS: u32 = 16;
const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    InFlight,
    Abandoned,
    Answered,
    Failed(CallError),
}

struct Slot {
    cookie: Cell<u64>,
    state: Cell<State>,
    /// Kept from call to call: the same task tends to get the same slot back, and then nothing is cloned.
    waker: Cell<Option<Waker>>,
    reply: Cell<Message>,
    /// Index of the request in its ring.
    request: Cell<u64>,
    next_free: Cell<u16>,
}

/// The table; as many slots as the ring has entries.
pub(crate) struct Pending {
    slots: Box<[Slot]>,
    first_free: Cell<u16>,
}

impl Pending {
    pub(crate) fn new(slots: usize) -> Self {
        assert!(slots < usize::from(NONE), "slot numbers have 16 bits");
        let slot = |index: usize| Slot {
            cookie: Cell::new(index as u64),
            state: Cell::new(State::Free),
            waker: Cell::new(None),
            reply: Cell::new(Message::default()),
            request: Cell::new(0),
            next_free: Cell::new(if index + 1 == slots { NONE } else { index as u16 + 1 }),
        };
        Self { slots: (0..slots).map(slot).collect(), first_free: Cell::new(0) }
    }

    /// Takes a slot for the call whose request has the index `request`; gives its number and cookie.
    #[inline] // hot path
    pub(crate) fn begin(&self, request: u64) -> Option<(u16, u64)> {
        let number = self.first_free.get();
        let slot = self.slots.get(usize::from(number))?;
        self.first_free.set(slot.next_free.get());
        let cookie = slot.cookie.get().wrapping_add(1 << SLOT_BITS);
        slot.cookie.set(cookie);
        slot.state.set(State::InFlight);
        slot.request.set(request);
        Some((number, cookie))
    }

    /// Ends the call with this cookie; returns the index of its request.
    ///
    /// # Errors
    /// If no call with this cookie is in flight.
    #[inline] // hot path
    pub(crate) fn complete(&self, cookie: u64, result: Result<Message, CallError>) -> Result<u64, PeerMisbehaviour> {
        let number = cookie as u16;
        let slot = self.slots.get(usize::from(number)).ok_or(PeerMisbehaviour::Cookie)?;
        if slot.cookie.get() != cookie {
            return Err(PeerMisbehaviour::Cookie);
        }
        match slot.state.get() {
            State::InFlight => {
                match result {
                    Ok(message) => {
                        slot.reply.set(message);
                        slot.state.set(State::Answered);
                    }
                    Err(error) => slot.state.set(State::Failed(error)),
                }
                slot.wake();
            }
            State::Abandoned => self.release(number),
            State::Free | State::Answered | State::Failed(_) => return Err(PeerMisbehaviour::Cookie),
        }
        Ok(slot.request.get())
    }

    /// Ends every call in flight with `error`.
    #[cold]
    pub(crate) fn fail_all(&self, error: CallError) {
        for (number, slot) in self.slots.iter().enumerate() {
            match slot.state.get() {
                State::InFlight => {
                    slot.state.set(State::Failed(error));
                    slot.wake();
                }
                State::Abandoned => self.release(number as u16),
                State::Free | State::Answered | State::Failed(_) => (),
            }
        }
    }

    /// The result of the call in slot `number`, if there is one: the slot is free then. Otherwise `waker` will be called.
    #[inline] // hot path
    pub(crate) fn finish(&self, number: u16, waker: &Waker) -> Option<Result<Message, CallError>> {
        let slot = &self.slots[usize::from(number)];
        match slot.state.get() {
            State::Answered => {
                let reply = slot.reply.get();
                self.release(number);
                Some(Ok(reply))
            }
            State::Failed(error) => {
                self.release(number);
                Some(Err(error))
            }
            State::InFlight | State::Abandoned | State::Free => {
                slot.wait(waker);
                None
            }
        }
    }

    /// The future of the call in slot `number` is gone before its result was taken.
    pub(crate) fn abandon(&self, number: u16) {
        let slot = &self.slots[usize::from(number)];
        if slot.state.get() == State::InFlight {
            slot.state.set(State::Abandoned);
        } else {
            self.release(number);
        }
    }

    #[inline] // hot path
    fn release(&self, number: u16) {
        let slot = &self.slots[usize::from(number)];
        slot.state.set(State::Free);
        slot.next_free.set(self.first_free.get());
        self.first_free.set(number);
    }
}

impl Slot {
    #[inline] // hot path
    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake_by_ref();
            self.waker.set(Some(waker));
        }
    }

    #[inline] // hot path
    fn wait(&self, waker: &Waker) {
        let kept = match self.waker.take() {
            Some(kept) if kept.will_wake(waker) => kept,
            _ => waker.clone(),
        };
        self.waker.set(Some(kept));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn message(value: u64) -> Message {
        Message::new(1, [value])
    }

    #[test]
    fn a_call_ends_once() {
        let pending = Pending::new(2);
        let (slot, cookie) = pending.begin(7).unwrap();
        assert_eq!(pending.finish(slot, Waker::noop()), None);
        assert_eq!(pending.complete(cookie, Ok(message(5))), Ok(7));
        assert_eq!(pending.complete(cookie, Ok(message(6))), Err(PeerMisbehaviour::Cookie));
        assert_eq!(pending.finish(slot, Waker::noop()), Some(Ok(message(5))));
        assert_eq!(pending.complete(cookie, Ok(message(7))), Err(PeerMisbehaviour::Cookie));
    }

    #[test]
    fn an_abandoned_call_keeps_its_credit_until_the_late_reply() {
        let pending = Pending::new(1);
        let (slot, cookie) = pending.begin(0).unwrap();
        pending.abandon(slot);
        assert!(pending.begin(1).is_none());
        assert_eq!(pending.complete(cookie, Ok(message(1))), Ok(0));
        let (_, younger) = pending.begin(1).unwrap();
        assert_eq!(pending.complete(cookie, Ok(message(1))), Err(PeerMisbehaviour::Cookie));
        assert_eq!(pending.complete(younger, Ok(message(2))), Ok(1));
    }

    #[test]
    fn made_up_cookies_are_refused() {
        let pending = Pending::new(2);
        let (_, cookie) = pending.begin(0).unwrap();
        for wrong in [0, 1, cookie ^ 1, cookie + 2, cookie + (1 << SLOT_BITS), u64::MAX] {
            assert_eq!(pending.complete(wrong, Ok(message(0))), Err(PeerMisbehaviour::Cookie), "{wrong:#x}");
        }
    }

    #[test]
    fn failure_ends_all_and_frees_the_abandoned() {
        let pending = Pending::new(2);
        let (first, _) = pending.begin(0).unwrap();
        let (second, _) = pending.begin(1).unwrap();
        pending.abandon(second);
        pending.fail_all(CallError::Closed);
        assert_eq!(pending.finish(first, Waker::noop()), Some(Err(CallError::Closed)));
        assert!(pending.begin(2).is_some() && pending.begin(3).is_some() && pending.begin(4).is_none());
    }
}
