//! Linked calls on the server's side: each runs only when the one before it has succeeded.
//!
//! ```text
//!   taken: first of the chain ─> handed out      the others ─> rest
//!   done(first, succeeded) ─> the next of `rest` is handed out ... the last is an ordinary call
//!   done(first, failed)    ─> all of `rest` are cancelled
//!   cut(one of `rest`)     ─> it and all behind it are cancelled
//! ```
//!
//! The client writes the entries of a chain last first, so a server that sees the first sees them all and takes them at once: a chain
//! that waits does not hold up what is behind it in the ring.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::entry::{Kind, Packet};

/// A call that was handed out, and what runs if it succeeds.
struct Chain {
    running: u64,
    rest: VecDeque<Packet>,
}

/// The chains of one channel.
#[derive(Default)]
pub(crate) struct Chains {
    chains: RefCell<Vec<Chain>>,
}

impl Chains {
    /// The call with cookie `running` was handed out; `rest` is linked behind it.
    pub(crate) fn begin(&self, running: u64, rest: VecDeque<Packet>) {
        self.chains.borrow_mut().push(Chain { running, rest });
    }

    /// The linked call with this cookie has succeeded: the next of its chain.
    pub(crate) fn next(&self, cookie: u64) -> Option<Packet> {
        let mut chains = self.chains.borrow_mut();
        let index = chains.iter().position(|chain| chain.running == cookie)?;
        let next = chains[index].rest.pop_front();
        match next {
            Some(next) if next.kind == Kind::Linked => chains[index].running = next.cookie,
            // The last of the chain, or what is left of one that was cut.
            Some(_) | None => drop(chains.swap_remove(index)),
        }
        next
    }

    /// The linked call with this cookie has failed: the cookies of all that were behind it.
    pub(crate) fn break_at(&self, cookie: u64) -> Vec<u64> {
        let mut chains = self.chains.borrow_mut();
        match chains.iter().position(|chain| chain.running == cookie) {
            Some(index) => chains.swap_remove(index).rest.iter().map(|packet| packet.cookie).collect(),
            None => Vec::new(),
        }
    }

    /// The call with this cookie is not wanted: its cookie and those of all behind it, if its turn has not come.
    pub(crate) fn cut(&self, cookie: u64) -> Vec<u64> {
        for chain in self.chains.borrow_mut().iter_mut() {
            if let Some(place) = chain.rest.iter().position(|packet| packet.cookie == cookie) {
                return chain.rest.drain(place..).map(|packet| packet.cookie).collect();
            }
        }
        Vec::new()
    }

    /// Forgets all of them; nobody can be answered any more.
    pub(crate) fn clear(&self) {
        self.chains.borrow_mut().clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.chains.borrow().len()
    }
}
