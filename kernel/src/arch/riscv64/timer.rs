//! The periodic tick of each hart: the firmware's timer, armed again at every tick.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{csr, sbi};

/// Time base ticks per kernel tick; the same on all harts, set once at boot.
static INTERVAL: AtomicU64 = AtomicU64::new(0);

/// Sets the tick to `milliseconds` at a time base of `frequency` hertz.
pub fn set_interval(frequency: u64, milliseconds: u32) {
    INTERVAL.store((frequency * u64::from(milliseconds) / 1000).max(1), Ordering::Relaxed);
}

/// Arms the next tick, counted from now: a hart that was held up gets one tick, not all that it missed.
pub fn arm() {
    sbi::set_timer(now() + INTERVAL.load(Ordering::Relaxed));
}

/// The time base counter.
pub fn now() -> u64 {
    csr::read!("time") as u64
}
