//! Stopping another core, so that its address space, or its thread with its special registers, can be taken from under it.
//!
//! ```text
//! holder of the lock                      the other core
//! asked := what, interrupt      ──>       traps (registers saved by entry.S) or wakes from wfi
//! wait for asked = nothing                waits for the lock; in each round `obey`:
//!                                           address space of the kernel; special registers back to its thread
//!                               <──         asked := nothing
//! changes what it wants
//! gives the lock back           ──>       gets the lock, finds that its thread may not be its thread any more
//! ```

use core::sync::atomic::{AtomicU8, Ordering};

use abi::config::MAX_NUM_NODES;

use super::{core_number, csr, fpu, irq, mmu, sbi, smp, uintc};

const NOTHING: u8 = 0;
/// Leave the address space.
const SPACE: u8 = 1;
/// Leave the address space and write the special registers back.
const THREAD: u8 = 2;
/// Stop for good: the kernel has panicked.
const PARK: u8 = 3;
/// Has done so.
const PARKED: u8 = 4;

/// Rounds that a panic waits for a core; some milliseconds.
const PATIENCE: usize = 200_000;

static ASKED: [AtomicU8; MAX_NUM_NODES] = [const { AtomicU8::new(NOTHING) }; MAX_NUM_NODES];

fn ask(core: usize, what: u8) {
    debug_assert!(core != core_number());
    ASKED[core].store(what, Ordering::Release);
    sbi::send_ipi(1 << smp::hart(core));
    // Acquire: what the core wrote back is visible here.
    while ASKED[core].load(Ordering::Acquire) != NOTHING {
        core::hint::spin_loop();
    }
}

/// Stops `core`, another one than this, for as long as the caller holds the kernel lock: its thread can be taken from it.
pub fn stall(core: usize) {
    ask(core, THREAD);
}

/// Stops `core`, another one than this, in the kernel's address space. Its thread stays its thread.
pub fn evict(core: usize) {
    ask(core, SPACE);
}

/// Asks `core`, another one than this, to stop for good; gives in words whether it has.
pub fn park(core: usize) -> &'static str {
    ASKED[core].store(PARK, Ordering::Release);
    sbi::send_ipi(1 << smp::hart(core));
    for _ in 0..PATIENCE {
        if ASKED[core].load(Ordering::Acquire) == PARKED {
            return "stopped";
        }
        core::hint::spin_loop();
    }
    "does not answer"
}

/// Stops this core for good.
pub fn park_here() -> ! {
    ASKED[core_number()].store(PARKED, Ordering::Release);
    csr::write!("sie", 0);
    loop {
        irq::sleep();
    }
}

/// What a core that waits for the lock owes to the holder.
pub fn obey() {
    let asked = &ASKED[core_number()];
    let what = asked.load(Ordering::Acquire);
    if what == PARK {
        park_here();
    }
    if what != NOTHING {
        mmu::switch_to_kernel();
        if what == THREAD {
            uintc::unload_core();
            fpu::leave_core();
        }
        asked.store(NOTHING, Ordering::Release);
    }
}
