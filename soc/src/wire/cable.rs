//! A cable between two machines in one process: what one sends, the other receives a fixed time later.
//!
//! Each end is the [`Peer`] of one machine's link. Whoever runs the machines by turns, each no further than one delay beyond what the
//! other has reached, never makes a frame come late: it is due one delay after it was sent ([`crate::pair`]).

use super::{Next, Peer};
use crate::time::SimTime;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One direction.
#[derive(Default)]
struct Lane {
    /// By the time at which they are due.
    frames: VecDeque<(SimTime, Vec<u8>)>,
    /// Nothing that is not here yet is due before.
    known_until: SimTime,
    carried: u64,
}

/// A lane as its two ends share it. The machines take turns, so the lock is never contended.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Lane>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lane> {
        // A lane is whole between two calls whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end.
pub(crate) struct End {
    incoming: Shared,
    outgoing: Shared,
    delay: SimTime,
}

/// The cable as seen by whoever runs the machines.
pub(crate) struct Cable {
    /// Into the first machine, into the second.
    lanes: [Shared; 2],
    delay: SimTime,
}

impl Cable {
    /// A cable and its ends, for the first machine and the second. `delay` is not zero.
    pub fn new(delay: SimTime) -> (Self, [End; 2]) {
        let lanes = [Shared::default(), Shared::default()];
        let end = |into: usize| End { incoming: lanes[into].clone(), outgoing: lanes[1 - into].clone(), delay };
        let ends = [end(0), end(1)];
        (Self { lanes, delay }, ends)
    }

    /// Machine `number` has come to `now`: what it sends from now on is due a delay later.
    pub fn reached(&self, number: usize, now: SimTime) {
        self.lanes[1 - number].lock().known_until = now + self.delay;
    }

    /// Frames that are under way, and those that ever were.
    pub fn frames(&self) -> (usize, u64) {
        let lanes = self.lanes.each_ref().map(Shared::lock);
        (lanes.iter().map(|lane| lane.frames.len()).sum(), lanes.iter().map(|lane| lane.carried).sum())
    }
}

impl Peer for End {
    fn deliver(&mut self, now: SimTime, frame: &[u8]) {
        let mut lane = self.outgoing.lock();
        lane.carried += 1;
        lane.frames.push_back((now + self.delay, frame.to_vec()));
    }

    fn next(&mut self, now: SimTime) -> Next {
        let mut lane = self.incoming.lock();
        match lane.frames.front() {
            Some((due, _)) if *due > now => Next::At(*due),
            Some(_) => lane.frames.pop_front().map_or(Next::Idle, |(_, frame)| Next::Frame(frame)),
            // Until then nobody can say; a machine that is ahead asks again a little later.
            None if lane.known_until > now => Next::At(lane.known_until),
            None => Next::At(now + self.delay),
        }
    }

    /// What it says depends on the other machine.
    fn repeatable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_due_one_delay_later_at_the_other_end() {
        let us = SimTime::from_us;
        let (cable, [mut first, mut second]) = Cable::new(us(5));
        cable.reached(0, us(10));
        assert_eq!(second.next(us(11)), Next::At(us(15)));
        first.deliver(us(12), &[1; 60]);
        assert_eq!(cable.frames(), (1, 1));
        assert_eq!(second.next(us(15)), Next::At(us(17)));
        assert_eq!(second.next(us(17)), Next::Frame(vec![1; 60]));
        assert_eq!((cable.frames(), second.next(us(17))), ((0, 1), Next::At(us(22))));
        assert_eq!(first.next(us(17)), Next::At(us(22)), "nothing comes back");
    }
}
