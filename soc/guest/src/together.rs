//! Running the same work on every hart of the machine, and ending when all are done.

use core::hint::spin_loop;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

static PRESENT: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Runs `work`, which gives true if its results are right, on this hart; hart 0 then waits for the others and ends the machine.
pub fn run(hart: u64, work: impl FnOnce() -> bool) {
    PRESENT.fetch_add(1, Release);
    if !work() {
        crate::println!("hart {hart}: wrong result");
        crate::mmio::exit(1);
    }
    DONE.fetch_add(1, Release);
    if hart == 0 {
        // Every hart has started long before hart 0 is done.
        while DONE.load(Acquire) != PRESENT.load(Acquire) {
            spin_loop();
        }
        crate::mmio::exit(0);
    }
}
