//! TCB invocations: dispatch, scheduling parameters, binding, affinity.

use abi::extension::{TCB_BIND_USER_INTERRUPT, TCB_SET_SENDER_TABLE, TCB_SET_SYSCALL_RING, TCB_UNBIND_USER_INTERRUPT};
use abi::label::Label;
use abi::rights::Rights;

use super::{Slot, Tcb, config, registers};
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::{Arch, register::TP};
use crate::mem::Ref;
use crate::object::notification::{self, Notification};
use crate::object::sender_table::SenderTable;
use crate::object::{delete, user_interrupt};
use crate::state::Kernel;
use crate::{fpu, sched, special, thread};

/// TCB invocations (seL4 `decodeTCBInvocation`).
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    let Some(tcb) = call.cap.object::<Tcb>() else { return Err(Refusal::IllegalOperation.into()) };
    sched::stall(k, tcb);
    let Some(label) = call.label(k) else { return decode_extension(k, call, tcb) };
    match label {
        Label::TCBReadRegisters => return registers::decode_read(k, call, tcb),
        Label::TCBWriteRegisters => registers::decode_write(k, call, tcb)?,
        Label::TCBCopyRegisters => registers::decode_copy(k, call, tcb)?,
        Label::TCBConfigure => config::decode_configure(k, call, tcb)?,
        Label::TCBSetSpace => config::decode_set_space(k, call, tcb)?,
        Label::TCBSetIPCBuffer => config::decode_set_ipc_buffer(k, call, tcb)?,
        Label::TCBSetPriority => {
            call.need(1)?;
            let priority = checked_priority(k, call, 0)?;
            call.commit(k);
            set_priority(k, tcb, priority);
        }
        Label::TCBSetMCPriority => {
            call.need(1)?;
            let mcp = checked_priority(k, call, 0)?;
            call.commit(k);
            k.get_mut(tcb).mcp = mcp;
        }
        Label::TCBSetSchedParams => {
            call.need(2)?;
            let mcp = checked_priority(k, call, 0)?;
            let priority = checked_priority(k, call, 1)?;
            call.commit(k);
            k.get_mut(tcb).mcp = mcp;
            set_priority(k, tcb, priority);
        }
        Label::TCBSuspend => {
            call.commit(k);
            thread::suspend(k, tcb);
        }
        Label::TCBResume => {
            call.commit(k);
            thread::resume(k, tcb);
        }
        Label::TCBBindNotification => {
            let notification = decode_bind(k, call, tcb)?;
            call.commit(k);
            notification::bind(k, tcb, notification);
        }
        Label::TCBUnbindNotification => {
            if k.get(tcb).bound_notification.is_none() {
                return Err(Refusal::IllegalOperation.into());
            }
            call.commit(k);
            notification::unbind_thread(k, tcb);
        }
        Label::TCBSetAffinity => {
            call.need(1)?;
            let core = call.word(k, 0);
            if core >= k.arch.cores() as u64 {
                return Err(Refusal::IllegalOperation.into());
            }
            call.commit(k);
            set_affinity(k, tcb, core as u8);
        }
        Label::TCBSetTLSBase => {
            call.need(1)?;
            let base = call.word(k, 0);
            call.commit(k);
            k.get_mut(tcb).context.x[TP] = base;
            if tcb == k.current() {
                sched::reschedule_required(k);
            }
        }
        Label::TCBSetFlags => {
            call.need(2)?;
            let (clear, set) = (call.word(k, 0), call.word(k, 1));
            call.commit(k);
            return Ok(Answer::word(fpu::set_flags(k, tcb, clear, set)));
        }
        _ => return Err(Refusal::IllegalOperation.into()),
    }
    Ok(Answer::Empty)
}

/// Message word `index` as a priority that the authority, extra capability 0, may give.
fn checked_priority(k: &Kernel, call: &Invocation, index: usize) -> Result<u8, Refusal> {
    let authority = k.cap(call.extra(0)?).object::<Tcb>().ok_or(Refusal::InvalidCapability(1))?;
    let limit = k.get(authority).mcp;
    u8::try_from(call.word(k, index))
        .ok()
        .filter(|&priority| priority <= limit)
        .ok_or(Refusal::Range(0, u64::from(limit)))
}

fn set_priority(k: &mut Kernel, tcb: Ref<Tcb>, priority: u8) {
    sched::dequeue(k, tcb);
    let object = k.get_mut(tcb);
    object.priority = priority;
    if object.is_runnable() {
        if tcb == k.current() {
            sched::reschedule_required(k);
        } else {
            sched::possible_switch_to(k, tcb);
        }
    }
}

fn set_affinity(k: &mut Kernel, tcb: Ref<Tcb>, core: u8) {
    sched::dequeue(k, tcb);
    if k.get(tcb).core != core {
        special::take_from_core(k, tcb);
    }
    let object = k.get_mut(tcb);
    object.core = core;
    if object.is_runnable() {
        sched::append(k, tcb);
    }
    if tcb == k.current() {
        sched::reschedule_required(k);
    }
}

fn decode_bind(k: &Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<Ref<Notification>, Refusal> {
    let slot = call.extra(0)?;
    if k.get(tcb).bound_notification.is_some() {
        return Err(Refusal::IllegalOperation);
    }
    let cap = k.cap(slot);
    cap.object::<Notification>()
        .filter(|_| cap.rights().contains(Rights::READ))
        .filter(|&object| {
            let object = k.get(object);
            object.state() != notification::WAITING && object.bound_thread().is_none()
        })
        .ok_or(Refusal::IllegalOperation)
}

/// Invocations behind seL4's.
fn decode_extension(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<Answer, Stop> {
    match call.label {
        TCB_BIND_USER_INTERRUPT => {
            let cap = k.cap(call.extra(0)?);
            let notification = cap
                .object::<Notification>()
                .filter(|_| cap.rights().contains(Rights::READ))
                .ok_or(Refusal::InvalidCapability(1))?;
            let receiver = user_interrupt::check_bind(k, tcb, notification)?;
            call.commit(k);
            user_interrupt::bind(k, tcb, notification, receiver);
        }
        TCB_UNBIND_USER_INTERRUPT => {
            let receiver = k.get(tcb).user_interrupt.receiver;
            if receiver == 0 {
                return Err(Refusal::IllegalOperation.into());
            }
            call.commit(k);
            user_interrupt::release(k, receiver)?;
        }
        TCB_SET_SENDER_TABLE => {
            let source = call.extra(0)?;
            let cap = k.cap(source);
            let table = cap.object::<SenderTable>();
            if table.is_none() && !cap.is_null() {
                return Err(Refusal::InvalidCapability(1).into());
            }
            call.commit(k);
            let slot = tcb.slot(Slot::SenderTable);
            delete::delete(k, slot)?;
            if let Some(table) = table.filter(|_| k.cap(source) == cap) {
                k.insert(cap.installed(tcb), source, slot);
                user_interrupt::set_table(k, tcb, Some(table.kva().paddr()));
            }
        }
        TCB_SET_SYSCALL_RING => config::decode_set_syscall_ring(k, call, tcb)?,
        _ => return Err(Refusal::IllegalOperation.into()),
    }
    Ok(Answer::Empty)
}
