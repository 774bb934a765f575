//! One descriptor ring: moves buffers to the device and back, and knows nothing of registers.
//!
//! ```text
//!   slots:   free | head ... tail-1: the device owns descriptor and buffer | free
//!   push     fills descriptor `tail`, keeps the buffer in slot `tail`
//!   pop      if descriptor `head` is done, takes the buffer out of slot `head`
//! ```
//!
//! `head` and `tail` run freely and are reduced by the power-of-two size only to index. The device writes a descriptor's
//! STATUS word; that is all it is believed to do, and every field of that word is checked before use. Addresses and links are
//! never read back from descriptors. One slot always stays empty, so that the tail register never names a descriptor that
//! the device has not been given anew (PG021: a completed descriptor fetched again is an error).

use alloc::vec::Vec;

use super::regs::bd;
use crate::dma::{DmaBuffer, DmaRegion, after_done};

/// What the device reported about one finished buffer, as far as it was possible to believe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Bytes that the device says it transferred; not more than the buffer holds.
    pub length: usize,
    /// The buffer was a whole packet (first and last).
    pub whole_packet: bool,
    /// The device reported an error, or a length beyond the buffer.
    pub failed: bool,
}

/// A ring of descriptors with the buffers that the device owns at present.
pub struct Ring {
    descriptors: DmaBuffer,
    slots: Vec<Option<DmaBuffer>>,
    head: usize,
    tail: usize,
}

impl Ring {
    /// A ring of `entries` descriptors, carved from `region`. `None` if the region is used up.
    ///
    /// # Panics
    /// If `entries` is not a power of two of at least 2.
    pub fn new(region: &mut DmaRegion, entries: usize) -> Option<Self> {
        assert!(entries.is_power_of_two() && entries >= 2, "ring size must be a power of two");
        let descriptors = region.carve(entries * bd::SIZE, bd::SIZE)?;
        let mut ring = Self { descriptors, slots: (0..entries).map(|_| None).collect(), head: 0, tail: 0 };
        for index in 0..entries {
            // Fits: the driver checked that the region ends below 4 GiB. All other words were zeroed by `carve`.
            let next = ring.address(index + 1) as u32;
            ring.descriptors.write_word(index * bd::SIZE + bd::NXTDESC, next);
        }
        Some(ring)
    }

