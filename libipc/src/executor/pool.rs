//! The tasks: a fixed number of places, each with its future.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::executor::PoolFull;
use crate::executor::ready::ReadySet;

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The tasks of an executor.
pub(crate) struct Pool<'a> {
    /// A place is empty while it is free and while its task runs.
    places: Box<[Cell<Option<Task<'a>>>]>,
    free: RefCell<Vec<usize>>,
    live: Cell<usize>,
    ready: ReadySet,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            places: (0..capacity).map(|_| Cell::new(None)).collect(),
            free: RefCell::new((0..capacity).rev().collect()),
            live: Cell::new(0),
            ready: ReadySet::new(capacity),
        }
    }

    pub(crate) fn spawn<F: Future<Output = ()> + 'a>(&self, task: F) -> Result<(), PoolFull<F>> {
        let Some(index) = self.free.borrow_mut().pop() else {
            return Err(PoolFull(task));
        };
        self.live.set(self.live.get() + 1);
        self.places[index].set(Some(Box::pin(task)));
        self.ready.set(index);
        Ok(())
    }

    /// Tasks that are not done.
    #[inline] // one load
    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    pub(crate) fn any_ready(&self) -> bool {
        self.ready.any()
    }

    /// Polls every task that was ready when its word was taken; returns how many.
    pub(crate) fn run_ready(&self) -> u64 {
        let mut polls = 0;
        self.ready.run(|index, waker| {
            polls += 1;
            self.poll(index, waker);
        });
        polls
    }

    #[inline] // its only caller is the loop above
    fn poll(&self, index: usize, waker: &Waker) {
        let place = &self.places[index];
        // A stale wake finds no task; a wake of a place used again is a spurious one for the new task, which futures allow.
        let Some(mut task) = place.take() else {
            return;
        };
        match task.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Pending => place.set(Some(task)),
            Poll::Ready(()) => self.finish(index),
        }
    }

    #[cold]
    fn finish(&self, index: usize) {
        self.live.set(self.live.get() - 1);
        self.free.borrow_mut().push(index);
    }
}
