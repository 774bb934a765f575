//! Physical ranges: what is used, what is free, and how free ranges are cut into untypeds.
//!
//! The cutting rule is part of the ABI in so far as a root task may count on its order (seL4 `create_untypeds_for_region`):
//! from low to high, each piece as large as the rest and the alignment of its start allow.

use abi::object::bits::{MAX_UNTYPED, MIN_UNTYPED};

/// Bytes `start..end` of physical memory; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Range {
    /// `start..end`.
    ///
    /// # Panics
    /// If it would be empty.
    pub const fn new(start: u64, end: u64) -> Self {
        assert!(start < end);
        Self { start, end }
    }

    /// `size` bytes from `start`, unless that is empty or wraps.
    pub fn from_size(start: u64, size: u64) -> Option<Self> {
        let end = start.checked_add(size)?;
        (size > 0).then_some(Self { start, end })
    }

    /// Bytes.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Never: a range has at least one byte.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Grown to whole blocks of `1 << bits` bytes.
    pub const fn align_out(&self, bits: u32) -> Self {
        let mask = (1 << bits) - 1;
        Self { start: self.start & !mask, end: (self.end + mask) & !mask }
    }
}

/// Most ranges that are kept at once: memory banks, reservations, devices of the kernel.
const CAPACITY: usize = 32;

/// Disjoint ranges in ascending order.
#[derive(Clone)]
pub struct RangeList {
    ranges: [Range; CAPACITY],
    count: usize,
}

impl Default for RangeList {
    fn default() -> Self {
        Self { ranges: [Range { start: 0, end: 1 }; CAPACITY], count: 0 }
    }
}

impl core::fmt::Debug for RangeList {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for RangeList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for RangeList {}

impl RangeList {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.ranges[..self.count].iter().copied()
    }

    /// Adds a range, joined with those that it overlaps or touches; `false` if there is no room.
    #[must_use]
    pub fn insert(&mut self, range: Range) -> bool {
        let mut joined = range;
        let mut kept = 0;
        let mut place = 0;
        for index in 0..self.count {
            let old = self.ranges[index];
            if old.end < range.start || old.start > range.end {
                self.ranges[kept] = old;
                kept += 1;
                if old.end < range.start {
                    place = kept;
                }
            } else {
                joined = Range { start: joined.start.min(old.start), end: joined.end.max(old.end) };
            }
        }
        self.count = kept;
        if kept == CAPACITY {
            return false;
        }
        self.ranges.copy_within(place..kept, place + 1);
        self.ranges[place] = joined;
        self.count += 1;
        true
    }

    /// Takes the bytes of `hole` out; `false` if there is no room for the second half of a split range.
    #[must_use]
    pub fn remove(&mut self, hole: Range) -> bool {
        let mut result = Self::default();
        for old in self.iter() {
            let (low_end, high_start) = (old.end.min(hole.start), old.start.max(hole.end));
            let low = (old.start < low_end).then_some((old.start, low_end));
            let high = (high_start < old.end).then_some((high_start, old.end));
            for (start, end) in low.into_iter().chain(high) {
                if result.count == CAPACITY {
                    return false;
                }
                result.ranges[result.count] = Range { start, end };
                result.count += 1;
            }
        }
        *self = result;
        true
    }

    /// What lies between the ranges, inside `bounds`.
    pub fn gaps(&self, bounds: Range) -> impl Iterator<Item = Range> + '_ {
        let ends = core::iter::once(bounds.start).chain(self.iter().map(|range| range.end));
        let starts = self.iter().map(|range| range.start).chain(core::iter::once(bounds.end));
        ends.zip(starts).filter_map(move |(start, end)| {
            let (start, end) = (start.max(bounds.start), end.min(bounds.end));
            (start < end).then_some(Range { start, end })
        })
    }

    /// Takes `size` bytes, aligned to `1 << align_bits`, from the top of the last range that has them.
    pub fn take_top(&mut self, size: u64, align_bits: u32) -> Option<u64> {
        let mask = (1u64 << align_bits) - 1;
        let start = self.iter().rev().find_map(|range| {
            let start = range.end.checked_sub(size)? & !mask;
            (start >= range.start).then_some(start)
        })?;
        self.remove(Range::new(start, start + size)).then_some(start)
    }
}

