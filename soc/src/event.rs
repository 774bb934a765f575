//! The event queue: what devices asked to happen later, in order of time, equal times in order of asking.

use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A due event: which device, and the token it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Event {
    pub time: SimTime,
    sequence: u64,
    pub device: usize,
    pub token: u64,
}

/// Device number of the bus' own events.
pub(crate) const RISE: usize = usize::MAX;

/// Pending events.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Event>>,
    sequence: u64,
}

impl EventQueue {
    /// Asks for an event. One at the end of time never comes: otherwise what asks again and again would find no end there.
    pub fn push(&mut self, time: SimTime, device: usize, token: u64) {
        if time == SimTime::END {
            return;
        }
        self.sequence += 1;
        self.heap.push(Reverse(Event { time, sequence: self.sequence, device, token }));
    }

    /// Drops the events for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&Event) -> bool) {
        self.heap.retain(|Reverse(event)| keep(event));
    }

    /// True if no event is for a device beyond the first `devices`, or for none at all.
    pub fn only_for(&self, devices: usize) -> bool {
        self.heap.iter().all(|Reverse(event)| event.device < devices || event.device == RISE)
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse(event)| event.time)
    }

    /// Takes the next event if it is due at `now`.
    pub fn pop_due(&mut self, now: SimTime) -> Option<Event> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(event)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_then_order_of_asking() {
        let mut queue = EventQueue::default();
        queue.push(SimTime::from_ns(20), 1, 1);
        queue.push(SimTime::from_ns(10), 2, 2);
        queue.push(SimTime::from_ns(20), 3, 3);
        assert_eq!(queue.pop_due(SimTime::from_ns(5)), None);
        let order: Vec<_> = core::iter::from_fn(|| queue.pop_due(SimTime::from_ns(20))).map(|e| e.device).collect();
        assert_eq!(order, [2, 1, 3]);
    }

    #[test]
    fn the_end_of_time_never_comes() {
        let mut queue = EventQueue::default();
        queue.push(SimTime::END, 1, 1);
        assert_eq!((queue.len(), queue.pop_due(SimTime::END)), (0, None));
    }
}
