//! A full-duplex Ethernet link: two independent lanes with a rate, a delay and, if wanted, seeded loss, damage, reordering and
//! duplication.
//!
//! A frame of n bytes occupies its lane for (n + 24) byte times: 8 of preamble and start delimiter, n, 4 of check sequence, 12 of
//! inter-frame gap (IEEE 802.3). At 1 Gb/s a byte takes 8 ns. The last bit arrives 12 byte times before the lane is free again.
//!
//! The NIC model owns its link and drives it: after anything happened it calls [`Link::advance`], which runs the far end up to
//! the present and says when to call again.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::random::Random;
use super::{FCS_BYTES, Loopback, MIN_FRAME_BYTES, Next, Peer};
use crate::error::SocError;
use crate::time::SimTime;

/// Preamble and start-of-frame delimiter, in byte times.
const PREAMBLE_BYTES: u64 = 8;
/// Inter-frame gap, in byte times.
const GAP_BYTES: u64 = 12;
/// A frame that is overtaken arrives up to this many of the longest standard frames (1514 bytes) late.
const OVERTAKEN_BY_AT_MOST: u64 = 4;
/// Byte times of such a frame.
const LONG_FRAME_BYTES: u64 = PREAMBLE_BYTES + 1514 + FCS_BYTES as u64 + GAP_BYTES;

/// Properties of a link, the same for both lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Time of one byte, in picoseconds: 8000 at 1 Gb/s.
    pub byte_ps: u64,
    /// Propagation delay.
    pub delay: SimTime,
    /// Frames lost without a trace, parts in a million.
    pub loss_ppm: u32,
    /// Frames that arrive with a bad check sequence, parts in a million.
    pub damage_ppm: u32,
    /// Frames that arrive late, so that those behind may overtake them, parts in a million.
    pub reorder_ppm: u32,
    /// Frames that arrive twice, parts in a million.
    pub duplicate_ppm: u32,
    /// Seed of all that.
    pub seed: u64,
}

impl Default for LinkConfig {
    /// 1 Gb/s, no delay, nothing goes wrong.
    fn default() -> Self {
        Self {
            byte_ps: 8_000,
            delay: SimTime::ZERO,
            loss_ppm: 0,
            damage_ppm: 0,
            reorder_ppm: 0,
            duplicate_ppm: 0,
            seed: 1,
        }
    }
}

/// A frame that has arrived at the NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The frame without its check sequence.
    pub frame: Vec<u8>,
    /// The check sequence fits.
    pub intact: bool,
}

/// Frames and bytes that a lane has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounters {
    /// Frames put on the lane.
    pub frames: u64,
    /// Their bytes, without check sequences.
    pub bytes: u64,
    /// Of these, frames lost.
    pub lost: u64,
    /// Of these, frames damaged.
    pub damaged: u64,
    /// Of these, frames that arrived late.
    pub late: u64,
    /// Of these, frames that arrived twice.
    pub duplicated: u64,
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the NIC to the peer.
    FromNic,
    /// From the peer to the NIC.
    ToNic,
}

/// A frame on its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFrame {
    /// Which way it goes.
    pub direction: Direction,
    /// First bit of the preamble.
    pub start: SimTime,
    /// Last bit at the sender.
    pub end: SimTime,
    /// Length without check sequence.
    pub bytes: usize,
}

/// What a link has carried, for somebody who takes it from time to time. Clones share one log.
#[derive(Clone, Debug, Default)]
pub struct FrameLog(Arc<Mutex<Vec<LoggedFrame>>>);

impl FrameLog {
    fn push(&self, frame: LoggedFrame) {
        // A list of finished entries is whole whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
    }

