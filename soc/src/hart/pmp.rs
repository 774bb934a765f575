//! Physical memory protection: 8 entries, as on Rocket; numbers 8 to 15 exist and read 0.

use crate::outcome::Privilege;
use serde::{Deserialize, Serialize};

/// Entries that can be set (Rocket's default, `nPMPs = 8`).
const ENTRIES: usize = 8;
const READ: u8 = 1;
const WRITE: u8 = 2;
const EXECUTE: u8 = 4;
const MODE_SHIFT: u8 = 3;
const LOCKED: u8 = 0x80;
/// `pmpaddr` holds bits 55:2 of an address.
const ADDRESS_BITS: u64 = (1 << 54) - 1;

/// What an access wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Load,
    /// A store or atomic.
    Store,
    /// An instruction fetch.
    Fetch,
}

/// The answer for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The access may go on.
    pub allowed: bool,
    /// The same holds for the whole 4 KiB page of the access.
    pub whole_page: bool,
}

/// The registers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pmp {
    config: [u8; ENTRIES],
    address: [u64; ENTRIES],
}

impl Pmp {
    /// `pmpcfg<number>`; odd ones do not exist on RV64.
    pub fn read_config(&self, number: u32) -> Option<u64> {
        match number {
            0 => Some(u64::from_le_bytes(self.config)),
            2 => Some(0),
            _ => None,
        }
    }

    /// Writes `pmpcfg<number>`; locked entries keep their value, W without R is not stored.
    pub fn write_config(&mut self, number: u32, value: u64) {
        if number != 0 {
            return;
        }
        for (entry, &new) in self.config.iter_mut().zip(&value.to_le_bytes()) {
            if *entry & LOCKED == 0 {
                let new = new & 0x9F;
                *entry = if new & (READ | WRITE) == WRITE { new & !WRITE } else { new };
            }
        }
    }

    /// `pmpaddr<index>`.
    pub fn read_address(&self, index: usize) -> u64 {
        self.address.get(index).copied().unwrap_or(0)
    }

    /// Writes `pmpaddr<index>` unless it is locked, or is the base of a locked top-of-range entry.
    pub fn write_address(&mut self, index: usize, value: u64) {
        if index >= ENTRIES || self.config[index] & LOCKED != 0 {
            return;
        }
        let above = self.config.get(index + 1).copied().unwrap_or(0);
        if above & LOCKED != 0 && mode(above) == 1 {
            return;
        }
        self.address[index] = value & ADDRESS_BITS;
    }

    /// May `privilege` make an access of `len` bytes at physical address `at`?
    pub fn check(&self, at: u64, len: u64, access: Access, privilege: Privilege) -> Verdict {
        let page = at & !0xFFF;
        for index in 0..ENTRIES {
            let Some((start, end)) = self.range(index) else { continue };
            if at.saturating_add(len) <= start || at >= end {
                if page.saturating_add(0x1000) > start && page < end {
                    return Verdict { whole_page: false, ..self.check_after(index + 1, at, len, access, privilege) };
                }
                continue;
            }
            let config = self.config[index];
            let wanted = match access {
                Access::Load => READ,
                Access::Store => WRITE,
                Access::Fetch => EXECUTE,
            };
            let covers = start <= at && at.saturating_add(len) <= end;
            let allowed = covers && (config & wanted != 0 || (privilege == Privilege::M && config & LOCKED == 0));
            return Verdict { allowed, whole_page: start <= page && page.saturating_add(0x1000) <= end };
        }
        Verdict { allowed: privilege == Privilege::M, whole_page: true }
    }

    fn check_after(&self, first: usize, at: u64, len: u64, access: Access, privilege: Privilege) -> Verdict {
        let mut rest = self.clone();
        rest.config[..first].fill(0);
        rest.check(at, len, access, privilege)
    }

    /// Half-open byte range of an entry, or none if it is off.
    fn range(&self, index: usize) -> Option<(u64, u64)> {
        let address = self.address[index];
        match mode(self.config[index]) {
            0 => None,
            1 => {
                let start = if index == 0 { 0 } else { self.address[index - 1] << 2 };
                (start < address << 2).then_some((start, address << 2))
            }
            2 => Some((address << 2, (address << 2) + 4)),
            _ => {
                let ones = address.trailing_ones();
                let start = (address >> ones << ones) << 2;
                Some((start, start.saturating_add(8u64.checked_shl(ones).unwrap_or(u64::MAX))))
            }
        }
    }
}

fn mode(config: u8) -> u8 {
    config >> MODE_SHIFT & 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(pmp: &Pmp, at: u64, access: Access, privilege: Privilege) -> bool {
        pmp.check(at, 8, access, privilege).allowed
    }

    #[test]
    fn nothing_set_means_machine_mode_only() {
        let pmp = Pmp::default();
        assert!(allowed(&pmp, 0x8000_0000, Access::Fetch, Privilege::M));
        assert!(!allowed(&pmp, 0x8000_0000, Access::Load, Privilege::S));
    }

    #[test]
    fn whole_address_space() {
        let mut pmp = Pmp::default();
        pmp.write_address(0, u64::MAX);
        pmp.write_config(0, 0x1F);
        assert!(allowed(&pmp, 0x8000_0000, Access::Store, Privilege::U));
        assert!(pmp.check(0x8000_0000, 8, Access::Store, Privilege::U).whole_page);
        let mut top = Pmp::default();
        top.write_address(0, u64::MAX);
        top.write_config(0, 0x0F);
        assert!(allowed(&top, 0x8000_0000, Access::Store, Privilege::U));
    }

    #[test]
    fn first_match_wins_and_partial_pages_are_reported() {
        let mut pmp = Pmp::default();
        // 2 MiB of firmware closed, the rest open; a 4-byte hole of write protection in the middle.
        pmp.write_address(0, (0x8000_0000 >> 2) | (0x20_0000 / 8 - 1));
        pmp.write_address(1, 0x8040_0000 >> 2);
        pmp.write_address(2, u64::MAX);
        pmp.write_config(0, 0x1F_11_18);
        assert!(!allowed(&pmp, 0x8000_0000, Access::Load, Privilege::S));
        assert!(allowed(&pmp, 0x8000_0000, Access::Load, Privilege::M));
        assert!(allowed(&pmp, 0x8020_0000, Access::Load, Privilege::S));
        let hole = pmp.check(0x8040_0000, 4, Access::Store, Privilege::S);
        assert_eq!(hole, Verdict { allowed: false, whole_page: false });
        let beside = pmp.check(0x8040_0008, 4, Access::Store, Privilege::S);
        assert_eq!(beside, Verdict { allowed: true, whole_page: false });
    }

    #[test]
    fn locked_entries_stay() {
        let mut pmp = Pmp::default();
        pmp.write_address(0, 0x2000_0000);
        pmp.write_config(0, 0x89);
        pmp.write_config(0, 0x1F);
        pmp.write_address(0, 0);
        assert_eq!(pmp.read_config(0), Some(0x89));
        assert_eq!(pmp.read_address(0), 0x2000_0000);
        assert!(!allowed(&pmp, 0x1000, Access::Store, Privilege::M), "locked entries bind M too");
    }
}
