//! CNode invocations: what is done with slots.

use abi::label::Label;
use abi::rights::Rights;

use super::cap::{Cap, Cte, Kind};
use super::tcb::Slot;
use super::{delete, endpoint};
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::mem::Ref;
use crate::state::Kernel;

/// CNode invocations (seL4 `decodeCNodeInvocation`).
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    let label = call
        .label(k)
        .filter(|label| (Label::CNodeRevoke..=Label::CNodeSaveCaller).contains(label))
        .ok_or(Refusal::IllegalOperation)?;
    call.need(2)?;
    let slot = call.slot_argument(k, false, call.cap, call.word(k, 0), call.word(k, 1))?;
    match label {
        Label::CNodeRevoke => {
            call.commit(k);
            delete::revoke(k, slot)?;
        }
        Label::CNodeDelete => {
            call.commit(k);
            delete::delete(k, slot)?;
        }
        Label::CNodeCancelBadgedSends => {
            let cap = k.cap(slot);
            let endpoint = cap
                .object::<endpoint::Endpoint>()
                .filter(|_| cap.rights().contains(Rights::ALL))
                .ok_or(Refusal::IllegalOperation)?;
            call.commit(k);
            if cap.badge() != 0 {
                endpoint::cancel_badged_sends(k, call, endpoint, cap.badge())?;
            }
        }
        Label::CNodeSaveCaller => {
            k.ensure_empty(slot)?;
            call.commit(k);
            save_caller(k, call, slot);
        }
        Label::CNodeRotate => decode_rotate(k, call, slot)?,
        _ => decode_transfer(k, call, label, slot)?,
    }
    Ok(Answer::Empty)
}

fn save_caller(k: &mut Kernel, call: &Invocation, slot: Ref<Cte>) {
    let source = call.caller.slot(Slot::Caller);
    let cap = k.cap(source);
    if cap.is(Kind::Reply) && !cap.reply_master() {
        k.move_cap(cap, source, slot);
    }
}

/// Copy, Mint, Move, Mutate.
fn decode_transfer(k: &mut Kernel, call: &Invocation, label: Label, slot: Ref<Cte>) -> Result<(), Stop> {
    call.need(4)?;
    let root = k.cap(call.extra(0)?);
    k.ensure_empty(slot)?;
    let depth = call.word(k, 3);
    let source = call.slot_argument(k, true, root, call.word(k, 2), depth)?;
    let cap = call.source_cap(k, true, source, depth)?;
    let legal = |cap: Cap| if cap.is_null() { Err(Refusal::IllegalOperation) } else { Ok(cap) };
    match label {
        Label::CNodeCopy => {
            call.need(5)?;
            let copy = legal(k.derive(source, cap.masked(Rights(call.word(k, 4))))?)?;
            call.commit(k);
            k.insert(copy, source, slot);
        }
        Label::CNodeMint => {
            call.need(6)?;
            let minted = cap.masked(Rights(call.word(k, 4))).with_data(false, call.word(k, 5));
            let copy = legal(k.derive(source, minted)?)?;
            call.commit(k);
            k.insert(copy, source, slot);
        }
        Label::CNodeMove => {
            call.commit(k);
            k.move_cap(cap, source, slot);
        }
        _ => {
            call.need(5)?;
            let mutated = legal(cap.with_data(true, call.word(k, 4)))?;
            call.commit(k);
            k.move_cap(mutated, source, slot);
        }
    }
    Ok(())
}

fn decode_rotate(k: &mut Kernel, call: &Invocation, slot: Ref<Cte>) -> Result<(), Stop> {
    call.need(8)?;
    let (pivot_root, source_root) = (k.cap(call.extra(0)?), k.cap(call.extra(1)?));
    let (pivot_data, source_data) = (call.word(k, 2), call.word(k, 5));
    let (pivot_depth, source_depth) = (call.word(k, 4), call.word(k, 7));
    let source = call.slot_argument(k, true, source_root, call.word(k, 6), source_depth)?;
    let pivot = call.slot_argument(k, true, pivot_root, call.word(k, 3), pivot_depth)?;
    if pivot == source || pivot == slot {
        return Err(Refusal::IllegalOperation.into());
    }
    if source != slot {
        k.ensure_empty(slot)?;
    }
    let source_cap = call.source_cap(k, true, source, source_depth)?;
    let pivot_cap = call.source_cap(k, false, pivot, pivot_depth)?;
    let new_source = source_cap.with_data(true, source_data);
    let new_pivot = pivot_cap.with_data(true, pivot_data);
    if new_source.is_null() || new_pivot.is_null() {
        return Err(Refusal::IllegalOperation.into());
    }
    call.commit(k);
    if source == slot {
        k.swap_caps(new_source, source, new_pivot, pivot);
    } else {
        k.move_cap(new_pivot, pivot, slot);
        k.move_cap(new_source, source, pivot);
    }
    Ok(())
}
