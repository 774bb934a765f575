//! The address space of each core, and the fences that go with changes of translations.
//!
//! Kernel translations are global and never change after boot, so all fences here name an ASID register (`rs2` other than
//! x0) and keep them. Two kinds of harts:
//! - without ASIDs (Rocket): user translations are dropped at every switch of the address space, and a change concerns only
//!   the cores that run in that address space now;
//! - with 16-bit ASIDs: a switch needs no fence, and a change concerns every core.
//!
//! Code: harts need not see stores by instruction fetch before `fence.i`. `code_changed` moves a generation on, and a core
//! that is behind executes the fence before it returns to U (`catch_up_with_code`).

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use abi::config::MAX_NUM_NODES;

use super::{core_number, csr, sbi, smp, sv39};

/// `satp` of each core as the kernel wants it, with the ASID even where the hart has none.
static CURRENT: [AtomicUsize; MAX_NUM_NODES] = [const { AtomicUsize::new(0) }; MAX_NUM_NODES];
static HAS_ASIDS: AtomicBool = AtomicBool::new(false);

static CODE_GENERATION: AtomicU32 = AtomicU32::new(0);
static CODE_SEEN: [AtomicU32; MAX_NUM_NODES] = [const { AtomicU32::new(0) }; MAX_NUM_NODES];

fn write_satp(value: usize) {
    csr::write!("satp", value);
}

/// Drops the user translations of this hart.
fn fence_user() {
    // SAFETY: a fence. The register operand makes it spare global translations; its value names ASID 0 or, where there are
    // no ASIDs, is ignored.
    unsafe { asm!("sfence.vma zero, {}", in(reg) 0usize, options(nostack)) }
}

/// Looks whether this hart has 16-bit ASIDs; on the boot core, in the kernel's own address space.
pub fn init() {
    let kernel = csr::read!("satp");
    write_satp(kernel | 0xffff << 44);
    let asids = csr::read!("satp") >> 44 & 0xffff == 0xffff;
    write_satp(kernel);
    fence_user();
    HAS_ASIDS.store(asids, Ordering::Relaxed);
}

/// Notes that this core starts in the kernel's own address space.
pub fn init_core() {
    CURRENT[core_number()].store(csr::read!("satp"), Ordering::Relaxed);
}

/// Puts this core into the address space with the root table at physical address `root`.
pub fn switch(root: u64, asid: u16) {
    let satp = sv39::satp(root, asid);
    let current = &CURRENT[core_number()];
    if current.load(Ordering::Relaxed) == satp {
        return;
    }
    write_satp(satp);
    current.store(satp, Ordering::Relaxed);
    if !HAS_ASIDS.load(Ordering::Relaxed) {
        fence_user();
    }
}

/// Puts this core into the kernel's own address space, which maps nothing for U.
pub fn switch_to_kernel() {
    switch(super::kernel_root(), 0);
}

/// The other cores, as a mask of hart ids, that may hold translations of `asid`.
fn concerned(asid: u16) -> usize {
    let own = core_number();
    let everywhere = HAS_ASIDS.load(Ordering::Relaxed);
    (0..smp::cores())
        .filter(|&core| core != own)
        .filter(|&core| everywhere || core_is_in(core, asid))
        .fold(0, |mask, core| mask | 1 << smp::hart(core))
}

/// The leaf that maps `vaddr` in address space `asid` has changed, on any core.
pub fn fence_page(asid: u16, vaddr: u64) {
    // SAFETY: a fence.
    unsafe { asm!("sfence.vma {}, {}", in(reg) vaddr, in(reg) usize::from(asid), options(nostack)) }
    let others = concerned(asid);
    if others != 0 {
        sbi::remote_sfence_vma(others, vaddr as usize, 4096);
    }
}

/// Tables or many leaves of address space `asid` have changed, on any core.
pub fn fence_space(asid: u16) {
    // SAFETY: a fence.
    unsafe { asm!("sfence.vma zero, {}", in(reg) usize::from(asid), options(nostack)) }
    let others = concerned(asid);
    if others != 0 {
        sbi::remote_sfence_vma(others, 0, usize::MAX);
    }
}

/// Whether `core` runs in address space `asid`.
pub fn core_is_in(core: usize, asid: u16) -> bool {
    CURRENT[core].load(Ordering::Acquire) >> 44 & 0xffff == usize::from(asid)
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
