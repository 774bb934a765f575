//! Which tasks are ready: one bit each, and wakers that are no more than the address of such a bit.
//!
//! Waking sets the task's bit, running takes a whole word of bits at once. So a task is queued at most once however often it
//! is woken, and waking never fails. A wake during the task's own run sets the bit again and so runs it in the next round.
//!
//! ```text
//!   one word of the set, aligned to 64 bytes             a waker of task n
//!   0        8                             64            data = address of the word + n
//!   | bits   | unused                      |             bit  = data % 64, word = data - data % 64
//! ```
//!
//! A set may have levels, the most urgent first: a run takes the ready tasks of one level only, so that between two runs everything is looked at
//! anew, and a less urgent task runs when no other is ready.
//!
//! So 64 tasks share one cache line, and waking touches nothing else. With a heap object for each waker, 32 tasks took 16
//! lines of a cache of 256.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, Range};
use core::task::{RawWaker, RawWakerVTable, Waker};

use crate::sync::{AtomicU64, Ordering};

/// Tasks of one word.
const BITS: usize = 64;

/// The ready bits of 64 tasks. Its address is a multiple of 64, and the 63 addresses behind it are inside it.
#[repr(C, align(64))]
struct Word {
    bits: AtomicU64,
}

const _: () = assert!(size_of::<Word>() >= BITS && align_of::<Word>() >= BITS);

/// The ready bits of a pool.
pub(crate) struct ReadySet {
    words: Box<[Arc<Word>]>,
    /// For each level but the last, the word behind its last one.
    ends: Box<[usize]>,
}

impl ReadySet {
    #[cfg(all(test, not(loom)))]
    pub(crate) fn new(tasks: usize) -> Self {
        Self::with_levels(&[tasks])
    }

    /// A set of levels of so many tasks, the most urgent first; each begins at a word.
    pub(crate) fn with_levels(tasks: &[usize]) -> Self {
        let mut ends: Vec<usize> = Self::starts(tasks).skip(1).map(|start| start / BITS).collect();
        let words = ends.pop().unwrap_or(0);
        let word = |_| Arc::new(Word { bits: AtomicU64::new(0) });
        Self { words: (0..words).map(word).collect(), ends: ends.into() }
    }

    /// Index of the first task of each level, and behind the last.
    pub(crate) fn starts(tasks: &[usize]) -> impl Iterator<Item = usize> {
        let mut next = 0;
        core::iter::once(0).chain(tasks.iter().map(move |tasks| {
            next += tasks.next_multiple_of(BITS);
            next
        }))
    }

    /// The task that `waker` wakes, if it is one of this set.
    pub(crate) fn task_of(&self, waker: &Waker) -> Option<usize> {
        let (data, word) = (waker.data(), word(waker.data()));
        let number = self.words.iter().position(|known| core::ptr::eq(Arc::as_ptr(known), word))?;
        core::ptr::eq(waker.vtable(), &VTABLE).then(|| number * BITS + data.addr() % BITS)
    }

    /// Whether the task is ready.
    pub(crate) fn is_set(&self, index: usize) -> bool {
        self.words[index / BITS].bits.load(Ordering::Relaxed) >> (index % BITS) & 1 != 0
    }

    /// Makes task `index` ready.
    pub(crate) fn set(&self, index: usize) {
        self.words[index / BITS].bits.fetch_or(1 << (index % BITS), Ordering::Release);
    }

    /// Whether any task is ready.
    #[inline] // once per round
    pub(crate) fn any(&self) -> bool {
        self.words.iter().any(|word| word.bits.load(Ordering::Relaxed) != 0)
    }

    /// Takes the ready tasks of the most urgent level that has any, word by word, and calls `run` with each one's index and waker.
    #[inline(always)] // once per round: a call of its own saves and restores thirteen registers
    pub(crate) fn run(&self, mut run: impl FnMut(usize, &Waker)) {
        let words = self.most_urgent();
        let mut first = words.start * BITS;
        for word in &self.words[words] {
            if word.bits.load(Ordering::Relaxed) != 0 {
                // Acquire: a task sees what its waker saw.
                let mut bits = word.bits.swap(0, Ordering::Acquire);
                let mut index = first;
                while bits != 0 {
                    if bits & 1 != 0 {
                        run(index, &BorrowedWaker::new(word, index % BITS));
                    }
                    bits >>= 1;
                    index += 1;
                }
            }
            first += BITS;
        }
    }

    /// The words of the level that runs: the most urgent with a ready task, or the last.
    #[inline] // mostly there is one level, and nothing to choose
    fn most_urgent(&self) -> Range<usize> {
        let mut start = 0;
        for end in &self.ends {
            if self.words[start..*end].iter().any(|word| word.bits.load(Ordering::Relaxed) != 0) {
                return start..*end;
            }
            start = *end;
        }
        start..self.words.len()
    }
}

