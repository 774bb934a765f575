//! One phase: a number of connections that share one budget of requests.
//!
//! The budget is (warm-up + measured) x connections. Whoever is ready takes the next request, so all connections stay busy to the
//! end and no slow one stretches the tail. Replies are counted in order of arrival: the measured window opens with the last
//! warm-up reply and closes with the last reply of all.

use super::config::{LoadGenConfig, Operation};
use super::connection::Connection;
use super::host::Host;
use super::report::PhaseReport;
use crate::time::SimTime;

/// The running count of a phase.
pub(super) struct Tally {
    warmup: u64,
    budget: u64,
    started: u64,
    /// Requests that came to an end: answered, right or wrong, or lost.
    ended: u64,
    window_start: Option<SimTime>,
    window_end: SimTime,
    samples: Vec<u64>,
    errors: u64,
    refused: u64,
}

impl Tally {
    fn new(config: &LoadGenConfig, connections: u32) -> Self {
        let warmup = u64::from(config.warmup) * u64::from(connections);
        let budget = warmup + u64::from(config.requests) * u64::from(connections);
        Self {
            warmup,
            budget,
            started: 0,
            ended: 0,
            window_start: None,
            window_end: SimTime::ZERO,
            samples: Vec::new(),
            errors: 0,
            refused: 0,
        }
    }

    /// A request may be started.
    pub(super) fn work_left(&self) -> bool {
        self.started < self.budget
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

    fn report(self, connections: u32) -> PhaseReport {
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

/// A phase under way.
pub(super) struct Phase {
    connections: Vec<Connection>,
    tally: Tally,
}

impl Phase {
    /// Phase `number`; its connections open at the first [`Self::step`]. `first_port` is the local port of the first one.
    pub(super) fn new(host: &mut Host, config: &LoadGenConfig, number: usize, first_port: u16, now: SimTime) -> Self {
        let count = config.connections[number];
        let connections = (0..count as usize)
            // `MAX_CONNECTIONS` keeps the ports below 65536.
            .map(|index| Connection::new(host, config, number, index, first_port + index as u16, now))
            .collect();
        Self { connections, tally: Tally::new(config, count) }
    }

    /// Does what can be done at `now`. Returns true if the stack has to run again.
    pub(super) fn step(&mut self, host: &mut Host, config: &LoadGenConfig, now: SimTime) -> bool {
        let mut again = false;
        for connection in &mut self.connections {
            again |= connection.step(host, config, &mut self.tally, now);
        }
        if !self.tally.work_left() && self.connections.iter().all(Connection::quiet) && !self.closing() {
            for connection in &mut self.connections {
                connection.close(host, config, now);
            }
            again = true;
        }
        again
    }

    fn closing(&self) -> bool {
        self.connections.iter().any(Connection::closing) || self.done()
    }

    /// All connections have come to an end.
    pub(super) fn done(&self) -> bool {
        self.connections.iter().all(Connection::done)
    }

    /// When the phase needs attention even if nothing arrives.
    pub(super) fn wake(&self, operation: Operation) -> Option<SimTime> {
        let work_left = self.tally.work_left();
        self.connections.iter().filter_map(|connection| connection.wake(operation, work_left)).min()
    }

    /// Gives the sockets back and reports.
    pub(super) fn finish(self, host: &mut Host) -> PhaseReport {
        let count = self.connections.len() as u32;
        for connection in self.connections {
            connection.remove(host);
        }
        self.tally.report(count)
    }
}
