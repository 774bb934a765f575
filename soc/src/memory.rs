//! RAM, and what must be known about its pages to keep copies of their content honest.
//!
//! Three things hold derived copies of RAM: decoded blocks, functional TLB entries (derived from page tables) and
//! load reservations. A page from which one of the first two was derived carries a mark, and a marked page is never in a
//! hart's write TLB; so the fast store path needs no test, and the slow path, [`Memory::note_store`], sees every store
//! that matters. Its findings are applied by the run loop between two blocks, never under a running one.

use crate::config::MAX_HARTS;
use crate::error::SocError;
use crate::snapshot::{Page, State};
use serde::{Deserialize, Serialize};

/// Bytes per page.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of one reservation set and of one cache line.
pub const LINE_BYTES: u64 = 64;

const PAGE_TABLE: u8 = 1;
const WRITE_CACHED: u8 = 2;
const NO_RESERVATION: u64 = u64::MAX;

/// RAM from [`crate::board::RAM_BASE`]; all offsets count from there.
pub struct Memory {
    bytes: Box<[u8]>,
    /// Per page: one bit per 64-byte chunk that holds decoded instructions.
    code: Box<[u64]>,
    marks: Box<[u8]>,
    reservations: [u64; MAX_HARTS],
    /// Bit per hart that holds a reservation; 0 lets stores skip the comparison.
    reserved: u32,
    /// Pages whose decoded blocks must go.
    pub(crate) stale_code: Vec<u32>,
    /// Incremented when write permission in functional TLBs may be wrong, or anything in them.
    pub(crate) generation: u64,
    /// Incremented when any functional TLB entry may be wrong.
    pub(crate) translation_generation: u64,
    /// Something above changed: the running block must end.
    pub(crate) attention: bool,
    /// Ranges written by DMA since the timing model last looked; only kept when `log_dma`.
    pub(crate) dma_log: Vec<(u64, u64)>,
    pub(crate) log_dma: bool,
}

/// RAM without its pages, in a snapshot.
#[derive(Serialize, Deserialize)]
struct Saved<P, L> {
    reservations: [u64; MAX_HARTS],
    reserved: u32,
    stale_code: P,
    translation_generation: u64,
    generation: u64,
    attention: bool,
    dma_log: L,
}

impl Memory {
    /// Zeroed RAM of `size` bytes, a multiple of the page size.
    pub fn new(size: u64) -> Self {
        let pages = (size / PAGE_BYTES) as usize;
        Self {
            bytes: vec![0; size as usize].into_boxed_slice(),
            code: vec![0; pages].into_boxed_slice(),
            marks: vec![0; pages].into_boxed_slice(),
            reservations: [NO_RESERVATION; MAX_HARTS],
            reserved: 0,
            stale_code: Vec::new(),
            generation: 0,
            translation_generation: 0,
            attention: false,
            dma_log: Vec::new(),
            log_dma: false,
        }
    }

