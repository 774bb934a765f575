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

    /// Waits for its turn; `wait` runs in every round, for what a waiting hart must still do.
    pub fn acquire(&self, mut wait: impl FnMut()) {
        let ticket = self.next.0.fetch_add(1, Ordering::Relaxed);
        // Acquire: partner is the release store in `release`; the owner before us has finished with the kernel state.
        while self.serving.0.load(Ordering::Acquire) != ticket {
            wait();
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
