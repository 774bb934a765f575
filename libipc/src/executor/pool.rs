//! The tasks: a fixed number of places, each with its future and its waker.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::executor::PoolFull;
use crate::executor::ready::{ReadyBit, ReadySet};

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

struct Place<'a> {
    /// Absent while the place is free and while the task runs.
    task: Cell<Option<Task<'a>>>,
    waker: Waker,
}

impl Wake for ReadyBit {
    fn wake(self: Arc<Self>) {
        self.set();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
    }
}

pub(crate) struct Pool<'a> {
    places: Box<[Place<'a>]>,
    free: RefCell<Vec<usize>>,
    ready: ReadySet,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(capacity: usize) -> Self {
        let ready = ReadySet::new(capacity);
        let place = |index| Place { task: Cell::new(None), waker: Waker::from(Arc::new(ready.bit(index))) };
        Self { places: (0..capacity).map(place).collect(), free: RefCell::new((0..capacity).rev().collect()), ready }
    }

    pub(crate) fn spawn<F: Future<Output = ()> + 'a>(&self, task: F) -> Result<(), PoolFull<F>> {
        let Some(index) = self.free.borrow_mut().pop() else {
            return Err(PoolFull(task));
        };
        self.places[index].task.set(Some(Box::pin(task)));
        self.places[index].waker.wake_by_ref();
        Ok(())
    }

    /// Tasks that are not done.
    pub(crate) fn live(&self) -> usize {
        self.places.len() - self.free.borrow().len()
    }

    pub(crate) fn any_ready(&self) -> bool {
        self.ready.any()
    }

    /// Polls every task that was ready when its word was taken; returns how many.
    pub(crate) fn run_ready(&self) -> u64 {
        let mut polls = 0;
        for word in 0..self.ready.words() {
            let mut bits = self.ready.take(word);
            let mut index = word * 64;
            while bits != 0 {
                if bits & 1 != 0 {
                    polls += 1;
                    self.poll(index);
                }
                bits >>= 1;
                index += 1;
            }
        }
        polls
    }

    #[inline] // its only caller is the loop above
    fn poll(&self, index: usize) {
        let place = &self.places[index];
        // A stale wake finds no task; a wake of a place used again is a spurious one for the new task, which futures allow.
        let Some(mut task) = place.task.take() else {
            return;
        };
        match task.as_mut().poll(&mut Context::from_waker(&place.waker)) {
            Poll::Pending => place.task.set(Some(task)),
            Poll::Ready(()) => self.free.borrow_mut().push(index),
        }
    }
}
