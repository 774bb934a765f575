//! The count of a phase: its budget of requests, the measured window and what went wrong.
//!
//! ```text
//!   opening ──all flows ready──▶ warming ──each flow has `warmup` replies──▶ measuring ──`requests` x flows have ended──▶ closing
//! ```
//!
//! While measuring, the requests are one budget: whoever is ready takes the next, so all flows stay busy to the end and no slow one
//! stretches the tail. What was under way when measuring began belongs to the budget. Replies are counted in order of arrival: the window
//! opens with the last warm-up reply and closes with the last reply of all.

use super::report::PhaseReport;
use crate::time::SimTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    Warming,
    Measuring { since: SimTime },
}

/// The running count.
pub(super) struct Tally {
    stage: Stage,
    /// When work began.
    released: SimTime,
    /// Requests to measure.
    budget: u64,
    /// Requests that came to an end in the window: answered, right or wrong, or lost.
    ended: u64,
    under_way: u64,
    window_end: SimTime,
    samples: Vec<u64>,
    errors: u64,
    refused: u64,
}

impl Tally {
    /// A count that will measure `budget` requests.
    pub(super) fn new(budget: u64) -> Self {
        Self {
            stage: Stage::Opening,
            released: SimTime::ZERO,
            budget,
            ended: 0,
            under_way: 0,
            window_end: SimTime::ZERO,
            samples: Vec::new(),
            errors: 0,
            refused: 0,
        }
    }

    /// All flows are ready: work may begin.
    pub(super) fn release(&mut self, now: SimTime) {
        if self.stage == Stage::Opening {
            self.stage = Stage::Warming;
            self.released = now;
        }
    }

    /// All flows are warm: the window opens.
    pub(super) fn measure(&mut self, now: SimTime) {
        if self.stage == Stage::Warming {
            self.stage = Stage::Measuring { since: now };
        }
    }

    /// When work began, or zero before.
    pub(super) fn released_at(&self) -> SimTime {
        self.released
    }

    /// A request may be started.
    pub(super) fn work_left(&self) -> bool {
        match self.stage {
            Stage::Opening => false,
            Stage::Warming => true,
            Stage::Measuring { .. } => self.ended + self.under_way < self.budget,
        }
    }

    /// No request is left to be started.
    pub(super) fn exhausted(&self) -> bool {
        matches!(self.stage, Stage::Measuring { .. }) && !self.work_left()
    }

    /// A request starts; [`Self::work_left`] held.
    pub(super) fn start(&mut self) {
        self.under_way += 1;
    }

    /// A request that started at `started` is answered.
    pub(super) fn finished(&mut self, now: SimTime, started: SimTime, right: bool) {
        self.errors += u64::from(!right);
        self.under_way -= 1;
        if let Stage::Measuring { .. } = self.stage {
            self.ended += 1;
            self.window_end = now;
            if right {
                self.samples.push((now - started).as_ps());
            }
        }
    }

    /// A connection attempt was refused and will be repeated.
    pub(super) fn refused(&mut self) {
        self.refused += 1;
    }

    /// Something broke that cost the `lost` requests under way on it.
    pub(super) fn broken(&mut self, lost: u64) {
        self.errors += lost.max(1);
        self.under_way -= lost;
        if let Stage::Measuring { .. } = self.stage {
            self.ended += lost;
        }
    }

    /// What came out, with the number of connections.
    pub(super) fn report(self, connections: u32) -> PhaseReport {
        let elapsed = match self.stage {
            Stage::Measuring { since } if self.window_end > since => self.window_end - since,
            _ => SimTime::ZERO,
        };
        let mut report =
            PhaseReport { connections, errors: self.errors, refused: self.refused, elapsed, ..PhaseReport::default() };
        report.set_samples(self.samples);
        report
    }
}
