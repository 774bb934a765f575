//! The address space of each core, and the fences that go with changes of translations.
//!
//! Hardware ASIDs are not used: every root is loaded with ASID 0, and the user translations of a core are dropped when it changes
//! its address space (seL4 does the same). So a change of a translation concerns only the cores that run in that address space
//! now, which the kernel knows; with tagged translations it would concern every core. Kernel translations are global and never
//! change after boot: all fences here name the ASID register (`rs2` other than x0), which spares them.
//!
//! Code: harts need not see stores by instruction fetch before `fence.i`. `code_changed` moves a generation on, and a core
//! that is behind executes the fence before it enters an address space or leaves the kernel's slow path (`catch_up_with_code`).

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use abi::config::MAX_NUM_NODES;

use super::{core_number, csr, sbi, smp, sv39};

const PAGE_BYTES: usize = 4096;

/// Root and ASID (seL4's, which names the address space) of each core, as [`space`] puts them in a word.
static CURRENT: [AtomicUsize; MAX_NUM_NODES] = [const { AtomicUsize::new(0) }; MAX_NUM_NODES];

static CODE_GENERATION: AtomicU32 = AtomicU32::new(0);
static CODE_SEEN: [AtomicU32; MAX_NUM_NODES] = [const { AtomicU32::new(0) }; MAX_NUM_NODES];

fn space(root: u64, asid: u16) -> usize {
    sv39::satp(root, asid)
}

fn space_asid(space: usize) -> u16 {
    (space >> 44) as u16
}

/// Drops the user translations of this hart.
fn fence_user() {
    // SAFETY: a fence. The register operand, ASID 0, makes it spare global translations.
    unsafe { asm!("sfence.vma zero, {}", in(reg) 0usize, options(nostack)) }
}

/// Notes that this core starts in the kernel's own address space.
pub fn init_core() {
    CURRENT[core_number()].store(space(super::kernel_root(), 0), Ordering::Relaxed);
}

/// Puts this core into the address space with the root table at physical address `root`.
pub fn switch(root: u64, asid: u16) {
    let current = &CURRENT[core_number()];
    if current.load(Ordering::Relaxed) == space(root, asid) {
        return;
    }
    catch_up_with_code();
    csr::write!("satp", sv39::satp(root, 0));
    fence_user();
    // Release: partner is the acquire load in `core_is_in`; the old tables are out of use here.
    current.store(space(root, asid), Ordering::Release);
}

/// Puts this core into the kernel's own address space, which maps nothing for U.
pub fn switch_to_kernel() {
    switch(super::kernel_root(), 0);
}

/// Whether `core` runs in address space `asid`.
pub fn core_is_in(core: usize, asid: u16) -> bool {
    space_asid(CURRENT[core].load(Ordering::Acquire)) == asid
}

/// The other cores that run in `asid`, as a mask of hart ids.
fn others_in(asid: u16) -> usize {
    let own = core_number();
    (0..smp::cores())
        .filter(|&core| core != own && core_is_in(core, asid))
        .fold(0, |mask, core| mask | 1 << smp::hart(core))
}

/// The leaf that maps `vaddr` in address space `asid` has changed, on any core.
pub fn fence_page(asid: u16, vaddr: u64) {
    // SAFETY: a fence.
    unsafe { asm!("sfence.vma {}, {}", in(reg) vaddr, in(reg) 0usize, options(nostack)) }
    let others = others_in(asid);
    if others != 0 {
        sbi::remote_sfence_vma(others, vaddr as usize, PAGE_BYTES);
    }
}

/// Tables or many leaves of address space `asid` have changed, on any core.
pub fn fence_space(asid: u16) {
    fence_user();
    let others = others_in(asid);
    if others != 0 {
        sbi::remote_sfence_vma(others, 0, usize::MAX);
    }
}

/// Memory that threads may execute was written.
pub fn code_changed() {
    CODE_GENERATION.fetch_add(1, Ordering::Release);
}

/// Makes stores before the last `code_changed` visible to this hart's instruction fetches.
pub fn catch_up_with_code() {
    let generation = CODE_GENERATION.load(Ordering::Acquire);
    let seen = &CODE_SEEN[core_number()];
    if seen.load(Ordering::Relaxed) != generation {
        seen.store(generation, Ordering::Relaxed);
        // SAFETY: a fence.
        unsafe { asm!("fence.i", options(nostack)) }
    }
}
