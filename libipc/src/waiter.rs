//! Who waits: wakers that are kept from one wait to the next.
//!
//! A task that waits for one thing after another mostly waits in the same place with the same waker. So a waker stays where it
//! was put when it is woken, and registering it again compares two words instead of cloning and dropping a reference.
//!
//! No borrow is held while a waker is called or dropped: either may run foreign code, which may come back here.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::task::Waker;

use crate::executor;

/// A place for one waker.
pub(crate) struct Waiter(Cell<Option<Waker>>);

impl Waiter {
    pub(crate) fn new() -> Self {
        Self(Cell::new(None))
    }

    /// Calls the waker registered last.
    #[inline] // hot path: mostly a waker of this crate's executor, which is a bit to set
    pub(crate) fn wake(&self) {
        // SAFETY: the cell is reached from one thread only (it is not Sync), and nothing runs while the reference lives that could
        // replace the waker: `wake_own` sets a bit.
        let woken = unsafe { &*self.0.as_ptr() }.as_ref().is_none_or(executor::wake_own);
        if !woken {
            self.wake_foreign();
        }
    }

    #[cold]
    fn wake_foreign(&self) {
        if let Some(waker) = self.0.take() {
            waker.wake_by_ref();
            // Unless waking registered another: then the newer one stays.
            match self.0.take() {
                None => self.0.set(Some(waker)),
                newer => self.0.set(newer),
            }
        }
    }

    /// From now on `waker` waits here.
    #[inline] // hot path: two loads and two comparisons
    pub(crate) fn register(&self, waker: &Waker) {
        if !self.is(waker) {
            self.replace(waker);
        }
    }

    /// Whether `waker` waits here already.
    #[inline] // as `register`
    fn is(&self, waker: &Waker) -> bool {
        // SAFETY: the cell is reached from one thread only (it is not Sync), and nothing runs while the reference lives that
        // could replace the waker: `will_wake` compares two words.
        unsafe { &*self.0.as_ptr() }.as_ref().is_some_and(|kept| kept.will_wake(waker))
    }

    #[cold]
    fn replace(&self, waker: &Waker) {
        self.0.set(Some(waker.clone()));
    }

    /// Shows the waker that was registered last, called since or not.
    #[cold]
    pub(crate) fn show(&self, visit: &mut dyn FnMut(&Waker)) {
        if let Some(waker) = self.0.take() {
            visit(&waker);
            if let Some(newer) = self.0.replace(Some(waker)) {
                self.0.set(Some(newer));
            }
        }
    }
}

/// Any number of tasks that wait for the same thing, to be woken one at a time. The first has a place of its own: mostly there
/// is no other.
pub(crate) struct Waiting {
    first: Waiter,
    first_waits: Cell<bool>,
    others: RefCell<VecDeque<Waker>>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self { first: Waiter::new(), first_waits: Cell::new(false), others: RefCell::new(VecDeque::new()) }
    }

    /// `waker` waits, if it did not already.
    #[inline] // hot path: two comparisons and a store
    pub(crate) fn add(&self, waker: &Waker) {
        if self.first.is(waker) {
            self.first_waits.set(true);
        } else {
            self.add_other(waker);
        }
    }

    #[cold]
    fn add_other(&self, waker: &Waker) {
        if !self.first_waits.replace(true) {
            self.first.replace(waker);
            return;
        }
        let mut others = self.others.borrow_mut();
        if !others.iter().any(|other| other.will_wake(waker)) {
            others.push_back(waker.clone());
        }
    }

    /// Wakes one of those who wait, if any does.
    #[inline] // hot path
    pub(crate) fn wake_one(&self) {
        if self.first_waits.replace(false) {
            self.first.wake();
        } else {
            self.wake_other();
        }
    }

    /// Whether anybody waits.
    #[inline] // once per round
    pub(crate) fn any(&self) -> bool {
        self.first_waits.get() || !self.others.borrow().is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first_waits.get()) + self.others.borrow().len()
    }

    /// Shows everybody who waits.
    #[cold]
    pub(crate) fn show(&self, visit: &mut dyn FnMut(&Waker)) {
        if self.first_waits.get() {
            self.first.show(visit);
        }
        self.others.borrow().iter().for_each(visit);
    }

    #[cold]
    fn wake_other(&self) {
        let waker = self.others.borrow_mut().pop_front();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::executor::ReadySet;
    use alloc::vec::Vec;

    #[test]
    fn each_who_waits_is_woken_once_in_turn() {
        let tasks = ReadySet::new(3);
        let mut wakers = Vec::new();
        (0..3).for_each(|task| tasks.set(task));
        tasks.run(|_, waker| wakers.push(waker.clone()));
        let waiting = Waiting::new();
        let wake_one = || {
            let mut woken = Vec::new();
            waiting.wake_one();
            tasks.run(|task, _| woken.push(task));
            woken
        };
        assert_eq!(wake_one(), []);
        for waker in wakers.iter().chain(&wakers) {
            waiting.add(waker); // twice each: waiting again changes nothing
        }
        assert_eq!([wake_one(), wake_one(), wake_one(), wake_one()], [vec![0], vec![1], vec![2], vec![]]);
        // The first place goes to whoever comes first.
        waiting.add(&wakers[2]);
        waiting.add(&wakers[0]);
        assert_eq!([wake_one(), wake_one(), wake_one()], [vec![2], vec![0], vec![]]);
    }
}
