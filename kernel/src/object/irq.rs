//! Interrupts: who may handle which, and the signal when one comes.

use abi::config::MAX_PLIC_IRQ;
use abi::label::{Label, Table};

use super::cap::{Cap, Cte, Kind};
use super::{delete, notification};
use crate::api::error::{Preempted, Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::Arch;
use crate::mem::Ref;
use crate::state::{IRQS, Kernel};

/// What an interrupt number is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IrqState {
    /// Nobody handles it.
    Inactive,
    /// A handler capability exists.
    Signal,
    /// The kernel's: timer, other cores.
    Kernel,
}

impl Kernel {
    /// The greatest interrupt number: the timer. PLIC sources come first, then, on SMP kernels, the two of other cores.
    pub fn max_irq(&self) -> usize {
        let cores = if self.config.labels == Table::Smp { 2 } else { 0 };
        MAX_PLIC_IRQ as usize + cores + 1
    }

    /// Marks the numbers that are not PLIC sources as the kernel's.
    pub fn reserve_kernel_irqs(&mut self) {
        self.irqs[MAX_PLIC_IRQ as usize + 1..IRQS].fill(IrqState::Kernel);
    }

    /// The slot with the notification of an interrupt.
    ///
    /// # Panics
    /// Before `start`.
    pub fn irq_slot(&self, irq: usize) -> Ref<Cte> {
        assert!(irq < IRQS);
        let first = self.irq_slots.expect("set by start");
        // SAFETY: the kernel's own table has IRQS slots.
        unsafe { Ref::assume(first.kva().offset((irq * size_of::<Cte>()) as u64)) }
    }
}

/// IRQControl invocations.
pub fn decode_control(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    // The trigger argument of the second form is accepted and has no meaning for a PLIC.
    let first = match call.label(k) {
        Some(Label::IRQIssueIRQHandler) => 1,
        Some(Label::RISCVIRQIssueIRQHandlerTrigger) => 2,
        _ => return Err(Refusal::IllegalOperation.into()),
    };
    call.need(first + 2)?;
    let root = k.cap(call.extra(0)?);
    let (irq, max) = (call.word(k, 0), k.max_irq() as u64);
    if !(1..=max).contains(&irq) {
        return Err(Refusal::Range(1, max).into());
    }
    let irq = irq as usize;
    if k.irqs[irq] != IrqState::Inactive {
        return Err(Refusal::RevokeFirst.into());
    }
    let slot = call.slot_argument(k, false, root, call.word(k, first), call.word(k, first + 1))?;
    k.ensure_empty(slot)?;
    call.commit(k);
    k.irqs[irq] = IrqState::Signal;
    k.arch.enable_source(irq);
    k.insert(Cap::irq_handler(irq), call.slot, slot);
    Ok(Answer::Empty)
}

/// IRQHandler invocations.
pub fn decode_handler(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    let irq = call.cap.irq();
    match call.label(k) {
        Some(Label::IRQAckIRQ) => {
            call.commit(k);
            k.arch.complete_source(irq);
        }
        Some(Label::IRQSetIRQHandler) => {
            let source = call.extra(0)?;
            let cap = k.cap(source);
            if notification::signallable(cap).is_none() {
                return Err(Refusal::InvalidCapability(0).into());
            }
            call.commit(k);
            forget_notification(k, irq)?;
            k.insert(cap, source, k.irq_slot(irq));
        }
        Some(Label::IRQClearIRQHandler) => {
            call.commit(k);
            forget_notification(k, irq)?;
        }
        _ => return Err(Refusal::IllegalOperation.into()),
    }
    Ok(Answer::Empty)
}

/// The interrupt signals nobody any more.
pub fn forget_notification(k: &mut Kernel, irq: usize) -> Result<(), Preempted> {
    delete::delete(k, k.irq_slot(irq))
}

/// The last handler capability is gone: the interrupt is masked and can be issued again.
pub fn release(k: &mut Kernel, irq: usize) {
    k.arch.disable_source(irq);
    k.arch.complete_source(irq);
    k.irqs[irq] = IrqState::Inactive;
}

/// PLIC source `source` has been claimed. It stays silent until the handler acknowledges it.
pub fn handle(k: &mut Kernel, source: usize) {
    if source >= IRQS || k.irqs[source] != IrqState::Signal {
        k.arch.disable_source(source);
        k.arch.complete_source(source);
        return;
    }
    let cap = k.cap(k.irq_slot(source));
    // A zombie: its notification is being deleted.
    debug_assert!(matches!(cap.kind(), Kind::Null | Kind::Notification | Kind::Zombie));
    if let Some(object) = notification::signallable(cap) {
        notification::signal(k, object, cap.badge());
    }
}
