//! What `kernel-client` and `kernel-server` have in common: the arguments, and a clock that starts when all is warm.

use core::sync::atomic::{AtomicU64, Ordering};

use userlib::{Env, time};

/// What the manifest asks for, of both programs alike.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Words of a message.
    pub words: usize,
    /// Rounds before the timed ones.
    pub warmup: u64,
    /// Rounds to time.
    pub rounds: u64,
}

impl Plan {
    /// Reads the arguments.
    ///
    /// # Panics
    /// If one of them is not a number.
    pub fn of(env: &Env) -> Self {
        Self { words: env.arg_or("words", 0), warmup: env.arg_or("warmup", 64), rounds: env.arg_or("rounds", 1024) }
    }

    /// Cycles that the timed rounds of `round` take together, with the loop around them.
    #[inline(always)]
    pub fn time(self, mut round: impl FnMut()) -> u64 {
        (0..self.warmup).for_each(|_| round());
        let start = time::cycles();
        (0..self.rounds).for_each(|_| round());
        time::cycles() - start
    }
}

/// A clock that one thread starts and another one of the same hart stops, once a round.
#[derive(Debug)]
pub struct Clock {
    start: AtomicU64,
    total: AtomicU64,
}

impl Clock {
    /// Nothing timed yet.
    pub const fn new() -> Self {
        Self { start: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// A round starts.
    #[inline(always)]
    pub fn start(&self) {
        self.start.store(time::cycles(), Ordering::Relaxed);
    }

    /// The round is over; `timed` says whether it counts.
    #[inline(always)]
    pub fn stop(&self, timed: bool) {
        let cycles = time::cycles() - self.start.load(Ordering::Relaxed);
        if timed {
            self.total.fetch_add(cycles, Ordering::Relaxed);
        }
    }

    /// Cycles of all rounds that count.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
