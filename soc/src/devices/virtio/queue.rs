//! The split virtqueue (VIRTIO 1.2, section 2.7), the device's side: takes chains of buffers that the driver made available and
//! gives them back used.
//!
//! ```text
//!   descriptors   address, length, flags (next, device writes, indirect), next        16 bytes each, written by the driver
//!   available     flags, index, ring of chain heads, used_event                       written by the driver
//!   used          flags, index, ring of (head, bytes written), avail_event            written by the device
//! ```
//!
//! All three lie in the guest's memory and hold whatever the guest likes. Every word is checked when it is read, once, into a [`Chain`];
//! what breaks the specification, or lies outside RAM, is [`Broken`], and the transport then asks the driver for a reset. A chain has at most
//! as many pieces as the queue has entries, which also ends loops.

use crate::device::Context;
use serde::{Deserialize, Serialize};

/// The guest broke the rules of the queue; nothing but a reset helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Largest size that a driver may choose.
pub(super) const MAX_SIZE: u16 = 1024;
const DESCRIPTOR_BYTES: u64 = 16;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Available flags: no interrupt, please.
const NO_INTERRUPT: u16 = 1;
/// Flags and index in front of both rings.
const RING_OFFSET: u64 = 4;

/// What was negotiated that concerns queues.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Negotiated {
    /// A descriptor may name a table of descriptors.
    pub(super) indirect: bool,
    /// Either side names the index at which it wants to hear of the other.
    pub(super) event_index: bool,
}

/// A queue as the driver has set it up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    pub(super) size: u32,
    pub(super) descriptors: u64,
    pub(super) available: u64,
    pub(super) used: u64,
    ready: bool,
    next_available: u16,
    next_used: u16,
}

/// A part of a buffer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Piece {
    address: u64,
    bytes: u32,
}

/// A chain that the driver has made available: first what the device reads, then what it writes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Chain {
    head: u16,
    readable: Vec<Piece>,
    writable: Vec<Piece>,
}

impl Queue {
    /// The driver may no longer change it, and the device may use it.
    pub(super) fn ready(&self) -> bool {
        self.ready
    }

    /// Sets the queue ready, or takes it out of use. Error: its size or an alignment is not allowed (sections 2.7 and 2.7.5 to 2.7.8).
    pub(super) fn set_ready(&mut self, ready: bool) -> Result<(), Broken> {
        let sized = self.size.is_power_of_two() && self.size <= u32::from(MAX_SIZE);
        let aligned = self.descriptors.is_multiple_of(DESCRIPTOR_BYTES)
            && self.available.is_multiple_of(2)
            && self.used.is_multiple_of(4);
        if ready && !(sized && aligned) {
            return Err(Broken);
        }
        if ready != self.ready {
            *self = Self { ready, next_available: 0, next_used: 0, ..self.clone() };
        }
        Ok(())
    }

    /// The next chain; none if the driver has made none available.
    pub(super) fn pop(&mut self, cx: &mut dyn Context, with: Negotiated) -> Result<Option<Chain>, Broken> {
        if !self.ready {
            return Ok(None);
        }
        let waiting = read_u16(cx, self.available.wrapping_add(2))?.wrapping_sub(self.next_available);
        if waiting == 0 {
            return Ok(None);
        }
        if u32::from(waiting) > self.size {
            return Err(Broken);
        }
        let slot = u64::from(self.next_available) % u64::from(self.size);
        let head = read_u16(cx, self.available.wrapping_add(RING_OFFSET + 2 * slot))?;
        let chain = self.follow(cx, head, with)?;
        self.next_available = self.next_available.wrapping_add(1);
        if with.event_index {
            // The next chain is worth a notification: whoever waits for it is idle by then, or will see it anyway.
            let event = self.used.wrapping_add(RING_OFFSET + 8 * u64::from(self.size));
            write(cx, event, &self.next_available.to_le_bytes())?;
        }
        Ok(Some(chain))
    }

    /// Reads the descriptors from `head` on.
    fn follow(&self, cx: &mut dyn Context, head: u16, with: Negotiated) -> Result<Chain, Broken> {
        let mut chain = Chain { head, readable: Vec::new(), writable: Vec::new() };
        let (mut table, mut entries, mut index) = (self.descriptors, self.size, head);
        let mut inside = false;
        loop {
            if u32::from(index) >= entries {
                return Err(Broken);
            }
            let mut bytes = [0; DESCRIPTOR_BYTES as usize];
            let at = table.wrapping_add(DESCRIPTOR_BYTES * u64::from(index));
            cx.dma_read(at, &mut bytes).map_err(|_| Broken)?;
            let [a, b, c, d, e, f, g, h, l0, l1, l2, l3, f0, f1, n0, n1] = bytes;
            let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let length = u32::from_le_bytes([l0, l1, l2, l3]);
            let (flags, next) = (u16::from_le_bytes([f0, f1]), u16::from_le_bytes([n0, n1]));
            if flags & INDIRECT != 0 {
                // Section 2.7.5.3: one level only, at the end of the chain, and a table of whole descriptors.
                let whole = length != 0 && u64::from(length).is_multiple_of(DESCRIPTOR_BYTES);
                if !with.indirect || inside || flags & NEXT != 0 || !whole {
                    return Err(Broken);
                }
                (table, entries, index) = (address, length / DESCRIPTOR_BYTES as u32, 0);
                inside = true;
                continue;
            }
            chain.add(Piece { address, bytes: length }, flags & WRITE != 0)?;
            if flags & NEXT == 0 {
                return Ok(chain);
            }
            if chain.pieces() >= self.size as usize {
                return Err(Broken);
            }
            index = next;
        }
    }

