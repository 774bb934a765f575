//! Data buffers that both ends of a channel can reach.
//!
//! The client owns the arena: it lends buffers, one for each call that carries data, and names them in messages by offset and
//! length. A [`Buffer`] goes back to its arena when it is dropped. The server gets at the same bytes through [`Loan`], made
//! from the offset and length it was told, after checking them against its own idea of the arena.
//!
//! ```text
//!   client                                        server
//!   arena.take(len) -> Buffer                     channel.loan(offset, len) -> Loan
//!   buffer.write(0, data)                         loan.read(0, &mut copy)
//!   call(op, [buffer.offset(), len]) ───────────> ...
//!   buffer.read(0, &mut data) <────────────────── loan.write(0, data); reply
//! ```
//!
//! No slice of the arena is ever made: the peer may write it at any time. Bytes are copied by relaxed atomic accesses, eight at
//! a time where both sides are aligned alike.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::error::PeerMisbehaviour;

/// The shared bytes themselves.
#[derive(Clone, Copy)]
pub struct ArenaMemory {
    bytes: &'static [AtomicU64],
}

impl ArenaMemory {
    /// The arena in `size` bytes at `address`; whole words only. `None` if the address is not aligned to 8.
    ///
    /// # Safety
    /// The range stays mapped, readable and writable for the rest of the program, and nothing in this program accesses it but
    /// through this value.
    #[cfg(not(loom))]
    pub(crate) unsafe fn from_raw(address: *mut u8, size: usize) -> Option<Self> {
        if size < 8 {
            return Some(Self { bytes: &[] });
        }
        if address.is_null() || !address.addr().is_multiple_of(8) {
            return None;
        }
        // SAFETY: the caller gives the range; the address is aligned and not null; atomics accept any bit pattern.
        Some(Self { bytes: unsafe { core::slice::from_raw_parts(address.cast(), size / 8) } })
    }

    /// The arena of a channel of this program's environment.
    ///
    /// # Errors
    /// If the arena is not aligned.
    #[cfg(target_os = "none")]
    pub(crate) fn from_env(channel: &userlib::env::Channel) -> Result<Self, crate::error::OpenError> {
        let start = core::ptr::with_exposed_provenance_mut(channel.arena.address);
        // SAFETY: the root task maps the arena readable and writable for as long as the program lives. Several values of this
        // program may reach it (one for each thread of a synchronous client): all accesses are atomic.
        unsafe { Self::from_raw(start, channel.arena.size) }.ok_or(crate::error::OpenError::Memory)
    }

    pub(crate) fn leak(size: usize) -> Self {
        let words: Vec<AtomicU64> = (0..size / 8).map(|_| AtomicU64::new(0)).collect();
        Self { bytes: words.leak() }
    }

    /// Bytes of the arena.
    #[inline] // one load and a shift
    pub fn size(&self) -> usize {
        self.bytes.len() * 8
    }

    /// The byte at `offset`, for the edges of a copy.
    fn byte(&self, offset: usize) -> &AtomicU8 {
        let word = self.bytes[offset / 8].as_ptr().cast::<u8>();
        // SAFETY: one byte inside a word of the slice, which lives for ever; all accesses to it are atomic.
        unsafe { AtomicU8::from_ptr(word.add(offset % 8)) }
    }

    /// Copies `data` to `offset`; the caller has checked the range.
    fn write(&self, offset: usize, data: &[u8]) {
        // SAFETY: any eight bytes are a u64.
        let (head, body, tail) = unsafe { data.align_to::<u64>() };
        if (offset + head.len()).is_multiple_of(8) {
            let first = (offset + head.len()) / 8;
            self.write_bytes(offset, head);
            for (word, value) in self.bytes[first..first + body.len()].iter().zip(body) {
                word.store(*value, Ordering::Relaxed);
            }
            self.write_bytes((first + body.len()) * 8, tail);
        } else {
            self.write_bytes(offset, data);
        }
    }

    fn write_bytes(&self, offset: usize, data: &[u8]) {
        for (index, byte) in data.iter().enumerate() {
            self.byte(offset + index).store(*byte, Ordering::Relaxed);
        }
    }

