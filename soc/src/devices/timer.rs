//! A one-shot timer of a device that can be moved and stopped, over [`Context::schedule`], which can do neither.
//!
//! Each arming has its own token; a token of an earlier arming is stale and ignored. A device gives each of its timers a `kind`, so
//! that their tokens never meet.

use crate::device::Context;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// The timer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timer {
    kind: u8,
    generation: u64,
    due: Option<SimTime>,
}

impl Timer {
    /// A stopped timer.
    pub(crate) const fn new(kind: u8) -> Self {
        Self { kind, generation: 0, due: None }
    }

    /// Starts, or moves, the timer to `at`, which is not in the past.
    pub(crate) fn arm(&mut self, cx: &mut dyn Context, at: SimTime) {
        self.generation += 1;
        self.due = Some(at);
        let delay = at - cx.now();
        cx.schedule(delay, self.token());
    }

    /// Stops the timer.
    pub(crate) fn disarm(&mut self) {
        self.due = None;
    }

    /// When the timer fires.
    pub(crate) fn due(&self) -> Option<SimTime> {
        self.due
    }

    /// True, once, if `token` is that of the present arming.
    pub(crate) fn fires(&mut self, token: u64) -> bool {
        self.due.is_some() && token == self.token() && self.due.take().is_some()
    }

    fn token(&self) -> u64 {
        self.generation << 8 | u64::from(self.kind)
    }
}