/// One untyped: `1 << size_bits` bytes at `paddr`, naturally aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Physical address.
    pub paddr: u64,
    /// log2 of the size.
    pub size_bits: u8,
}

/// Cuts a range into untypeds. A rest below the smallest untyped is dropped.
pub fn pieces(range: Range) -> impl Iterator<Item = Piece> {
    let mut start = range.start;
    core::iter::from_fn(move || {
        while start < range.end {
            let size_bits = (range.end - start).ilog2().min(start.trailing_zeros()).min(MAX_UNTYPED as u32);
            let paddr = start;
            start += 1 << size_bits;
            if size_bits >= MIN_UNTYPED as u32 {
                return Some(Piece { paddr, size_bits: size_bits as u8 });
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ranges: &[(u64, u64)]) -> RangeList {
        let mut list = RangeList::default();
        ranges.iter().for_each(|&(start, end)| assert!(list.insert(Range::new(start, end))));
        list
    }

    fn pairs(list: &RangeList) -> Vec<(u64, u64)> {
        list.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn insert_sorts_and_joins() {
        let list = list(&[(50, 60), (10, 20), (30, 40), (20, 25), (35, 55)]);
        assert_eq!(pairs(&list), [(10, 25), (30, 60)]);
    }

    #[test]
    fn insert_says_when_it_is_full() {
        let mut list = RangeList::default();
        assert!((0..CAPACITY as u64).all(|i| list.insert(Range::new(i * 10, i * 10 + 1))));
        assert!(!list.insert(Range::new(5, 6)));
        assert_eq!(list.iter().count(), CAPACITY);
    }

    #[test]
    fn remove_splits() {
        let mut list = list(&[(0, 100), (200, 300)]);
        assert!(list.remove(Range::new(40, 50)));
        assert!(list.remove(Range::new(90, 210)));
        assert_eq!(pairs(&list), [(0, 40), (50, 90), (210, 300)]);
    }

    #[test]
    fn gaps_fill_the_bounds() {
        let list = list(&[(10, 20), (30, 40)]);
        let gaps: Vec<_> = list.gaps(Range::new(0, 50)).map(|r| (r.start, r.end)).collect();
        assert_eq!(gaps, [(0, 10), (20, 30), (40, 50)]);
        let inner: Vec<_> = list.gaps(Range::new(15, 35)).map(|r| (r.start, r.end)).collect();
        assert_eq!(inner, [(20, 30)]);
    }

    #[test]
    fn take_top_aligns_down_in_the_last_range_that_fits() {
        let mut list = list(&[(0, 0x10_0000), (0x20_0000, 0x20_1000)]);
        assert_eq!(list.take_top(0x3000, 13), Some(0xF_C000));
        assert_eq!(pairs(&list), [(0, 0xF_C000), (0xF_F000, 0x10_0000), (0x20_0000, 0x20_1000)]);
        assert_eq!(list.take_top(0x1000_0000, 12), None);
    }

    #[test]
    fn pieces_are_greedy_and_aligned() {
        let cut = |start, end| pieces(Range::new(start, end)).map(|p| (p.paddr, p.size_bits)).collect::<Vec<_>>();
        assert_eq!(cut(0, 1 << 39), [(0, 38), (1 << 38, 38)]);
        assert_eq!(cut(0x8020_1000, 0x8020_8000), [(0x8020_1000, 12), (0x8020_2000, 13), (0x8020_4000, 14)]);
        // From 0x144B on: bytes up to 0x1450 are too small for an untyped, then 4, 5, 7, ... bits.
        assert_eq!(cut(0x144B, 0x1500), [(0x1450, 4), (0x1460, 5), (0x1480, 7)]);
    }
}