    /// Copies from `offset` to `data`; the caller has checked the range.
    fn read(&self, offset: usize, data: &mut [u8]) {
        // SAFETY: any u64 is eight bytes, and any eight bytes are a u64.
        let (head, body, tail) = unsafe { data.align_to_mut::<u64>() };
        if (offset + head.len()).is_multiple_of(8) {
            let first = (offset + head.len()) / 8;
            self.read_bytes(offset, head);
            let words = &self.bytes[first..first + body.len()];
            for (value, word) in body.iter_mut().zip(words) {
                *value = word.load(Ordering::Relaxed);
            }
            self.read_bytes((first + words.len()) * 8, tail);
        } else {
            self.read_bytes(offset, data);
        }
    }

    fn read_bytes(&self, offset: usize, data: &mut [u8]) {
        for (index, byte) in data.iter_mut().enumerate() {
            *byte = self.byte(offset + index).load(Ordering::Relaxed);
        }
    }
}

/// The client's arena: blocks of equal size, one for each ring entry; or, for a thread of a synchronous client, those of its share.
#[derive(Clone)]
pub struct Arena {
    memory: ArenaMemory,
    block: usize,
    blocks: usize,
    free: Rc<RefCell<Vec<usize>>>,
}

impl Arena {
    pub(crate) fn new(memory: ArenaMemory, blocks: usize) -> Self {
        Self::share(memory, 0, 1, blocks)
    }

    /// Share `index` of `shares`, with `blocks` blocks. Offsets still count from the start of the whole arena.
    pub(crate) fn share(memory: ArenaMemory, index: usize, shares: usize, blocks: usize) -> Self {
        // Whole cache lines, so that two buffers never share one.
        let block = memory.size() / shares / blocks / 64 * 64;
        let count = if block == 0 { 0 } else { blocks };
        let first = index * blocks * block;
        let free = (0..count).rev().map(|number| first + number * block).collect();
        Self { memory, block, blocks: count, free: Rc::new(RefCell::new(free)) }
    }

    /// Bytes of a buffer: the arena divided by the number of buffers, in whole cache lines.
    pub fn block_bytes(&self) -> usize {
        self.block
    }

    /// Buffers that are out.
    pub fn lent(&self) -> usize {
        self.blocks - self.free.borrow().len()
    }

    /// Lends a buffer, or `None` if all are out.
    pub fn take(&self) -> Option<Buffer> {
        let offset = self.free.borrow_mut().pop()?;
        Some(Buffer { arena: self.clone(), offset })
    }
}

/// A buffer lent to this client; it goes back when dropped.
///
/// Do not drop it while the server still works on the call that names it: the bytes would be lent again.
pub struct Buffer {
    arena: Arena,
    offset: usize,
}

impl Buffer {
    /// Where the buffer starts in the arena: what a message names.
    pub fn offset(&self) -> u64 {
        self.offset as u64
    }

    /// Bytes of the buffer.
    pub fn size(&self) -> usize {
        self.arena.block
    }

    /// Copies `data` into the buffer from `at` on.
    ///
    /// # Panics
    /// If the data does not fit.
    pub fn write(&mut self, at: usize, data: &[u8]) {
        assert!(fits(at, data.len(), self.size()), "data beyond the end of the buffer");
        self.arena.memory.write(self.offset + at, data);
    }

    /// Copies from `at` on into `data`.
    ///
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn read(&self, at: usize, data: &mut [u8]) {
        assert!(fits(at, data.len(), self.size()), "range beyond the end of the buffer");
        self.arena.memory.read(self.offset + at, data);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.arena.free.borrow_mut().push(self.offset);
    }
}

/// A client's buffer as the server sees it: a range that was checked.
#[derive(Clone, Copy)]
pub struct Loan {
    memory: ArenaMemory,
    offset: usize,
    size: usize,
}

