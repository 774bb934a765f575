//! What the server may still use although nobody waits for its call any more.
//!
//! A call whose future was dropped goes on until the server ends it. What was lent with it, a buffer of the arena or the credits of
//! a multishot call, is kept here until then: only then can it be lent again without two owners.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::arena::Buffer;
use crate::pending::Pending;

/// What a call given up has left behind.
pub(crate) enum Held {
    /// The buffer that it named.
    Buffer(Buffer),
    /// Slots that stand for completions which may be under way.
    Credits(Box<[u16]>),
}

/// Things of calls given up, by cookie.
#[derive(Default)]
pub(crate) struct Custody {
    kept: RefCell<Vec<(u64, Held)>>,
}

impl Custody {
    /// Keeps `held` until the call with `cookie` has ended.
    pub(crate) fn keep(&self, cookie: u64, held: Held) {
        self.kept.borrow_mut().push((cookie, held));
    }

    /// Gives back what belongs to calls that have ended.
    pub(crate) fn reap(&self, pending: &Pending) {
        let ended: Vec<_> = self.kept.borrow_mut().extract_if(.., |(cookie, _)| !pending.is_owed(*cookie)).collect();
        for (_, held) in ended {
            match held {
                Held::Buffer(buffer) => drop(buffer),
                Held::Credits(slots) => slots.iter().for_each(|slot| pending.release(*slot)),
            }
        }
    }

    /// How many things are kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.borrow().len()
    }
}
