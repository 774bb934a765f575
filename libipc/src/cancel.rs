//! Requests that nobody waits for any more, as the client has told.
//!
//! By slot of the client's table, so that it can be asked about each call in flight however many others come and go. It is a hint:
//! a client may lie about its own calls only.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::task::Waker;

use crate::error::PeerMisbehaviour;

/// The cancellations of one channel.
#[derive(Default)]
pub(crate) struct Cancellations {
    /// The cookie cancelled last, by slot; empty until the first comes.
    cookies: RefCell<Vec<u64>>,
    /// The channel is closed: everything is cancelled.
    all: Cell<bool>,
    waiting: RefCell<Vec<(u64, Waker)>>,
}

impl Cancellations {
    /// The client does not want the call with `cookie`.
    ///
    /// # Errors
    /// If it names a slot that a ring of `entries` has not.
    pub(crate) fn note(&self, cookie: u64, entries: usize) -> Result<(), PeerMisbehaviour> {
        let slot = usize::from(cookie as u16);
        if slot >= entries {
            return Err(PeerMisbehaviour::Cookie);
        }
        {
            let mut cookies = self.cookies.borrow_mut();
            if cookies.is_empty() {
                cookies.resize(entries, 0);
            }
            cookies[slot] = cookie;
        }
        self.wake(|waiting| waiting == cookie);
        Ok(())
    }

    /// The channel is closed.
    pub(crate) fn note_all(&self) {
        self.all.set(true);
        self.wake(|_| true);
    }

    /// The channel is open again, for calls with other cookies.
    pub(crate) fn clear(&self) {
        self.all.set(false);
        self.cookies.borrow_mut().clear();
    }

    /// Whether the call with `cookie` is cancelled.
    pub(crate) fn contains(&self, cookie: u64) -> bool {
        self.all.get() || self.cookies.borrow().get(usize::from(cookie as u16)) == Some(&cookie)
    }

    /// `waker` waits for the cancellation of `cookie`.
    pub(crate) fn add(&self, cookie: u64, waker: &Waker) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|(known, other)| *known == cookie && other.will_wake(waker)) {
            waiting.push((cookie, waker.clone()));
        }
    }

    /// Nobody waits for the cancellation of `cookie` any more.
    pub(crate) fn remove(&self, cookie: u64) {
        let removed: Vec<_> = self.waiting.borrow_mut().extract_if(.., |(known, _)| *known == cookie).collect();
        drop(removed); // outside the borrow
    }

    /// Calls `visit` with the waker of everybody who waits.
    pub(crate) fn show(&self, visit: &mut dyn FnMut(&Waker)) {
        self.waiting.borrow().iter().for_each(|(_, waker)| visit(waker));
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    fn wake(&self, which: impl Fn(u64) -> bool) {
        let woken: Vec<_> = self.waiting.borrow_mut().extract_if(.., |(cookie, _)| which(*cookie)).collect();
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
