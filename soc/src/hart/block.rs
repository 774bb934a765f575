//! Decoded basic blocks, found by physical address.
//!
//! One slot per halfword of a RAM page names the block that starts there; no hashing, no aliasing between address spaces
//! or harts. A block never leaves its page, so invalidation is per page; blocks remember successors only inside their page,
//! so a remembered successor is right as long as the page is.

use super::compressed::expand;
use super::decode::decode;
use super::insn::{Insn, Op};
use crate::board::RAM_BASE;
use crate::memory::{LINE_BYTES, Memory, PAGE_BYTES};
use crate::timing::pipeline::{Reach, Tail, schedule, sources};

/// Instructions per block at most.
const MAX_BLOCK: usize = 64;
const SLOTS: usize = PAGE_BYTES as usize / 2;
/// Slot and successor value for "not known".
pub(crate) const NONE: u32 = u32::MAX;
/// No RAM has this line.
pub(crate) const NO_LINE: u64 = 0;

/// Number of the block that holds the instruction across two pages executed last; lookups do not find it.
pub(crate) const STRADDLING: u32 = 0;

/// A way out of a block: falling through, or by its taken direct branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge(u32);

impl Edge {
    /// Another way, or none at all.
    pub const UNKNOWN: Self = Self(NONE);

    #[inline(always)]
    fn of(block: u32, taken: bool) -> Self {
        Self(block << 1 | u32::from(taken))
    }

    fn block(self) -> usize {
        (self.0 >> 1) as usize
    }

    fn taken(self) -> bool {
        self.0 & 1 != 0
    }
}

/// How a hart left its last block, as long as that says which one is next, and where that leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub edge: Edge,
    /// [`NONE`]: to be looked up.
    pub next: u32,
}

impl Way {
    pub const UNKNOWN: Self = Self { edge: Edge::UNKNOWN, next: NONE };

    /// The same, for a hart out of a snapshot.
    pub fn unknown() -> Self {
        Self::UNKNOWN
    }
}

/// A decoded block. Its alignment makes the way from a number to a block a shift.
#[repr(align(64))]
pub(crate) struct Block {
    pub insns: Box<[Insn]>,
    /// RAM offset of the first instruction.
    pub start: u64,
    /// RAM offset one past the last.
    pub end: u64,
    /// First instruction is 4 bytes long and not on a 4-byte boundary.
    pub split_head: bool,
    /// Registers that the first instruction reads, as [`sources`] gives them, for a late result of the block before.
    pub head: u64,
    /// Physical numbers of the first and the last cache line, and of the only one; [`NO_LINE`] if there are several.
    pub first_line: u64,
    pub last_line: u64,
    pub only_line: u64,
    pub bytes: u64,
    /// A result that is late for the block behind.
    pub tail: Tail,
    pub reach: Reach,
}

impl Block {
    /// The instructions of the first `bytes` bytes, as a block of their own that falls through behind them.
    pub fn piece(&self, bytes: u64) -> Vec<Insn> {
        let mut insns: Vec<Insn> =
            self.insns.iter().take_while(|insn| u64::from(insn.offset) < bytes).copied().collect();
        if let Some(last) = insns.last().copied() {
            let offset = last.offset + u16::from(last.len);
            insns.push(Insn { offset, index: last.index, cost: last.cost, ..Insn::new(Op::End, 0, 0, 0, 0) });
        }
        insns
    }

    /// True if the successor by fall-through or taken direct branch lies in the same page.
    fn stays_in_page(&self, taken: bool) -> bool {
        let in_page = self.start % PAGE_BYTES;
        let target = if taken {
            let Some(last) = self.insns.last() else { return false };
            in_page.wrapping_add(u64::from(last.offset)).wrapping_add(i64::from(last.imm) as u64)
        } else {
            in_page + (self.end - self.start)
        };
        target < PAGE_BYTES
    }
}

/// All blocks of a machine.
pub(crate) struct BlockCache {
    pages: Box<[Option<Box<[u32; SLOTS]>>]>,
    blocks: Vec<Block>,
    /// Where each edge leads, if that is in the same page and known.
    successors: Vec<u32>,
    free: Vec<u32>,
    timed: bool,
}

