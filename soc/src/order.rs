//! Who is next: the running harts in order of (clock, id).
//!
//! In timed mode a turn is often a single block, and which hart is next is as good as random to the host. So the search compares
//! and selects without a branch; and the hart behind the first is found beforehand, so that the host can work ahead on its
//! block while the first still runs. A turn changes one clock; the rest is read anew only when something else may have.

use crate::config::MAX_HARTS;
use crate::hart::Hart;

/// Bits of a key below the clock: the id.
const ID_BITS: u32 = MAX_HARTS.ilog2();
const ID_MASK: u64 = MAX_HARTS as u64 - 1;
/// Behind every hart.
const NOBODY: u64 = u64::MAX;

/// Clock and id of a hart, comparable. Clocks stay below 2^61 cycles, some seven hundred years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// Behind every hart.
    pub const NOBODY: Self = Self(NOBODY);

    fn new(id: usize, clock: u64) -> Self {
        Self(clock << ID_BITS | id as u64)
    }

    /// Later than any clock if there is no hart.
    #[inline(always)]
    pub fn clock(self) -> u64 {
        self.0 >> ID_BITS
    }

    /// None if there is no hart.
    #[inline(always)]
    pub fn hart(self) -> Option<usize> {
        (self.0 != NOBODY).then_some((self.0 & ID_MASK) as usize)
    }
}

/// The running harts.
pub(crate) struct Order {
    /// Of each hart; [`NOBODY`] if it waits.
    keys: [u64; MAX_HARTS],
    harts: usize,
}

impl Order {
    /// The order of those of `harts` that are not waiting.
    pub fn of(harts: &[Hart]) -> Self {
        let mut keys = [NOBODY; MAX_HARTS];
        for hart in harts.iter().filter(|hart| !hart.waiting) {
            keys[hart.id] = Key::new(hart.id, hart.clock).0;
        }
        Self { keys, harts: harts.len() }
    }

    /// The hart furthest behind, of equal ones that with the smallest id; and the next one.
    #[inline(always)]
    pub fn first_two(&self) -> (Key, Key) {
        let (mut first, mut second) = (NOBODY, NOBODY);
        for &key in &self.keys[..self.harts] {
            second = second.min(first.max(key));
            first = first.min(key);
        }
        (Key(first), Key(second))
    }

    /// The hart furthest behind except that of `key`.
    #[inline(always)]
    pub fn first_but(&self, key: Key) -> Key {
        let others = self.keys[..self.harts].iter().map(|&other| if other == key.0 { NOBODY } else { other });
        Key(others.fold(NOBODY, u64::min))
    }

    /// The clock of running hart `hart` is now `clock`.
    #[inline(always)]
    pub fn set(&mut self, hart: usize, clock: u64) -> Key {
        let key = Key::new(hart, clock);
        self.keys[hart % MAX_HARTS] = key.0;
        key
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

    fn two(order: &Order) -> (Option<usize>, Option<usize>) {
        let (first, second) = order.first_two();
        (first.hart(), second.hart())
    }

    #[test]
    fn the_smallest_clock_then_the_smallest_id() {
        let mut order = Order::of(&harts(&[30, 10, 20, 10]));
        assert_eq!(two(&order), (Some(1), Some(3)));
        order.set(1, 20);
        assert_eq!(two(&order), (Some(3), Some(1)));
        let last = order.set(3, 40);
        assert_eq!(two(&order), (Some(1), Some(2)));
        let (first, second) = order.first_two();
        assert_eq!(order.first_but(first), second);
        assert_eq!(order.first_but(last), first);
        assert_eq!(order.first_two().1.clock(), 20);
    }

    #[test]
    fn who_waits_is_left_out() {
        let mut harts = harts(&[1, 2]);
        harts[0].waiting = true;
        let order = Order::of(&harts);
        assert_eq!(two(&order), (Some(1), None));
        assert_eq!(order.first_two().1.clock(), NOBODY >> ID_BITS);
        harts[1].waiting = true;
        assert_eq!(two(&Order::of(&harts)), (None, None));
    }
}
