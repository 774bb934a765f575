//! User interrupts: Wakeline's extension behind seL4's invocations (docs/architecture.md, section 5).

use super::{Cap, Notification, Result, Tcb, capability, invoke};
use abi::extension;

impl Tcb {
    /// Gives `notification` a receiver of user interrupts that posts to this thread.
    pub fn bind_user_interrupt(self, notification: Notification) -> Result<()> {
        invoke(self.0, extension::TCB_BIND_USER_INTERRUPT, [], [notification.cptr()]).map(drop)
    }

    /// Undoes [`Tcb::bind_user_interrupt`].
    pub fn unbind_user_interrupt(self) -> Result<()> {
        invoke(self.0, extension::TCB_UNBIND_USER_INTERRUPT, [], []).map(drop)
    }

    /// Sets the table through which this thread sends.
    pub fn set_sender_table(self, table: SenderTable) -> Result<()> {
        invoke(self.0, extension::TCB_SET_SENDER_TABLE, [], [table.cptr()]).map(drop)
    }
}

capability! {
    /// The receivers that a thread may interrupt: a hardware table, and a derived capability behind each entry.
    SenderTable
}

impl SenderTable {
    /// Puts a badged notification that has a receiver into the table; returns the index for `uipi.send`.
    pub fn register(self, notification: Notification) -> Result<usize> {
        let words = invoke(self.0, extension::SENDER_TABLE_REGISTER, [], [notification.cptr()])?;
        Ok(words[0] as usize)
    }

    /// Clears an entry.
    pub fn unregister(self, index: usize) -> Result<()> {
        invoke(self.0, extension::SENDER_TABLE_UNREGISTER, [index as u64], []).map(drop)
    }
}
