//! Capability addresses: from a root and an address of so many bits to a slot (manual, chapter "Capability Spaces").

use abi::error::LookupFailure;

use crate::api::error::Refusal;
use crate::mem::Ref;
use crate::object::cap::{Cap, Cte, Kind};
use crate::object::tcb::{Slot, Tcb};
use crate::state::Kernel;

const WORD_BITS: u64 = 64;

/// Resolves `bits` bits of `cptr` from `root`: the slot, and how many bits were left when the walk met a capability that is no CNode
/// (seL4 `resolveAddressBits`).
pub fn resolve(k: &Kernel, root: Cap, cptr: u64, bits: u64) -> Result<(Ref<Cte>, u64), LookupFailure> {
    if !root.is(Kind::CNode) {
        return Err(LookupFailure::InvalidRoot);
    }
    let mut node = root;
    let mut left = bits;
    loop {
        let (radix, size) = (node.radix() as u64, node.guard_size() as u64);
        let guard = cptr >> (left.wrapping_sub(size) & 63) & ((1 << size) - 1);
        if size > left || guard != node.guard() {
            return Err(LookupFailure::GuardMismatch { bits_left: left, guard_found: node.guard(), bits_found: size });
        }
        let level = size + radix;
        if level > left {
            return Err(LookupFailure::DepthMismatch { bits_left: left, bits_found: level });
        }
        left -= level;
        let slot = node.slot((cptr >> left) as usize & ((1 << radix) - 1));
        if left == 0 {
            return Ok((slot, 0));
        }
        node = k.cap(slot);
        if !node.is(Kind::CNode) {
            return Ok((slot, left));
        }
    }
}

/// The slot at `cptr` in the CSpace of `thread`, whatever bits are left (seL4 `lookupSlot`).
pub fn lookup_slot(k: &Kernel, thread: Ref<Tcb>, cptr: u64) -> Result<Ref<Cte>, LookupFailure> {
    resolve(k, k.get(thread).cap(Slot::CSpace), cptr, WORD_BITS).map(|(slot, _)| slot)
}

/// A slot argument: exactly `depth` bits of `index` in the CNode `root` (seL4 `lookupSlotForCNodeOp`).
pub fn lookup_argument(k: &Kernel, source: bool, root: Cap, index: u64, depth: u64) -> Result<Ref<Cte>, Refusal> {
    let failed = |failure| Refusal::FailedLookup(source, failure);
    if !root.is(Kind::CNode) {
        return Err(failed(LookupFailure::InvalidRoot));
    }
    if !(1..=WORD_BITS).contains(&depth) {
        return Err(Refusal::Range(1, WORD_BITS));
    }
    match resolve(k, root, index, depth).map_err(failed)? {
        (slot, 0) => Ok(slot),
        (_, left) => Err(failed(LookupFailure::DepthMismatch { bits_left: left, bits_found: 0 })),
    }
}
