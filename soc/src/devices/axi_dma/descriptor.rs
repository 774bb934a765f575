//! The buffer descriptor (PG021, "Scatter Gather Descriptor"): 13 words of 16, aligned to 64 bytes.

use crate::device::{BusError, Context};
use serde::{Deserialize, Serialize};

/// Words that the hardware uses.
const BYTES: usize = 0x34;
const STATUS: u64 = 0x1C;
const CONTROL_EOF: u32 = 1 << 26;
/// STATUS: last descriptor of a packet.
pub(super) const STATUS_EOF: u32 = 1 << 26;
/// STATUS: first descriptor of a packet.
pub(super) const STATUS_SOF: u32 = 1 << 27;
/// STATUS: internal error (bit 4 of DMASR, moved).
pub(super) const STATUS_INT_ERR: u32 = 1 << 28;
/// STATUS: decode error.
pub(super) const STATUS_DEC_ERR: u32 = 1 << 30;
/// STATUS: belongs to software.
pub(super) const STATUS_CMPLT: u32 = 1 << 31;

/// A descriptor as fetched.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) next: u64,
    pub(super) buffer: u64,
    control: u32,
    status: u32,
    pub(super) app: [u32; 5],
}

impl Descriptor {
    /// Reads the descriptor at `address`. `mask` cuts its addresses to the build's width. Errors: outside RAM.
    pub(super) fn fetch(cx: &mut dyn Context, address: u64, mask: u64) -> Result<Self, BusError> {
        let mut bytes = [0; BYTES];
        cx.dma_read(address, &mut bytes)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let wide = |at: usize| (u64::from(word(at + 4)) << 32 | u64::from(word(at))) & mask;
        Ok(Self {
            address,
            next: wide(0x00) & !0x3F,
            buffer: wide(0x08),
            control: word(0x18),
            status: word(0x1C),
            app: core::array::from_fn(|index| word(0x20 + 4 * index)),
        })
    }

    /// Length of the buffer, cut to `bits`.
    pub(super) fn length(&self, bits: u32) -> u32 {
        self.control & ((1 << bits) - 1)
    }

    /// The packet ends with this buffer (transmit).
    pub(super) fn ends_packet(&self) -> bool {
        self.control & CONTROL_EOF != 0
    }

    /// Software has not made the descriptor fresh.
    pub(super) fn is_complete(&self) -> bool {
        self.status & STATUS_CMPLT != 0
    }

    /// Writes STATUS back. Errors: outside RAM.
    pub(super) fn update(&self, cx: &mut dyn Context, status: u32) -> Result<(), BusError> {
        cx.dma_write(self.address + STATUS, &status.to_le_bytes())
    }

    /// Writes STATUS and the APP words back, in one go. Errors: outside RAM.
    pub(super) fn update_with_app(&self, cx: &mut dyn Context, status: u32, app: &[u32; 5]) -> Result<(), BusError> {
        let mut bytes = [0; 24];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(core::iter::once(&status).chain(app)) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        cx.dma_write(self.address + STATUS, &bytes)
    }
}
