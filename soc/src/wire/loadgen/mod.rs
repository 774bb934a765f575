//! The load generator: a peer that opens connections to a server in the guest (TCP; UDP and ICMP echo likewise), works on them in a
//! closed loop, checks every byte and measures every request in simulated time.
//!
//! It is an infinitely fast host: what it has to say after a frame has arrived is on its way at the same picosecond, as soon as the
//! wire is free. So a latency is wire + guest, and nothing of it is the generator's.
//!
//! ```text
//!   ask by ARP every 1 ms ──answer──▶ phase 0 ──▶ phase 1 ──▶ ... ──▶ finished
//!                                     open all connections, warm-up, measured requests, close all
//! ```
//!
//! The TCP is smoltcp's, so that what the guest meets is a real stack: it retransmits, delays acknowledgements and closes properly. The
//! same seed gives the same frames at the same times as long as the guest does the same.

mod config;
mod datagram;
mod flow;
mod phase;
mod report;
mod tally;
mod tcp;

pub use config::{
    ConfigError, LoadGenConfig, MAX_CONNECTIONS, MAX_DATAGRAM_BYTES, MAX_SIZE_BYTES, Operation, Protocol, REPLY_XOR,
    stream_byte,
};
pub use report::{Latency, PhaseReport, Report, ReportHandle};

use super::stack::{self, Stack};
use super::{Next, Peer};
use crate::time::SimTime;
use phase::Phase;

/// Time between two ARP requests while the guest is not there yet.
const SEEK_INTERVAL: SimTime = SimTime::from_us(1000);
/// First local port (RFC 6335, dynamic ports).
const FIRST_PORT: u16 = 49_152;
/// Dynamic ports.
const PORTS: u32 = 16_384;

enum Stage {
    /// Looking for the guest; the next ARP request is due then.
    Seeking { ask_at: SimTime },
    /// The guest has answered; the next phase starts at the next step.
    Between,
    /// A phase is under way.
    Working(Phase),
    /// All phases are over.
    Done,
}

/// The peer.
pub struct LoadGen {
    config: LoadGenConfig,
    host: Stack,
    stage: Stage,
    /// Connections opened in earlier phases, which moves the local ports on.
    opened: u32,
    report: ReportHandle,
    wake: Option<SimTime>,
}

impl LoadGen {
    /// A generator and the view of its report. Errors: those of [`LoadGenConfig::check`].
    pub fn new(config: LoadGenConfig) -> Result<(Self, ReportHandle), ConfigError> {
        config.check()?;
        let report = ReportHandle::default();
        let host = Stack::new(config.mac, config.address, config.prefix, config.seed);
        let stage = Stage::Seeking { ask_at: SimTime::ZERO };
        let generator = Self { config, host, stage, opened: 0, report: report.clone(), wake: Some(SimTime::ZERO) };
        Ok((generator, report))
    }

    /// Runs stack and phases until nothing changes at `now`, and finds when to run next.
    fn run(&mut self, now: SimTime) {
        loop {
            self.host.poll(now);
            if !self.step(now) {
                break;
            }
        }
        let stage_wake = match &self.stage {
            Stage::Seeking { ask_at } => Some(*ask_at),
            Stage::Working(phase) => phase.wake(self.config.operation),
            Stage::Between | Stage::Done => None,
        };
        let stack_wake = self.host.wake(now);
        self.wake = [stage_wake, stack_wake].into_iter().flatten().min();
    }

    /// Returns true if the stack has to run again.
    fn step(&mut self, now: SimTime) -> bool {
        match &mut self.stage {
            Stage::Seeking { .. } if now >= self.config.patience => {
                self.report.lock().finished = Some(now);
                self.stage = Stage::Done;
                false
            }
            Stage::Seeking { ask_at } if *ask_at <= now => {
                *ask_at = now + SEEK_INTERVAL;
                self.host.ask_for(*self.config.server.ip());
                false
            }
            Stage::Working(phase) => {
                let again = phase.step(&mut self.host, &self.config, now);
                if again || !phase.done() {
                    return again;
                }
                if let Stage::Working(phase) = std::mem::replace(&mut self.stage, Stage::Between) {
                    let report = phase.finish(&mut self.host);
                    self.opened += report.connections;
                    self.report.lock().phases.push(report);
                }
                true
            }
            Stage::Between => {
                let number = self.report.lock().phases.len();
                if number == self.config.connections.len() {
                    self.report.lock().finished = Some(now);
                    self.stage = Stage::Done;
                    return false;
                }
                // A phase whose ports would run over the end of the range starts over at its beginning.
                let offset = self.opened % (PORTS - MAX_CONNECTIONS);
                self.stage =
                    Stage::Working(Phase::new(&mut self.host, &self.config, number, FIRST_PORT + offset as u16, now));
                true
            }
            Stage::Seeking { .. } | Stage::Done => false,
        }
    }
}

impl Peer for LoadGen {
    fn deliver(&mut self, now: SimTime, frame: &[u8]) {
        if matches!(self.stage, Stage::Seeking { .. }) && stack::is_arp_reply(frame, *self.config.server.ip()) {
            self.report.lock().guest_ready = Some(now);
            self.stage = Stage::Between;
        }
        self.host.push(frame);
        self.run(now);
    }

    fn next(&mut self, now: SimTime) -> Next {
        if self.wake.is_some_and(|at| at <= now) {
            self.run(now);
        }
        match (self.host.pop(), self.wake) {
            (Some(frame), _) => Next::Frame(frame),
            (None, Some(at)) => Next::At(at),
            (None, None) => Next::Idle,
        }
    }

    fn finished(&self) -> bool {
        matches!(self.stage, Stage::Done) && self.host.drained()
    }
}

#[cfg(test)]
mod tests;
