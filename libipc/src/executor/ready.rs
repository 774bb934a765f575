//! Which tasks are ready: one bit each.
//!
//! Waking sets the task's bit, running takes a whole word of bits at once. So a task is queued at most once however often it
//! is woken, waking never fails, and no pointer is followed. A wake during the task's own run sets the bit again and so runs
//! it in the next round.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::sync::{AtomicU64, Ordering};

/// The ready bits of a pool.
pub(crate) struct ReadySet {
    words: Box<[Arc<AtomicU64>]>,
}

/// One task's bit.
pub(crate) struct ReadyBit {
    word: Arc<AtomicU64>,
    bit: u64,
}

impl ReadyBit {
    /// Makes the task ready.
    #[inline] // three instructions
    pub(crate) fn set(&self) {
        // Release: what the waker saw before, the task sees when it runs.
        self.word.fetch_or(self.bit, Ordering::Release);
    }
}

impl ReadySet {
    pub(crate) fn new(tasks: usize) -> Self {
        Self { words: (0..tasks.div_ceil(64)).map(|_| Arc::new(AtomicU64::new(0))).collect() }
    }

    /// The bit of task `index`.
    pub(crate) fn bit(&self, index: usize) -> ReadyBit {
        ReadyBit { word: self.words[index / 64].clone(), bit: 1 << (index % 64) }
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
        let word = &self.words[word];
        if word.load(Ordering::Relaxed) == 0 { 0 } else { word.swap(0, Ordering::Acquire) }
    }
}
