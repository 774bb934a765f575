//! The big kernel lock: a ticket lock, so that harts enter in the order in which they came.
//!
//! On a machine where the kernel runs on one hart it is not taken at all (`smp::is_smp`).

use core::sync::atomic::{AtomicU32, Ordering};

/// Two counters on lines of their own: the one that all waiters read is written once per release.
#[repr(align(64))]
struct Line(AtomicU32);

/// A fair spin lock.
pub struct TicketLock {
    next: Line,
    serving: Line,
}

impl TicketLock {
    /// Free.
    pub const fn new() -> Self {
        Self { next: Line(AtomicU32::new(0)), serving: Line(AtomicU32::new(0)) }
    }

    /// Waits for its turn; `serve` runs in every round, for what a waiting core owes to the holder.
    #[inline(always)] // free: one atomic addition and one comparison
    pub fn acquire(&self, serve: impl FnMut()) {
        let ticket = self.next.0.fetch_add(1, Ordering::Relaxed);
        // Acquire: partner is the release store in `release`; the owner before us has finished with the kernel state.
        if self.serving.0.load(Ordering::Acquire) != ticket {
            self.wait(ticket, serve);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, ticket: u32, mut serve: impl FnMut()) {
        // Acquire: as in `acquire`.
        while self.serving.0.load(Ordering::Acquire) != ticket {
            serve();
            core::hint::spin_loop();
        }
    }

    /// Lets the next one in. Only the holder may call it.
    pub fn release(&self) {
        let ticket = self.serving.0.load(Ordering::Relaxed);
        self.serving.0.store(ticket.wrapping_add(1), Ordering::Release);
    }
}

impl Default for TicketLock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        const ROUNDS: usize = 2_000;
        let lock = TicketLock::new();
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        lock.acquire(std::thread::yield_now);
                        let seen = count.load(Ordering::Relaxed);
                        std::thread::yield_now();
                        count.store(seen + 1, Ordering::Relaxed);
                        lock.release();
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 3 * ROUNDS);
    }

    #[test]
    fn a_waiting_core_serves_its_hook() {
        let lock = TicketLock::new();
        lock.acquire(|| unreachable!("the lock is free"));
        let mut rounds = 0;
        lock.acquire(|| {
            rounds += 1;
            if rounds == 3 {
                lock.release();
            }
        });
        assert_eq!(rounds, 3);
    }
}
