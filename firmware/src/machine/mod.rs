//! The machine-mode half: one file per block of hardware or SBI extension.

mod clint;
mod console;
mod csr;
mod finisher;
mod hart;
mod hsm;
mod legacy;
mod mailbox;
mod panic;
mod rfence;
mod sbi;
mod start;
mod timer;
mod trap;

/// Stops this hart where not even the console is known.
fn finisher_less_halt() -> ! {
    csr::write!("mie", 0);
    loop {
        // SAFETY: waits; with `mie` = 0 nothing wakes this hart for good.
        unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
    }
}
