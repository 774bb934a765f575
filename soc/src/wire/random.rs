//! The generator behind every random choice of the wire: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", 2014). One 64-bit state, the same sequence on every host.

use serde::{Deserialize, Serialize};

/// A seeded stream of numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An independent stream for `index` of a family with one seed (lanes of a link, connections of a phase).
    pub fn split(seed: u64, index: u64) -> Self {
        let mut parent = Self::new(seed ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Self::new(parent.next_u64())
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// True in `parts` of a million cases.
    pub fn chance_ppm(&mut self, parts: u32) -> bool {
        parts > 0 && self.next_u64() % 1_000_000 < u64::from(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_seed_zero_are_the_published_ones() {
        let mut random = Random::new(0);
        assert_eq!(random.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(random.next_u64(), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn chance_is_about_right_and_zero_is_never() {
        let mut random = Random::new(7);
        let hits = (0..100_000).filter(|_| random.chance_ppm(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| !random.chance_ppm(0)));
    }
}