    /// Takes what has been logged since the last time.
    pub fn drain(&self) -> Vec<LoggedFrame> {
        core::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One direction.
#[derive(Serialize, Deserialize)]
struct Lane {
    config: LinkConfig,
    direction: Direction,
    #[serde(skip)]
    log: Option<FrameLog>,
    /// Draws loss and damage.
    random: Random,
    /// Draws reordering and duplication.
    detours: Random,
    free_at: SimTime,
    /// By time of arrival.
    in_flight: VecDeque<(SimTime, Arrival)>,
    counters: LaneCounters,
}

impl Lane {
    fn new(config: LinkConfig, direction: Direction) -> Self {
        let index = direction as u64;
        Self {
            config,
            direction,
            log: None,
            random: Random::split(config.seed, index),
            detours: Random::split(config.seed, index + 2),
            free_at: SimTime::ZERO,
            in_flight: VecDeque::new(),
            counters: LaneCounters::default(),
        }
    }

    fn bytes(&self, count: u64) -> SimTime {
        SimTime::from_ps(count * self.config.byte_ps)
    }

    /// Starts a frame at `now`, or when the lane is free if that is later. Returns when the lane is free again.
    fn send(&mut self, now: SimTime, frame: Vec<u8>, intact: bool) -> SimTime {
        let length = frame.len() as u64;
        let start = now.max(self.free_at);
        let last_bit = start + self.bytes(PREAMBLE_BYTES + length + FCS_BYTES as u64);
        self.free_at = last_bit + self.bytes(GAP_BYTES);
        if let Some(log) = &self.log {
            log.push(LoggedFrame { direction: self.direction, start, end: last_bit, bytes: frame.len() });
        }
        self.counters.frames += 1;
        self.counters.bytes += length;
        // All are drawn for every frame, so that a changed loss rate does not move the damage to other frames.
        let lost = self.random.chance_ppm(self.config.loss_ppm);
        let damaged = self.random.chance_ppm(self.config.damage_ppm);
        let late = self.detours.chance_ppm(self.config.reorder_ppm);
        let long_frames = 1 + self.detours.next_u64() % OVERTAKEN_BY_AT_MOST;
        let twice = self.detours.chance_ppm(self.config.duplicate_ppm);
        self.counters.lost += u64::from(lost);
        if lost {
            return self.free_at;
        }
        self.counters.damaged += u64::from(damaged);
        self.counters.late += u64::from(late);
        self.counters.duplicated += u64::from(twice);
        let arrival = Arrival { frame, intact: intact && !damaged };
        let in_time = last_bit + self.config.delay;
        if twice {
            self.arrive(in_time, arrival.clone());
        }
        let detour = if late { self.bytes(long_frames * LONG_FRAME_BYTES) } else { SimTime::ZERO };
        self.arrive(in_time + detour, arrival);
        self.free_at
    }

    /// Takes note of an arrival, behind those of the same time.
    fn arrive(&mut self, at: SimTime, arrival: Arrival) {
        let place = self.in_flight.partition_point(|(other, _)| *other <= at);
        self.in_flight.insert(place, (at, arrival));
    }

    fn arrived(&mut self, now: SimTime) -> Option<(SimTime, Arrival)> {
        if self.in_flight.front()?.0 <= now { self.in_flight.pop_front() } else { None }
    }

    fn next_arrival(&self) -> Option<SimTime> {
        self.in_flight.front().map(|(at, _)| *at)
    }
}

/// At the far end of a link that is being restored, until [`Link::take_peer`].
fn nobody() -> Box<dyn Peer> {
    Box::new(Loopback::new())
}

/// A call of a peer.
#[derive(Serialize, Deserialize)]
enum Call {
    Deliver(SimTime, Vec<u8>),
    Next(SimTime),
}

/// A link with a peer at its far end.
#[derive(Serialize, Deserialize)]
pub struct Link {
    to_peer: Lane,
    to_nic: Lane,
    #[serde(skip, default = "nobody")]
    peer: Box<dyn Peer>,
    /// What the peer was told and asked so far, if that is kept.
    calls: Option<Vec<Call>>,
    /// When the peer asked to be asked again; `None` = not before a delivery.
    ask_at: Option<SimTime>,
    /// Latest time seen. A hart may be a little ahead of the events; the peer's time never goes back for that.
    latest: SimTime,
}

impl Link {
    /// A link to `peer`. The peer is first asked for a frame by the first [`Link::advance`].
    pub fn new(config: LinkConfig, peer: Box<dyn Peer>) -> Self {
        Self {
            to_peer: Lane::new(config, Direction::FromNic),
            to_nic: Lane::new(config, Direction::ToNic),
            peer,
            calls: None,
            ask_at: Some(SimTime::ZERO),
            latest: SimTime::ZERO,
        }
    }

    /// Writes down every frame from now on.
    pub fn observe(&mut self, log: &FrameLog) {
        self.to_peer.log = Some(log.clone());
        self.to_nic.log = Some(log.clone());
    }

    /// From now on keeps what the peer is told, so that the link can be saved. Before the first [`Link::advance`], or it is no use.
    pub fn keep_calls(&mut self) {
        self.calls.get_or_insert_default();
    }

    /// Error: [`SocError::Snapshot`], if the peer cannot be repeated, or its calls were not kept.
    pub(crate) fn check_repeatable(&self) -> Result<(), SocError> {
        let reason = match &self.calls {
            _ if !self.peer.repeatable() => "the far end of the wire is on the host's network and cannot be saved",
            None => "what the far end of the wire was told has not been kept: ask for snapshots before the run",
            Some(_) => return Ok(()),
        };
        Err(SocError::Snapshot { reason: reason.to_owned() })
    }

    /// This link has been restored: takes the peer and the log of `new`, and brings the peer to where it was when this link was saved.
    pub(crate) fn take_peer(&mut self, new: Link) {
        self.peer = new.peer;
        self.to_peer.log = new.to_peer.log;
        self.to_nic.log = new.to_nic.log;
        for call in self.calls.iter().flatten() {
            match call {
                Call::Deliver(now, frame) => self.peer.deliver(*now, frame),
                Call::Next(now) => drop(self.peer.next(*now)),
            }
        }
    }

    /// Puts a frame of the NIC on the wire at `now`, behind what is still being sent. `intact` is false if the NIC sent a wrong check
    /// sequence. Returns when the wire is free for the next frame.
    pub fn send(&mut self, now: SimTime, frame: Vec<u8>, intact: bool) -> SimTime {
        self.to_peer.send(now, frame, intact)
    }

    /// Runs the far end up to `now`: delivers what has arrived there and takes what the peer wants to send. Returns when to call
    /// again, if nothing else happens: the next arrival at either end, or the time the peer asked for.
    pub fn advance(&mut self, now: SimTime) -> Option<SimTime> {
        let now = now.max(self.latest);
        self.latest = now;
        while let Some((at, arrival)) = self.to_peer.arrived(now) {
            // A receiver drops damaged frames and runts (IEEE 802.3, clause 4.2.4.2.2).
            if arrival.intact && arrival.frame.len() >= MIN_FRAME_BYTES {
                if let Some(calls) = &mut self.calls {
                    calls.push(Call::Deliver(now, arrival.frame.clone()));
                }
                self.peer.deliver(now, &arrival.frame);
            }
            self.ask_at = Some(at);
        }
        while self.ask_at.is_some_and(|at| at <= now) && self.to_nic.free_at <= now {
            if let Some(calls) = &mut self.calls {
                calls.push(Call::Next(now));
            }
            match self.peer.next(now) {
                Next::Frame(mut frame) => {
                    if frame.len() < MIN_FRAME_BYTES {
                        frame.resize(MIN_FRAME_BYTES, 0);
                    }
                    self.ask_at = Some(self.to_nic.send(now, frame, true));
                }
                // Asking for the present again would never end.
                Next::At(at) => self.ask_at = Some(at.max(now + SimTime::from_ps(1))),
                Next::Idle => self.ask_at = None,
            }
        }
        let ask = self.ask_at.map(|at| at.max(self.to_nic.free_at));
        [self.to_peer.next_arrival(), self.to_nic.next_arrival(), ask].into_iter().flatten().min()
    }

    /// A frame that has arrived at the NIC by `now`.
    pub fn receive(&mut self, now: SimTime) -> Option<Arrival> {
        self.to_nic.arrived(now).map(|(_, arrival)| arrival)
    }

    /// The peer has done all it came for.
    pub fn finished(&self) -> bool {
        self.peer.finished()
    }

    /// What the lanes have carried: (from the NIC, to the NIC).
    pub fn counters(&self) -> (LaneCounters, LaneCounters) {
        (self.to_peer.counters, self.to_nic.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Echo, Sink};

    fn frame(length: usize) -> Vec<u8> {
        (0..length).map(|index| index as u8).collect()
    }

    #[test]
    fn a_frame_takes_24_byte_times_more_than_its_length() {
        let mut link = Link::new(LinkConfig::default(), Box::new(Sink::new().0));
        assert_eq!(link.send(SimTime::ZERO, frame(60), true), SimTime::from_ns(672));
        // The second waits for the first; the third starts on a free wire.
        assert_eq!(link.send(SimTime::from_ns(100), frame(1514), true), SimTime::from_ns(672 + 12_304));
        assert_eq!(link.send(SimTime::from_us(50), frame(16_128), true), SimTime::from_ns(50_000 + 129_216));
    }

    #[test]
    fn the_peer_gets_the_frame_at_its_last_bit() {
        let (sink, counters) = Sink::new();
        let config = LinkConfig { delay: SimTime::from_us(3), ..LinkConfig::default() };
        let mut link = Link::new(config, Box::new(sink));
        link.send(SimTime::ZERO, frame(60), true);
        let arrival = SimTime::from_ns((8 + 60 + 4) * 8) + SimTime::from_us(3);
        assert_eq!(link.advance(SimTime::ZERO), Some(arrival));
        assert_eq!(counters.frames(), 0);
        assert_eq!(link.advance(arrival), None);
        assert_eq!((counters.frames(), counters.bytes()), (1, 60));
    }

    #[test]
    fn lanes_are_independent_and_answers_queue_behind_each_other() {
        let mut link = Link::new(LinkConfig::default(), Box::new(Echo::new()));
        let mut now = SimTime::ZERO;
        link.send(now, frame(60), true);
        link.send(now, frame(60), true);
        let mut arrivals = Vec::new();
        while let Some(next) = link.advance(now) {
            now = next;
            while link.receive(now).is_some() {
                arrivals.push(now.as_ns());
            }
        }
        // Sent 0 and 672, at the peer at 576 and 1248, back after another 576 each.
        assert_eq!(arrivals, [1152, 1824]);
    }

    #[test]
    fn the_log_has_both_directions() {
        let (mut link, log) = (Link::new(LinkConfig::default(), Box::new(Echo::new())), FrameLog::default());
        link.observe(&log);
        link.send(SimTime::ZERO, frame(60), true);
        let sent = |direction, start, end| LoggedFrame {
            direction,
            start: SimTime::from_ns(start),
            end: SimTime::from_ns(end),
            bytes: 60,
        };
        link.advance(SimTime::from_ns(576));
        assert_eq!(log.drain(), [sent(Direction::FromNic, 0, 576), sent(Direction::ToNic, 576, 1152)]);
        assert_eq!(log.drain(), []);
    }

    #[test]
    fn loss_and_damage_follow_the_seed_alone() {
        let run = |seed: u64, loss_ppm: u32| {
            let (sink, counters) = Sink::new();
            let config = LinkConfig { loss_ppm, damage_ppm: 100_000, seed, ..LinkConfig::default() };
            let mut link = Link::new(config, Box::new(sink));
            let mut now = SimTime::ZERO;
            for _ in 0..1000 {
                now = link.send(now, frame(64), true);
                link.advance(now);
            }
            let (sent, _) = link.counters();
            assert_eq!(sent.frames, sent.lost + sent.damaged + counters.frames());
            (sent.lost, sent.damaged)
        };
        assert_eq!(run(1, 200_000), run(1, 200_000));
        assert_ne!(run(1, 200_000), run(2, 200_000));
        assert_eq!(run(1, 0).0, 0);
        assert!((150..250).contains(&run(1, 200_000).0));
    }

    /// A peer that keeps the first byte of all it gets.
    struct FirstBytes(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Peer for FirstBytes {
        fn deliver(&mut self, _now: SimTime, frame: &[u8]) {
            self.0.lock().unwrap().push(frame[0]);
        }
        fn next(&mut self, _now: SimTime) -> Next {
            Next::Idle
        }
    }

    #[test]
    fn frames_come_late_or_twice_and_none_gets_lost() {
        let run = |reorder_ppm: u32, duplicate_ppm: u32| {
            let seen = std::sync::Arc::default();
            let config = LinkConfig { reorder_ppm, duplicate_ppm, ..LinkConfig::default() };
            let mut link = Link::new(config, Box::new(FirstBytes(std::sync::Arc::clone(&seen))));
            for number in 0..200 {
                link.send(SimTime::ZERO, vec![number; 600], true);
            }
            link.advance(SimTime::from_us(1_000_000));
            let (sent, _) = link.counters();
            let seen = seen.lock().unwrap().clone();
            (seen, sent)
        };
        let in_order: Vec<u8> = (0..200).collect();
        assert_eq!(run(0, 0).0, in_order);
        let (mut seen, sent) = run(100_000, 0);
        assert!(seen != in_order && (10..40).contains(&sent.late), "{sent:?}");
        seen.sort_unstable();
        assert_eq!(seen, in_order);
        let (mut seen, sent) = run(100_000, 100_000);
        assert!((10..40).contains(&sent.duplicated), "{sent:?}");
        assert_eq!(seen.len() as u64, 200 + sent.duplicated);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, in_order);
        assert_eq!(run(100_000, 100_000), run(100_000, 100_000));
    }

    #[test]
    fn damaged_frames_and_runts_do_not_reach_the_peer() {
        let (sink, counters) = Sink::new();
        let mut link = Link::new(LinkConfig::default(), Box::new(sink));
        link.send(SimTime::ZERO, frame(64), false);
        link.send(SimTime::ZERO, frame(59), true);
        link.send(SimTime::ZERO, frame(64), true);
        link.advance(SimTime::from_us(10));
        assert_eq!(counters.frames(), 1);
    }
}
