//! What the load generator has measured. All times are exact integers of simulated picoseconds.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::time::SimTime;

/// Latencies of a phase, from the exact sorted samples (nearest-rank percentiles).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Arithmetic mean, rounded down.
    pub mean: SimTime,
    /// Smallest.
    pub min: SimTime,
    /// Median.
    pub p50: SimTime,
    /// 99th percentile.
    pub p99: SimTime,
    /// 99.9th percentile.
    pub p999: SimTime,
    /// Largest.
    pub max: SimTime,
}

/// One phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseReport {
    /// Connections open at a time.
    pub connections: u32,
    /// Measured requests that were answered completely and correctly.
    pub requests: u64,
    /// Everything that went wrong, warm-up included: wrong or superfluous bytes, time-outs, connections lost or not closed.
    pub errors: u64,
    /// Connection attempts that were refused and tried again (the server was not listening yet); not errors.
    pub refused: u64,
    /// Requests that the least served connection got answered, warm-up included.
    pub fewest: u64,
    /// The same of the best served one.
    pub most: u64,
    /// From the end of the warm-up to the last measured reply.
    pub elapsed: SimTime,
    /// Latencies of the measured requests.
    pub latency: Latency,
    /// The sorted latency samples behind [`Self::latency`], in picoseconds.
    pub samples: Vec<u64>,
}

impl PhaseReport {
    /// Requests per simulated second, rounded down; 0 if nothing was measured.
    pub fn requests_per_second(&self) -> u64 {
        let scaled = u128::from(self.requests) * 1_000_000_000_000;
        scaled.checked_div(u128::from(self.elapsed.as_ps())).map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Sorts `samples` (picoseconds, any order) into the report.
    pub(super) fn set_samples(&mut self, mut samples: Vec<u64>) {
        samples.sort_unstable();
        self.latency = summary(&samples);
        self.requests = samples.len() as u64;
        self.samples = samples;
    }
}

/// Nearest rank: the smallest sample that at least `per_mille` of 1000 samples do not exceed.
fn percentile(sorted: &[u64], per_mille: usize) -> SimTime {
    let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
    SimTime::from_ps(sorted[rank - 1])
}

fn summary(sorted: &[u64]) -> Latency {
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Latency::default() };
    let sum: u128 = sorted.iter().copied().map(u128::from).sum();
    Latency {
        // A mean does not exceed the largest sample, so it fits.
        mean: SimTime::from_ps((sum / sorted.len() as u128) as u64),
        min: SimTime::from_ps(min),
        p50: percentile(sorted, 500),
        p99: percentile(sorted, 990),
        p999: percentile(sorted, 999),
        max: SimTime::from_ps(max),
    }
}

/// Everything so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the guest answered the first ARP request.
    pub guest_ready: Option<SimTime>,
    /// Finished phases, in order.
    pub phases: Vec<PhaseReport>,
    /// When the last phase was over, or the generator gave up; `None` while it is at work.
    pub finished: Option<SimTime>,
}

impl Report {
    /// The guest answered, all phases are over and nothing went wrong in any.
    pub fn passed(&self) -> bool {
        let over = self.guest_ready.is_some() && self.finished.is_some();
        over && self.phases.iter().all(|phase| phase.errors == 0 && phase.requests > 0)
    }
}

/// A view of the report that stays valid while a machine owns the generator.
#[derive(Clone, Debug, Default)]
pub struct ReportHandle {
    // Machine and reader take turns; the lock is never contended and no holder can panic while holding it.
    shared: Arc<Mutex<Report>>,
}

impl ReportHandle {
    /// The report as it stands.
    pub fn report(&self) -> Report {
        self.lock().clone()
    }

    /// All phases are over.
    pub fn finished(&self) -> bool {
        self.lock().finished.is_some()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Report> {
        // A poisoned lock still holds a consistent report: writers only push finished values.
        self.shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut report = PhaseReport { elapsed: SimTime::from_us(1000), ..PhaseReport::default() };
        report.set_samples((1..=1000).rev().collect());
        let ps = |time: SimTime| time.as_ps();
        let latency = report.latency;
        assert_eq!(
            (ps(latency.min), ps(latency.p50), ps(latency.p99), ps(latency.p999), ps(latency.max)),
            (1, 500, 990, 999, 1000)
        );
        assert_eq!(ps(latency.mean), 500);
        assert_eq!(report.requests_per_second(), 1_000_000);
    }

    #[test]
    fn one_sample_and_none() {
        let mut report = PhaseReport::default();
        report.set_samples(vec![7]);
        assert_eq!((report.latency.p50.as_ps(), report.latency.p999.as_ps()), (7, 7));
        report.set_samples(vec![]);
        assert_eq!((report.latency, report.requests_per_second()), (Latency::default(), 0));
    }

    #[test]
    fn an_unfinished_or_faulty_report_does_not_pass() {
        let good = PhaseReport { requests: 1, ..PhaseReport::default() };
        let mut report = Report { phases: vec![good.clone()], ..Report::default() };
        report.finished = Some(SimTime::ZERO);
        assert!(!report.passed(), "nobody answered");
        report.guest_ready = Some(SimTime::ZERO);
        assert!(report.passed());
        report.phases.push(PhaseReport { errors: 1, ..good });
        assert!(!report.passed());
    }
}