/// A waker that holds no reference count of its own; it borrows the word's.
struct BorrowedWaker<'w> {
    waker: ManuallyDrop<Waker>,
    word: PhantomData<&'w Arc<Word>>,
}

impl<'w> BorrowedWaker<'w> {
    #[inline] // two registers
    fn new(word: &'w Arc<Word>, bit: usize) -> Self {
        debug_assert!(bit < BITS);
        let data = Arc::as_ptr(word).wrapping_byte_add(bit).cast();
        // SAFETY: the functions of `VTABLE` expect the address of a word in an `Arc`, plus a bit number. The word is alive while
        // it is borrowed; the waker is never dropped, so it gives no count back that it did not take.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) });
        Self { waker, word: PhantomData }
    }
}

impl Deref for BorrowedWaker<'_> {
    type Target = Waker;

    #[inline] // an address
    fn deref(&self) -> &Waker {
        &self.waker
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// The word that a waker's data points into.
#[inline] // one instruction
fn word(data: *const ()) -> *const Word {
    data.map_addr(|address| address & !(BITS - 1)).cast()
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: data comes from `BorrowedWaker::new`, so this is what `Arc::as_ptr` gave, and the waker being cloned keeps the word
    // alive.
    unsafe { Arc::increment_strong_count(word(data)) };
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the caller's contract is that of `wake_by_ref` and of `release`.
    unsafe {
        wake_by_ref(data);
        release(data);
    }
}

/// Wakes a task of an executor of this crate, without a call through a table. False if `waker` is of another make.
#[inline] // hot path: two instructions more than the table's function
pub(crate) fn wake_own(waker: &Waker) -> bool {
    let own = core::ptr::eq(waker.vtable(), &VTABLE);
    if own {
        // SAFETY: data that goes with `VTABLE` comes from `BorrowedWaker::new` or `clone`, and `waker` keeps the word alive.
        unsafe { wake_by_ref(waker.data()) };
    }
    own
}

#[inline] // as `wake_own`
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker keeps the word alive.
    let word = unsafe { &*word(data) };
    // Release: what the waker saw before, the task sees when it runs.
    word.bits.fetch_or(1 << (data.addr() % BITS), Ordering::Release);
}

unsafe fn release(data: *const ()) {
    // SAFETY: as in `clone`; each waker that is dropped was cloned once.
    unsafe { Arc::decrement_strong_count(word(data)) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn taken(set: &ReadySet) -> Vec<usize> {
        let mut taken = Vec::new();
        set.run(|index, _| taken.push(index));
        taken
    }

    #[test]
    fn the_most_urgent_level_runs_alone() {
        let set = ReadySet::with_levels(&[2, 70, 1]);
        assert_eq!(ReadySet::starts(&[2, 70, 1]).collect::<Vec<_>>(), [0, 64, 192, 256]);
        for index in [192, 64, 130, 1, 65, 0] {
            set.set(index);
        }
        assert_eq!(taken(&set), [0, 1]);
        assert_eq!(taken(&set), [64, 65, 130]);
        set.set(1);
        assert_eq!([taken(&set), taken(&set), taken(&set)], [vec![1], vec![192], vec![]]);
    }

    #[test]
    fn a_waker_is_known_by_its_task() {
        let (set, other) = (ReadySet::new(100), ReadySet::new(100));
        (0..100).for_each(|index| set.set(index));
        set.run(|index, waker| {
            assert_eq!(set.task_of(waker), Some(index));
            assert_eq!(set.task_of(&waker.clone()), Some(index));
            assert_eq!(other.task_of(waker), None);
        });
        assert_eq!(set.task_of(Waker::noop()), None);
    }

    #[test]
    fn each_waker_sets_its_bit_and_outlives_the_set() {
        let set = ReadySet::new(130);
        (0..130).for_each(|index| set.set(index));
        let mut wakers = Vec::new();
        set.run(|_, waker| wakers.push(waker.clone()));
        assert!(!set.any());
        for index in [0, 1, 63, 64, 127, 128, 129] {
            wakers[index].wake_by_ref();
            let another = wakers[index].clone();
            wakers[index].wake_by_ref();
            another.wake();
            assert!(set.any());
            assert_eq!(taken(&set), [index]);
        }
        assert!(wakers[1].will_wake(&wakers[1].clone()) && !wakers[1].will_wake(&wakers[2]));
        drop(set);
        wakers.into_iter().for_each(Waker::wake);
    }
}
