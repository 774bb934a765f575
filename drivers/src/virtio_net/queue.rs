//! One split virtqueue (VIRTIO 1.2, section 2.7): moves buffers to the device and back, and knows nothing of registers.
//!
//! ```text
//!   slot i: descriptor 2i, the header  ──next──▶  descriptor 2i+1, the caller's buffer
//!   push     fills descriptor 2i+1 of a free slot, names 2i in the available ring
//!   pop      takes the buffer out of the slot that the next element of the used ring names
//! ```
//!
//! The header of virtio-net has a descriptor to itself, as devices of version 1 want it, so that frames start where the buffer does. All
//! of the first descriptors are written once.
//!
//! Nothing is read back but the used ring: how far it goes must be within what is in flight, and every element must name a slot
//! whose buffer the device has. A device that breaks either is [broken](Queue::is_broken), and nothing more is taken from it. Slots
//! may be used in any order.

use alloc::vec::Vec;

use crate::dma::{DmaBuffer, DmaRegion, after_done, before_doorbell};

/// Alignment that both versions are content with: legacy devices are told a page number.
pub const PAGE: usize = 4096;
const DESCRIPTOR_BYTES: usize = 16;
const USED_BYTES: usize = 8;
/// Room for a header; 12 bytes are the longest.
const HEADER_ROOM: usize = 16;
/// Descriptor flags.
const NEXT: u32 = 1;
const DEVICE_WRITES: u32 = 2;
/// Available ring: no interrupt, please. Used ring: no notification, please.
const QUIET: u32 = 1;

/// Which way a queue's buffers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The device fills them.
    Receive,
    /// The device reads them.
    Transmit,
}

/// A buffer that the device is done with.
#[derive(Debug)]
pub struct Done {
    /// The buffer.
    pub buffer: DmaBuffer,
    /// What the device says that it wrote, header included; `None`: the device was reset meanwhile.
    pub written: Option<usize>,
}

/// A virtqueue with the buffers that the device has at present.
pub struct Queue {
    /// Descriptors, available ring, and from the next page on the used ring (the layout of version 1).
    memory: DmaBuffer,
    headers: DmaBuffer,
    header_bytes: usize,
    direction: Direction,
    slots: Vec<Option<DmaBuffer>>,
    /// By slot: the device has been told of it.
    told: Vec<bool>,
    free: Vec<u16>,
    /// The available ring as it was written; what memory holds may have been changed by the device.
    available: Vec<u16>,
    next_available: u16,
    published: u16,
    next_used: u16,
    quiet: bool,
    /// Slots that the device had when it was reset, to be given back.
    lost: Vec<u16>,
    broken: bool,
}

impl Queue {
    /// A queue for `entries` buffers at a time, with `header_bytes` before each, carved from `region`. `None` if the region is used up.
    ///
    /// # Panics
    /// If `entries` is not a power of two of at least 2 and at most 16384.
    pub fn new(region: &mut DmaRegion, entries: usize, header_bytes: usize, direction: Direction) -> Option<Self> {
        assert!(entries.is_power_of_two() && (2..=1 << 14).contains(&entries), "queue size must be a power of two");
        assert!(header_bytes <= HEADER_ROOM);
        let size = 2 * entries;
        let memory = region.carve(used_offset(size) + 4 + USED_BYTES * size + 4, PAGE)?;
        let headers = region.carve(HEADER_ROOM * entries, HEADER_ROOM)?;
        let mut queue = Self {
            memory,
            headers,
            header_bytes,
            direction,
            slots: (0..entries).map(|_| None).collect(),
            told: alloc::vec![false; entries],
            free: (0..entries as u16).rev().collect(),
            available: alloc::vec![0; size],
            next_available: 0,
            published: 0,
            next_used: 0,
            quiet: false,
            lost: Vec::with_capacity(entries),
            broken: false,
        };
        for slot in 0..entries {
            let address = queue.headers.physical() + (slot * HEADER_ROOM) as u64;
            queue.write_descriptor(2 * slot, address, header_bytes, Some(2 * slot + 1));
        }
        Some(queue)
    }

