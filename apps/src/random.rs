//! Numbers that look random and are the same each time.

use core::cell::Cell;

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(Cell<u64>);

impl Random {
    /// The sequence of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let mut word = self.0.get();
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&self, limit: u64) -> u64 {
        self.next() % limit
    }
}
