//! Stopping another core, so that its thread, its address space or its user-interrupt state can be taken from under it.
//!
//! ```text
//! holder of the lock                      the other core
//! asked := true, interrupt      ──>       traps (registers saved by entry.S) or wakes from wfi
//! wait for asked = false                  waits for the lock; in each round `obey`:
//!                                           user-interrupt state back to its thread, kernel address space
//!                               <──         asked := false
//! changes what it wants
//! gives the lock back           ──>       gets the lock, finds that its thread may not be its thread any more
//! ```

use core::sync::atomic::{AtomicBool, Ordering};

use abi::config::MAX_NUM_NODES;

use super::{core_number, mmu, sbi, smp, uintc};

static ASKED: [AtomicBool; MAX_NUM_NODES] = [const { AtomicBool::new(false) }; MAX_NUM_NODES];

/// Stops `core`, another one than this. The caller holds the kernel lock, and the core stays where it is until it gets that lock.
pub fn stall(core: usize) {
    debug_assert!(core != core_number());
    ASKED[core].store(true, Ordering::Release);
    sbi::send_ipi(1 << smp::hart(core));
    // Acquire: what the core wrote back is visible here.
    while ASKED[core].load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
}

/// What a core that waits for the lock owes to the holder.
pub fn obey() {
    let asked = &ASKED[core_number()];
    if asked.load(Ordering::Acquire) {
        uintc::unload_core();
        mmu::switch_to_kernel();
        asked.store(false, Ordering::Release);
    }
}