/// Result of a lookup.
pub(crate) enum Found {
    Block(u32),
    /// The first instruction's second half lies in the next page.
    Straddles,
}

impl BlockCache {
    /// An empty cache for RAM of `size` bytes; `timed` adds static cycle costs.
    pub fn new(size: u64, timed: bool) -> Self {
        let pages = (0..size / PAGE_BYTES).map(|_| None).collect();
        let mut cache = Self { pages, blocks: Vec::new(), successors: Vec::new(), free: Vec::new(), timed };
        let nothing = cache.finish(Vec::new(), 0, 0);
        cache.insert(nothing);
        cache
    }

    #[inline(always)]
    pub fn block(&self, index: u32) -> &Block {
        &self.blocks[index as usize]
    }

    /// The way out of block number `block`.
    #[inline(always)]
    pub fn way(&self, block: u32, taken: bool) -> Way {
        let edge = Edge::of(block, taken);
        Way { edge, next: self.successors.get(edge.0 as usize).copied().unwrap_or(NONE) }
    }

    /// Remembers that `edge` leads to `to`, if it is known and leads into the page of its block: then the successor lies there
    /// for every mapping of the page, or for none.
    pub fn link(&mut self, edge: Edge, to: u32) {
        // What number STRADDLING holds changes behind a hart's back.
        if edge != Edge::UNKNOWN
            && edge.block() != STRADDLING as usize
            && self.blocks[edge.block()].stays_in_page(edge.taken())
        {
            self.successors[edge.0 as usize] = to;
        }
    }

    /// The block at RAM offset `start`, decoded now if need be.
    #[inline]
    pub fn lookup(&mut self, ram: &mut Memory, start: u64) -> Found {
        let (page, slot) = ((start / PAGE_BYTES) as usize, (start % PAGE_BYTES / 2) as usize);
        if let Some(Some(slots)) = self.pages.get(page)
            && slots[slot] != NONE
        {
            return Found::Block(slots[slot]);
        }
        self.decode_at(ram, start)
    }

    #[cold]
    fn decode_at(&mut self, ram: &mut Memory, start: u64) -> Found {
        let page_end = (start & !(PAGE_BYTES - 1)) + PAGE_BYTES;
        let mut insns = Vec::new();
        let mut at = start;
        let mut first_raw = None;
        while at < page_end && insns.len() < MAX_BLOCK {
            let half = u16::from_le_bytes(ram.read(at));
            let wide = half & 3 == 3;
            if wide && at + 4 > page_end {
                if at == start {
                    return Found::Straddles;
                }
                break;
            }
            let raw = if wide { u32::from_le_bytes(ram.read(at)) } else { u32::from(half) };
            let insn = decode_one(raw);
            if insn.op.starts_block() && at != start {
                break;
            }
            first_raw.get_or_insert(raw);
            insns.push(Insn { offset: (at - start) as u16, index: insns.len() as u8 + 1, ..insn });
            at += u64::from(insn.len);
            if insn.op.ends_block() {
                break;
            }
        }
        let block = self.finish(insns, start, at);
        ram.mark_code(start, at);
        let index = self.insert(block);
        let slots = self.pages[(start / PAGE_BYTES) as usize].get_or_insert_with(|| Box::new([NONE; SLOTS]));
        slots[(start % PAGE_BYTES / 2) as usize] = index;
        Found::Block(index)
    }

    /// Makes the single 4-byte instruction `raw` that crosses a page end at `start` block [`STRADDLING`].
    pub fn straddle(&mut self, raw: u32, start: u64) {
        let insn = Insn { index: 1, ..decode_one(raw) };
        self.blocks[STRADDLING as usize] = self.finish(vec![insn], start, start + 4);
    }

