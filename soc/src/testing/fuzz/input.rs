//! Bytes read as decisions. Behind the end there are zeros.

use crate::board::RAM_BASE;

pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let (taken, rest) = self.rest.split_at(N.min(self.rest.len()));
        bytes[..taken.len()].copy_from_slice(taken);
        self.rest = rest;
        bytes
    }

    pub fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Up to `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let length = usize::from(self.half()) % (most + 1);
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// One of `list`, which is not empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    /// A value for a register: a bit, something small, an address in RAM, a word, the end of time in one of
    /// the board's units, or anything.
    pub fn value(&mut self) -> u64 {
        match self.byte() % 8 {
            0 => 1 << (self.byte() % 64),
            1 | 2 => self.byte().into(),
            3 => self.address(),
            4 | 5 => self.word().into(),
            // Picoseconds, nanoseconds, cycles, ticks.
            6 => u64::MAX / self.pick(&[1, 1_000, 10_000, 100_000]) - u64::from(self.byte() >> 4),
            _ => u64::from_le_bytes(self.array()),
        }
    }

    /// Mostly an address in the first 64 KiB of RAM, often a multiple of 64; sometimes the end of RAM, or anything.
    pub fn address(&mut self) -> u64 {
        let kind = self.byte();
        let low = u64::from(self.half());
        match kind % 8 {
            0..=3 => RAM_BASE + (low & !63),
            4 | 5 => RAM_BASE + low,
            6 => (RAM_BASE + super::MEMORY_BYTES).wrapping_sub(low % 128),
            _ => low << ((kind >> 3) * 2),
        }
    }
}
