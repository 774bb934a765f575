//! The functional TLB: three direct-mapped arrays per hart (load, store, fetch) from virtual page and context to RAM.
//!
//! It is a memo, not a model: it never holds anything that a walk would not find now. A *context* is a small number for
//! everything besides the address that a translation depends on, so a change of address space or privilege flushes nothing.
//! Still a snapshot holds it: a miss ends a block early if the run loop has something to do.

use crate::snapshot::array;
use serde::{Deserialize, Serialize};

const ENTRIES: usize = 256;
const EMPTY: u64 = u64::MAX;
/// One below the largest 9-bit number, so that no tag with the low bits of a misaligned access equals [`EMPTY`].
const MAX_CONTEXTS: usize = 510;
const HASH_SLOTS: usize = 1024;

/// One translation: tag = page number in bits 63:12, context in bits 11:3; `offset` + virtual address = RAM offset.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub tag: u64,
    pub offset: u64,
}

/// Where the entry of a page is: without the context, the same page of two programs would always collide.
#[inline(always)]
fn slot(va: u64, context: u64) -> usize {
    ((va ^ context << 9) >> 12) as usize % ENTRIES
}

/// One array.
#[derive(Serialize, Deserialize)]
pub(crate) struct Array(#[serde(with = "array")] [Entry; ENTRIES]);

impl Array {
    fn new() -> Self {
        Self([Entry { tag: EMPTY, offset: 0 }; ENTRIES])
    }

    /// RAM offset for an aligned access of `N` bytes, or none. `context` is a context number shifted left by 3.
    #[inline(always)]
    pub fn hit<const N: u64>(&self, va: u64, context: u64) -> Option<u64> {
        let entry = &self.0[slot(va, context)];
        (entry.tag == (va & (!0xFFF | (N - 1))) | context).then(|| va.wrapping_add(entry.offset))
    }

    /// Remembers that the page of `va` is the page of RAM offset `ram`.
    pub fn fill(&mut self, va: u64, context: u64, ram: u64) {
        let page = va & !0xFFF;
        self.0[slot(va, context)] = Entry { tag: page | context, offset: (ram & !0xFFF).wrapping_sub(page) };
    }

    pub fn clear(&mut self) {
        self.0.fill(Entry { tag: EMPTY, offset: 0 });
    }
}

/// What a context number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextKey {
    /// `satp` if it translates, else 0.
    pub satp: u64,
    /// Privilege in bits 1:0, SUM bit 2, MXR bit 3.
    pub mode: u8,
}

/// The three arrays and the numbering of contexts.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tlb {
    pub load: Array,
    pub store: Array,
    pub fetch: Array,
    contexts: Vec<ContextKey>,
    #[serde(with = "array::boxed")]
    slots: Box<[u16; HASH_SLOTS]>,
}

impl Tlb {
    pub fn new() -> Self {
        Self {
            load: Array::new(),
            store: Array::new(),
            fetch: Array::new(),
            contexts: Vec::new(),
            slots: Box::new([0; HASH_SLOTS]),
        }
    }

    pub fn clear(&mut self) {
        self.load.clear();
        self.store.clear();
        self.fetch.clear();
    }

    /// The number of `key`, shifted left by 3. When numbers run out everything starts over.
    pub fn context(&mut self, key: ContextKey) -> u64 {
        let mut hash = (key.satp ^ u64::from(key.mode) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        loop {
            let slot = &mut self.slots[hash as usize % HASH_SLOTS];
            if *slot == 0 {
                break;
            }
            if self.contexts[usize::from(*slot) - 1] == key {
                return u64::from(*slot - 1) << 3;
            }
            hash += 1;
        }
        if self.contexts.len() == MAX_CONTEXTS {
            self.contexts.clear();
            self.slots.fill(0);
            self.clear();
            return self.context(key);
        }
        self.contexts.push(key);
        self.slots[hash as usize % HASH_SLOTS] = self.contexts.len() as u16;
        (self.contexts.len() as u64 - 1) << 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_separate_address_spaces_and_run_out_gracefully() {
        let mut tlb = Tlb::new();
        let first = tlb.context(ContextKey { satp: 1, mode: 0 });
        tlb.load.fill(0x1000, first, 0x5000);
        assert_eq!(tlb.load.hit::<8>(0x1008, first), Some(0x5008));
        for satp in 2..=600 {
            let context = tlb.context(ContextKey { satp, mode: 0 });
            assert_eq!(tlb.context(ContextKey { satp, mode: 0 }), context);
            assert_eq!(tlb.load.hit::<8>(0x1008, context), None);
        }
    }

    #[test]
    fn misaligned_accesses_never_hit() {
        let mut tlb = Tlb::new();
        tlb.load.fill(0x1000, 0, 0);
        assert_eq!(tlb.load.hit::<8>(0x1004, 0), None);
        assert_eq!(tlb.load.hit::<4>(0x1004, 0), Some(4));
        assert_eq!(tlb.load.hit::<1>(0x1007, 0), Some(7));
        assert_eq!(tlb.store.hit::<8>(u64::MAX, 509 << 3), None);
    }
}