    fn finish(&self, mut insns: Vec<Insn>, start: u64, end: u64) -> Block {
        let count = insns.len() as u8;
        if !insns.last().is_some_and(|last| last.op.ends_block()) {
            let end = Insn { offset: (end - start) as u16, index: count, ..Insn::new(Op::End, 0, 0, 0, 0) };
            insns.push(end);
        }
        let tail = if self.timed {
            schedule(&mut insns)
        } else {
            for insn in &mut insns {
                insn.cost = u16::from(insn.index);
            }
            Tail::default()
        };
        let head = insns[0];
        let reach = Reach::of(&insns);
        let first_line = (RAM_BASE + start) / LINE_BYTES;
        let last_line = (RAM_BASE + end.max(start + 1) - 1) / LINE_BYTES;
        Block {
            split_head: head.len == 4 && start % 4 == 2,
            head: sources(&head),
            first_line,
            last_line,
            only_line: if first_line == last_line { first_line } else { NO_LINE },
            bytes: end - start,
            insns: insns.into_boxed_slice(),
            start,
            end,
            tail,
            reach,
        }
    }

    fn insert(&mut self, block: Block) -> u32 {
        if let Some(index) = self.free.pop() {
            self.blocks[index as usize] = block;
            for taken in [false, true] {
                self.successors[Edge::of(index, taken).0 as usize] = NONE;
            }
            return index;
        }
        self.blocks.push(block);
        self.successors.extend([NONE; 2]);
        self.blocks.len() as u32 - 1
    }

    /// Forgets all blocks of a page.
    pub fn drop_page(&mut self, page: u32) {
        if let Some(slots) = self.pages.get_mut(page as usize).and_then(Option::take) {
            self.free.extend(slots.iter().filter(|&&index| index != NONE));
        }
    }
}

fn decode_one(raw: u32) -> Insn {
    if raw & 3 == 3 {
        return decode(raw);
    }
    match expand(raw as u16) {
        Some(full) => {
            let mut insn = Insn { len: 2, ..decode(full) };
            if insn.op == Op::Ebreak {
                insn.imm = raw as i32;
            }
            insn
        }
        None => Insn { len: 2, ..Insn::new(Op::Illegal, 0, 0, 0, raw as i32) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ram(words: &[u16], at: u64) -> Memory {
        let mut ram = Memory::new(8192);
        for (i, word) in words.iter().enumerate() {
            ram.write(at + 2 * i as u64, word.to_le_bytes());
        }
        ram
    }

    #[test]
    fn blocks_end_at_jumps_and_before_atomics() {
        // c.nop, c.nop, amoadd.d a0, a2, (a1), c.nop, ret
        let mut ram = ram(&[1, 1, 0xb52f, 0x00c5, 1, 0x8082], 0);
        let mut cache = BlockCache::new(8192, false);
        let Found::Block(first) = cache.lookup(&mut ram, 0) else { panic!() };
        assert_eq!(cache.block(first).insns.iter().map(|i| i.op).collect::<Vec<_>>(), [Op::Nop, Op::Nop, Op::End]);
        let Found::Block(second) = cache.lookup(&mut ram, 4) else { panic!() };
        assert_eq!(cache.block(second).insns.last().map(|i| i.op), Some(Op::Jalr));
        assert!(matches!(cache.lookup(&mut ram, 0), Found::Block(again) if again == first));
    }

    #[test]
    fn page_ends() {
        let mut ram = ram(&[1, 0x0513, 0x0010], 4092);
        let mut cache = BlockCache::new(8192, false);
        let Found::Block(index) = cache.lookup(&mut ram, 4092) else { panic!() };
        assert_eq!(cache.block(index).end, 4094);
        assert!(matches!(cache.lookup(&mut ram, 4094), Found::Straddles));
    }

    #[test]
    fn dropped_pages_are_decoded_again() {
        let mut ram = ram(&[1, 0x8082], 0);
        let mut cache = BlockCache::new(8192, false);
        let Found::Block(index) = cache.lookup(&mut ram, 0) else { panic!() };
        assert_eq!(cache.block(index).insns.len(), 2);
        ram.note_store(0, None);
        ram.write(0, 0x8082u16.to_le_bytes());
        cache.drop_page(0);
        let Found::Block(index) = cache.lookup(&mut ram, 0) else { panic!() };
        assert_eq!(cache.block(index).insns.len(), 1);
    }
}
