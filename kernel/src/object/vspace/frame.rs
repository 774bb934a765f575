//! Frame invocations.

use abi::error::LookupFailure;
use abi::label::Label;
use abi::object::USER_TOP;
use abi::rights::Rights;

use super::{check_root, unmap_frame, walk};
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::Arch;
use crate::arch::sv39::{self, Pte};
use crate::object::cap::VmRights;
use crate::state::Kernel;

/// Attribute bit: no instruction fetch (`seL4_RISCV_ExecuteNever`).
const EXECUTE_NEVER: u64 = 1;

/// RISCVPage_Map, Unmap, GetAddress.
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    match call.label(k) {
        Some(Label::RISCVPageMap) => decode_map(k, call)?,
        Some(Label::RISCVPageUnmap) => {
            call.commit(k);
            unmap_frame(k, call.cap);
            k.get_mut(call.slot).cap = call.cap.unmapped();
        }
        Some(Label::RISCVPageGetAddress) => {
            call.commit(k);
            return Ok(Answer::word(call.cap.paddr().0));
        }
        _ => return Err(Refusal::IllegalOperation.into()),
    }
    Ok(Answer::Empty)
}

fn decode_map(k: &mut Kernel, call: &Invocation) -> Result<(), Stop> {
    call.need(3)?;
    let (root, asid) = check_root(k, k.cap(call.extra(0)?))?;
    let (vaddr, rights, attributes) = (call.word(k, 0), call.word(k, 1), call.word(k, 2));
    let size = call.cap.frame_size().bits();
    if vaddr.checked_add((1 << size) - 1).is_none_or(|last| last >= USER_TOP) {
        return Err(Refusal::InvalidArgument(0).into());
    }
    if !vaddr.is_multiple_of(1 << size) {
        return Err(Refusal::Alignment.into());
    }
    let place = walk(k, root, vaddr);
    if place.bits() != size {
        let failure = LookupFailure::MissingCapability { bits_left: place.bits() as u64 };
        return Err(Refusal::FailedLookup(false, failure).into());
    }
    match call.cap.mapped_asid() {
        0 if place.entry(k).is_valid() => return Err(Refusal::DeleteFirst.into()),
        0 => {}
        mapped if mapped != asid => return Err(Refusal::InvalidCapability(1).into()),
        _ if call.cap.mapped_address() != vaddr => return Err(Refusal::InvalidArgument(0).into()),
        _ => {}
    }
    let allowed = call.cap.vm_rights().mask(Rights(rights));
    let execute = attributes & EXECUTE_NEVER == 0;
    let rights = sv39::Rights { read: allowed != VmRights::KernelOnly, write: allowed == VmRights::ReadWrite, execute };
    call.commit(k);
    k.get_mut(call.slot).cap = call.cap.mapped_at(asid, vaddr);
    place.set(k, Pte::user(call.cap.paddr().0, rights));
    k.arch.fence_page(asid, vaddr);
    if execute {
        k.arch.code_changed();
    }
    Ok(())
}
