//! Who is next: the running harts in order of (clock, id).
//!
//! After a turn only the hart at the front has moved, so the order is mended by moving that one back; it is built anew
//! when anything else has changed a clock or has stopped or woken a hart.

use crate::config::MAX_HARTS;
use crate::hart::Hart;

/// Bits of a key below the clock: the id.
const ID_BITS: u32 = MAX_HARTS.ilog2();
const ID_MASK: u64 = MAX_HARTS as u64 - 1;
/// Behind every hart.
const NOBODY: u64 = u64::MAX;

/// The running harts, the one furthest behind first. Clocks stay below 2^61 cycles, some seven hundred years.
pub(crate) struct Order {
    /// Clock and id of each in one number; behind the last of them, [`NOBODY`].
    keys: [u64; MAX_HARTS + 1],
}

impl Order {
    /// The order of those of `harts` that are not waiting.
    pub fn of(harts: &[Hart]) -> Self {
        let mut keys = [NOBODY; MAX_HARTS + 1];
        for (key, hart) in keys.iter_mut().zip(harts.iter().filter(|hart| !hart.waiting)) {
            *key = hart.clock << ID_BITS | hart.id as u64;
        }
        keys.sort_unstable();
        Self { keys }
    }

    /// The hart furthest behind, of equal ones that with the smallest id.
    #[inline(always)]
    pub fn first(&self) -> Option<usize> {
        (self.keys[0] != NOBODY).then_some((self.keys[0] & ID_MASK) as usize)
    }

    /// Clock of the hart behind the first; without one, later than any clock.
    #[inline(always)]
    pub fn second_clock(&self) -> u64 {
        self.keys[1] >> ID_BITS
    }

    /// The first hart's clock is now `clock`.
    #[inline(always)]
    pub fn advance(&mut self, clock: u64) {
        let key = clock << ID_BITS | (self.keys[0] & ID_MASK);
        let mut at = 0;
        while at + 1 < self.keys.len() && self.keys[at + 1] < key {
            self.keys[at] = self.keys[at + 1];
            at += 1;
        }
        self.keys[at] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::hart::Build;

    fn harts(clocks: &[u64]) -> Vec<Hart> {
        let mut harts: Vec<Hart> =
            (0..clocks.len()).map(|id| Hart::new(id, 0, 0, Build::of(&Config::default()))).collect();
        for (hart, &clock) in harts.iter_mut().zip(clocks) {
            hart.clock = clock;
        }
        harts
    }

    #[test]
    fn the_smallest_clock_then_the_smallest_id() {
        let mut order = Order::of(&harts(&[30, 10, 20, 10]));
        assert_eq!((order.first(), order.second_clock()), (Some(1), 10));
        order.advance(20);
        assert_eq!((order.first(), order.second_clock()), (Some(3), 20));
        order.advance(40);
        assert_eq!((order.first(), order.second_clock()), (Some(1), 20));
        order.advance(25);
        assert_eq!((order.first(), order.second_clock()), (Some(2), 25));
        assert_eq!(Order::of(&harts(&[])).first(), None);
    }

    #[test]
    fn mending_is_the_same_as_building_anew() {
        let mut harts = harts(&[0; MAX_HARTS]);
        let mut order = Order::of(&harts);
        let mut step = 1;
        for _ in 0..1000 {
            let first = order.first().unwrap();
            step = step * 5 % 97;
            harts[first].clock += step;
            order.advance(harts[first].clock);
            assert_eq!(order.keys, Order::of(&harts).keys);
        }
    }

    #[test]
    fn who_waits_is_left_out() {
        let mut harts = harts(&[1, 2]);
        harts[0].waiting = true;
        let order = Order::of(&harts);
        assert_eq!((order.first(), order.second_clock()), (Some(1), NOBODY >> ID_BITS));
    }
}
