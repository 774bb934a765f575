//! TCB_Configure, TCB_SetSpace, TCB_SetIPCBuffer, TCB_SetSyscallRing: the capabilities that a thread runs with.

use abi::ipc_buffer;

use super::{Slot, Tcb};
use crate::api::error::{Preempted, Refusal, Stop};
use crate::api::invocation::{Invocation, Origin};
use crate::mem::Ref;
use crate::object::cap::{Cap, Cte, Kind, VmRights};
use crate::object::{delete, notification, vspace};
use crate::state::Kernel;
use crate::{sched, syscall_ring};

/// A checked capability for a slot of the TCB, and where it comes from.
#[derive(Clone, Copy, Debug)]
struct Root {
    cap: Cap,
    source: Ref<Cte>,
}

/// Checked CSpace and VSpace.
#[derive(Clone, Copy, Debug)]
struct Space {
    fault_handler: u64,
    cspace: Root,
    vspace: Root,
}

/// Checked buffer: its address, and its frame unless the buffer is taken away.
#[derive(Clone, Copy, Debug)]
struct NewBuffer {
    address: u64,
    frame: Option<Root>,
}

/// TCB_Configure.
pub fn decode_configure(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<(), Stop> {
    call.need(4)?;
    let (cspace, vspace, frame) = (call.extra(0)?, call.extra(1)?, call.extra(2)?);
    let buffer = check_buffer(k, call.word(k, 3), frame)?;
    let space = check_space(k, call, tcb, cspace, vspace)?;
    call.commit(k);
    invoke_set_space(k, call, tcb, space)?;
    invoke_set_buffer(k, call, tcb, buffer)?;
    Ok(())
}

/// TCB_SetSpace.
pub fn decode_set_space(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<(), Stop> {
    call.need(3)?;
    let (cspace, vspace) = (call.extra(0)?, call.extra(1)?);
    let space = check_space(k, call, tcb, cspace, vspace)?;
    call.commit(k);
    invoke_set_space(k, call, tcb, space)?;
    Ok(())
}

/// TCB_SetIPCBuffer.
pub fn decode_set_ipc_buffer(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<(), Stop> {
    call.need(1)?;
    let frame = call.extra(0)?;
    let buffer = check_buffer(k, call.word(k, 0), frame)?;
    call.commit(k);
    invoke_set_buffer(k, call, tcb, buffer)?;
    Ok(())
}

/// TCB_SetSyscallRing. An entry of a ring cannot set its own.
pub fn decode_set_syscall_ring(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<(), Stop> {
    let (frame, signalled) = (call.extra(0)?, call.extra(1)?);
    if matches!(call.origin, Origin::Ring(_)) && tcb == call.caller {
        return Err(Refusal::IllegalOperation.into());
    }
    let ring = check_optional(k, frame, 1, |cap| {
        cap.is(Kind::Frame) && !cap.is_device() && cap.vm_rights() == VmRights::ReadWrite
    })?;
    let signalled = check_optional(k, signalled, 2, |cap| notification::signallable(cap).is_some())?;
    call.commit(k);
    syscall_ring::reset(k, tcb);
    for (slot, root) in [(Slot::SyscallRing, ring), (Slot::RingNotification, signalled)] {
        delete::delete(k, tcb.slot(slot))?;
        if let Some(root) = root {
            install(k, call, tcb, slot, root);
        }
    }
    Ok(())
}

/// A capability that may be null, and must else be `good`; `number` is its own, for the error.
fn check_optional(
    k: &Kernel,
    source: Ref<Cte>,
    number: u64,
    good: impl FnOnce(Cap) -> bool,
) -> Result<Option<Root>, Refusal> {
    let cap = k.derive(source, k.cap(source))?;
    match cap.is_null() {
        true => Ok(None),
        false if good(cap) => Ok(Some(Root { cap, source })),
        false => Err(Refusal::InvalidCapability(number)),
    }
}

fn check_buffer(k: &Kernel, address: u64, source: Ref<Cte>) -> Result<NewBuffer, Refusal> {
    if address == 0 {
        return Ok(NewBuffer { address, frame: None });
    }
    let cap = k.derive(source, k.cap(source))?;
    if !cap.is(Kind::Frame) || cap.is_device() {
        return Err(Refusal::IllegalOperation);
    }
    if !address.is_multiple_of(1 << ipc_buffer::SIZE_BITS) {
        return Err(Refusal::Alignment);
    }
    Ok(NewBuffer { address, frame: Some(Root { cap, source }) })
}

fn check_space(
    k: &Kernel,
    call: &Invocation,
    tcb: Ref<Tcb>,
    cspace: Ref<Cte>,
    vspace: Ref<Cte>,
) -> Result<Space, Refusal> {
    let fault_handler = call.word(k, 0);
    if k.deletes_long(tcb.slot(Slot::CSpace)) || k.deletes_long(tcb.slot(Slot::VSpace)) {
        return Err(Refusal::IllegalOperation);
    }
    let root = |source: Ref<Cte>, data: u64| {
        let cap = k.cap(source);
        let cap = if data == 0 { cap } else { cap.with_data(false, data) };
        Ok(Root { cap: k.derive(source, cap)?, source })
    };
    let cspace = root(cspace, call.word(k, 1))?;
    if !cspace.cap.is(Kind::CNode) {
        return Err(Refusal::IllegalOperation);
    }
    let vspace = root(vspace, call.word(k, 2))?;
    if !vspace.cap.is_mapped_table() {
        return Err(Refusal::IllegalOperation);
    }
    Ok(Space { fault_handler, cspace, vspace })
}

/// Puts a capability into a slot of the TCB that has just been emptied. Emptying it may have deleted the source or the invoked
/// capability; then there is nothing to put in.
fn install(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>, slot: Slot, root: Root) {
    let same_source = crate::object::mdb::same_object(root.cap, k.cap(root.source));
    let alive = k.cap(call.slot).object::<Tcb>() == Some(tcb);
    if same_source && alive {
        k.insert(root.cap, root.source, tcb.slot(slot));
    }
}

fn invoke_set_space(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>, space: Space) -> Result<(), Preempted> {
    k.get_mut(tcb).fault_handler = space.fault_handler;
    delete::delete(k, tcb.slot(Slot::CSpace))?;
    install(k, call, tcb, Slot::CSpace, space.cspace);
    delete::delete(k, tcb.slot(Slot::VSpace))?;
    install(k, call, tcb, Slot::VSpace, space.vspace);
    if tcb == k.current() {
        vspace::enter(k, tcb);
    }
    Ok(())
}

fn invoke_set_buffer(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>, buffer: NewBuffer) -> Result<(), Preempted> {
    delete::delete(k, tcb.slot(Slot::Buffer))?;
    k.get_mut(tcb).buffer_address = buffer.address;
    if let Some(frame) = buffer.frame {
        install(k, call, tcb, Slot::Buffer, frame);
    }
    if tcb == k.current() {
        sched::reschedule_required(k);
    }
    Ok(())
}
