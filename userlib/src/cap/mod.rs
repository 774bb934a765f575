//! Capabilities by type.
//!
//! A value of these types is a name, not an owner: `Tcb(CPtr(1))` says "slot 1 of my CSpace holds a TCB". If it does not, the
//! invocation fails with an [`Error`]; nothing worse can happen, so all of them are safe and `Copy`. What a program may do is
//! decided by the capabilities that the root task put there.
//!
//! Methods carry seL4's names in their documentation; labels are those of the SMP table, which every Wakeline image uses.

mod cnode;
mod error;
mod irq;
mod memory;
mod request;
mod syscall_ring;
mod tcb;
mod user_interrupt;

pub use abi::rights::Rights;
pub use cnode::{CNode, Slot};
pub use error::{Code, Error, Result};
pub use irq::{IrqControl, IrqHandler};
pub use memory::{AsidControl, AsidPool};
pub use memory::{Attributes, Frame, ObjectType, PageTable, Untyped, VSpace};
pub use request::Request;
pub use tcb::{Tcb, UserContext};
pub use user_interrupt::SenderTable;

use crate::syscall::{self, Received, Registers};
use abi::message::MessageInfo;

/// Address of a capability in the CSpace of the thread, resolved with 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CPtr(pub u64);

impl CPtr {
    /// Slot 0, always empty.
    pub const NULL: CPtr = CPtr(0);
}

/// Slots that every program finds filled (docs/architecture.md, section 4).
pub mod slot {
    use super::{CNode, CPtr, Endpoint, Notification, SenderTable, Tcb, VSpace};
    /// TCB of thread 0.
    pub const TCB: Tcb = Tcb(CPtr(1));
    /// Root CNode.
    pub const CNODE: CNode = CNode(CPtr(2));
    /// Address space.
    pub const VSPACE: VSpace = VSpace(CPtr(3));
    /// The program's doorbell.
    pub const DOORBELL: Notification = Notification(CPtr(4));
    /// Sender table; empty where the machine has no user interrupts.
    pub const SENDER_TABLE: SenderTable = SenderTable(CPtr(5));
    /// Endpoint on which the program serves its synchronous channels, if it has any.
    pub const ENDPOINT: Endpoint = Endpoint(CPtr(6));
    /// Faults, exit and console output to the root task ([`crate::supervisor`]).
    pub const SUPERVISOR: Endpoint = Endpoint(CPtr(7));
    /// First slot of what the manifest grants.
    pub const FIRST_GRANT: u64 = 16;
}

/// A typed capability.
pub trait Cap: Copy {
    /// Where it is.
    fn cptr(self) -> CPtr;
}

/// Defines the type of a capability: a transparent name.
macro_rules! capability {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $crate::cap::CPtr);

        impl $crate::cap::Cap for $name {
            #[inline(always)]
            fn cptr(self) -> $crate::cap::CPtr {
                self.0
            }
        }
    };
}
use capability;

capability! {
    /// A meeting point for synchronous messages.
    Endpoint
}

impl Endpoint {
    /// See [`syscall::call`].
    #[inline(always)]
    pub fn call(self, info: MessageInfo, words: Registers) -> Received {
        syscall::call(self.0, info, words)
    }
    /// See [`syscall::send`].
    #[inline(always)]
    pub fn send(self, info: MessageInfo, words: Registers) {
        syscall::send(self.0, info, words)
    }
    /// See [`syscall::nb_send`].
    #[inline(always)]
    pub fn nb_send(self, info: MessageInfo, words: Registers) {
        syscall::nb_send(self.0, info, words)
    }
    /// See [`syscall::recv`].
    #[inline(always)]
    pub fn recv(self) -> Received {
        syscall::recv(self.0)
    }
    /// See [`syscall::nb_recv`].
    #[inline(always)]
    pub fn nb_recv(self) -> Received {
        syscall::nb_recv(self.0)
    }
    /// See [`syscall::reply_recv`].
    #[inline(always)]
    pub fn reply_recv(self, info: MessageInfo, words: Registers) -> Received {
        syscall::reply_recv(self.0, info, words)
    }
}

capability! {
    /// A word of bits that threads set and wait for.
    Notification
}

impl Notification {
    /// See [`syscall::signal`].
    #[inline(always)]
    pub fn signal(self) {
        syscall::signal(self.0)
    }
    /// See [`syscall::wait`].
    #[inline(always)]
    pub fn wait(self) -> u64 {
        syscall::wait(self.0)
    }
    /// Signals `other`, then waits for this one: see [`syscall::signal_wait`].
    #[inline(always)]
    pub fn wait_signalling(self, other: Notification) -> u64 {
        syscall::signal_wait(other.0, self.0)
    }
    /// See [`syscall::poll`].
    #[inline(always)]
    pub fn poll(self) -> u64 {
        syscall::poll(self.0)
    }
}

capability! {
    /// A caller that waits for its reply ([`Slot::save_caller`]); good for one reply.
    Reply
}

impl Reply {
    /// Delivers the reply.
    pub fn send(self, info: MessageInfo, words: Registers) {
        syscall::send(self.0, info, words)
    }
}

/// Invokes a kernel object: `args` are MR0.., `caps` the extra capabilities. Returns MR0..MR3 of the reply.
fn invoke<const N: usize, const C: usize>(
    target: CPtr,
    label: u64,
    args: [u64; N],
    caps: [CPtr; C],
) -> Result<Registers> {
    Request { target, label, args, caps }.call()
}
