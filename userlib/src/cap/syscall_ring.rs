//! System-call rings: Wakeline's extension behind seL4's invocations (docs/architecture.md, section 5). `libipc::syscall_ring` uses them.

use super::{Cap, Frame, Notification, Result, Tcb, invoke};
use abi::extension;

impl Tcb {
    /// Makes the first page of `frame` the ring of this thread, which starts at its first line. `notification` is signalled when
    /// another hart has carried out what the ring held; without one, no other hart does.
    pub fn set_syscall_ring(self, frame: Frame, notification: Notification) -> Result<()> {
        invoke(self.0, extension::TCB_SET_SYSCALL_RING, [], [frame.cptr(), notification.cptr()]).map(drop)
    }
}
