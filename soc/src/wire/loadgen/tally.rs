//! The count of a phase: its budget of requests, the measured window and what went wrong.
//!
//! The budget is (warm-up + measured) x connections. Whoever is ready takes the next request, so all connections stay busy to the
//! end and no slow one stretches the tail. Replies are counted in order of arrival: the measured window opens with the last
//! warm-up reply and closes with the last reply of all.

use super::config::LoadGenConfig;
use super::report::PhaseReport;
use crate::time::SimTime;

/// The running count of a phase.
pub(super) struct Tally {
    warmup: u64,
    budget: u64,
    started: u64,
    /// Requests that came to an end: answered, right or wrong, or lost.
    ended: u64,
    /// When work began: all flows were ready. Not before.
    released: Option<SimTime>,
    window_start: Option<SimTime>,
    window_end: SimTime,
    samples: Vec<u64>,
    errors: u64,
    refused: u64,
}

impl Tally {
    /// The count for `connections` flows, not yet released.
    pub(super) fn new(config: &LoadGenConfig, connections: u32) -> Self {
        let warmup = u64::from(config.warmup) * u64::from(connections);
        let budget = warmup + u64::from(config.requests) * u64::from(connections);
        Self {
            warmup,
            budget,
            started: 0,
            ended: 0,
            released: None,
            window_start: None,
            window_end: SimTime::ZERO,
            samples: Vec::new(),
            errors: 0,
            refused: 0,
        }
    }

    /// Lets work begin.
    pub(super) fn release(&mut self, now: SimTime) {
        self.released.get_or_insert(now);
    }

    /// When work began, or zero before.
    pub(super) fn released_at(&self) -> SimTime {
        self.released.unwrap_or_default()
    }

    /// A request may be started.
    pub(super) fn work_left(&self) -> bool {
        self.released.is_some() && !self.exhausted()
    }

    /// No request is left to be started.
    pub(super) fn exhausted(&self) -> bool {
        self.started == self.budget
    }

    /// A request starts; [`Self::work_left`] held.
    pub(super) fn start(&mut self, now: SimTime) {
        self.started += 1;
        if self.warmup == 0 {
            self.window_start.get_or_insert(now);
        }
    }

    /// A request that started at `started` is answered.
    pub(super) fn finished(&mut self, now: SimTime, started: SimTime, right: bool) {
        self.errors += u64::from(!right);
        if self.ended >= self.warmup {
            self.window_end = now;
            if right {
                self.samples.push((now - started).as_ps());
            }
        }
        self.end(1, now);
    }

    /// A connection attempt was refused and will be repeated.
    pub(super) fn refused(&mut self) {
        self.refused += 1;
    }

    /// A connection broke with `lost` requests under way.
    pub(super) fn broken(&mut self, lost: u64) {
        self.errors += lost.max(1);
        self.ended += lost;
    }

    fn end(&mut self, count: u64, now: SimTime) {
        self.ended += count;
        if self.ended >= self.warmup {
            self.window_start.get_or_insert(now);
        }
    }

    /// What came out, with the number of connections.
    pub(super) fn report(self, connections: u32) -> PhaseReport {
        let elapsed = match self.window_start {
            Some(start) if self.window_end > start => self.window_end - start,
            _ => SimTime::ZERO,
        };
        let mut report =
            PhaseReport { connections, errors: self.errors, refused: self.refused, elapsed, ..PhaseReport::default() };
        report.set_samples(self.samples);
        report
    }
}
