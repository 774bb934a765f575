//! Which translations a Rocket TLB would hold: 8 sectored entries (four consecutive 4 KiB pages each), 4 superpage entries,
//! pseudo-LRU; and the walker's cache of 8 non-leaf entries. Addresses only; the functional TLB is elsewhere.

use super::params::{PTE_CACHE, TLB_ENTRIES, TLB_SECTORS, TLB_SUPERPAGES};
use crate::hart::mmu::Walk;
use serde::{Deserialize, Serialize};

const NO_PAGE: u64 = u64::MAX;

/// Tree pseudo-LRU over a power of two of entries, at most 8.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct PseudoLru(u8);

impl PseudoLru {
    /// Marks `entry` of `count` as just used: every node on its path points away from it.
    fn touch(&mut self, entry: usize, count: usize) {
        let (mut node, mut width) = (1, count);
        while width > 1 {
            width /= 2;
            let right = entry & width != 0;
            self.0 = if right { self.0 & !(1 << node) } else { self.0 | 1 << node };
            node = 2 * node + usize::from(right);
        }
    }

    /// The entry to replace.
    fn victim(self, count: usize) -> usize {
        let (mut node, mut width, mut entry) = (1, count, 0);
        while width > 1 {
            width /= 2;
            let right = self.0 >> node & 1 != 0;
            entry |= if right { width } else { 0 };
            node = 2 * node + usize::from(right);
        }
        entry
    }
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Sectored {
    /// Virtual address / 16 KiB.
    group: u64,
    /// Bit per page present, and per page that is global.
    present: u8,
    global: u8,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Superpage {
    /// First virtual page and number of pages; 0 pages = empty.
    page: u64,
    pages: u64,
    global: bool,
}

/// One TLB.
#[derive(Serialize, Deserialize)]
pub(crate) struct TlbModel {
    /// The page that hit last: the usual case is tested alone.
    last: u64,
    sectored: [Sectored; TLB_ENTRIES],
    sectored_use: PseudoLru,
    superpages: [Superpage; TLB_SUPERPAGES],
    superpages_use: PseudoLru,
}

impl TlbModel {
    pub fn new() -> Self {
        Self {
            last: NO_PAGE,
            sectored: Default::default(),
            sectored_use: PseudoLru::default(),
            superpages: Default::default(),
            superpages_use: PseudoLru::default(),
        }
    }

    /// True if the page of `va` is not here.
    #[inline(always)]
    pub fn misses(&mut self, va: u64) -> bool {
        va >> 12 != self.last && self.search(va >> 12)
    }

    fn search(&mut self, page: u64) -> bool {
        let (group, sector) = (page / TLB_SECTORS, page % TLB_SECTORS);
        if let Some(entry) = self.sectored.iter().position(|e| e.group == group && e.present >> sector & 1 != 0) {
            self.sectored_use.touch(entry, TLB_ENTRIES);
        } else if let Some(entry) = self.superpages.iter().position(|e| page.wrapping_sub(e.page) < e.pages) {
            self.superpages_use.touch(entry, TLB_SUPERPAGES);
        } else {
            return true;
        }
        self.last = page;
        false
    }

    /// A walk for `va` has ended.
    pub fn fill(&mut self, va: u64, walk: &Walk) {
        let page = va >> 12;
        self.last = page;
        if walk.depth < 3 {
            let pages = 1 << (9 * (3 - walk.depth));
            let entry =
                self.superpages.iter().position(|e| e.pages == 0).unwrap_or(self.superpages_use.victim(TLB_SUPERPAGES));
            self.superpages[entry] = Superpage { page: page & !(pages - 1), pages, global: walk.global };
            self.superpages_use.touch(entry, TLB_SUPERPAGES);
            return;
        }
        let (group, sector) = (page / TLB_SECTORS, page % TLB_SECTORS);
        let entry = match self.sectored.iter().position(|e| e.group == group && e.present != 0) {
            Some(entry) => entry,
            None => {
                let entry =
                    self.sectored.iter().position(|e| e.present == 0).unwrap_or(self.sectored_use.victim(TLB_ENTRIES));
                self.sectored[entry] = Sectored { group, present: 0, global: 0 };
                entry
            }
        };
        self.sectored[entry].present |= 1 << sector;
        self.sectored[entry].global |= u8::from(walk.global) << sector;
        self.sectored_use.touch(entry, TLB_ENTRIES);
    }

    /// `sfence.vma` for one page, for all but global pages, or for everything.
    pub fn flush(&mut self, va: Option<u64>, keep_global: bool) {
        self.last = NO_PAGE;
        match va {
            Some(va) => {
                let page = va >> 12;
                for entry in self.sectored.iter_mut().filter(|e| e.group == page / TLB_SECTORS) {
                    entry.present &= !(1 << (page % TLB_SECTORS));
                }
                for entry in self.superpages.iter_mut().filter(|e| page.wrapping_sub(e.page) < e.pages) {
                    entry.pages = 0;
                }
            }
            None => {
                for entry in &mut self.sectored {
                    entry.present &= if keep_global { entry.global } else { 0 };
                }
                for entry in self.superpages.iter_mut().filter(|e| !(keep_global && e.global)) {
                    entry.pages = 0;
                }
            }
        }
    }
}

/// The walker's cache of non-leaf entries, by physical address.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct PteCache {
    entries: [u64; PTE_CACHE],
    used: PseudoLru,
}

impl PteCache {
    /// True if the entry at `physical` is here; puts it in otherwise.
    pub fn touch(&mut self, physical: u64) -> bool {
        let found = self.entries.iter().position(|&e| e == physical);
        let entry = found.or_else(|| self.entries.iter().position(|&e| e == 0)).unwrap_or(self.used.victim(PTE_CACHE));
        self.entries[entry] = physical;
        self.used.touch(entry, PTE_CACHE);
        found.is_some()
    }

    pub fn clear(&mut self) {
        self.entries.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(depth: usize, global: bool) -> Walk {
        Walk { physical: 0, entries: [0; 3], depth, global }
    }

    fn touch(tlb: &mut TlbModel, va: u64) -> bool {
        let miss = tlb.misses(va);
        if miss {
            tlb.fill(va, &walk(3, false));
        }
        miss
    }

    /// Measured reach: 32 consecutive pages, but only 8 at a stride of 16 KiB.
    #[test]
    fn reach() {
        let misses = |count: u64, stride: u64| {
            let mut tlb = TlbModel::new();
            for _ in 0..2 {
                (0..count).for_each(|n| _ = touch(&mut tlb, n * stride));
            }
            (0..count).filter(|n| touch(&mut tlb, n * stride)).count()
        };
        assert_eq!(misses(32, 4096), 0);
        assert_eq!(misses(8, 16384), 0);
        assert!(misses(9, 16384) > 0);
    }

    #[test]
    fn superpages_and_flushes() {
        let mut tlb = TlbModel::new();
        tlb.fill(0x4000_0000, &walk(1, true));
        assert!(!tlb.misses(0x7FFF_F000));
        assert!(touch(&mut tlb, 0x1000));
        tlb.flush(None, true);
        assert!(!tlb.misses(0x4000_0000));
        assert!(tlb.misses(0x1000));
        tlb.flush(Some(0x4000_5000), false);
        assert!(tlb.misses(0x4000_0000));
    }
}
