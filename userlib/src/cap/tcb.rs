//! Threads.

use super::{CNode, CPtr, Cap, Frame, Notification, Result, VSpace, capability, invoke};
use crate::ipc_buffer;
use crate::syscall;
use abi::label::Label;
use abi::message::{MessageInfo, REGISTERS};
use abi::register;

capability! {
    /// A thread control block.
    Tcb
}

/// The integer registers of a thread in the order of `abi::register`.
#[doc(alias = "seL4_UserContext")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserContext(pub [u64; register::COUNT]);

impl Tcb {
    /// Sets fault endpoint (an address in the thread's own CSpace), CSpace with its guard, address space and IPC buffer.
    #[doc(alias = "seL4_TCB_Configure")]
    pub fn configure(
        self,
        fault_endpoint: CPtr,
        cspace: CNode,
        cspace_guard: u64,
        vspace: VSpace,
        buffer_address: u64,
        buffer: Frame,
    ) -> Result<()> {
        let args = [fault_endpoint.0, cspace_guard, 0, buffer_address];
        invoke(self.0, Label::TCBConfigure as u64, args, [cspace.cptr(), vspace.cptr(), buffer.cptr()]).map(drop)
    }

    /// Sets maximum controlled priority and priority; both are bounded by the maximum of `authority`.
    #[doc(alias = "seL4_TCB_SetSchedParams")]
    pub fn set_sched_params(self, authority: Tcb, max_controlled: u64, priority: u64) -> Result<()> {
        let args = [max_controlled, priority];
        invoke(self.0, Label::TCBSetSchedParams as u64, args, [authority.cptr()]).map(drop)
    }

    /// Sets the priority, bounded by the maximum controlled priority of `authority`.
    #[doc(alias = "seL4_TCB_SetPriority")]
    pub fn set_priority(self, authority: Tcb, priority: u64) -> Result<()> {
        invoke(self.0, Label::TCBSetPriority as u64, [priority], [authority.cptr()]).map(drop)
    }

    /// Moves the thread to a hart (kernels for several harts).
    #[doc(alias = "seL4_TCB_SetAffinity")]
    pub fn set_affinity(self, hart: u64) -> Result<()> {
        invoke(self.0, Label::TCBSetAffinity as u64, [hart], []).map(drop)
    }

    /// Writes all registers; starts the thread if `resume`.
    #[doc(alias = "seL4_TCB_WriteRegisters")]
    pub fn write_registers(self, context: &UserContext, resume: bool) -> Result<()> {
        const COUNT: usize = register::COUNT;
        let mut args = [0; COUNT + 2];
        args[0] = resume.into();
        args[1] = COUNT as u64;
        args[2..].copy_from_slice(&context.0);
        invoke(self.0, Label::TCBWriteRegisters as u64, args, []).map(drop)
    }

    /// Reads all registers; stops the thread if `suspend`. Not on the calling thread itself.
    #[doc(alias = "seL4_TCB_ReadRegisters")]
    pub fn read_registers(self, suspend: bool) -> Result<UserContext> {
        let args = [suspend.into(), register::COUNT as u64];
        let first = invoke(self.0, Label::TCBReadRegisters as u64, args, [])?;
        let mut context = UserContext::default();
        context.0[..REGISTERS].copy_from_slice(&first);
        (REGISTERS..register::COUNT).for_each(|index| context.0[index] = ipc_buffer::message_word(index));
        Ok(context)
    }

    /// Stops the thread.
    #[doc(alias = "seL4_TCB_Suspend")]
    pub fn suspend(self) -> Result<()> {
        invoke(self.0, Label::TCBSuspend as u64, [], []).map(drop)
    }

    /// Starts the thread, or lets it repeat the system call in which it was stopped.
    #[doc(alias = "seL4_TCB_Resume")]
    pub fn resume(self) -> Result<()> {
        invoke(self.0, Label::TCBResume as u64, [], []).map(drop)
    }

    /// Binds a notification: its signals also end a receive of this thread.
    #[doc(alias = "seL4_TCB_BindNotification")]
    pub fn bind_notification(self, notification: Notification) -> Result<()> {
        invoke(self.0, Label::TCBBindNotification as u64, [], [notification.cptr()]).map(drop)
    }

    /// Clears, then sets flags (bit 0: floating-point instructions are illegal); gives the flags afterwards.
    #[doc(alias = "seL4_TCB_SetFlags")]
    pub fn set_flags(self, clear: u64, set: u64) -> Result<u64> {
        invoke(self.0, Label::TCBSetFlags as u64, [clear, set], []).map(|words| words[0])
    }

    /// Undoes [`Tcb::bind_notification`].
    #[doc(alias = "seL4_TCB_UnbindNotification")]
    pub fn unbind_notification(self) -> Result<()> {
        invoke(self.0, Label::TCBUnbindNotification as u64, [], []).map(drop)
    }

    /// Names the thread in the kernel's own messages (debug kernels). `name` is cut to 63 bytes.
    #[doc(alias = "seL4_DebugNameThread")]
    pub fn debug_name(self, name: &str) {
        let mut bytes = [0; 64];
        let length = name.len().min(bytes.len() - 1);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        bytes.as_chunks::<8>().0.iter().enumerate().for_each(|(index, chunk)| {
            ipc_buffer::set_message_word(index, u64::from_le_bytes(*chunk));
        });
        syscall::debug_name_thread(self.0);
    }
}

const _: () = assert!(register::COUNT + 2 <= abi::message::MAX_LENGTH);
const _: () = assert!(core::mem::size_of::<MessageInfo>() == 8);