    /// Buffers that the device owns.
    pub fn in_flight(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// How many more buffers the ring takes.
    pub fn free(&self) -> usize {
        self.slots.len() - 1 - self.in_flight()
    }

    /// Physical address of the descriptor that the next push fills: where a device that was reset starts.
    pub fn next(&self) -> u64 {
        self.address(self.tail)
    }

    /// Physical address of the last descriptor pushed: what the tail register is told.
    pub fn last(&self) -> u64 {
        self.address(self.tail.wrapping_sub(1))
    }

    fn address(&self, index: usize) -> u64 {
        self.descriptors.physical() + self.offset(index) as u64
    }

    fn offset(&self, index: usize) -> usize {
        (index & (self.slots.len() - 1)) * bd::SIZE
    }

    /// Prepares the next descriptor for `buffer` with this CONTROL word. The device looks at it only after its tail register was
    /// written. Errors: the ring is full; the buffer comes back.
    pub fn push(&mut self, buffer: DmaBuffer, control: u32) -> Result<(), DmaBuffer> {
        if self.free() == 0 {
            return Err(buffer);
        }
        let at = self.offset(self.tail);
        self.descriptors.write_word(at + bd::BUFFER_ADDRESS, buffer.physical() as u32);
        self.descriptors.write_word(at + bd::CONTROL, control);
        self.descriptors.write_word(at + bd::STATUS, 0);
        let slot = self.tail & (self.slots.len() - 1);
        self.slots[slot] = Some(buffer);
        self.tail = self.tail.wrapping_add(1);
        Ok(())
    }

    /// Takes back the oldest buffer if the device is done with it.
    pub fn pop(&mut self) -> Option<(DmaBuffer, Completion)> {
        if self.in_flight() == 0 {
            return None;
        }
        let status = self.descriptors.read_word(self.offset(self.head) + bd::STATUS);
        if status & bd::STATUS_CMPLT == 0 {
            return None;
        }
        // Orders the read of STATUS before the caller's reads of the buffer; the device wrote the buffer first.
        after_done();
        let slot = self.head & (self.slots.len() - 1);
        let buffer = self.slots[slot].take()?;
        self.head = self.head.wrapping_add(1);
        let claimed = (status & bd::STATUS_LENGTH) as usize;
        let whole = bd::STATUS_SOF | bd::STATUS_EOF;
        let completion = Completion {
            length: claimed.min(buffer.size()),
            whole_packet: status & whole == whole,
            failed: status & bd::STATUS_ERRORS != 0 || claimed > buffer.size(),
        };
        Some((buffer, completion))
    }

    /// Marks every buffer that the device had not finished as failed, so that [`Self::pop`] returns it.
    /// Only while the device is in reset: it must not write descriptors any more.
    pub fn fail_unfinished(&mut self) {
        for index in (0..self.in_flight()).map(|n| self.head.wrapping_add(n)) {
            let at = self.offset(index) + bd::STATUS;
            if self.descriptors.read_word(at) & bd::STATUS_CMPLT == 0 {
                self.descriptors.write_word(at, bd::STATUS_CMPLT | bd::STATUS_ERRORS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dma::host::{DeviceView, region};

    const BASE: u64 = 0x9000_0000;

    fn ring(entries: usize) -> (Ring, DmaRegion, DeviceView) {
        let (mut region, device) = region(BASE, 0x4000);
        (Ring::new(&mut region, entries).unwrap(), region, device)
    }

    fn word(device: &DeviceView, index: usize, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        device.read(BASE + (index * bd::SIZE + offset) as u64, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn complete(device: &DeviceView, index: usize, status: u32) {
        device.write(BASE + (index * bd::SIZE + bd::STATUS) as u64, &status.to_le_bytes()).unwrap();
    }

    #[test]
    fn descriptors_form_a_circle() {
        let (_, _, device) = ring(4);
        let links: Vec<u32> = (0..4).map(|i| word(&device, i, bd::NXTDESC)).collect();
        assert_eq!(links, [0x9000_0040, 0x9000_0080, 0x9000_00C0, 0x9000_0000]);
    }

    #[test]
    fn keeps_one_slot_empty_and_gives_the_buffer_back_when_full() {
        let (mut ring, mut memory, _) = ring(4);
        for _ in 0..3 {
            ring.push(memory.carve(64, 8).unwrap(), 64).unwrap();
        }
        assert_eq!(ring.free(), 0);
        let extra = memory.carve(64, 8).unwrap();
        let address = extra.physical();
        assert_eq!(ring.push(extra, 64).unwrap_err().physical(), address);
        assert_eq!(ring.last(), BASE + 2 * 64);
    }

    #[test]
    fn buffers_come_back_in_order_and_only_when_done_across_many_wraps() {
        let (mut ring, mut memory, device) = ring(4);
        let buffer = memory.carve(256, 8).unwrap();
        let address = buffer.physical();
        let mut spare = Some(buffer);
        for turn in 0..11 {
            ring.push(spare.take().unwrap(), 256).unwrap();
            assert!(ring.pop().is_none(), "not done yet");
            complete(&device, turn % 4, bd::STATUS_CMPLT | bd::STATUS_SOF | bd::STATUS_EOF | 77);
            let (buffer, completion) = ring.pop().unwrap();
            assert_eq!(buffer.physical(), address);
            assert_eq!(completion, Completion { length: 77, whole_packet: true, failed: false });
            assert!(ring.pop().is_none());
            spare = Some(buffer);
        }
    }

    #[test]
    fn a_length_beyond_the_buffer_is_cut_and_marked() {
        let (mut ring, mut memory, device) = ring(2);
        ring.push(memory.carve(100, 8).unwrap(), 100).unwrap();
        complete(&device, 0, bd::STATUS_CMPLT | bd::STATUS_SOF | bd::STATUS_EOF | 101);
        let (_, completion) = ring.pop().unwrap();
        assert_eq!(completion, Completion { length: 100, whole_packet: true, failed: true });
    }

    #[test]
    fn errors_and_partial_packets_are_reported() {
        let (mut ring, mut memory, device) = ring(4);
        ring.push(memory.carve(64, 8).unwrap(), 64).unwrap();
        ring.push(memory.carve(64, 8).unwrap(), 64).unwrap();
        complete(&device, 0, bd::STATUS_CMPLT | 1 << 29);
        complete(&device, 1, bd::STATUS_CMPLT | bd::STATUS_SOF | 64);
        assert!(ring.pop().unwrap().1.failed);
        let (_, partial) = ring.pop().unwrap();
        assert!(!partial.whole_packet && !partial.failed);
    }

    #[test]
    fn a_done_bit_on_a_descriptor_that_was_never_given_away_is_ignored() {
        let (mut ring, _, device) = ring(4);
        complete(&device, 0, bd::STATUS_CMPLT);
        assert!(ring.pop().is_none());
    }

    #[test]
    fn after_a_device_reset_finished_buffers_count_and_the_others_come_back_failed() {
        let (mut ring, mut memory, device) = ring(4);
        for _ in 0..3 {
            ring.push(memory.carve(64, 8).unwrap(), 64).unwrap();
        }
        complete(&device, 0, bd::STATUS_CMPLT | bd::STATUS_SOF | bd::STATUS_EOF | 60);
        ring.fail_unfinished();
        let failed: Vec<bool> = core::iter::from_fn(|| ring.pop()).map(|(_, completion)| completion.failed).collect();
        assert_eq!(failed, [false, true, true]);
        assert_eq!(ring.next(), BASE + 3 * 64);
    }
}
