//! The event queue: what devices asked to happen later, in order of time, equal times in order of asking.
//!
//! A device has one pending event per token at most: asking again moves it. So the queue is as long as the devices have timers, whatever
//! the guest does with them. Events from outside, such as typed bytes, stand beside each other.

use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Device number of the bus' own events.
pub(crate) const RISE: usize = usize::MAX;

/// A due event: which device, and the token it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub time: SimTime,
    pub device: usize,
    pub token: u64,
}

/// Pending events.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub(crate) struct EventQueue {
    /// Device and token, by time and order of asking.
    pending: BTreeMap<(SimTime, u64), (usize, u64)>,
    /// Where an alarm stands in the queue.
    alarms: BTreeMap<(usize, u64), (SimTime, u64)>,
    sequence: u64,
    /// Time of the first one: the run loop asks for it all the time.
    next: Option<SimTime>,
}

/// An event in a snapshot; there they stand in order.
#[derive(Serialize, Deserialize)]
struct Entry {
    time: SimTime,
    device: usize,
    token: u64,
    alarm: bool,
}

impl From<EventQueue> for Vec<Entry> {
    fn from(queue: EventQueue) -> Self {
        let entry = |(&place, &(device, token)): (&(SimTime, u64), &(usize, u64))| {
            let alarm = queue.alarms.get(&(device, token)) == Some(&place);
            Entry { time: place.0, device, token, alarm }
        };
        queue.pending.iter().map(entry).collect()
    }
}

impl From<Vec<Entry>> for EventQueue {
    fn from(entries: Vec<Entry>) -> Self {
        let mut queue = Self::default();
        for Entry { time, device, token, alarm } in entries {
            if alarm {
                queue.set_alarm(time, device, token);
            } else {
                queue.push(time, device, token);
            }
        }
        queue
    }
}

impl EventQueue {
    /// Asks for an event, whatever else is pending. One at the end of time never comes: otherwise what asks again and again
    /// would find no end there.
    pub fn push(&mut self, time: SimTime, device: usize, token: u64) {
        self.insert(time, device, token);
        self.next = self.first();
    }

    /// Moves the event of this device and token to `time`, where it stands behind what is there; makes it if there is none.
    pub fn set_alarm(&mut self, time: SimTime, device: usize, token: u64) {
        if let Some(place) = self.alarms.remove(&(device, token)) {
            self.pending.remove(&place);
        }
        if let Some(place) = self.insert(time, device, token) {
            self.alarms.insert((device, token), place);
        }
        self.next = self.first();
    }

    fn insert(&mut self, time: SimTime, device: usize, token: u64) -> Option<(SimTime, u64)> {
        if time == SimTime::END {
            return None;
        }
        self.sequence += 1;
        let place = (time, self.sequence);
        self.pending.insert(place, (device, token));
        Some(place)
    }

    fn first(&self) -> Option<SimTime> {
        self.pending.first_key_value().map(|((time, _), _)| *time)
    }

    /// Drops the events for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(usize, u64) -> bool) {
        self.pending.retain(|_, (device, token)| keep(*device, *token));
        self.alarms.retain(|(device, token), _| keep(*device, *token));
        self.next = self.first();
    }

    /// True if no event is for a device beyond the first `devices`, or for none at all.
    pub fn only_for(&self, devices: usize) -> bool {
        self.pending.values().all(|&(device, _)| device < devices || device == RISE)
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.next
    }

    /// Takes the next event if it is due at `now`.
    pub fn pop_due(&mut self, now: SimTime) -> Option<Event> {
        if self.next? > now {
            return None;
        }
        let (place, (device, token)) = self.pending.pop_first()?;
        if self.alarms.get(&(device, token)) == Some(&place) {
            self.alarms.remove(&(device, token));
        }
        self.next = self.first();
        Some(Event { time: place.0, device, token })
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
        queue.set_alarm(SimTime::from_ns(20), 3, 3);
        assert_eq!(queue.pop_due(SimTime::from_ns(5)), None);
        let saved: Vec<Entry> = queue.clone().into();
        for mut queue in [queue, saved.into()] {
            let order: Vec<_> = core::iter::from_fn(|| queue.pop_due(SimTime::from_ns(20))).map(|e| e.device).collect();
            assert_eq!(order, [2, 1, 3]);
        }
    }

    #[test]
    fn an_alarm_that_moves_leaves_nothing_behind() {
        let mut queue = EventQueue::default();
        for time in (0..1000).rev() {
            queue.set_alarm(SimTime::from_us(1_000_000 + time), 1, 7);
            queue.set_alarm(SimTime::from_us(2_000_000 + time), 1, 8);
        }
        assert_eq!((queue.len(), queue.next_time()), (2, Some(SimTime::from_us(1_000_000))));
        queue.set_alarm(SimTime::END, 1, 7);
        assert_eq!((queue.len(), queue.next_time()), (1, Some(SimTime::from_us(2_000_000))));
        // One that has come can be asked for again.
        assert!(queue.pop_due(SimTime::from_us(2_000_000)).is_some());
        queue.set_alarm(SimTime::from_us(3_000_000), 1, 8);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn the_end_of_time_never_comes() {
        let mut queue = EventQueue::default();
        queue.push(SimTime::END, 1, 1);
        assert_eq!((queue.len(), queue.pop_due(SimTime::END)), (0, None));
    }
}
