//! Sv39 (privileged manual, "Sv39: Page-Based 39-bit Virtual-Memory System").

use super::pmp::{Access, Pmp};
use crate::board::RAM_BASE;
use crate::config::AccessedDirty;
use crate::memory::Memory;
use crate::outcome::Privilege;

const VALID: u64 = 1;
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 2;
const EXECUTE: u64 = 1 << 3;
const USER: u64 = 1 << 4;
const GLOBAL: u64 = 1 << 5;
const ACCESSED: u64 = 1 << 6;
const DIRTY: u64 = 1 << 7;
const PPN_SHIFT: u32 = 10;
const PPN_BITS: u64 = (1 << 44) - 1;
/// Bits 63:54 are reserved without Svpbmt and Svnapot and must be 0.
const RESERVED: u64 = !((1 << 54) - 1);
const LEVELS: usize = 3;

/// Everything besides the address that a translation depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// Root page number, or none without translation.
    pub root: Option<u64>,
    pub privilege: Privilege,
    pub sum: bool,
    pub mxr: bool,
}

impl Space {
    /// Machine mode: no translation.
    pub fn bare() -> Self {
        Self { root: None, privilege: Privilege::M, sum: false, mxr: false }
    }
}

/// Why a translation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Page,
    Access,
}

/// A finished walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Physical address of the access.
    pub physical: u64,
    /// Physical addresses of the entries read, root first.
    pub entries: [u64; LEVELS],
    /// How many of them.
    pub depth: usize,
    /// A global mapping.
    pub global: bool,
}

/// Walks the tables for `va`. Page table pages are marked in `ram`.
pub(crate) fn walk(
    ram: &mut Memory,
    pmp: &Pmp,
    space: &Space,
    root: u64,
    va: u64,
    access: Access,
    accessed_dirty: AccessedDirty,
) -> Result<Walk, Fault> {
    if (va as i64) << 25 >> 25 != va as i64 {
        return Err(Fault::Page);
    }
    let mut table = root << 12;
    let mut entries = [0; LEVELS];
    let mut global = false;
    for step in 0..LEVELS {
        let level = (LEVELS - 1 - step) as u32;
        let at = table + (va >> (12 + 9 * level) & 0x1FF) * 8;
        entries[step] = at;
        let offset = at.wrapping_sub(RAM_BASE);
        if offset > ram.size() - 8 || !pmp.check(at, 8, Access::Load, Privilege::S).allowed {
            return Err(Fault::Access);
        }
        let pte = u64::from_le_bytes(ram.read(offset));
        ram.mark_page_table(offset);
        if pte & VALID == 0 || pte & (READ | WRITE) == WRITE || pte & RESERVED != 0 {
            return Err(Fault::Page);
        }
        global |= pte & GLOBAL != 0;
        let ppn = pte >> PPN_SHIFT & PPN_BITS;
        if pte & (READ | WRITE | EXECUTE) == 0 {
            if pte & (USER | ACCESSED | DIRTY) != 0 {
                return Err(Fault::Page);
            }
            table = ppn << 12;
            continue;
        }
        let below = (1u64 << (9 * level)) - 1;
        if !permits(pte, space, access) || ppn & below != 0 {
            return Err(Fault::Page);
        }
        let wanted = ACCESSED | if access == Access::Store { DIRTY } else { 0 };
        if pte & wanted != wanted {
            if accessed_dirty == AccessedDirty::Trap {
                return Err(Fault::Page);
            }
            ram.write(offset, (pte | wanted).to_le_bytes());
        }
        let page = ppn | va >> 12 & below;
        return Ok(Walk { physical: page << 12 | va & 0xFFF, entries, depth: step + 1, global });
    }
    Err(Fault::Page)
}

/// Where `va` leads, for a reader that leaves no trace and needs no permission.
pub(crate) fn look(ram: &Memory, root: u64, va: u64) -> Option<u64> {
    if (va as i64) << 25 >> 25 != va as i64 {
        return None;
    }
    let mut table = root << 12;
    for level in (0..LEVELS as u32).rev() {
        let at = table + (va >> (12 + 9 * level) & 0x1FF) * 8;
        let pte = u64::from_le_bytes(ram.get(at.wrapping_sub(RAM_BASE), 8)?.try_into().ok()?);
        if pte & VALID == 0 {
            return None;
        }
        let ppn = pte >> PPN_SHIFT & PPN_BITS;
        if pte & (READ | WRITE | EXECUTE) != 0 {
            let below = (1u64 << (12 + 9 * level)) - 1;
            return Some((ppn << 12) & !below | va & below);
        }
        table = ppn << 12;
    }
    None
}

