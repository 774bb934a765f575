//! Thread control blocks: layout.
//!
//! What is rarely used is first. Then come the context, to which `sscratch` points while the thread runs; in two cache lines the
//! fields that IPC and scheduling touch; and the capability slots. So what every message touches keeps away from the first sets of a
//! cache, where the page tables of all programs meet (asid.rs). All zero is an inactive thread.
//! The invocations are in `invoke/`.

pub mod config;
mod invoke;
pub mod registers;

pub use invoke::decode;

use core::mem::offset_of;

use abi::object::bits;

use super::cap::{Cap, Cte};
use super::notification::Notification;
use crate::alarm::Alarm;
use crate::api::fault::Fault;
use crate::arch::register::{A0, A5};
use crate::arch::{Context, FpuState, UserInterruptState, context_offset as offset};
use crate::mem::{Object, Ref};
use crate::syscall_ring::RingState;
use crate::utilisation::Usage;

/// `seL4_ThreadState`: what the thread does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ThreadState {
    /// Not started, or stopped.
    Inactive = 0,
    /// Executes, or would if it had the core.
    Running = 1,
    /// As Running, but executes its last trapping instruction again.
    Restart = 2,
    /// In the receive queue of an endpoint.
    BlockedOnReceive = 3,
    /// In the send queue of an endpoint.
    BlockedOnSend = 4,
    /// A reply capability to it exists, or was deleted.
    BlockedOnReply = 5,
    /// In the queue of a notification.
    BlockedOnNotification = 6,
    /// An idle thread.
    Idle = 7,
}

/// Slots of a TCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Slot {
    /// Root of the CSpace.
    CSpace = 0,
    /// Root of the VSpace.
    VSpace = 1,
    /// The reply capability from which all others to this thread descend.
    Reply = 2,
    /// The reply capability to the thread that called last.
    Caller = 3,
    /// Frame of the IPC buffer.
    Buffer = 4,
    /// Sender table of `uipi.send`.
    SenderTable = 5,
    /// Frame of the system-call ring (syscall_ring.rs).
    SyscallRing = 6,
    /// Notification that is signalled when another core has carried out what the ring held.
    RingNotification = 7,
}

/// Number of slots.
pub const SLOT_COUNT: usize = 8;
/// `seL4_TCBFlag`.
pub mod flag {
    /// `seL4_TCBFlag_fpuDisabled`: floating-point instructions are illegal.
    pub const FPU_DISABLED: u8 = 1;
}
/// Bytes of a name that are kept.
pub const NAME_BYTES: usize = 32;

/// A thread.
#[derive(Debug)]
#[repr(C)]
pub struct Tcb {
    /// Why the last capability lookup failed: the words of a message.
    pub lookup_failure: [u64; 4],
    /// CPtr of the fault handler in its own CSpace.
    pub fault_handler: u64,
    /// User-interrupt registers while it does not run.
    pub user_interrupt: UserInterruptState,
    /// The cancellation of badged sends that it has begun; 0: none (endpoint.rs).
    pub cancellation: u64,
    /// BlockedOnSend: the last cancellation that let it stay.
    pub visited_by: u64,
    /// Next in the list of all threads.
    pub all_next: Option<Ref<Tcb>>,
    /// Previous in that list.
    pub all_prev: Option<Ref<Tcb>>,
    /// What it has used (utilisation.rs).
    pub usage: Usage,
    /// Debug name, padded with zero bytes.
    pub name: [u8; NAME_BYTES],
    /// What is known of its system-call ring.
    pub ring: RingState,
    /// Up to the line where the context starts.
    pub padding: [u64; 2],

    /// Registers.
    pub context: Context,

