//! One phase: a number of flows that open together, work on one budget of requests ([`super::tally`]) and close together.
//!
//! Work begins when all are ready, so that a phase of 32 connections has 32 open connections, or errors.

use super::config::{LoadGenConfig, Operation, Protocol};
use super::datagram::DatagramFlow;
use super::flow::Flow;
use super::report::PhaseReport;
use super::tally::Tally;
use super::tcp::TcpConnection;
use crate::time::SimTime;
use crate::wire::stack::Stack;

/// A phase under way.
pub(super) struct Phase {
    flows: Vec<Box<dyn Flow>>,
    tally: Tally,
}

impl Phase {
    /// Phase `number`; its flows open at the first [`Self::step`]. `first_port` is the local port of the first one.
    pub(super) fn new(host: &mut Stack, config: &LoadGenConfig, number: usize, first_port: u16, now: SimTime) -> Self {
        let count = config.connections[number];
        let mut flow = |index: usize| -> Box<dyn Flow> {
            // `MAX_CONNECTIONS` keeps the ports below 65536.
            let port = first_port + index as u16;
            match config.protocol {
                Protocol::Tcp => Box::new(TcpConnection::new(host, config, number, index, port, now)),
                Protocol::Udp | Protocol::Ping => Box::new(DatagramFlow::new(host, config, number, index, port, now)),
            }
        };
        let flows = (0..count as usize).map(&mut flow).collect();
        Self { flows, tally: Tally::new(u64::from(config.requests) * u64::from(count)) }
    }

    /// Does what can be done at `now`. Returns true if the stack has to run again.
    pub(super) fn step(&mut self, host: &mut Stack, config: &LoadGenConfig, now: SimTime) -> bool {
        if self.flows.iter().all(|flow| flow.ready()) {
            self.tally.release(now);
        }
        if self.flows.iter().all(|flow| flow.done() || flow.answered() >= u64::from(config.warmup)) {
            self.tally.measure(now);
        }
        let mut again = false;
        for flow in &mut self.flows {
            again |= flow.step(host, config, &mut self.tally, now);
        }
        if self.tally.exhausted() && self.flows.iter().all(|flow| flow.quiet()) && !self.closing() {
            for flow in &mut self.flows {
                flow.close(host, config, now);
            }
            again = true;
        }
        again
    }

    fn closing(&self) -> bool {
        self.done() || self.flows.iter().any(|flow| flow.closing())
    }

    /// All flows have come to an end.
    pub(super) fn done(&self) -> bool {
        self.flows.iter().all(|flow| flow.done())
    }

    /// When the phase needs attention even if nothing arrives.
    pub(super) fn wake(&self, operation: Operation) -> Option<SimTime> {
        let work_left = self.tally.work_left();
        self.flows.iter().filter_map(|flow| flow.wake(operation, work_left)).min()
    }

    /// Gives the sockets back and reports.
    pub(super) fn finish(self, host: &mut Stack) -> PhaseReport {
        for flow in &self.flows {
            flow.remove(host);
        }
        let answered = || self.flows.iter().map(|flow| flow.answered());
        let (fewest, most) = (answered().min().unwrap_or(0), answered().max().unwrap_or(0));
        let report = self.tally.report(self.flows.len() as u32);
        PhaseReport { fewest, most, ..report }
    }
}
