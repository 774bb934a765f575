//! Address spaces: every entry of every page table is accounted for by a capability that says it is mapped there, so that nothing
//! stays mapped whose capability is gone; and no page is mapped with more than its capabilities allow.
//!
//! The other direction does not hold, in seL4 neither: a capability may remember a mapping that has gone with its page table.

use super::survey::{Mark, Survey};
use crate::arch::sv39::{self, Pte};
use crate::mem::{Paddr, Ref};
use crate::object::cap::{Cap, Kind, VmRights};
use crate::object::vspace::{self, AsidPool, LEVELS, POOL_ASIDS, PageTable};
use crate::state::Kernel;

const ALLOWS_READ: u64 = 1;
const ALLOWS_WRITE: u64 = 2;

/// Checks ASID pools, address spaces and their tables.
pub fn check(k: &Kernel, survey: &mut Survey) {
    for index in 0..survey.len() {
        let cap = k.cap(survey.slot(index));
        match cap.kind() {
            Kind::Frame => note_frame(k, survey, cap),
            Kind::PageTable => note_table(k, survey, cap),
            Kind::AsidPool => {
                survey.set(cap.address().0, Mark::Visited, 0);
            }
            _ => {}
        }
    }
    for pool in k.asid_pools.iter().flatten() {
        assert!(survey.has(pool.word(), Mark::Visited), "an ASID pool without capability");
        check_pool(k, survey, *pool);
    }
}

fn note_frame(k: &Kernel, survey: &mut Survey, cap: Cap) {
    let Ok(root) = vspace::find_root(k, cap.mapped_asid()) else { return };
    let place = vspace::walk(k, root, cap.mapped_address());
    let entry = place.entry(k);
    if place.bits() == cap.frame_size().bits() && entry.is_leaf() && entry.paddr() == cap.paddr().0 {
        let allows = match cap.vm_rights() {
            VmRights::ReadWrite => ALLOWS_READ | ALLOWS_WRITE,
            VmRights::ReadOnly => ALLOWS_READ,
            VmRights::KernelOnly => 0,
        };
        let others = survey.get(place.address(), Mark::Mapped).unwrap_or(0);
        survey.set(place.address(), Mark::Mapped, others | allows);
    }
}

fn note_table(k: &Kernel, survey: &mut Survey, cap: Cap) {
    let Some(table) = cap.object::<PageTable>() else { return };
    survey.set(table.word(), Mark::Visited, 0);
    if !cap.is_mapped_table() {
        return;
    }
    let Ok(root) = vspace::find_root(k, cap.mapped_asid()) else { return };
    if let Some(place) = vspace::entry_of(k, root, table, cap.mapped_address()) {
        survey.set(place.address(), Mark::Mapped, 0);
    }
}

fn check_pool(k: &Kernel, survey: &Survey, pool: Ref<AsidPool>) {
    for index in 0..POOL_ASIDS {
        if let Some(root) = k.get(pool).0[index] {
            assert!(survey.has(root.word(), Mark::Visited), "an address space without capability to its root");
            check_table(k, survey, root, 0);
        }
    }
}

/// At most three levels deep.
fn check_table(k: &Kernel, survey: &Survey, table: Ref<PageTable>, level: u32) {
    let entries = if level == 0 { sv39::KERNEL_HALF } else { sv39::ENTRIES };
    for index in 0..entries {
        let entry = k.get(table).0[index];
        if !entry.is_valid() {
            continue;
        }
        let address = table.word() + (index * size_of::<Pte>()) as u64;
        let allows = survey.get(address, Mark::Mapped);
        assert!(allows.is_some(), "nobody accounts for the entry {entry:?} at level {level}");
        if entry.is_table() {
            assert!(level + 1 < LEVELS, "a table pointer at the last level");
            let next = vspace::table_at(entry.paddr());
            assert!(survey.has(next.word(), Mark::Visited), "an entry leads to no table: {:?}", Paddr(entry.paddr()));
            check_table(k, survey, next, level + 1);
        } else {
            let allows = allows.unwrap_or(0);
            assert!(!entry.is_writable() || allows & ALLOWS_WRITE != 0, "mapped writable, which no capability allows");
            // A frame capability without rights may still be mapped for execution only, in seL4 too.
            assert!(!entry.is_readable() || allows & ALLOWS_READ != 0, "mapped readable, which no capability allows");
        }
    }
}
