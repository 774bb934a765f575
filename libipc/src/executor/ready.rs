//! Which tasks are ready: one bit each.
//!
//! Waking sets the task's bit, running takes a whole word of bits at once. So a task is queued at most once however often it
//! is woken, waking never fails, and no pointer is followed. A wake during the task's own run sets the bit again and so runs
//! it in the next round.

use alloc::boxed::Box;

use crate::sync::{AtomicU64, Ordering};

/// The ready bits of a pool.
pub(crate) struct ReadySet {
    words: Box<[AtomicU64]>,
}

impl ReadySet {
    pub(crate) fn new(tasks: usize) -> Self {
        Self { words: (0..tasks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Makes task `index` ready.
    #[inline] // one atomic instruction
    pub(crate) fn set(&self, index: usize) {
        // Release: what the waker saw before, the task sees when it runs.
        self.words[index / 64].fetch_or(1 << (index % 64), Ordering::Release);
    }

    /// Whether any task is ready.
    #[inline] // once per round
    pub(crate) fn any(&self) -> bool {
        self.words.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Words of the set.
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }

    /// Takes the ready bits of word `word`: tasks `64 * word ..`.
    #[inline] // once per round and word
    pub(crate) fn take(&self, word: usize) -> u64 {
        if self.words[word].load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.words[word].swap(0, Ordering::Acquire)
    }
}