impl Loan {
    /// The range that a client named.
    ///
    /// # Errors
    /// If it is not inside the arena.
    pub(crate) fn new(memory: ArenaMemory, offset: u64, size: u64) -> Result<Self, PeerMisbehaviour> {
        let offset = usize::try_from(offset).map_err(|_| PeerMisbehaviour::Buffer)?;
        let size = usize::try_from(size).map_err(|_| PeerMisbehaviour::Buffer)?;
        if !fits(offset, size, memory.size()) {
            return Err(PeerMisbehaviour::Buffer);
        }
        Ok(Self { memory, offset, size })
    }

    /// Bytes of the range.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Copies `data` into the range from `at` on.
    ///
    /// # Panics
    /// If the data does not fit.
    pub fn write(&self, at: usize, data: &[u8]) {
        assert!(fits(at, data.len(), self.size), "data beyond the end of the loan");
        self.memory.write(self.offset + at, data);
    }

    /// Copies from `at` on into `data`. The client may change the bytes meanwhile: check the copy, not the loan.
    ///
    /// # Panics
    /// If the range is not inside the loan.
    pub fn read(&self, at: usize, data: &mut [u8]) {
        assert!(fits(at, data.len(), self.size), "range beyond the end of the loan");
        self.memory.read(self.offset + at, data);
    }
}

/// Whether `len` bytes from `at` on lie inside `size` bytes.
fn fits(at: usize, len: usize, size: usize) -> bool {
    at.checked_add(len).is_some_and(|end| end <= size)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri's weak-memory emulation has no atomics of two sizes at one place")]
    fn copies_keep_bytes_at_any_alignment() {
        let memory = ArenaMemory::leak(128);
        let mut plain = [0u8; 128];
        for (at, from, len) in [(0, 0, 64), (3, 3, 40), (5, 2, 33), (7, 0, 1), (8, 8, 8), (60, 4, 60), (1, 0, 0)] {
            let data: Vec<u8> = (0..128u8).map(|byte| byte.wrapping_mul(37) ^ at as u8).collect();
            memory.write(at, &data[from..from + len]);
            plain[at..at + len].copy_from_slice(&data[from..from + len]);
            for start in [0, 1, 4, 7, 8] {
                let mut copy = [0xEE; 128];
                memory.read(start, &mut copy[3..3 + 100]);
                assert_eq!(copy[3..103], plain[start..start + 100], "write at {at}, read from {start}");
            }
        }
    }

    #[test]
    fn buffers_come_back_and_never_overlap() {
        let arena = Arena::new(ArenaMemory::leak(1024), 4);
        assert_eq!(arena.block_bytes(), 256);
        let buffers: Vec<Buffer> = core::iter::from_fn(|| arena.take()).collect();
        let mut offsets: Vec<u64> = buffers.iter().map(Buffer::offset).collect();
        offsets.sort();
        assert_eq!(offsets, [0, 256, 512, 768]);
        assert!(arena.take().is_none());
        drop(buffers);
        assert!(arena.take().is_some());
    }

    #[test]
    fn shares_do_not_overlap_and_name_the_whole_arena() {
        let memory = ArenaMemory::leak(1024);
        let shares = [Arena::share(memory, 0, 2, 4), Arena::share(memory, 1, 2, 4)];
        let buffers: Vec<Buffer> = shares.iter().flat_map(|share| core::iter::from_fn(|| share.take())).collect();
        let offsets: Vec<u64> = buffers.iter().map(Buffer::offset).collect();
        assert_eq!(offsets, [0, 128, 256, 384, 512, 640, 768, 896]);
    }

    #[test]
    fn an_arena_too_small_lends_nothing() {
        assert!(Arena::new(ArenaMemory::leak(128), 4).take().is_none());
        assert!(Arena::new(ArenaMemory::leak(0), 4).take().is_none());
    }

    #[test]
    fn a_loan_outside_the_arena_is_refused() {
        let memory = ArenaMemory::leak(256);
        assert!(Loan::new(memory, 0, 256).is_ok());
        assert!(Loan::new(memory, 256, 0).is_ok());
        for (offset, size) in [(0, 257), (1, 256), (u64::MAX, 1), (u64::MAX, u64::MAX), (8, u64::MAX - 7)] {
            assert_eq!(Loan::new(memory, offset, size).err(), Some(PeerMisbehaviour::Buffer));
        }
    }
}
