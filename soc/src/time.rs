//! Simulated time: whole picoseconds, so that a 10 ns core cycle, an 8 ns byte on a 1 Gb/s wire and a 100 ns timer tick are
//! all exact. 64 bits last 213 days; sums stop there, at [`SimTime::END`], since a guest may ask for a timer at any time.

use core::ops::{Add, AddAssign, Sub};
use serde::{Deserialize, Serialize};

/// A point in simulated time, or a span of it, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SimTime(u64);

impl SimTime {
    /// Power-on.
    pub const ZERO: SimTime = SimTime(0);
    /// The end of time.
    pub const END: SimTime = SimTime(u64::MAX);
    /// From picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }
    /// From microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// In picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// In whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// In whole microseconds, rounded down.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000_000
    }
}

impl Add for SimTime {
    type Output = SimTime;
    fn add(self, other: SimTime) -> SimTime {
        SimTime(self.0.saturating_add(other.0))
    }
}
impl AddAssign for SimTime {
    fn add_assign(&mut self, other: SimTime) {
        *self = *self + other;
    }
}
impl Sub for SimTime {
    type Output = SimTime;
    fn sub(self, other: SimTime) -> SimTime {
        SimTime(self.0 - other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_end_of_time() {
        let mut time = SimTime::END - SimTime::from_ns(1);
        assert_eq!(time + SimTime::from_us(1), SimTime::END);
        time += SimTime::from_us(1);
        assert_eq!(time, SimTime::END);
        assert_eq!(crate::board::at_cycle(u64::MAX), SimTime::END);
    }
}
