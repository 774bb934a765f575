//! Sv39 page-table entries (privileged manual, section "Sv39").
//!
//! User leaves carry A and D from the start, because harts need not set them; kernel leaves are global, so that a switch of
//! the address space keeps their translations.

/// Entries of a table.
pub const ENTRIES: usize = 512;
/// First entry of the kernel half of a root.
pub const KERNEL_HALF: usize = 256;

const V: u64 = 1 << 0;
const R: u64 = 1 << 1;
const W: u64 = 1 << 2;
const X: u64 = 1 << 3;
const U: u64 = 1 << 4;
const G: u64 = 1 << 5;
const A: u64 = 1 << 6;
const D: u64 = 1 << 7;
const PPN_SHIFT: u32 = 10;
const PPN_MASK: u64 = (1 << 44) - 1;

/// What a user leaf allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Fetches.
    pub execute: bool,
}

/// A page-table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Pte(u64);

impl Pte {
    /// Nothing is mapped.
    pub const EMPTY: Self = Self(0);

    const fn new(paddr: u64, flags: u64) -> Self {
        Self((paddr >> 12 & PPN_MASK) << PPN_SHIFT | flags)
    }

    /// Pointer to the next table.
    pub const fn table(paddr: u64) -> Self {
        Self::new(paddr, V)
    }

    /// User leaf. With no rights at all the entry is not valid (V is clear), since V alone would be a table pointer.
    pub const fn user(paddr: u64, rights: Rights) -> Self {
        let mut flags = U | A | D;
        if rights.read {
            flags |= R;
        }
        if rights.write {
            flags |= W;
        }
        if rights.execute {
            flags |= X;
        }
        if flags & (R | W | X) != 0 {
            flags |= V;
        }
        Self::new(paddr, flags)
    }

    /// Kernel device page: read and write, global.
    pub const fn kernel_device(paddr: u64) -> Self {
        Self::new(paddr, V | R | W | G | A | D)
    }

    /// The word in memory.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// From the word in memory.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether the walk goes on or ends here with success.
    pub const fn is_valid(self) -> bool {
        self.0 & V != 0
    }

    /// Whether this points to a table.
    pub const fn is_table(self) -> bool {
        self.0 & (V | R | W | X) == V
    }

    /// Whether this maps a page.
    pub const fn is_leaf(self) -> bool {
        self.is_valid() && !self.is_table()
    }

    /// Whether this maps a page that can be read.
    pub const fn is_readable(self) -> bool {
        self.0 & (V | R) == V | R
    }

    /// Whether this maps a page that can be written.
    pub const fn is_writable(self) -> bool {
        self.0 & (V | W) == V | W
    }

    /// Physical address of the page or table.
    pub const fn paddr(self) -> u64 {
        (self.0 >> PPN_SHIFT & PPN_MASK) << 12
    }
}

/// Index of `vaddr` into the table at `level` (0 = root, 2 = last).
pub const fn index(vaddr: u64, level: u32) -> usize {
    (vaddr >> shift(level)) as usize & (ENTRIES - 1)
}

/// log2 of what one entry at `level` covers: 30, 21, 12.
pub const fn shift(level: u32) -> u32 {
    30 - 9 * level
}

/// The `satp` word for a root: mode 8 (Sv39), 16-bit ASID, page number.
pub const fn satp(root: u64, asid: u16) -> usize {
    (8 << 60 | (asid as u64) << 44 | root >> 12) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_the_hardware_reads_them() {
        assert_eq!(Pte::table(0x8765_4000).bits(), 0x21D9_5001);
        let rwx = Rights { read: true, write: true, execute: true };
        assert_eq!(Pte::user(0x8000_0000, rwx).bits(), 0x2000_00DF);
        assert_eq!(Pte::kernel_device(0x0C00_0000).bits(), 0x0300_00E7);
        assert_eq!(satp(0x8020_5000, 3), 0x8000_3000_0008_0205);
    }

    #[test]
    fn a_leaf_without_rights_is_not_a_table() {
        let none = Pte::user(0x8000_0000, Rights { read: false, write: false, execute: false });
        assert!(!none.is_valid() && !none.is_table() && !none.is_leaf());
    }

    #[test]
    fn indices_of_an_address() {
        let vaddr = 5 << 30 | 6 << 21 | 7 << 12 | 8;
        assert_eq!((index(vaddr, 0), index(vaddr, 1), index(vaddr, 2)), (5, 6, 7));
        assert_eq!((shift(0), shift(1), shift(2)), (30, 21, 12));
        assert_eq!(index(0xFFFF_FFFF_8020_0000, 0), 510);
    }

    #[test]
    fn address_round_trip() {
        for paddr in [0, 0x1000, 0x3F_FFFF_F000, (1 << 56) - 4096] {
            assert_eq!(Pte::table(paddr).paddr(), paddr);
        }
    }
}
