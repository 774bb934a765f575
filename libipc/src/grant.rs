//! Multishot calls on the server's side: how many completions each may send ([`crate::stream`] draws the exchange).

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::task::Waker;

use crate::error::PeerMisbehaviour;

struct Grant {
    cookie: u64,
    left: u64,
    waiting: Option<Waker>,
}

/// The multishot calls of one channel.
#[derive(Default)]
pub(crate) struct Grants {
    grants: RefCell<Vec<Grant>>,
    closed: Cell<bool>,
}

impl Grants {
    /// The call with `cookie` was taken. It may send nothing yet.
    pub(crate) fn begin(&self, cookie: u64) {
        self.grants.borrow_mut().push(Grant { cookie, left: 0, waiting: None });
    }

    /// The client allows `more` completions of the call with `cookie`; a call that has ended meanwhile needs none.
    ///
    /// # Errors
    /// If that makes more than the ring's `entries`.
    pub(crate) fn add(&self, cookie: u64, more: u64, entries: u64) -> Result<(), PeerMisbehaviour> {
        let waker = {
            let mut grants = self.grants.borrow_mut();
            let Some(grant) = grants.iter_mut().find(|grant| grant.cookie == cookie) else { return Ok(()) };
            let left = grant.left.checked_add(more).filter(|left| *left < entries).ok_or(PeerMisbehaviour::Window)?;
            grant.left = left;
            grant.waiting.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Takes one leave. False if there is none.
    pub(crate) fn take(&self, cookie: u64) -> bool {
        let mut grants = self.grants.borrow_mut();
        match grants.iter_mut().find(|grant| grant.cookie == cookie) {
            Some(grant) if grant.left > 0 => {
                grant.left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the call with `cookie` needs not wait for leave; otherwise `waker` will be called.
    pub(crate) fn poll(&self, cookie: u64, waker: &Waker) -> bool {
        let mut grants = self.grants.borrow_mut();
        match grants.iter_mut().find(|grant| grant.cookie == cookie) {
            Some(grant) if grant.left == 0 && !self.closed.get() => {
                grant.waiting = Some(waker.clone());
                false
            }
            _ => true,
        }
    }

    /// The call with `cookie` has ended.
    pub(crate) fn end(&self, cookie: u64) {
        let ended: Vec<_> = self.grants.borrow_mut().extract_if(.., |grant| grant.cookie == cookie).collect();
        drop(ended); // outside the borrow
    }

    /// The channel is closed: nobody waits for leave any more.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        let wakers: Vec<_> = self.grants.borrow_mut().iter_mut().filter_map(|grant| grant.waiting.take()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The channel is open again.
    pub(crate) fn clear(&self) {
        self.closed.set(false);
        self.grants.borrow_mut().clear();
    }

    /// Calls `visit` with the waker of everybody who waits.
    pub(crate) fn show(&self, visit: &mut dyn FnMut(&Waker)) {
        self.grants.borrow().iter().filter_map(|grant| grant.waiting.as_ref()).for_each(visit);
    }

    pub(crate) fn len(&self) -> usize {
        self.grants.borrow().len()
    }
}
