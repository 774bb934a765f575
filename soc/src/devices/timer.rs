//! A one-shot timer of a device that can be moved and stopped, over [`Context::alarm`].
//!
//! Its token is its `kind`, of which each timer of a device has another. A timer that is stopped lets its event come, and ignores it.

use crate::device::Context;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// The timer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timer {
    kind: u8,
    due: Option<SimTime>,
}

impl Timer {
    /// A stopped timer.
    pub(crate) const fn new(kind: u8) -> Self {
        Self { kind, due: None }
    }

    /// Starts, or moves, the timer to `at`, which is not in the past.
    pub(crate) fn arm(&mut self, cx: &mut dyn Context, at: SimTime) {
        self.due = Some(at);
        cx.alarm(self.kind.into(), at);
    }

    /// Stops the timer.
    pub(crate) fn disarm(&mut self) {
        self.due = None;
    }

    /// When the timer fires.
    pub(crate) fn due(&self) -> Option<SimTime> {
        self.due
    }

    /// True, once, if `token` is this timer's and it was not stopped.
    pub(crate) fn fires(&mut self, token: u64) -> bool {
        token == u64::from(self.kind) && self.due.take().is_some()
    }
}
