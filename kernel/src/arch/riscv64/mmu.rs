//! The address space of each core, and the fences that go with changes of translations.
//!
//! Hardware ASIDs are not used: every root is loaded with ASID 0, and the user translations of a core are dropped when it changes
//! its address space (seL4 does the same). So a change of a translation concerns only the cores that run in that address space
//! now, which the kernel knows; with tagged translations it would concern every core. Kernel translations are global and never
//! change after boot: all fences here name the ASID register (`rs2` other than x0), which spares them.
//!
//! Code: harts need not see stores by instruction fetch before `fence.i`. `code_changed` marks every core, and a marked core
//! executes the fence before it enters an address space or leaves the kernel's slow path (`catch_up_with_code`).

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::config::MAX_NUM_NODES;

use super::{core_number, csr, sbi, smp, sv39};

const PAGE_BYTES: usize = 4096;

/// What is known of a core, on a line of its own: the core reads it at every switch, others write it seldom.
#[repr(align(64))]
struct View {
    /// Root and ASID (seL4's, which names the address space), as [`space`] puts them in a word.
    space: AtomicUsize,
    /// Code was written that the core's instruction fetches may not see yet.
    stale_code: AtomicBool,
}

static VIEWS: [View; MAX_NUM_NODES] =
    [const { View { space: AtomicUsize::new(0), stale_code: AtomicBool::new(false) } }; MAX_NUM_NODES];

/// This core's own.
#[inline(always)]
fn own() -> &'static View {
    // A mask instead of a check: core numbers are below.
    const _: () = assert!(MAX_NUM_NODES.is_power_of_two());
    &VIEWS[core_number() % MAX_NUM_NODES]
}

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
    own().space.store(space(super::kernel_root(), 0), Ordering::Relaxed);
}

/// Puts this core into the address space with the root table at physical address `root`.
#[inline(always)] // into the fast path, which else would save its registers around this call only
pub fn switch(root: u64, asid: u16) {
    let view = own();
    if view.space.load(Ordering::Relaxed) == space(root, asid) {
        core::hint::cold_path();
        return;
    }
    catch_up_with_code();
    csr::write!("satp", sv39::satp(root, 0));
    fence_user();
    // Release: partner is the acquire load in `core_is_in`; the old tables are out of use here.
    view.space.store(space(root, asid), Ordering::Release);
}

/// Puts this core into the kernel's own address space, which maps nothing for U.
pub fn switch_to_kernel() {
    switch(super::kernel_root(), 0);
}

/// Whether `core` runs in address space `asid`.
pub fn core_is_in(core: usize, asid: u16) -> bool {
    space_asid(VIEWS[core].space.load(Ordering::Acquire)) == asid
}

/// The other cores that run in `asid`, as a mask of hart ids.
fn others_in(asid: u16) -> usize {
    if !smp::several() {
        return 0;
    }
    let own = core_number();
    (0..smp::cores())
        .filter(|&core| core != own && core_is_in(core, asid))
        .fold(0, |mask, core| mask | 1 << smp::hart(core))
}

/// The leaf that maps `vaddr` in address space `asid` has changed: this core drops it. Gives the harts of the other cores that must.
pub fn fence_page_here(asid: u16, vaddr: u64) -> usize {
    // SAFETY: a fence.
    unsafe { asm!("sfence.vma {}, {}", in(reg) vaddr, in(reg) 0usize, options(nostack)) }
    others_in(asid)
}

/// The translation of `vaddr` goes on these harts.
pub fn fence_page_there(harts: usize, vaddr: u64) {
    if harts != 0 {
        sbi::remote_sfence_vma(harts, vaddr as usize, PAGE_BYTES);
    }
}

/// All translations go on these harts.
pub fn fence_there(harts: usize) {
    if harts != 0 {
        sbi::remote_sfence_vma(harts, 0, usize::MAX);
    }
}

/// Tables or many leaves of address space `asid` have changed, on any core.
pub fn fence_space(asid: u16) {
    fence_user();
    fence_there(others_in(asid));
}

/// Memory that threads may execute was written.
pub fn code_changed() {
    // Release: partner is the exchange in `catch_up_with_code`; the stores are done before the mark.
    VIEWS.iter().for_each(|view| view.stale_code.store(true, Ordering::Release));
}

/// Makes stores before the last `code_changed` visible to this hart's instruction fetches.
#[inline(always)]
pub fn catch_up_with_code() {
    let stale = &own().stale_code;
    // Acquire: partner is `code_changed`. A mark that is set behind the exchange stays for the next time.
    if stale.load(Ordering::Relaxed) {
        core::hint::cold_path();
        stale.swap(false, Ordering::Acquire);
        // SAFETY: a fence.
        unsafe { asm!("fence.i", options(nostack)) }
    }
}
