//! Keeps simulated time from running ahead of the host's, for peers that talk to the world outside, and for somebody who types.
//!
//! A guest that waits costs no time to simulate: without a brake its timers would run out before a packet of the host could
//! come. So such a peer asks the brake before it says "nothing now": while simulated time is ahead, it sleeps, and looks at its sockets
//! again. A guest slower than the host is never held up.
//!
//! A run with such a peer depends on the host's clock and network: it is not deterministic, and no figure may come from it.

use std::time::{Duration, Instant};

use crate::time::SimTime;

/// How long it sleeps between two looks at the sockets, at most.
const NAP: Duration = Duration::from_micros(200);
/// Simulated time between two looks while the guest computes.
const LOOK_EVERY: SimTime = SimTime::from_us(100);

/// The brake.
#[derive(Default)]
pub(crate) struct Pace {
    /// Power-on, as the host's clock has it; set by the first look.
    power_on: Option<Instant>,
}

impl Pace {
    /// Sleeps a little if `now` is ahead of the host's clock. True if the caller should look at its sockets again before it goes on.
    pub(crate) fn brake(&mut self, now: SimTime) -> bool {
        let power_on = *self.power_on.get_or_insert_with(Instant::now);
        let ahead = Duration::from_nanos(now.as_ns()).saturating_sub(power_on.elapsed());
        if ahead.is_zero() {
            return false;
        }
        std::thread::sleep(ahead.min(NAP));
        true
    }

    /// When to look again.
    pub(crate) fn next_look(&self, now: SimTime) -> SimTime {
        now + LOOK_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ahead_sleeps_and_who_is_behind_does_not() {
        let mut pace = Pace::default();
        assert!(!pace.brake(SimTime::ZERO));
        let start = Instant::now();
        while pace.brake(SimTime::from_us(5_000)) {}
        assert!(start.elapsed() >= Duration::from_millis(4));
        assert!(!pace.brake(SimTime::from_us(1_000)));
    }
}
