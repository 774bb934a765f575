//! Address spaces: page tables, frames, ASIDs (Sv39).
//!
//! An address space is a page table that has been given an ASID. ASIDs lead to it through two levels, 128 pools of 512; a capability
//! to a mapped frame or table remembers the ASID, not the table, so that it cannot name an address space that is gone.

pub mod asid;
pub mod frame;
pub mod table;

use abi::error::LookupFailure;
use abi::object::bits;

use super::cap::Cap;
use super::tcb::{Slot, Tcb};
use crate::api::error::{Preempted, Refusal};
use crate::arch::Arch;
use crate::arch::sv39::{self, Pte};
use crate::mem::{Object, Paddr, Ref};
use crate::state::Kernel;

/// Levels of a walk (`CONFIG_PT_LEVELS`).
pub const LEVELS: u32 = 3;

/// A page table of any level.
#[repr(C, align(4096))]
pub struct PageTable(pub [Pte; sv39::ENTRIES]);
const _: () = assert!(size_of::<PageTable>() == 1 << bits::PAGE_TABLE);
// SAFETY: plain words; zero maps nothing.
unsafe impl Object for PageTable {
    #[cfg(debug_assertions)]
    fn note_opened(&self, _: Ref<Self>, journal: &mut crate::invariants::Journal) {
        journal.space_opened();
    }
}

/// ASIDs of a pool (`seL4_ASIDPoolIndexBits` = 9).
pub const POOL_ASIDS: usize = 512;

/// A pool of ASIDs: the root table of each, by the low bits of the ASID.
#[repr(C, align(4096))]
pub struct AsidPool(pub [Option<Ref<PageTable>>; POOL_ASIDS]);
const _: () = assert!(size_of::<AsidPool>() == 1 << bits::ASID_POOL);
// SAFETY: `Option<Ref>` is one word, zero is none.
unsafe impl Object for AsidPool {
    #[cfg(debug_assertions)]
    fn note_opened(&self, _: Ref<Self>, journal: &mut crate::invariants::Journal) {
        journal.space_opened();
    }
}

/// The root table of an ASID (seL4 `findVSpaceForASID`).
pub fn find_root(k: &Kernel, asid: u16) -> Result<Ref<PageTable>, LookupFailure> {
    // ASID 0 is never assigned, so it leads nowhere.
    let pool = k.asid_pools[usize::from(asid) / POOL_ASIDS];
    pool.and_then(|pool| k.get(pool).0[usize::from(asid) % POOL_ASIDS]).ok_or(LookupFailure::InvalidRoot)
}

/// The root table that a VSpace argument names, with its ASID. `number`: of the capability, for errors.
fn check_root(k: &Kernel, cap: Cap) -> Result<(Ref<PageTable>, u16), Refusal> {
    let table = cap.mapped_table().ok_or(Refusal::InvalidCapability(1))?;
    let asid = cap.mapped_asid();
    let root = find_root(k, asid).map_err(|failure| Refusal::FailedLookup(false, failure))?;
    if root == table { Ok((root, asid)) } else { Err(Refusal::InvalidCapability(1)) }
}

/// An entry of a table.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    table: Ref<PageTable>,
    index: usize,
    level: u32,
}

impl Place {
    /// What stands there.
    pub fn entry(self, k: &Kernel) -> Pte {
        k.get(self.table).0[self.index]
    }
    fn set(self, k: &mut Kernel, entry: Pte) {
        k.get_mut(self.table).0[self.index] = entry;
    }
    /// log2 of the bytes that the entry covers.
    pub fn bits(self) -> usize {
        sv39::shift(self.level) as usize
    }
    /// Kernel address of the entry.
    pub fn address(self) -> u64 {
        self.table.word() + (self.index * size_of::<Pte>()) as u64
    }
}

