//! No capability is ever amplified: what exists after a kernel entry follows from what existed before it.
//!
//! Deliberately apart from `Kernel::derive` and the derivation tree: it knows only what the manual says one capability may become.

use std::collections::HashSet;

use crate::invariants::Survey;
use crate::mem::Ref;
use crate::object::cap::{Cap, Cte, Kind, VmRights};
use crate::object::tcb::{Tcb, ThreadState};
use crate::state::Kernel;

/// All capabilities, at some time.
pub struct Authority {
    caps: Vec<Cap>,
}

impl Authority {
    /// Those that `survey` found last.
    pub fn of(k: &Kernel, survey: &Survey) -> Self {
        let slots = (0..survey.len()).map(|index| survey.slot(index));
        let unique: HashSet<[u64; 2]> = slots.map(|slot: Ref<Cte>| words(k.cap(slot))).collect();
        let mut caps: Vec<Cap> = (0..survey.len()).map(|index| k.cap(survey.slot(index))).collect();
        caps.sort_by_key(|&cap| words(cap));
        caps.dedup();
        assert_eq!(caps.len(), unique.len());
        Self { caps }
    }

    /// Checks that every capability of `after` follows from those here.
    pub fn check(&self, k: &Kernel, after: &Authority) {
        for &cap in &after.caps {
            let known = self.caps.binary_search_by_key(&words(cap), |&old| words(old)).is_ok();
            // A new object comes out of untyped memory; one that existed does not.
            let new = !self.caps.iter().any(|old| old.kind() == cap.kind() && old.address() == cap.address());
            assert!(known || self.caps.iter().any(|&old| follows(k, old, cap, new)), "out of nothing: {cap:?}");
        }
    }
}

fn words(cap: Cap) -> [u64; 2] {
    cap.words()
}

fn strength(rights: VmRights) -> u8 {
    match rights {
        VmRights::KernelOnly => 0,
        VmRights::ReadOnly => 1,
        VmRights::ReadWrite => 2,
    }
}

/// Whether whoever has `old` may come to have `new`; `fresh`: its object did not exist.
fn follows(k: &Kernel, old: Cap, new: Cap, fresh: bool) -> bool {
    let same = old.kind() == new.kind() && old.address() == new.address();
    let from_block = old.is(Kind::Untyped) && inside(old, new) && (!old.is_device() || device(new));
    let made = fresh && from_block;
    match new.kind() {
        // From an unbadged one with at least these rights, or from one with this badge.
        Kind::Endpoint | Kind::Notification => {
            let weaker = old.rights().contains(new.rights());
            made || same && weaker && (old.badge() == 0 || old.badge() == new.badge())
        }
        Kind::Frame => {
            made || same
                && old.frame_size() == new.frame_size()
                && strength(old.vm_rights()) >= strength(new.vm_rights())
        }
        Kind::Untyped => from_block,
        Kind::CNode => made || same && old.radix() == new.radix(),
        Kind::Tcb | Kind::PageTable | Kind::AsidPool | Kind::SenderTable => made || same,
        Kind::Zombie => old.address() == new.address(),
        Kind::IrqHandler => old.is(Kind::IrqControl) || same && old.irq() == new.irq(),
        // A thread that waits for a reply, and the master in its TCB.
        Kind::Reply => {
            let caller: Ref<Tcb> = new.reply_caller();
            let waits = new.reply_master() || k.get(caller).state == ThreadState::BlockedOnReply;
            waits && matches!(old.kind(), Kind::Tcb | Kind::Reply) && old.address() == new.address()
        }
        Kind::SenderEntry => old.is(Kind::Notification) && old.address() == new.address() && old.badge() == new.badge(),
        Kind::Null | Kind::AsidControl | Kind::IrqControl | Kind::Domain => same,
    }
}

fn device(cap: Cap) -> bool {
    matches!(cap.kind(), Kind::Untyped | Kind::Frame) && cap.is_device()
}

fn inside(block: Cap, cap: Cap) -> bool {
    let Some((address, bits)) = cap.region() else { return false };
    let (start, object) = (block.paddr().0, address.paddr().0);
    object >= start && object + (1 << bits) <= start + (1 << block.untyped_bits())
}

#[test]
#[should_panic(expected = "out of nothing")]
fn a_right_more_is_noticed() {
    let mut w = super::world::World::new();
    let endpoint = w.make(abi::object::ENDPOINT, 0);
    let weak = w.copy(endpoint, abi::rights::Rights::READ);
    w.delete(endpoint);
    let slot = w.slot(weak);
    let strong = Cap::endpoint(w.object(weak), abi::rights::Rights::ALL, 0);
    w.k.get_mut(slot).cap = strong;
    w.check_step();
}
