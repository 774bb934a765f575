//! The derivation tree: families are whole and in order, and who is the last capability to an object can be told from neighbours.

use super::survey::{Mark, Survey};
use crate::mem::Ref;
use crate::object::cap::{Cap, Cte, Kind};
use crate::object::mdb::{is_parent, same_object};
use crate::object::tcb::{Slot, ThreadState};
use crate::state::Kernel;

/// Checks all families.
pub fn check(k: &Kernel, survey: &mut Survey) {
    let mut linked = 0;
    for index in 0..survey.len() {
        let slot = survey.slot(index);
        check_links(k, slot);
        check_block(k, slot);
        if k.get(slot).mdb.prev().is_none() {
            linked += check_family(k, survey, slot);
        }
    }
    assert_eq!(linked, survey.len(), "slots that no family leads to");
}

fn check_links(k: &Kernel, slot: Ref<Cte>) {
    let mdb = k.get(slot).mdb;
    if let Some(prev) = mdb.prev() {
        assert_eq!(k.get(prev).mdb.next(), Some(slot), "the slot before {slot:?} does not know it");
    }
    if let Some(next) = mdb.next() {
        assert_eq!(k.get(next).mdb.prev(), Some(slot), "the slot behind {slot:?} does not know it");
    }
}

/// Walks a family from its first slot; gives its size. All capabilities to an object stand together, sender-table entries aside: so
/// the neighbours tell who is the last (`is_final`).
fn check_family(k: &Kernel, survey: &mut Survey, first: Ref<Cte>) -> usize {
    let (mut last, mut next, mut count) = (Cap::NULL, Some(first), 0);
    while let Some(slot) = next {
        let Cte { cap, mdb } = *k.get(slot);
        assert!(survey.set(slot.word(), Mark::Linked, 0), "{slot:?} is in two families");
        if !cap.is(Kind::SenderEntry) {
            if let Some(name) = name(cap).filter(|_| !same_object(last, cap)) {
                assert!(survey.set(name, Mark::Named, 0), "capabilities to one object stand apart: {slot:?} {cap:?}");
            }
            last = cap;
        }
        (next, count) = (mdb.next(), count + 1);
    }
    count
}

/// Object and type in one word, for types whose objects are counted by their capabilities.
fn name(cap: Cap) -> Option<u64> {
    let detail = match cap.kind() {
        Kind::Null | Kind::Untyped | Kind::Zombie | Kind::SenderEntry | Kind::IrqControl => return None,
        Kind::IrqHandler => cap.irq() as u64,
        Kind::Frame => cap.frame_size() as u64,
        _ => 0,
    };
    // Kernel addresses have all ones in the upper bits.
    Some(cap.address().0 ^ (cap.kind() as u64) << 58 ^ detail << 48)
}

/// A reply capability and the thread to which it leads.
pub fn check_reply(k: &Kernel, slot: Ref<Cte>, cap: Cap) {
    let caller = cap.reply_caller();
    if cap.reply_master() {
        assert_eq!(slot, caller.slot(Slot::Reply), "a reply master outside its thread");
    } else {
        assert_eq!(k.get(caller).state, ThreadState::BlockedOnReply, "a reply capability to nobody who waits");
        assert_eq!(k.get(slot).mdb.prev(), Some(caller.slot(Slot::Reply)), "two reply capabilities to one thread");
    }
}

/// What was made from a block of untyped memory lies below its free index, and no two objects overlap. Later objects come first in the
/// family, each followed by its copies and descendants.
fn check_block(k: &Kernel, slot: Ref<Cte>) {
    let block = k.get(slot);
    if !block.cap.is(Kind::Untyped) {
        return;
    }
    let (start, free) = (block.cap.paddr().0, block.cap.untyped_free());
    assert!(free <= 1 << block.cap.untyped_bits(), "free index outside its block");
    let (mut next, mut above) = (block.mdb.next(), None);
    while let Some(child) = next.filter(|&child| is_parent(block, k.get(child))) {
        let cap = k.cap(child);
        if let Some((address, bits)) = cap.region() {
            let (first, end) = (address.paddr().0, address.paddr().0 + (1u64 << bits));
            assert!(end - start <= free, "an object above the free index: {cap:?} in {:?}", block.cap);
            match above {
                Some((low, high)) if first >= low && end <= high => {}
                Some((low, _)) => {
                    assert!(end <= low, "objects overlap: {cap:?} in {:?}", block.cap);
                    above = Some((first, end));
                }
                None => above = Some((first, end)),
            }
        }
        next = k.get(child).mdb.next();
    }
}
