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
    let pending = enabled_pending();
    if pending & csr::interrupt::EXTERNAL != 0
        && let Some(source) = plic.and_then(|plic| plic.claim(core_number()))
    {
        return Some(Interrupt::Source(source));
    }
    if pending & csr::interrupt::SOFTWARE != 0 || smp::several() && smp::is_called() {
        smp::acknowledge();
        return Some(Interrupt::Software);
    }
    (pending & csr::interrupt::TIMER != 0).then_some(Interrupt::Timer)
}

fn enabled_pending() -> usize {
    csr::read!("sip") & csr::read!("sie")
}

/// Waits until something is pending that this core listens to: with several cores, by looking for a while, then asleep. Interrupts stay
/// disabled in the kernel; `wfi` wakes anyway.
pub fn wait() {
    if smp::several() && smp::look(|| enabled_pending() != 0) {
        return;
    }
    // SAFETY: waits.
    unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
}