    /// All pages with their marks, by number.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (usize, Page<'_>)> {
        let marks = self.code.iter().zip(&self.marks);
        let pages = self.bytes.chunks(PAGE_BYTES as usize).zip(marks);
        pages.map(|(bytes, (&code, &marks))| Page { code, marks, bytes }).enumerate()
    }

    /// Puts a page of a snapshot back into new RAM. False if there is no such page.
    pub(crate) fn restore_page(&mut self, number: u64, page: &Page) -> bool {
        let Ok(number) = usize::try_from(number) else { return false };
        let Some(bytes) = self.bytes.chunks_mut(PAGE_BYTES as usize).nth(number) else { return false };
        bytes.copy_from_slice(page.bytes);
        (self.code[number], self.marks[number]) = (page.code, page.marks);
        true
    }

    /// What a snapshot keeps beside the pages.
    pub(crate) fn save(&self) -> Result<State, SocError> {
        State::of(&Saved {
            reservations: self.reservations,
            reserved: self.reserved,
            stale_code: &self.stale_code,
            translation_generation: self.translation_generation,
            generation: self.generation,
            attention: self.attention,
            dma_log: &self.dma_log,
        })
    }

    /// Takes that.
    pub(crate) fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let saved: Saved<Vec<u32>, Vec<(u64, u64)>> = state.read()?;
        self.reservations = saved.reservations;
        self.reserved = saved.reserved;
        self.stale_code = saved.stale_code;
        self.translation_generation = saved.translation_generation;
        self.generation = saved.generation;
        self.attention = saved.attention;
        self.dma_log = saved.dma_log;
        Ok(())
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads `N` little-endian bytes at `offset`. Panics outside RAM: callers hold a checked translation.
    #[inline(always)]
    pub(crate) fn read<const N: usize>(&self, offset: u64) -> [u8; N] {
        let at = offset as usize;
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[at..at + N]);
        out
    }

    /// Writes without looking at marks: only for offsets that came out of a write TLB entry.
    #[inline(always)]
    pub(crate) fn write<const N: usize>(&mut self, offset: u64, value: [u8; N]) {
        let at = offset as usize;
        self.bytes[at..at + N].copy_from_slice(&value);
    }

    /// The range as a slice, or none if any byte lies outside RAM.
    pub fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes.get(start..start.checked_add(len)?)
    }

    /// Stores `data` with all bookkeeping, for anyone but hart code. False (and no effect) if it does not fit in RAM.
    pub fn store_coherent(&mut self, offset: u64, data: &[u8]) -> bool {
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > self.size()) {
            return false;
        }
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let step = rest.len().min((LINE_BYTES - at % LINE_BYTES) as usize);
            self.note_store(at, None);
            self.bytes[at as usize..at as usize + step].copy_from_slice(&rest[..step]);
            at += step as u64;
            rest = &rest[step..];
        }
        if self.log_dma {
            self.dma_log.push((offset, data.len() as u64));
            self.attention = true;
        }
        true
    }

    /// Bookkeeping of a store into the 64-byte chunk at `offset` by hart `by` (none: a device).
    pub(crate) fn note_store(&mut self, offset: u64, by: Option<usize>) {
        let page = (offset / PAGE_BYTES) as usize;
        if self.code[page] >> (offset % PAGE_BYTES / LINE_BYTES) & 1 != 0 {
            self.code[page] = 0;
            self.stale_code.push(page as u32);
            self.attention = true;
        }
        if self.marks[page] & PAGE_TABLE != 0 {
            self.marks[page] &= !PAGE_TABLE;
            self.generation += 1;
            self.translation_generation += 1;
            self.attention = true;
        }
        let others = by.map_or(u32::MAX, |hart| !(1 << hart));
        if self.reserved & others != 0 {
            self.break_reservations(offset, by);
        }
    }

    /// True if a store to this page needs [`Memory::note_store`] and so must not enter a write TLB.
    pub(crate) fn is_watched(&self, offset: u64) -> bool {
        let page = (offset / PAGE_BYTES) as usize;
        self.code[page] != 0 || self.marks[page] & PAGE_TABLE != 0
    }

    /// A hart takes a write TLB entry for the page of `offset`.
    pub(crate) fn mark_write_cached(&mut self, offset: u64) {
        self.marks[(offset / PAGE_BYTES) as usize] |= WRITE_CACHED;
    }

    /// A walk read a page table entry at `offset`. True if write TLB entries must be dropped now.
    pub(crate) fn mark_page_table(&mut self, offset: u64) -> bool {
        let page = (offset / PAGE_BYTES) as usize;
        if self.marks[page] & PAGE_TABLE != 0 {
            return false;
        }
        self.marks[page] |= PAGE_TABLE;
        self.drop_write_entries(page)
    }

    /// Instructions at `start..end` (one page) were decoded. True if write TLB entries must be dropped now.
    pub(crate) fn mark_code(&mut self, start: u64, end: u64) -> bool {
        let page = (start / PAGE_BYTES) as usize;
        let first_time = self.code[page] == 0;
        for chunk in start % PAGE_BYTES / LINE_BYTES..=(end - 1) % PAGE_BYTES / LINE_BYTES {
            self.code[page] |= 1 << chunk;
        }
        first_time && self.drop_write_entries(page)
    }

    fn drop_write_entries(&mut self, page: usize) -> bool {
        if self.marks[page] & WRITE_CACHED == 0 {
            return false;
        }
        self.marks[page] &= !WRITE_CACHED;
        self.generation += 1;
        true
    }

    /// Bit per hart with a live reservation.
    #[inline(always)]
    pub(crate) fn reserved(&self) -> u32 {
        self.reserved
    }

    /// `lr` of hart `hart`.
    pub(crate) fn reserve(&mut self, hart: usize, offset: u64) {
        self.reservations[hart] = offset / LINE_BYTES;
        self.reserved |= 1 << hart;
    }

    /// Drops the reservation of `hart`, if any.
    #[inline]
    pub(crate) fn unreserve(&mut self, hart: usize) {
        self.reservations[hart] = NO_RESERVATION;
        self.reserved &= !(1 << hart);
    }

    /// `sc` of hart `hart`: true if its reservation covers `offset`; the reservation is gone either way.
    pub(crate) fn take_reservation(&mut self, hart: usize, offset: u64) -> bool {
        let held = self.reservations[hart] == offset / LINE_BYTES;
        self.unreserve(hart);
        held
    }

    /// A store to the line of `offset` ends the reservations that others hold on it.
    #[cold]
    pub(crate) fn break_reservations(&mut self, offset: u64, by: Option<usize>) {
        for hart in 0..MAX_HARTS {
            if by != Some(hart) && self.reservations[hart] == offset / LINE_BYTES {
                self.unreserve(hart);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_by_others_break_reservations() {
        let mut ram = Memory::new(8192);
        ram.reserve(0, 64);
        ram.note_store(72, Some(0));
        assert!(ram.take_reservation(0, 64));
        ram.reserve(0, 64);
        ram.note_store(120, Some(1));
        assert!(!ram.take_reservation(0, 64));
        ram.reserve(0, 64);
        ram.note_store(128, Some(1));
        assert!(ram.take_reservation(0, 64));
    }

    #[test]
    fn a_store_to_decoded_code_is_noticed_once() {
        let mut ram = Memory::new(8192);
        assert!(!ram.mark_code(4096, 4100));
        assert!(ram.is_watched(4096));
        ram.note_store(4096 + 64, None);
        assert!(ram.stale_code.is_empty());
        ram.note_store(4096 + 60, None);
        assert_eq!(ram.stale_code, [1]);
        assert!(!ram.is_watched(4096));
    }

    #[test]
    fn marking_a_written_page_drops_write_entries() {
        let mut ram = Memory::new(8192);
        ram.mark_write_cached(0);
        assert!(ram.mark_page_table(8));
        assert!(!ram.mark_page_table(16));
        assert_eq!((ram.generation, ram.translation_generation), (1, 0));
        ram.note_store(0, Some(0));
        assert_eq!((ram.generation, ram.translation_generation), (2, 1));
    }

    #[test]
    fn dma_outside_ram_is_refused() {
        let mut ram = Memory::new(4096);
        assert!(!ram.store_coherent(4095, &[1, 2]));
        assert!(!ram.store_coherent(u64::MAX, &[1, 2]));
        assert!(ram.store_coherent(4094, &[1, 2]));
        assert_eq!(ram.get(4094, 2), Some(&[1, 2][..]));
        assert_eq!(ram.get(4095, 2), None);
    }
}