/// A lower table, found through an entry.
pub fn table_at(paddr: u64) -> Ref<PageTable> {
    // SAFETY: table pointers in user halves are written from names of tables, and cleared before the table goes away.
    unsafe { Ref::assume(Paddr(paddr).kva()) }
}

/// Walks from `root` to the first entry for `vaddr` that is no table pointer (seL4 `lookupPTSlot`).
pub fn walk(k: &Kernel, root: Ref<PageTable>, vaddr: u64) -> Place {
    let mut place = Place { table: root, index: sv39::index(vaddr, 0), level: 0 };
    while place.level + 1 < LEVELS && place.entry(k).is_table() {
        let level = place.level + 1;
        place = Place { table: table_at(place.entry(k).paddr()), index: sv39::index(vaddr, level), level };
    }
    place
}

/// Puts this core into the address space of a thread; into the kernel's if it has none (seL4 `setVMRoot`).
#[inline]
pub fn enter(k: &mut Kernel, thread: Ref<Tcb>) {
    let cap = k.get(thread).cap(Slot::VSpace);
    match check_root(k, cap) {
        Ok((root, asid)) => k.arch.switch_space(root.kva().paddr(), asid),
        Err(_) => k.arch.switch_to_kernel_space(),
    }
}

/// A frame capability goes away or is unmapped: its mapping goes, if the entry is still its own.
pub fn unmap_frame(k: &mut Kernel, cap: Cap) {
    let (asid, vaddr) = (cap.mapped_asid(), cap.mapped_address());
    let Ok(root) = find_root(k, asid) else { return };
    let place = walk(k, root, vaddr);
    let entry = place.entry(k);
    if place.bits() == cap.frame_size().bits() && entry.is_leaf() && entry.paddr() == cap.paddr().0 {
        place.set(k, Pte::EMPTY);
        k.arch.fence_page(asid, vaddr);
        k.count_costly_work();
    }
}

/// The entry that leads to `table`, on the way from `root` to `vaddr`.
pub fn entry_of(k: &Kernel, root: Ref<PageTable>, table: Ref<PageTable>, vaddr: u64) -> Option<Place> {
    let mut place = Place { table: root, index: sv39::index(vaddr, 0), level: 0 };
    while place.level + 1 < LEVELS && place.entry(k).is_table() {
        let next = table_at(place.entry(k).paddr());
        if next == table {
            return Some(place);
        }
        let level = place.level + 1;
        place = Place { table: next, index: sv39::index(vaddr, level), level };
    }
    None
}

/// Takes `table` out of the address space it is mapped in.
fn unmap_table(k: &mut Kernel, cap: Cap) {
    let (Some(table), asid) = (cap.object::<PageTable>(), cap.mapped_asid()) else { return };
    let Ok(root) = find_root(k, asid) else { return };
    if let Some(place) = entry_of(k, root, table, cap.mapped_address()) {
        place.set(k, Pte::EMPTY);
        k.arch.fence_space(asid);
        k.count_costly_work();
    }
}

/// The last capability to a table goes away.
pub fn finalise_table(k: &mut Kernel, cap: Cap) {
    if !cap.is_mapped_table() {
        return;
    }
    if find_root(k, cap.mapped_asid()).ok() == cap.object() {
        asid::release(k, cap.mapped_asid());
    } else {
        unmap_table(k, cap);
    }
}

/// The last capability to an ASID pool goes away, and with it all its address spaces.
pub fn finalise_pool(k: &mut Kernel, cap: Cap) -> Result<(), Preempted> {
    let base = cap.asid_base();
    let number = usize::from(base) / POOL_ASIDS;
    let Some(pool) = k.asid_pools[number].filter(|&pool| cap.object() == Some(pool)) else { return Ok(()) };
    for index in 0..POOL_ASIDS {
        if k.get(pool).0[index].is_some() {
            asid::release(k, base + index as u16);
            k.preemption_point()?;
        }
    }
    k.asid_pools[number] = None;
    Ok(())
}
