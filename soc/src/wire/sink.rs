//! A peer that swallows everything and counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Next, Peer};
use crate::time::SimTime;

/// The peer; sends nothing.
pub struct Sink {
    counters: Arc<SinkCounters>,
}

/// What a [`Sink`] has received; read it while the machine owns the sink.
#[derive(Debug, Default)]
pub struct SinkCounters {
    frames: AtomicU64,
    bytes: AtomicU64,
    first_ps: AtomicU64,
    last_ps: AtomicU64,
}

impl SinkCounters {
    /// Frames received intact.
    pub fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }
    /// Their bytes, with padding, without check sequences.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
    /// Arrival of the first frame; zero before it.
    pub fn first(&self) -> SimTime {
        SimTime::from_ps(self.first_ps.load(Relaxed))
    }
    /// Arrival of the latest frame; zero before it.
    pub fn last(&self) -> SimTime {
        SimTime::from_ps(self.last_ps.load(Relaxed))
    }
}

impl Sink {
    /// A sink and the view of its counters.
    // The counters are atomic only so that they can be shared safely; machine and reader take turns.
    pub fn new() -> (Self, Arc<SinkCounters>) {
        let counters = Arc::new(SinkCounters::default());
        (Self { counters: Arc::clone(&counters) }, counters)
    }
}

impl Peer for Sink {
    fn deliver(&mut self, now: SimTime, frame: &[u8]) {
        if self.counters.frames.fetch_add(1, Relaxed) == 0 {
            self.counters.first_ps.store(now.as_ps(), Relaxed);
        }
        self.counters.bytes.fetch_add(frame.len() as u64, Relaxed);
        self.counters.last_ps.store(now.as_ps(), Relaxed);
    }

    fn next(&mut self, _now: SimTime) -> Next {
        Next::Idle
    }
}
