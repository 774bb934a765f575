//! Interrupt sources as the kernel sees them: PLIC sources by number, and what this core has pending.

use super::once::Once;
use super::plic::Plic;
use super::{core_number, csr, smp};

static PLIC: Once<Plic> = Once::new();

/// What interrupted, in seL4's order: external, software, timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// A PLIC source; silent until [`complete`].
    Source(usize),
    /// Another core.
    Software,
    /// The tick.
    Timer,
}

/// Tells where the PLIC is; core 0.
pub fn init(plic: Plic) {
    plic.init();
    PLIC.set(plic);
}

/// Lets this core be interrupted.
pub fn init_core() {
    if let Some(plic) = PLIC.get() {
        plic.init_core(core_number());
    }
    csr::write!("sie", csr::interrupt::EXTERNAL | csr::interrupt::TIMER | csr::interrupt::SOFTWARE);
}

/// The most urgent interrupt that this core has pending. An external one is claimed.
pub fn pending() -> Option<Interrupt> {
    let pending = csr::read!("sip") & csr::read!("sie");
    if pending & csr::interrupt::EXTERNAL != 0
        && let Some(source) = PLIC.get().and_then(|plic| plic.claim(core_number()))
    {
        return Some(Interrupt::Source(source));
    }
    if pending & csr::interrupt::SOFTWARE != 0 {
        smp::acknowledge();
        return Some(Interrupt::Software);
    }
    (pending & csr::interrupt::TIMER != 0).then_some(Interrupt::Timer)
}

/// Lets a PLIC source interrupt this core.
pub fn enable(source: usize) {
    if let Some(plic) = PLIC.get() {
        plic.enable(core_number(), source);
    }
}

/// Keeps a PLIC source from interrupting any core.
pub fn disable(source: usize) {
    if let Some(plic) = PLIC.get() {
        plic.disable(smp::cores(), source);
    }
}

/// Lets a claimed PLIC source interrupt again.
pub fn complete(source: usize) {
    if let Some(plic) = PLIC.get() {
        plic.complete(source);
    }
}

/// Sleeps until something is pending that this core listens to. Interrupts stay disabled in the kernel; `wfi` wakes anyway.
pub fn wait() {
    // SAFETY: waits.
    unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
}
