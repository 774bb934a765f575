//! Page-table invocations.

use abi::label::Label;
use abi::object::USER_TOP;

use super::{LEVELS, PageTable, check_root, find_root, unmap_table, walk};
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::sv39::Pte;
use crate::arch::{Arch, sv39};
use crate::mem::Ref;
use crate::state::Kernel;

/// RISCVPageTable_Map and Unmap.
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    let Some(table) = call.cap.object::<PageTable>() else { return Err(Refusal::IllegalOperation.into()) };
    match call.label(k) {
        Some(Label::RISCVPageTableMap) => decode_map(k, call, table)?,
        Some(Label::RISCVPageTableUnmap) => decode_unmap(k, call, table)?,
        _ => return Err(Refusal::IllegalOperation.into()),
    }
    Ok(Answer::Empty)
}

fn decode_map(k: &mut Kernel, call: &Invocation, table: Ref<PageTable>) -> Result<(), Stop> {
    call.need(2)?;
    let space = k.cap(call.extra(0)?);
    if call.cap.is_mapped_table() {
        return Err(Refusal::InvalidCapability(0).into());
    }
    if !space.is_mapped_table() {
        return Err(Refusal::InvalidCapability(1).into());
    }
    let vaddr = call.word(k, 0);
    if vaddr >= USER_TOP {
        return Err(Refusal::InvalidArgument(0).into());
    }
    let (root, asid) = check_root(k, space)?;
    let place = walk(k, root, vaddr);
    if place.level + 1 == LEVELS || place.entry(k).is_valid() {
        return Err(Refusal::DeleteFirst.into());
    }
    call.commit(k);
    let start = vaddr >> place.bits() << place.bits();
    k.get_mut(call.slot).cap = call.cap.mapped_at(asid, start);
    place.set(k, Pte::table(table.kva().paddr().0));
    k.arch.fence_space(asid);
    Ok(())
}

fn decode_unmap(k: &mut Kernel, call: &Invocation, table: Ref<PageTable>) -> Result<(), Stop> {
    if !k.is_final(call.slot) {
        return Err(Refusal::RevokeFirst.into());
    }
    let mapped = call.cap.is_mapped_table();
    if mapped && find_root(k, call.cap.mapped_asid()).ok() == Some(table) {
        return Err(Refusal::RevokeFirst.into());
    }
    call.commit(k);
    if mapped {
        unmap_table(k, call.cap);
        k.get_mut(table).0 = [Pte::EMPTY; sv39::ENTRIES];
    }
    k.get_mut(call.slot).cap = call.cap.unmapped();
    Ok(())
}
