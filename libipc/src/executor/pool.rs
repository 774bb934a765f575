//! The tasks: a fixed number of places, each with its future.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::executor::PoolFull;
use crate::executor::ready::ReadySet;

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Places of one level.
struct Level {
    start: usize,
    /// Places not in use.
    free: RefCell<Vec<usize>>,
}

/// The tasks of an executor.
pub(crate) struct Pool<'a> {
    /// A place is empty while it is free and while its task runs.
    places: Box<[Cell<Option<Task<'a>>>]>,
    names: Box<[Cell<&'static str>]>,
    /// When each task was polled last, while that is recorded.
    polled: OnceCell<Box<[Cell<u64>]>>,
    /// The most urgent first.
    levels: Box<[Level]>,
    live: Cell<usize>,
    ready: ReadySet,
}

impl<'a> Pool<'a> {
    /// A pool of levels with so many places each, the most urgent first.
    pub(crate) fn new(capacities: &[usize]) -> Self {
        let level = |(start, capacity): (usize, &usize)| Level {
            start,
            free: RefCell::new((start..start + capacity).rev().collect()),
        };
        let levels: Box<[Level]> = ReadySet::starts(capacities).zip(capacities).map(level).collect();
        let places = levels.iter().zip(capacities).map(|(level, capacity)| level.start + capacity).max().unwrap_or(0);
        Self {
            places: (0..places).map(|_| Cell::new(None)).collect(),
            names: (0..places).map(|_| Cell::new("")).collect(),
            polled: OnceCell::new(),
            levels,
            live: Cell::new(0),
            ready: ReadySet::with_levels(capacities),
        }
    }

    /// Level of the tasks whose level nobody names: the least urgent.
    pub(crate) fn default_level(&self) -> usize {
        self.levels.len() - 1
    }

    /// # Panics
    /// If there is no such level.
    pub(crate) fn spawn<F: Future<Output = ()> + 'a>(
        &self,
        level: usize,
        name: &'static str,
        task: F,
    ) -> Result<(), PoolFull<F>> {
        let Some(index) = self.levels[level].free.borrow_mut().pop() else {
            return Err(PoolFull(task));
        };
        self.names[index].set(name);
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

    #[inline] // once per round
    pub(crate) fn any_ready(&self) -> bool {
        self.ready.any()
    }

    /// Polls every task that was ready when its word was taken; returns how many.
    #[inline(always)] // as `ReadySet::run`
    pub(crate) fn run_ready(&self) -> u64 {
        let mut polls = 0;
        self.ready.run(|index, waker| {
            polls += 1;
            self.poll(index, waker);
        });
        polls
    }

    /// As [`Pool::run_ready`], and records that it was at `now`.
    #[cold]
    pub(crate) fn run_ready_at(&self, now: u64) -> u64 {
        let polled = self.polled.get_or_init(|| self.places.iter().map(|_| Cell::new(now)).collect());
        let mut polls = 0;
        self.ready.run(|index, waker| {
            polls += 1;
            polled[index].set(now);
            self.poll(index, waker);
        });
        polls
    }

    /// The tasks that are not done, in the order in which they run.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskState> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let task = place.take();
            let there = task.is_some();
            place.set(task);
            there.then(|| TaskState {
                index,
                level: self.level_of(index),
                name: self.names[index].get(),
                ready: self.ready.is_set(index),
                polled: self.polled.get().map(|polled| polled[index].get()),
            })
        })
    }

    /// The task that `waker` wakes.
    pub(crate) fn task_of(&self, waker: &Waker) -> Option<usize> {
        self.ready.task_of(waker)
    }

    fn level_of(&self, index: usize) -> usize {
        self.levels.iter().rposition(|level| level.start <= index).expect("the first level starts at 0")
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
        self.levels[self.level_of(index)].free.borrow_mut().push(index);
    }
}

/// What is known of a task from outside.
pub(crate) struct TaskState {
    pub(crate) index: usize,
    pub(crate) level: usize,
    pub(crate) name: &'static str,
    pub(crate) ready: bool,
    /// When it was polled last, if that is recorded.
    pub(crate) polled: Option<u64>,
}
