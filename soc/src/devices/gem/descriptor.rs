//! The buffer descriptor: address and flags, two words; two more with 64-bit addresses, and two more of a timestamp in extended
//! mode, which this MAC does not take.

use super::registers::dma;
use crate::device::{BusError, Context};
use serde::{Deserialize, Serialize};

/// Receive word 0: software's; transmit descriptors have the bit elsewhere.
pub(super) const RX_USED: u32 = 1;
/// Receive word 0: last of the ring.
pub(super) const RX_WRAP: u32 = 1 << 1;
/// Receive word 1.
pub(super) const RX_SOF: u32 = 1 << 14;
/// Receive word 1.
pub(super) const RX_EOF: u32 = 1 << 15;
/// Transmit word 1: length of the buffer.
pub(super) const TX_LENGTH: u32 = 0x3FFF;
/// Transmit word 1: last of the frame.
pub(super) const TX_LAST: u32 = 1 << 15;
/// Transmit word 1: the check sequence is software's.
pub(super) const TX_NO_CRC: u32 = 1 << 16;
/// Transmit word 1: position of what became of the checksums.
pub(super) const TX_CHECKSUM_SHIFT: u32 = 20;
/// Transmit word 1: the frame could not be read.
pub(super) const TX_CORRUPT: u32 = 1 << 27;
/// Transmit word 1: last of the ring.
pub(super) const TX_WRAP: u32 = 1 << 30;
/// Transmit word 1: software's.
pub(super) const TX_USED: u32 = 1 << 31;

/// A descriptor as read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Descriptor {
    pub(super) at: u64,
    pub(super) words: [u32; 2],
    high: u32,
}

impl Descriptor {
    /// Reads the descriptor at `at` under DMACFG `config`; the upper half counts with 64-bit addresses only. Error: outside RAM.
    pub(super) fn fetch(cx: &mut dyn Context, at: u64, config: u32) -> Result<Self, BusError> {
        let mut bytes = [0; 12];
        let (used, at) = if config & dma::ADDRESS_64 != 0 { (12, at) } else { (8, at & 0xFFFF_FFFF) };
        cx.dma_read(at, &mut bytes[..used])?;
        let [a0, a1, a2, a3, b0, b1, b2, b3, c @ ..] = bytes;
        let words = [u32::from_le_bytes([a0, a1, a2, a3]), u32::from_le_bytes([b0, b1, b2, b3])];
        Ok(Self { at, words, high: u32::from_le_bytes(c) })
    }

    /// Where the buffer is; `low` is the part of word 0 that belongs to the address.
    pub(super) fn buffer(&self, low: u32) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.words[0] & low)
    }

    /// Writes word `index` back. Error: outside RAM, where it cannot have been read.
    pub(super) fn write(&self, cx: &mut dyn Context, index: usize, word: u32) -> Result<(), BusError> {
        cx.dma_write(self.at + 4 * index as u64, &word.to_le_bytes())
    }
}