fn permits(pte: u64, space: &Space, access: Access) -> bool {
    let mode = match space.privilege {
        Privilege::U => pte & USER != 0,
        _ => pte & USER == 0 || (space.sum && access != Access::Fetch),
    };
    let kind = match access {
        Access::Load => pte & READ != 0 || (space.mxr && pte & EXECUTE != 0),
        Access::Store => pte & WRITE != 0,
        Access::Fetch => pte & EXECUTE != 0,
    };
    mode && kind
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u64 = (RAM_BASE >> 12) + 1;

    fn open_pmp() -> Pmp {
        let mut pmp = Pmp::default();
        pmp.write_address(0, u64::MAX);
        pmp.write_config(0, 0x1F);
        pmp
    }

    fn space(privilege: Privilege) -> Space {
        Space { root: Some(ROOT), privilege, sum: false, mxr: false }
    }

    /// RAM with a root at page 1, level 1 at page 2, level 0 at page 3; `leaf` maps va 0x40_2000 to page 5.
    fn tables(leaf: u64) -> Memory {
        let mut ram = Memory::new(64 * 4096);
        let page = |n: u64| (RAM_BASE >> 12) + n;
        let mut put = |table: u64, index: u64, pte: u64| {
            ram.write(table * 4096 + index * 8, pte.to_le_bytes());
        };
        put(1, 0, page(2) << 10 | VALID);
        put(2, 2, page(3) << 10 | VALID);
        put(3, 2, page(5) << 10 | leaf);
        // A 1 GiB page at index 2 of the root, and a misaligned one at index 3.
        put(1, 2, (RAM_BASE >> 12) << 10 | VALID | READ | WRITE | ACCESSED | DIRTY);
        put(1, 3, page(1) << 10 | VALID | READ | ACCESSED);
        ram
    }

    fn go(leaf: u64, space: &Space, va: u64, access: Access) -> Result<Walk, Fault> {
        walk(&mut tables(leaf), &open_pmp(), space, ROOT, va, access, AccessedDirty::Trap)
    }

    const ALL: u64 = VALID | READ | WRITE | EXECUTE | ACCESSED | DIRTY;

    #[test]
    fn three_levels_and_superpages() {
        let s = space(Privilege::S);
        let found = go(ALL, &s, 0x40_2123, Access::Load).unwrap();
        assert_eq!((found.physical, found.depth), (RAM_BASE + 5 * 4096 + 0x123, 3));
        let large = go(ALL, &s, 2 << 30 | 0x1234, Access::Store).unwrap();
        assert_eq!((large.physical, large.depth), (RAM_BASE + 0x1234, 1));
        assert_eq!(go(ALL, &s, 3 << 30, Access::Load), Err(Fault::Page));
        assert_eq!(go(ALL, &s, 1 << 38, Access::Load), Err(Fault::Page), "not canonical");
        assert_eq!(go(ALL, &s, 0x40_3000, Access::Load), Err(Fault::Page));
    }

    #[test]
    fn permissions() {
        let (s, u) = (space(Privilege::S), space(Privilege::U));
        let sum = Space { sum: true, ..s };
        let mxr = Space { mxr: true, ..s };
        let at = 0x40_2000;
        assert!(go(ALL, &u, at, Access::Load).is_err());
        assert!(go(ALL | USER, &u, at, Access::Fetch).is_ok());
        assert!(go(ALL | USER, &s, at, Access::Load).is_err());
        assert!(go(ALL | USER, &sum, at, Access::Load).is_ok());
        assert!(go(ALL | USER, &sum, at, Access::Fetch).is_err());
        assert!(go(ALL & !READ & !WRITE, &s, at, Access::Load).is_err());
        assert!(go(ALL & !READ & !WRITE, &mxr, at, Access::Load).is_ok());
        assert!(go(ALL & !WRITE, &s, at, Access::Store).is_err());
        assert!(go(ALL & !READ, &s, at, Access::Store).is_err(), "W without R is reserved");
        assert!(go(ALL | 1 << 63, &s, at, Access::Load).is_err(), "reserved bit");
    }

    #[test]
    fn accessed_and_dirty() {
        let s = space(Privilege::S);
        let at = 0x40_2000;
        assert!(go(ALL & !ACCESSED, &s, at, Access::Load).is_err());
        assert!(go(ALL & !DIRTY, &s, at, Access::Load).is_ok());
        assert!(go(ALL & !DIRTY, &s, at, Access::Store).is_err());
        let mut ram = tables(ALL & !DIRTY & !ACCESSED);
        let found = walk(&mut ram, &open_pmp(), &s, ROOT, at, Access::Store, AccessedDirty::Hardware).unwrap();
        let pte = u64::from_le_bytes(ram.read(found.entries[2] - RAM_BASE));
        assert_eq!(pte & (ACCESSED | DIRTY), ACCESSED | DIRTY);
    }

    #[test]
    fn tables_outside_ram_are_access_faults() {
        let mut ram = Memory::new(4096);
        let s = space(Privilege::S);
        assert_eq!(walk(&mut ram, &open_pmp(), &s, 1, 0, Access::Load, AccessedDirty::Trap), Err(Fault::Access));
    }
}
