//! What happens to threads: their states, and the transfer of messages between two of them.
//!
//! ```text
//!                resume                      leave (sched.rs)
//!   Inactive ──────────────▶ Restart ───────────────────────▶ Running ◀─────────────────┐
//!      ▲                        ▲                                │                      │ reply, message or
//!      │ suspend, from any      │ cancel_all, reply to a fault   │ send, receive, wait  │ signal arrives
//!      │                        └──────────── Blocked… ◀─────────┘ ─────────────────────┘
//! ```

use abi::ipc_buffer;
use abi::message::{MAX_EXTRA_CAPS, MAX_LENGTH, MessageInfo, REGISTERS};

use crate::api::{fault, message};
use crate::arch::register::{A0, A1, A2, PC};
use crate::cspace;
use crate::mem::{Buffer, Ref};
use crate::object::cap::{Cap, Cte, Kind, VmRights};
use crate::object::endpoint::{Endpoint, SendRights};
use crate::object::mdb::Mdb;
use crate::object::notification::Notification;
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::object::{delete, reply};
use crate::sched;
use crate::state::{Action, Kernel};
use crate::utilisation;

/// A thread has been made: it is in the list of all threads now.
pub fn enlist(k: &mut Kernel, thread: Ref<Tcb>) {
    let next = k.threads.replace(thread);
    k.get_mut(thread).all_next = next;
    if let Some(next) = next {
        k.get_mut(next).all_prev = Some(thread);
    }
}

/// A thread is being deleted.
pub fn delist(k: &mut Kernel, thread: Ref<Tcb>) {
    utilisation::forget(k, thread);
    let tcb = k.get_mut(thread);
    let (prev, next) = (tcb.all_prev.take(), tcb.all_next.take());
    match prev {
        Some(prev) => k.get_mut(prev).all_next = next,
        None => k.threads = next,
    }
    if let Some(next) = next {
        k.get_mut(next).all_prev = prev;
    }
}

/// Changes what a thread does. The current thread leaves its core if it cannot go on.
#[inline]
pub fn set_state(k: &mut Kernel, thread: Ref<Tcb>, state: ThreadState) {
    let tcb = k.get_mut(thread);
    tcb.state = state;
    if !tcb.is_runnable() && k.this().action == Action::Resume && thread == k.current() {
        sched::reschedule_required(k);
    }
}

/// The badge register of a thread that receives.
#[inline(always)]
pub fn set_badge(k: &mut Kernel, thread: Ref<Tcb>, badge: u64) {
    k.get_mut(thread).context.x[A0] = badge;
}

/// Takes a thread out of whatever it waits for (seL4 `cancelIPC`). Its state is up to the caller.
pub fn cancel_ipc(k: &mut Kernel, thread: Ref<Tcb>) {
    let tcb = k.get(thread);
    let waits_on = tcb.blocked_on;
    match tcb.state {
        ThreadState::BlockedOnSend | ThreadState::BlockedOnReceive => {
            // SAFETY: in these states the thread is in the queue of the endpoint at that address.
            let endpoint: Ref<Endpoint> = unsafe { Ref::assume(crate::mem::Kva(waits_on)) };
            k.queue_remove(endpoint, thread);
            set_state(k, thread, ThreadState::Inactive);
        }
        ThreadState::BlockedOnNotification => {
            // SAFETY: in this state the thread is in the queue of the notification at that address.
            let notification: Ref<Notification> = unsafe { Ref::assume(crate::mem::Kva(waits_on)) };
            k.queue_remove(notification, thread);
            set_state(k, thread, ThreadState::Inactive);
        }
        ThreadState::BlockedOnReply => {
            k.get_mut(thread).fault = fault::Fault::None;
            if let Some(reply) = k.get(thread.slot(Slot::Reply)).mdb.next() {
                delete::delete_one(k, reply);
            }
        }
        ThreadState::Inactive | ThreadState::Running | ThreadState::Restart | ThreadState::Idle => {}
    }
}

/// TCB_Suspend (seL4 `suspend`).
pub fn suspend(k: &mut Kernel, thread: Ref<Tcb>) {
    cancel_ipc(k, thread);
    let tcb = k.get_mut(thread);
    tcb.cancellation = 0;
    if tcb.state == ThreadState::Running {
        tcb.context.x[PC] = tcb.context.next_pc;
    }
    set_state(k, thread, ThreadState::Inactive);
    sched::dequeue(k, thread);
}

/// TCB_Resume (seL4 `restart`).
pub fn resume(k: &mut Kernel, thread: Ref<Tcb>) {
    if !k.get(thread).is_stopped() {
        return;
    }
    cancel_ipc(k, thread);
    set_up_reply_master(k, thread);
    set_state(k, thread, ThreadState::Restart);
    sched::enqueue(k, thread);
    sched::possible_switch_to(k, thread);
}

/// Makes the capability from which reply capabilities to `thread` descend, if it has none.
pub fn set_up_reply_master(k: &mut Kernel, thread: Ref<Tcb>) {
    let slot = k.get_mut(thread.slot(Slot::Reply));
    if slot.cap.is_null() {
        *slot = Cte { cap: Cap::reply(thread, true, true), mdb: Mdb::ALONE };
    }
}

/// After a call has been received: the caller waits, and the receiver may reply; or nobody may, and the caller stops for good.
#[inline]
pub fn wait_for_reply(k: &mut Kernel, caller: Ref<Tcb>, receiver: Ref<Tcb>, rights: SendRights, reply_grant: bool) {
    if rights.grant || rights.grant_reply {
        set_state(k, caller, ThreadState::BlockedOnReply);
        let cap = Cap::reply(caller, reply_grant, false);
        k.insert(cap, caller.slot(Slot::Reply), receiver.slot(Slot::Caller));
    } else {
        set_state(k, caller, ThreadState::Inactive);
    }
}

