//! What interrupts this core, and how it waits for that.

use super::plic::Plic;
use super::{core_number, csr, smp};
use crate::arch::Interrupt;
use crate::mem::Ref;
use crate::object::tcb::Tcb;

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
    if pending & csr::interrupt::SOFTWARE != 0 || smp::several() && smp::own_attention().is_called() {
        smp::own_attention().acknowledge();
        csr::clear!("sip", csr::interrupt::SOFTWARE);
        return Some(Interrupt::Software);
    }
    (pending & csr::interrupt::TIMER != 0).then_some(Interrupt::Timer)
}

fn enabled_pending() -> usize {
    csr::read!("sip") & csr::read!("sie")
}

/// The thread that another core has handed this one.
#[inline(always)]
pub fn take_handed() -> Option<Ref<Tcb>> {
    let thread = smp::own_attention().take()?;
    if enabled_pending() & csr::interrupt::SOFTWARE != 0 {
        // Asleep, the core was woken for the thread, and for nothing else: a call would have taken the thread back.
        core::hint::cold_path();
        csr::clear!("sip", csr::interrupt::SOFTWARE);
    }
    Some(thread)
}

/// Waits until something is pending that this core listens to, or another core asks for it: with several cores, by looking for a while,
/// then asleep. Interrupts stay disabled in the kernel; `wfi` wakes anyway.
pub fn wait() {
    if smp::several() { smp::own_attention().wait(|| enabled_pending() != 0, sleep) } else { sleep() }
}

/// Sleeps until an interrupt is pending.
pub fn sleep() {
    // SAFETY: waits.
    unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
}
