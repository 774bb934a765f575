//! Timers: futures that resolve at a time.
//!
//! A heap of deadlines, the earliest first; equal ones in the order in which they were set, so that a run is repeatable. Each entry
//! knows its place, so a deadline that is not needed any more, which is what becomes of most, leaves at once.
//!
//! Time comes from the environment ([`Clock`]): a counter to read, and an alarm that ends a wait in the kernel. The counter is read once a
//! round while a timer is set, and never otherwise; the alarm is set when the executor goes to block.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::bell::Doze;
use crate::executor::{Link, Wait};

/// The time of an environment, in ticks of its own.
pub trait Clock {
    /// Ticks since some moment before the program started.
    fn now(&self) -> u64;

    /// Ticks in a second.
    fn hz(&self) -> u64;

    /// From `at` on, waiting in the kernel ends ([`crate::port::Port::park`]), soon if not at once; a new alarm takes the place of the last.
    fn alarm(&self, at: u64);
}

/// No place in the heap.
const OUT: usize = usize::MAX;

/// A deadline that somebody has set.
struct Entry {
    at: u64,
    /// Orders equal deadlines.
    order: u64,
    place: usize,
    waker: Option<Waker>,
}

#[derive(Default)]
struct Heap {
    entries: Vec<Entry>,
    /// Entries not in use.
    free: Vec<usize>,
    /// Indices of entries; each is not after its children `2 i + 1` and `2 i + 2`.
    places: Vec<usize>,
    order: u64,
}

impl Heap {
    fn insert(&mut self, at: u64, waker: &Waker) -> usize {
        self.order += 1;
        let entry = Entry { at, order: self.order, place: self.places.len(), waker: Some(waker.clone()) };
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.places.push(index);
        self.rise(self.places.len() - 1);
        index
    }

    /// Takes the entry out of the order; it keeps its number until [`Heap::forget`].
    fn take_out(&mut self, index: usize) {
        let place = core::mem::replace(&mut self.entries[index].place, OUT);
        if place == OUT {
            return;
        }
        let last = self.places.pop().expect("an entry that has a place is in the heap");
        if last != index {
            self.put(place, last);
            self.rise(place);
            self.sink(self.entries[last].place);
        }
    }

    fn forget(&mut self, index: usize) -> Option<Waker> {
        self.take_out(index);
        self.free.push(index);
        self.entries[index].waker.take()
    }

    fn earliest(&self) -> Option<u64> {
        self.places.first().map(|index| self.entries[*index].at)
    }

    /// The waker of the earliest entry, if it is due.
    fn due(&mut self, now: u64) -> Option<Option<Waker>> {
        let first = *self.places.first()?;
        if self.entries[first].at > now {
            return None;
        }
        self.take_out(first);
        Some(self.entries[first].waker.take())
    }

    fn before(&self, left: usize, right: usize) -> bool {
        let key = |index: usize| (self.entries[index].at, self.entries[index].order);
        key(left) < key(right)
    }

    fn put(&mut self, place: usize, index: usize) {
        self.places[place] = index;
        self.entries[index].place = place;
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            let (index, above) = (self.places[place], self.places[parent]);
            if !self.before(index, above) {
                return;
            }
            self.put(parent, index);
            self.put(place, above);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1..self.places.len()).take(2);
            let least = |left, right| if self.before(self.places[right], self.places[left]) { right } else { left };
            let Some(child) = children.reduce(least) else { return };
            let (index, below) = (self.places[place], self.places[child]);
            if !self.before(below, index) {
                return;
            }
            self.put(place, below);
            self.put(child, index);
            place = child;
        }
    }
}

/// The timers of an executor; attach it as a link.
pub struct Timers<'c> {
    clock: &'c dyn Clock,
    heap: RefCell<Heap>,
    /// The earliest deadline; [`u64::MAX`] if there is none.
    earliest: Cell<u64>,
}

impl<'c> Timers<'c> {
    /// No timer is set.
    pub fn new(clock: &'c dyn Clock) -> Self {
        Self { clock, heap: RefCell::default(), earliest: Cell::new(u64::MAX) }
    }