    /// What it waits for.
    pub state: ThreadState,
    /// Whether it is in a ready queue.
    pub queued: bool,
    /// 0 to 255, 255 is best.
    pub priority: u8,
    /// Its core.
    pub core: u8,
    /// Has special registers to switch (special.rs); kept by `note_special`.
    pub special: bool,
    /// BlockedOnSend: the capability had Grant. BlockedOnReceive: likewise.
    pub can_grant: bool,
    /// BlockedOnSend: the capability had GrantReply.
    pub can_grant_reply: bool,
    /// BlockedOnSend: a Call.
    pub is_call: bool,
    /// Maximum controlled priority.
    pub mcp: u8,
    /// Domain.
    pub domain: u8,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Has executed a floating-point instruction.
    pub fpu_used: bool,
    /// Ticks left of the time slice.
    pub time_slice: u32,
    /// BlockedOnSend: badge of the capability.
    pub badge: u64,
    /// Address of the endpoint or notification in whose queue it is, or 0.
    pub blocked_on: u64,
    /// Next in that queue.
    pub queue_next: Option<Ref<Tcb>>,
    /// Previous in that queue.
    pub queue_prev: Option<Ref<Tcb>>,
    /// Next in the ready queue.
    pub ready_next: Option<Ref<Tcb>>,
    /// Previous in the ready queue.
    pub ready_prev: Option<Ref<Tcb>>,
    /// The notification bound to it.
    pub bound_notification: Option<Ref<Notification>>,
    /// The fault that it waits with.
    pub fault: Fault,
    /// User address of the IPC buffer.
    pub buffer_address: u64,
    /// Capabilities.
    pub slots: [Cte; SLOT_COUNT],
    /// Floating-point registers while its core's unit is off.
    pub fpu: FpuState,
    /// When the kernel looks at it, if it waits until a time (alarm.rs).
    pub alarm: Alarm,
}

/// Where the slots start.
pub const SLOTS_OFFSET: usize = offset_of!(Tcb, slots);
/// In the line of what the thread does and where it continues.
pub const STATE: usize = offset_of!(Tcb, state);
/// In the line of the registers of a short message, A0 to A5.
pub const MESSAGE: usize = offset_of!(Tcb, context) + A0 * size_of::<u64>();

const _: () = {
    assert!(size_of::<Tcb>() <= 1 << bits::TCB);
    // Whole lines, of 64 bytes: the context, the fields that IPC touches, two slots each.
    assert!(offset_of!(Tcb, context).is_multiple_of(64) && offset_of!(Tcb, context) >= 4 * 64);
    assert!(offset_of!(Tcb, fault) <= offset_of!(Tcb, context) + 6 * 64);
    assert!(SLOTS_OFFSET.is_multiple_of(64));
    // One line each: what two cores hand each other with a thread.
    let context = offset_of!(Tcb, context);
    assert!(STATE / 64 == (context + offset::NEXT_PC) / 64 && STATE / 64 == (context + offset::KERNEL_STACK) / 64);
    assert!(STATE / 64 == offset_of!(Tcb, queue_prev) / 64 && STATE.is_multiple_of(8));
    assert!(MESSAGE / 64 == (context + A5 * size_of::<u64>()) / 64);
};

// SAFETY: zero is a valid value of every field (`Fault::None` is 0); the kernel stores valid values only.
unsafe impl Object for Tcb {}

impl Tcb {
    /// Whether it may have a core.
    #[inline(always)]
    pub const fn is_runnable(&self) -> bool {
        matches!(self.state, ThreadState::Running | ThreadState::Restart)
    }

    /// Whether Resume has something to do.
    pub const fn is_stopped(&self) -> bool {
        !matches!(self.state, ThreadState::Running | ThreadState::Restart | ThreadState::Idle)
    }

    /// Whether it runs with the floating-point unit on.
    pub const fn uses_fpu(&self) -> bool {
        self.fpu_used && self.flags & flag::FPU_DISABLED == 0
    }

    /// Brings `special` up to date after a change of what it depends on.
    pub fn note_special(&mut self) {
        self.special = self.user_interrupt.in_use() || self.uses_fpu();
    }

    /// The capability in one of its slots.
    #[inline(always)]
    pub const fn cap(&self, slot: Slot) -> Cap {
        self.slots[slot as usize].cap
    }
}

impl Ref<Tcb> {
    /// The first of its slots.
    pub fn slots_start(self) -> Ref<Cte> {
        self.slot(Slot::CSpace)
    }
    /// One of its slots.
    #[inline(always)]
    pub fn slot(self, slot: Slot) -> Ref<Cte> {
        let offset = SLOTS_OFFSET + slot as usize * size_of::<Cte>();
        // SAFETY: part of the Tcb that `self` names.
        unsafe { Ref::assume(self.kva().offset(offset as u64)) }
    }
}