    /// Elements of the rings: what the device is told.
    pub fn size(&self) -> u32 {
        self.available.len() as u32
    }
    /// Physical address of the descriptors.
    pub fn descriptors(&self) -> u64 {
        self.memory.physical()
    }
    /// Physical address of the available ring.
    pub fn available_ring(&self) -> u64 {
        self.memory.physical() + self.available_offset() as u64
    }
    /// Physical address of the used ring.
    pub fn used_ring(&self) -> u64 {
        self.memory.physical() + used_offset(self.available.len()) as u64
    }
    /// Buffers that the device has.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len() - self.lost.len()
    }
    /// The device did what it must not.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn available_offset(&self) -> usize {
        self.available.len() * DESCRIPTOR_BYTES
    }

    fn write_descriptor(&mut self, index: usize, address: u64, length: usize, next: Option<usize>) {
        let at = index * DESCRIPTOR_BYTES;
        let writes = if self.direction == Direction::Receive { DEVICE_WRITES } else { 0 };
        let link = next.map_or(0, |next| NEXT | (next as u32) << 16);
        for (offset, word) in
            [(0, address as u32), (4, (address >> 32) as u32), (8, length as u32), (12, writes | link)]
        {
            self.memory.write_word(at + offset, word);
        }
    }

    /// Prepares a slot for the first `length` bytes of `buffer`. The device looks at it only after [`Self::publish`].
    /// Errors: no slot is free; the buffer comes back.
    pub fn push(&mut self, buffer: DmaBuffer, length: usize) -> Result<(), DmaBuffer> {
        let Some(slot) = self.free.pop() else { return Err(buffer) };
        self.write_descriptor(2 * usize::from(slot) + 1, buffer.physical(), length, None);
        self.slots[usize::from(slot)] = Some(buffer);
        self.offer(slot);
        Ok(())
    }

    /// Names a slot in the available ring.
    fn offer(&mut self, slot: u16) {
        let place = usize::from(self.next_available) & (self.available.len() - 1);
        self.available[place] = 2 * slot;
        let pair = place & !1;
        let word = u32::from(self.available[pair]) | u32::from(self.available[pair + 1]) << 16;
        self.memory.write_word(self.available_offset() + 4 + 2 * pair, word);
        self.next_available = self.next_available.wrapping_add(1);
    }

    /// Lets the device have what was pushed so far. Gives whether it must be notified.
    pub fn publish(&mut self) -> bool {
        if self.published == self.next_available {
            return false;
        }
        // Descriptors and ring before the index.
        before_doorbell();
        while self.published != self.next_available {
            let place = usize::from(self.published) & (self.available.len() - 1);
            self.told[usize::from(self.available[place] / 2)] = true;
            self.published = self.published.wrapping_add(1);
        }
        self.write_index();
        // The index before the look at the device's flag, and before the notification.
        before_doorbell();
        self.memory.read_word(used_offset(self.available.len())) & QUIET == 0
    }

    /// Whether the device is to interrupt when it is done with a buffer. What it did before need not interrupt any more.
    pub fn interrupt(&mut self, on: bool) {
        self.quiet = !on;
        self.write_index();
        // Before the caller's look at the used ring.
        before_doorbell();
    }

    fn write_index(&mut self) {
        let flags = if self.quiet { QUIET } else { 0 };
        self.memory.write_word(self.available_offset(), flags | u32::from(self.published) << 16);
    }

    /// Takes back a buffer that the device is done with.
    pub fn pop(&mut self) -> Option<Done> {
        if let Some(slot) = self.lost.pop() {
            self.free.push(slot);
            return self.slots[usize::from(slot)].take().map(|buffer| Done { buffer, written: None });
        }
        let used = used_offset(self.available.len());
        let index = (self.memory.read_word(used) >> 16) as u16;
        let fresh = index.wrapping_sub(self.next_used);
        if fresh == 0 || self.broken {
            return None;
        }
        if usize::from(fresh) > self.in_flight() {
            self.broken = true;
            return None;
        }
        // The index before the element, and before the caller's reads of the buffer.
        after_done();
        let element = used + 4 + USED_BYTES * (usize::from(self.next_used) & (self.available.len() - 1));
        let (id, written) = (self.memory.read_word(element), self.memory.read_word(element + 4));
        let slot = (id / 2) as usize;
        if id % 2 != 0 || !self.told.get_mut(slot).is_some_and(core::mem::take) {
            self.broken = true;
            return None;
        }
        let buffer = self.slots[slot].take()?;
        self.next_used = self.next_used.wrapping_add(1);
        self.free.push(slot as u16);
        Some(Done { buffer, written: Some(written as usize) })
    }

    /// What the device says to be the length of the frame in `done`; `None` if that cannot be.
    pub fn frame_length(&self, done: &Done) -> Option<usize> {
        let length = done.written?.checked_sub(self.header_bytes)?;
        (length <= done.buffer.size()).then_some(length)
    }

    /// Starts over with a device that was reset: receive buffers are offered to it again, transmit buffers come back unsent.
    /// Only while the device is in reset: it must not write any more.
    pub fn restart(&mut self) {
        (self.next_available, self.published, self.next_used, self.broken) = (0, 0, 0, false);
        self.told.fill(false);
        self.memory.write_word(used_offset(self.available.len()), 0);
        self.write_index();
        let with_device: Vec<u16> = (0..self.slots.len() as u16)
            .filter(|slot| self.slots[usize::from(*slot)].is_some() && !self.lost.contains(slot))
            .collect();
        match self.direction {
            Direction::Receive => with_device.into_iter().for_each(|slot| self.offer(slot)),
            Direction::Transmit => self.lost.extend(with_device),
        }
    }
}

/// Where the used ring of a queue of `size` starts: on the page behind the available ring.
fn used_offset(size: usize) -> usize {
    (size * DESCRIPTOR_BYTES + 6 + 2 * size).next_multiple_of(PAGE)
}
