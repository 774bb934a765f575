//! SplitMix64 (Steele, Lea, Flood 2014), and choices made with it.

/// The generator.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound.max(1)
    }

    /// Once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    pub fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.below(N as u64) as usize]
    }
}
