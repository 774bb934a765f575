//! ASID control and ASID pools.

use abi::error::LookupFailure;
use abi::label::Label;
use abi::object::bits;

use super::{AsidPool, POOL_ASIDS, PageTable, enter, find_root};
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::{Arch, sv39};
use crate::mem::Ref;
use crate::object::cap::{Cap, Kind};
use crate::state::Kernel;

/// RISCVASIDControl_MakePool.
pub fn decode_control(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    if call.label(k) != Some(Label::RISCVASIDControlMakePool) {
        return Err(Refusal::IllegalOperation.into());
    }
    call.need(2)?;
    let (source, root) = (call.extra(0)?, call.extra(1)?);
    let number = k.asid_pools.iter().position(Option::is_none).ok_or(Refusal::DeleteFirst)?;
    let block = k.cap(source);
    if !block.is(Kind::Untyped) || block.untyped_bits() != bits::ASID_POOL || block.is_device() {
        return Err(Refusal::InvalidCapability(1).into());
    }
    k.ensure_no_children(source)?;
    let slot = call.slot_argument(k, false, k.cap(root), call.word(k, 0), call.word(k, 1))?;
    k.ensure_empty(slot)?;
    call.commit(k);
    k.get_mut(source).cap = block.with_untyped_free(1 << bits::ASID_POOL);
    // SAFETY: the block has no children, so nothing lives in it; it becomes a pool that is all zero.
    let pool: Ref<AsidPool> = unsafe {
        k.zero(block.address(), 1 << bits::ASID_POOL);
        Ref::assume(block.address())
    };
    k.insert_leaf(Cap::asid_pool(pool, (number * POOL_ASIDS) as u16), source, slot);
    k.asid_pools[number] = Some(pool);
    Ok(Answer::Empty)
}

/// Where the search for a free ASID starts. Pools and page tables are pages, and most programs lie low in their address space: walks of
/// several spaces meet in the first lines of their tables, so in the first sets of a cache. Entries in use lie elsewhere.
const FIRST_INDEX: usize = POOL_ASIDS * 3 / 8;

/// A free index of a pool. ASID 0 is never assigned.
fn free_index(k: &Kernel, pool: Ref<AsidPool>, base: u16) -> Option<usize> {
    let free = |&index: &usize| k.get(pool).0[index].is_none() && (base != 0 || index != 0);
    (FIRST_INDEX..POOL_ASIDS).chain(0..FIRST_INDEX).find(free)
}

/// RISCVASIDPool_Assign.
pub fn decode_pool(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    if call.label(k) != Some(Label::RISCVASIDPoolAssign) {
        return Err(Refusal::IllegalOperation.into());
    }
    let slot = call.extra(0)?;
    let cap = k.cap(slot);
    let table = cap.object::<PageTable>().filter(|_| !cap.is_mapped_table()).ok_or(Refusal::InvalidCapability(1))?;
    let base = call.cap.asid_base();
    let pool =
        k.asid_pools[usize::from(base) / POOL_ASIDS].ok_or(Refusal::FailedLookup(false, LookupFailure::InvalidRoot))?;
    if call.cap.object() != Some(pool) {
        return Err(Refusal::InvalidCapability(0).into());
    }
    let index = free_index(k, pool, base).ok_or(Refusal::DeleteFirst)?;
    call.commit(k);
    assign(k, pool, base + index as u16, table);
    k.get_mut(slot).cap = cap.mapped_at(base + index as u16, 0);
    Ok(Answer::Empty)
}

/// Makes `table` the root of the address space `asid`, which is in `pool`.
pub fn assign(k: &mut Kernel, pool: Ref<AsidPool>, asid: u16, table: Ref<PageTable>) {
    let half = k.arch.kernel_half();
    k.get_mut(table).0[sv39::KERNEL_HALF..].copy_from_slice(&half);
    k.get_mut(pool).0[usize::from(asid) % POOL_ASIDS] = Some(table);
}

/// The root table of `asid` goes away (seL4 `deleteASID`).
pub fn release(k: &mut Kernel, asid: u16) {
    let Some(pool) = k.asid_pools[usize::from(asid) / POOL_ASIDS] else { return };
    debug_assert!(find_root(k, asid).is_ok());
    k.get_mut(pool).0[usize::from(asid) % POOL_ASIDS] = None;
    k.arch.evict_space(asid);
    k.count_costly_work();
    let current = k.current();
    enter(k, current);
}
