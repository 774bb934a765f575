//! Multishot calls on the server's side: how many completions each may send ([`crate::stream`] draws the exchange).

use alloc::vec::Vec;
use core::cell::RefCell;
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
}

impl Grants {
    /// The call with `cookie` was seen or taken, whichever is first. It may send nothing yet.
    pub(crate) fn begin(&self, cookie: u64) {
        let mut grants = self.grants.borrow_mut();
        if grants.iter().any(|grant| grant.cookie == cookie) {
            return;
        }
        grants.push(Grant { cookie, left: 0, waiting: None });
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
            Some(grant) if grant.left == 0 => {
                grant.waiting = Some(waker.clone());
                false
            }
            _ => true,
        }
    }

    /// Wakes who waits for leave for the call with `cookie`.
    pub(crate) fn nudge(&self, cookie: u64) {
        let waker = self
            .grants
            .borrow_mut()
            .iter_mut()
            .find(|grant| grant.cookie == cookie)
            .and_then(|grant| grant.waiting.take());
        waker.into_iter().for_each(Waker::wake);
    }

    /// The call with `cookie` has ended.
    pub(crate) fn end(&self, cookie: u64) {
        let ended: Vec<_> = self.grants.borrow_mut().extract_if(.., |grant| grant.cookie == cookie).collect();
        drop(ended); // outside the borrow
    }

    /// The channel is closed: nobody waits for leave any more, and nobody gets it.
    pub(crate) fn close(&self) {
        let ended = self.grants.take();
        ended.into_iter().filter_map(|grant| grant.waiting).for_each(Waker::wake);
    }

    /// Calls `visit` with the waker of everybody who waits.
    pub(crate) fn show(&self, visit: &mut dyn FnMut(&Waker)) {
        self.grants.borrow().iter().filter_map(|grant| grant.waiting.as_ref()).for_each(visit);
    }

    pub(crate) fn len(&self) -> usize {
        self.grants.borrow().len()
    }
}
