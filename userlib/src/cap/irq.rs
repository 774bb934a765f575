//! Device interrupts.

use super::{Cap, Notification, Result, Slot, capability, invoke};
use abi::label::Label;

capability! {
    /// The right to hand out interrupt handlers.
    IrqControl
}

impl IrqControl {
    /// Makes the handler of PLIC source `irq`. The source is enabled on the hart that makes this call.
    #[doc(alias = "seL4_IRQControl_Get")]
    pub fn get(self, irq: u64, destination: Slot) -> Result<()> {
        let args = [irq, destination.index, destination.depth];
        invoke(self.0, Label::IRQIssueIRQHandler as u64, args, [destination.root.cptr()]).map(drop)
    }
}

capability! {
    /// One device interrupt.
    IrqHandler
}

impl IrqHandler {
    /// Signals `notification` with its badge on each interrupt.
    #[doc(alias = "seL4_IRQHandler_SetNotification")]
    pub fn set_notification(self, notification: Notification) -> Result<()> {
        invoke(self.0, Label::IRQSetIRQHandler as u64, [], [notification.cptr()]).map(drop)
    }

    /// Lets the next interrupt through.
    #[doc(alias = "seL4_IRQHandler_Ack")]
    pub fn ack(self) -> Result<()> {
        invoke(self.0, Label::IRQAckIRQ as u64, [], []).map(drop)
    }

    /// Signals nobody any more.
    #[doc(alias = "seL4_IRQHandler_Clear")]
    pub fn clear(self) -> Result<()> {
        invoke(self.0, Label::IRQClearIRQHandler as u64, [], []).map(drop)
    }
}