    /// Ticks of the clock.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Ticks of the clock in `microseconds`, rounded up.
    pub fn ticks(&self, microseconds: u64) -> u64 {
        let ticks = (u128::from(microseconds) * u128::from(self.clock.hz())).div_ceil(1_000_000);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Resolves when the clock shows `tick` or later.
    pub fn at(&self, tick: u64) -> Timer<'_, 'c> {
        Timer { timers: self, at: tick, entry: None }
    }

    /// Resolves `ticks` from now.
    pub fn sleep(&self, ticks: u64) -> Timer<'_, 'c> {
        self.at(self.now().saturating_add(ticks))
    }

    /// What `future` resolves to, or `None` if the clock shows `tick` before; the future is dropped then, which cancels a call.
    pub async fn deadline<F: Future>(&self, tick: u64, future: F) -> Option<F::Output> {
        let mut timer = self.at(tick);
        let mut future = core::pin::pin!(future);
        core::future::poll_fn(move |context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Pin::new(&mut timer).poll(context).map(|()| None),
        })
        .await
    }

    /// Timers that are set.
    pub fn set(&self) -> usize {
        self.heap.borrow().places.len()
    }

    fn refresh(&self) {
        self.earliest.set(self.heap.borrow().earliest().unwrap_or(u64::MAX));
    }

    fn is_due(&self) -> bool {
        let earliest = self.earliest.get();
        earliest != u64::MAX && self.clock.now() >= earliest
    }
}

impl Link for Timers<'_> {
    fn poll(&self, _: u64) -> bool {
        if !self.is_due() {
            return false;
        }
        let now = self.clock.now();
        loop {
            // Nothing is borrowed while a waker runs.
            let due = self.heap.borrow_mut().due(now);
            match due {
                Some(Some(waker)) => waker.wake(),
                Some(None) => {}
                None => break,
            }
        }
        self.refresh();
        true
    }

    fn publish(&self) {}

    fn doze(&self, doze: Doze) {
        if doze == Doze::Blocked && self.earliest.get() != u64::MAX {
            self.clock.alarm(self.earliest.get());
        }
    }

    fn is_ready(&self) -> bool {
        self.is_due()
    }

    fn waits(&self, visit: &mut dyn FnMut(Wait, &Waker)) {
        for entry in &self.heap.borrow().entries {
            if let (Some(waker), true) = (&entry.waker, entry.place != OUT) {
                visit(Wait::Time { at: entry.at }, waker);
            }
        }
    }
}

/// A time to come. Dropping it takes it back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Timer<'t, 'c> {
    timers: &'t Timers<'c>,
    at: u64,
    /// Its number in the heap, once it was polled.
    entry: Option<usize>,
}

impl Future for Timer<'_, '_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timers.clock.now() >= self.at {
            return Poll::Ready(());
        }
        match self.entry {
            None => {
                self.entry = Some(self.timers.heap.borrow_mut().insert(self.at, context.waker()));
                self.timers.refresh();
            }
            Some(index) => {
                let old = self.timers.heap.borrow_mut().entries[index].waker.replace(context.waker().clone());
                drop(old); // outside the borrow
            }
        }
        Poll::Pending
    }
}

impl Drop for Timer<'_, '_> {
    fn drop(&mut self) {
        if let Some(index) = self.entry {
            let waker = self.timers.heap.borrow_mut().forget(index);
            self.timers.refresh();
            drop(waker);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Insertions, removals and expiries against a sorted list.
        #[test]
        fn the_heap_gives_what_a_sorted_list_gives(steps in prop::collection::vec((0u8..4, 0u64..20), 1..200)) {
            let mut heap = Heap::default();
            let mut model: Vec<(u64, u64, usize)> = Vec::new();
            for (order, (step, value)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let index = heap.insert(value, Waker::noop());
                        prop_assert!(model.iter().all(|known| known.2 != index), "a number given twice");
                        model.push((value, order as u64, index));
                        model.sort();
                    }
                    2 if !model.is_empty() => {
                        let (_, _, index) = model.remove(value as usize % model.len());
                        heap.forget(index);
                    }
                    _ => {
                        let first = heap.places.first().copied();
                        let due = heap.due(value).is_some();
                        prop_assert_eq!(due, model.first().is_some_and(|first| first.0 <= value));
                        if due {
                            let (_, _, index) = model.remove(0);
                            prop_assert_eq!(first, Some(index));
                            heap.forget(index);
                        }
                    }
                }
                prop_assert_eq!(heap.earliest(), model.first().map(|first| first.0));
            }
        }
    }
}