/// Forgets the caller of a thread that receives again (seL4 `deleteCallerCap`).
pub fn delete_caller(k: &mut Kernel, thread: Ref<Tcb>) {
    let slot = thread.slot(Slot::Caller);
    if !k.cap(slot).is_null() {
        delete::delete_one(k, slot);
    }
}

/// The IPC buffer of a thread, if the kernel may use it (seL4 `lookupIPCBuffer`).
#[inline]
pub fn buffer(k: &Kernel, thread: Ref<Tcb>, for_writing: bool) -> Option<Buffer> {
    let tcb = k.get(thread);
    let cap = tcb.cap(Slot::Buffer);
    if !cap.is(Kind::Frame) || cap.is_device() {
        return None;
    }
    let allowed = match cap.vm_rights() {
        VmRights::ReadWrite => true,
        VmRights::ReadOnly => !for_writing,
        VmRights::KernelOnly => false,
    };
    let offset = tcb.buffer_address & ((1 << cap.frame_size().bits()) - 1);
    // SAFETY: the frame is RAM and its capability is in the TCB; the address is 1024-aligned (checked when it was set).
    allowed.then(|| unsafe { Buffer::assume(cap.address().offset(offset)) })
}

/// Slots of the extra capabilities of a message.
pub type ExtraCaps = [Option<Ref<Cte>>; MAX_EXTRA_CAPS];

/// Looks the extra capabilities of a message up; the first address that leads nowhere ends it.
#[inline]
pub fn extra_caps(
    k: &Kernel,
    thread: Ref<Tcb>,
    info: MessageInfo,
    buffer: Option<Buffer>,
) -> Result<ExtraCaps, (u64, abi::error::LookupFailure)> {
    let mut caps = [None; MAX_EXTRA_CAPS];
    let Some(buffer) = buffer else { return Ok(caps) };
    for (index, cap) in caps.iter_mut().enumerate().take(info.extra_caps()) {
        let cptr = k.buffer_word(buffer, ipc_buffer::CAPS_OR_BADGES + index);
        *cap = Some(cspace::lookup_slot(k, thread, cptr).map_err(|failure| (cptr, failure))?);
    }
    Ok(caps)
}

/// Moves a message or a fault from `sender` to `receiver` (seL4 `doIPCTransfer`). `endpoint`: where they met, for unwrapping.
pub fn transfer(
    k: &mut Kernel,
    sender: Ref<Tcb>,
    endpoint: Option<Ref<Endpoint>>,
    badge: u64,
    grant: bool,
    receiver: Ref<Tcb>,
) {
    let to = buffer(k, receiver, true);
    if k.get(sender).fault != fault::Fault::None {
        fault::deliver(k, sender, receiver, to, badge);
        return;
    }
    let from = buffer(k, sender, false);
    let info = MessageInfo(k.get(sender).context.x[A1]);
    let caps = if grant && info.extra_caps() != 0 {
        extra_caps(k, sender, info, from).unwrap_or_default()
    } else {
        [None; MAX_EXTRA_CAPS]
    };
    let length = copy_words(k, sender, from, receiver, to, info.length());
    let (unwrapped, count) = match to {
        Some(to) if caps[0].is_some() => transfer_caps(k, caps, endpoint, receiver, to),
        _ => (0, 0),
    };
    let tcb = k.get_mut(receiver);
    tcb.context.x[A1] = MessageInfo::new(info.label(), unwrapped, count, length).0;
    tcb.context.x[A0] = badge;
}

/// Copies message words; gives the length that arrives.
fn copy_words(
    k: &mut Kernel,
    sender: Ref<Tcb>,
    from: Option<Buffer>,
    receiver: Ref<Tcb>,
    to: Option<Buffer>,
    length: usize,
) -> usize {
    debug_assert!(length <= MAX_LENGTH);
    let in_registers = length.min(REGISTERS);
    if sender != receiver {
        let (source, target) = k.pair_mut(sender, receiver);
        target.context.x[A2..A2 + in_registers].copy_from_slice(&source.context.x[A2..A2 + in_registers]);
    }
    let (Some(from), Some(to)) = (from, to) else { return in_registers };
    k.copy_message_words(from, to, REGISTERS..length);
    length
}

/// Moves capabilities; gives the unwrapped mask and the number (seL4 `transferCaps`).
fn transfer_caps(
    k: &mut Kernel,
    caps: ExtraCaps,
    endpoint: Option<Ref<Endpoint>>,
    receiver: Ref<Tcb>,
    to: Buffer,
) -> (usize, usize) {
    let mut free = message::receive_slot(k, receiver, to);
    let mut unwrapped = 0;
    for (index, slot) in caps.into_iter().enumerate() {
        let Some(slot) = slot else { return (unwrapped, index) };
        let cap = k.cap(slot);
        if endpoint.is_some() && cap.object() == endpoint {
            k.set_buffer_word(to, ipc_buffer::CAPS_OR_BADGES + index, cap.badge());
            unwrapped |= 1 << index;
            continue;
        }
        let Some(target) = free.take() else { return (unwrapped, index) };
        match k.derive(slot, cap) {
            Ok(derived) if !derived.is_null() => k.insert(derived, slot, target),
            _ => return (unwrapped, index),
        }
    }
    (unwrapped, MAX_EXTRA_CAPS)
}

/// Sends the reply of `sender` to the thread that the reply capability in `slot` names.
pub fn reply(k: &mut Kernel, sender: Ref<Tcb>, slot: Ref<Cte>) {
    let cap = k.cap(slot);
    if cap.is(Kind::Reply) && !cap.reply_master() {
        reply::transfer(k, sender, cap.reply_caller(), slot, cap.reply_grant());
    }
}
