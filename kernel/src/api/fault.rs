//! Faults: what a thread did, delivered as a call to its fault handler; and what the handler's reply does to it.

use abi::error::LookupFailure;
use abi::fault as layout;
use abi::message::{MAX_LENGTH, MessageInfo};
use abi::rights::Rights;

use super::message;
use crate::arch::register::{A0, A1, A2, A3, A4, A5, A6, PC, RA, SP};
use crate::cspace;
use crate::mem::{Buffer, Ref};
use crate::object::cap::{Cap, Kind};
use crate::object::endpoint::{self, SendRights};
use crate::object::tcb::{Tcb, ThreadState};
use crate::state::Kernel;
use crate::thread;

/// A fault (seL4 `seL4_Fault_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Fault {
    /// None; zeroed TCBs have this.
    None = 0,
    /// A capability address led nowhere; the reason is in the TCB (`lookup_failure`).
    Cap {
        /// The address.
        cptr: u64,
        /// While receiving.
        receiving: bool,
    } = 1,
    /// A system call that does not exist.
    UnknownSyscall {
        /// a7.
        number: u64,
    } = 2,
    /// An exception other than memory access and system call.
    User {
        /// `scause`.
        cause: u64,
    } = 3,
    /// An access that the address space does not allow.
    Vm {
        /// `stval`.
        address: u64,
        /// `abi::fault::FSR_*`.
        status: u64,
    } = 5,
}

/// Registers of an unknown-syscall message, in its order; a7 follows.
const SYSCALL_REGISTERS: [usize; layout::UNKNOWN_SYSCALL_REPLY_LENGTH] = [PC, SP, RA, A0, A1, A2, A3, A4, A5, A6];
/// Registers of a user-exception message that a reply may change.
const EXCEPTION_REGISTERS: [usize; layout::USER_EXCEPTION_REPLY_LENGTH] = [PC, SP];

/// The endpoint that faults of `thread` go to, and the sender's rights on it.
fn handler(k: &Kernel, thread: Ref<Tcb>) -> Result<Cap, LookupFailure> {
    let slot = cspace::lookup_slot(k, thread, k.get(thread).fault_handler)?;
    let cap = k.cap(slot);
    let rights = cap.rights();
    let good = cap.is(Kind::Endpoint)
        && rights.contains(Rights::WRITE)
        && (rights.contains(Rights::GRANT) || rights.contains(Rights::GRANT_REPLY));
    if good { Ok(cap) } else { Err(LookupFailure::MissingCapability { bits_left: 0 }) }
}

/// `thread`, which runs on this core, has a fault (seL4 `handleFault`). Without a handler it stops for good.
pub fn handle(k: &mut Kernel, thread: Ref<Tcb>, fault: Fault, failure: Option<LookupFailure>) {
    let found = handler(k, thread).ok().and_then(|cap| Some((cap, cap.object()?)));
    let Some((cap, endpoint)) = found else {
        super::debug::report_double_fault(k, thread, fault);
        thread::set_state(k, thread, ThreadState::Inactive);
        return;
    };
    let tcb = k.get_mut(thread);
    tcb.fault = fault;
    if let Some(failure) = failure {
        let (mut words, length) = failure.words();
        words[length..].fill(0);
        tcb.lookup_failure = words;
    }
    endpoint::send(k, thread, endpoint, SendRights::of(cap), true, true);
}

/// Writes the fault of `sender` as a message of `receiver`.
pub fn deliver(k: &mut Kernel, sender: Ref<Tcb>, receiver: Ref<Tcb>, to: Option<Buffer>, badge: u64) {
    let tcb = k.get(sender);
    let x = &tcb.context.x;
    let mut words = [0; layout::UNKNOWN_SYSCALL_LENGTH];
    words[0] = x[PC];
    let (label, length) = match tcb.fault {
        Fault::None => (0, 0),
        Fault::Cap { cptr, receiving } => {
            words[1] = cptr;
            words[2] = u64::from(receiving);
            words[layout::CAP_FAULT_LOOKUP..][..4].copy_from_slice(&tcb.lookup_failure);
            // Types 1 to 4 of lookup failure have that many words.
            (layout::CAP_FAULT, layout::CAP_FAULT_LOOKUP + tcb.lookup_failure[0] as usize)
        }
        Fault::UnknownSyscall { number } => {
            for (word, register) in words.iter_mut().zip(SYSCALL_REGISTERS) {
                *word = x[register];
            }
            words[SYSCALL_REGISTERS.len()] = number;
            (layout::UNKNOWN_SYSCALL, layout::UNKNOWN_SYSCALL_LENGTH)
        }
        Fault::User { cause } => {
            words[1] = x[SP];
            words[2] = cause & 0xFFFF_FFFF;
            (layout::USER_EXCEPTION, layout::USER_EXCEPTION_LENGTH)
        }
        Fault::Vm { address, status } => {
            words[1] = address;
            words[2] = u64::from(status == layout::FSR_FETCH);
            words[3] = status;
            (layout::VM_FAULT, layout::VM_FAULT_LENGTH)
        }
    };
    message::set_message(k, receiver, to, badge, label, &words[..length]);
}

/// Lets the reply of `handler` change the registers of the faulting thread; gives whether it goes on (seL4 `handleFaultReply`).
pub fn apply_reply(k: &mut Kernel, thread: Ref<Tcb>, fault: Fault, handler: Ref<Tcb>) -> bool {
    let info = MessageInfo(k.get(handler).context.x[A1]);
    let registers: &[usize] = match fault {
        Fault::UnknownSyscall { .. } => &SYSCALL_REGISTERS,
        Fault::User { .. } => &EXCEPTION_REGISTERS,
        Fault::None | Fault::Cap { .. } | Fault::Vm { .. } => return true,
    };
    let buffer = thread::buffer(k, handler, false);
    debug_assert!(info.length() <= MAX_LENGTH);
    for (index, &register) in registers.iter().enumerate().take(info.length()) {
        if index >= abi::message::REGISTERS && buffer.is_none() {
            break;
        }
        let value = message::word(k, handler, buffer, index);
        k.get_mut(thread).context.x[register] = value;
    }
    info.label() == 0
}
