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

    /// What the timed rounds of `round` take together, with the loop around them.
    #[inline(always)]
    pub fn time(self, mut round: impl FnMut()) -> Cost {
        (0..self.warmup).for_each(|_| round());
        let (instructions, cycles) = (time::instructions(), time::cycles());
        (0..self.rounds).for_each(|_| round());
        Cost { cycles: time::cycles() - cycles, instructions: time::instructions() - instructions }
    }
}

/// What something takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Core cycles.
    pub cycles: u64,
    /// Instructions of this hart, in whatever mode.
    pub instructions: u64,
}

/// A clock that one thread starts and another one of the same hart stops, once a round.
#[derive(Debug)]
pub struct Clock {
    start: AtomicU64,
    first_instruction: AtomicU64,
    cycles: AtomicU64,
    instructions: AtomicU64,
    stops: AtomicU64,
}

impl Clock {
    /// Nothing timed yet.
    pub const fn new() -> Self {
        Self {
            start: AtomicU64::new(0),
            first_instruction: AtomicU64::new(0),
            cycles: AtomicU64::new(0),
            instructions: AtomicU64::new(0),
            stops: AtomicU64::new(0),
        }
    }

    /// A round starts.
    #[inline(always)]
    pub fn start(&self) {
        self.first_instruction.store(time::instructions(), Ordering::Relaxed);
        self.start.store(time::cycles(), Ordering::Relaxed);
    }

    /// The round is over; `timed` says whether it counts.
    #[inline(always)]
    pub fn stop(&self, timed: bool) {
        let cycles = time::cycles() - self.start.load(Ordering::Relaxed);
        let instructions = time::instructions() - self.first_instruction.load(Ordering::Relaxed);
        if timed {
            self.cycles.fetch_add(cycles, Ordering::Relaxed);
            self.instructions.fetch_add(instructions, Ordering::Relaxed);
        }
        self.stops.fetch_add(1, Ordering::Relaxed);
    }

    /// Rounds that are over.
    pub fn stops(&self) -> u64 {
        self.stops.load(Ordering::Relaxed)
    }

    /// All rounds that count.
    pub fn total(&self) -> Cost {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Cost { cycles: load(&self.cycles), instructions: load(&self.instructions) }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
