//! The time base, and what the boot header says of the tick in its terms. The timer itself is the firmware's.

use core::sync::atomic::{AtomicU64, Ordering};

use super::csr;

/// Ticks of the time base per tick of the scheduler; the same on all harts, set once at boot.
static TICK: AtomicU64 = AtomicU64::new(0);

/// Sets the tick to `milliseconds` at a time base of `frequency` hertz.
pub fn set_tick(frequency: u64, milliseconds: u32) {
    TICK.store((frequency * u64::from(milliseconds) / 1000).max(1), Ordering::Relaxed);
}

/// Ticks of the time base per tick of the scheduler.
pub fn tick_length() -> u64 {
    TICK.load(Ordering::Relaxed)
}

/// The time base counter.
pub fn now() -> u64 {
    csr::read!("time") as u64
}
