//! A guest's clock: the time base counter, and the time at which thread 0's next wait in the kernel ends (system call WaitUntil).
//!
//! The executor sets the alarm right before it parks ([`crate::executor::timer`]), and the port takes it into that one wait. So
//! there is nothing to take back, and a program without deadlines waits as if there were no clock.

use core::sync::atomic::{AtomicU64, Ordering};

use userlib::{Env, time};

use crate::executor::Clock;

const NEVER: u64 = u64::MAX;
/// When thread 0's next wait ends. An atomic only because it is a static: nobody else touches it.
static ALARM: AtomicU64 = AtomicU64::new(NEVER);

/// The time of a guest, in ticks of the time base. Its alarm is that of the port of thread 0 ([`crate::port::GuestPort`]).
pub struct GuestClock {
    hz: u64,
}

impl GuestClock {
    /// The clock of the machine that `env` tells of.
    pub fn from_env(env: &Env) -> Self {
        Self { hz: env.timebase_hz() }
    }
}

impl Clock for GuestClock {
    #[inline] // one instruction
    fn now(&self) -> u64 {
        time::ticks()
    }

    fn hz(&self) -> u64 {
        self.hz
    }

    #[inline] // one store
    fn alarm(&self, at: u64) {
        ALARM.store(at, Ordering::Relaxed);
    }
}

/// The alarm, set no more.
#[inline] // once per wait: a load and a branch
pub(super) fn take_alarm() -> Option<u64> {
    match ALARM.load(Ordering::Relaxed) {
        NEVER => None,
        at => {
            ALARM.store(NEVER, Ordering::Relaxed);
            Some(at)
        }
    }
}
