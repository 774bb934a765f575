//! The big kernel lock: a ticket lock, so that harts enter in the order in which they came.
//!
//! On a machine where the kernel runs on one hart it is not taken at all (`smp::is_smp`).

use core::sync::atomic::{AtomicU32, Ordering};

/// A fair spin lock. Both counters on one line, of their own: a hart that takes a free lock, or gives one back that nobody waits for,
/// fetches one line, and the hold of a lock is long against the few reads of a waiter.
#[repr(align(64))]
pub struct TicketLock {
    next: AtomicU32,
    serving: AtomicU32,
}

/// A place in the line.
#[must_use]
pub struct Ticket(u32);

impl TicketLock {
    /// Free.
    pub const fn new() -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0) }
    }

    /// Takes the lock if it is free, else a place in the line, to [`wait`](Self::wait) for.
    #[inline(always)] // one atomic addition and one comparison
    pub fn line_up(&self) -> Result<(), Ticket> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: partner is the release store in `release`; the owner before us has finished with the kernel state.
        if self.serving.load(Ordering::Acquire) == ticket { Ok(()) } else { Err(Ticket(ticket)) }
    }

    /// Waits for the turn of `ticket`; `serve` runs in every round, for what a waiting core owes to the holder.
    #[cold]
    #[inline(never)]
    pub fn wait(&self, ticket: Ticket, mut serve: impl FnMut()) {
        // Acquire: as in `line_up`.
        while self.serving.load(Ordering::Acquire) != ticket.0 {
            serve();
            core::hint::spin_loop();
        }
    }

    /// Waits for its turn; `serve` as in `wait`.
    #[inline(always)]
    pub fn acquire(&self, serve: impl FnMut()) {
        if let Err(ticket) = self.line_up() {
            self.wait(ticket, serve);
        }
    }

    /// Whether somebody waits. Only the holder learns something from it.
    pub fn is_wanted(&self) -> bool {
        let behind = self.next.load(Ordering::Relaxed).wrapping_sub(self.serving.load(Ordering::Relaxed));
        behind > 1
    }

    /// Lets the next one in. Only the holder may call it.
    pub fn release(&self) {
        let ticket = self.serving.load(Ordering::Relaxed);
        self.serving.store(ticket.wrapping_add(1), Ordering::Release);
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