    /// Gives `chain` back, with `written` bytes written to it. True if the driver wants an interrupt for it.
    pub(super) fn push(
        &mut self,
        cx: &mut dyn Context,
        with: Negotiated,
        chain: &Chain,
        written: u32,
    ) -> Result<bool, Broken> {
        let slot = u64::from(self.next_used) % u64::from(self.size);
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(chain.head).to_le_bytes());
        element[4..].copy_from_slice(&written.to_le_bytes());
        write(cx, self.used.wrapping_add(RING_OFFSET + 8 * slot), &element)?;
        let new = self.next_used.wrapping_add(1);
        write(cx, self.used.wrapping_add(2), &new.to_le_bytes())?;
        self.next_used = new;
        if with.event_index {
            let event = read_u16(cx, self.available.wrapping_add(RING_OFFSET + 2 * u64::from(self.size)))?;
            // Section 2.7.7.2, for a step of one.
            Ok(event == new.wrapping_sub(1))
        } else {
            Ok(read_u16(cx, self.available)? & NO_INTERRUPT == 0)
        }
    }
}

impl Chain {
    fn add(&mut self, piece: Piece, writable: bool) -> Result<(), Broken> {
        if writable {
            self.writable.push(piece);
        } else if self.writable.is_empty() {
            self.readable.push(piece);
        } else {
            // Section 2.7.4.2: what the device reads comes first.
            return Err(Broken);
        }
        Ok(())
    }

    /// Number of descriptors with data.
    pub(super) fn pieces(&self) -> usize {
        self.readable.len() + self.writable.len()
    }

    /// Bytes that the device may read.
    pub(super) fn readable_bytes(&self) -> u64 {
        self.readable.iter().map(|piece| u64::from(piece.bytes)).sum()
    }

    /// Bytes that the device may write.
    pub(super) fn writable_bytes(&self) -> u64 {
        self.writable.iter().map(|piece| u64::from(piece.bytes)).sum()
    }

    /// Fills `buf` from byte `at` of the readable part on. Error: beyond its end, or outside RAM.
    pub(super) fn read(&self, cx: &mut dyn Context, at: u64, buf: &mut [u8]) -> Result<(), Broken> {
        let mut done = 0;
        for (address, bytes) in places(&self.readable, at, buf.len()) {
            cx.dma_read(address, &mut buf[done..done + bytes]).map_err(|_| Broken)?;
            done += bytes;
        }
        if done == buf.len() { Ok(()) } else { Err(Broken) }
    }

    /// Writes `data` from byte `at` of the writable part on. Error as [`Chain::read`]; what lies before the fault is written.
    pub(super) fn write(&self, cx: &mut dyn Context, at: u64, data: &[u8]) -> Result<(), Broken> {
        let mut done = 0;
        for (address, bytes) in places(&self.writable, at, data.len()) {
            write(cx, address, &data[done..done + bytes])?;
            done += bytes;
        }
        if done == data.len() { Ok(()) } else { Err(Broken) }
    }
}

/// Where `length` bytes from byte `at` of `pieces` on lie: address and length of each contiguous part.
fn places(pieces: &[Piece], at: u64, length: usize) -> impl Iterator<Item = (u64, usize)> {
    let (mut skip, mut left) = (at, length as u64);
    pieces.iter().filter_map(move |piece| {
        let bytes = u64::from(piece.bytes);
        if skip >= bytes {
            skip -= bytes;
            return None;
        }
        let take = (bytes - skip).min(left);
        let address = piece.address.wrapping_add(core::mem::take(&mut skip));
        left -= take;
        // At most `length`, which is a `usize`.
        (take > 0).then_some((address, take as usize))
    })
}

fn read_u16(cx: &mut dyn Context, address: u64) -> Result<u16, Broken> {
    let mut bytes = [0; 2];
    cx.dma_read(address, &mut bytes).map_err(|_| Broken)?;
    Ok(u16::from_le_bytes(bytes))
}

fn write(cx: &mut dyn Context, address: u64, bytes: &[u8]) -> Result<(), Broken> {
    cx.dma_write(address, bytes).map_err(|_| Broken)
}
