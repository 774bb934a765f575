//! What interrupts this core, and how it waits for that.

use super::plic::Plic;
use super::{core_number, csr, smp};
use crate::arch::Interrupt;

/// Lets this core be interrupted.
pub fn init_core() {
    csr::write!("sie", csr::interrupt::EXTERNAL | csr::interrupt::TIMER | csr::interrupt::SOFTWARE);
}

/// The most urgent interrupt that this core has pending. An external one is claimed, a software one taken back.
pub fn pending(plic: Option<&Plic>) -> Option<Interrupt> {
    let pending = csr::read!("sip") & csr::read!("sie");
    if pending & csr::interrupt::EXTERNAL != 0
        && let Some(source) = plic.and_then(|plic| plic.claim(core_number()))
    {
        return Some(Interrupt::Source(source));
    }
    if pending & csr::interrupt::SOFTWARE != 0 {
        smp::acknowledge();
        return Some(Interrupt::Software);
    }
    (pending & csr::interrupt::TIMER != 0).then_some(Interrupt::Timer)
}

/// Sleeps until something is pending that this core listens to. Interrupts stay disabled in the kernel; `wfi` wakes anyway.
pub fn wait() {
    // SAFETY: waits.
    unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
}
