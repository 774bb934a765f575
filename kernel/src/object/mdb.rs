//! The derivation tree (seL4: mapping database): one doubly linked list of slots per family, in depth-first order, and two bits
//! per slot from which parenthood is decided.
//!
//! Slot A is the parent of a later slot B if A is *revocable*, B's capability lies in the region of A's, and, where A is a badged
//! endpoint or notification, B has the same badge and is not *first badged*.
//!
//! Our addition: entries of sender tables are capabilities too. They follow the notification capability they were made from
//! directly, as a run that copies of that capability do not split; so deleting a slot finds its entries behind it.

use super::cap::{Cap, Cte, Kind};
use crate::api::error::Refusal;
use crate::mem::{Kva, Ref};
use crate::state::Kernel;

/// Links and bits of a slot: `next` carries the bits in its low end, since slots are 32-byte aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Mdb {
    prev: u64,
    next: u64,
}

const REVOCABLE: u64 = 2;
const FIRST_BADGED: u64 = 1;
const BITS: u64 = 31;

fn link(word: u64) -> Option<Ref<Cte>> {
    let address = word & !BITS;
    // SAFETY: links are written from names of slots only, and cut before the slot's memory is used otherwise.
    (address != 0).then(|| unsafe { Ref::assume(Kva(address)) })
}

fn word(slot: Option<Ref<Cte>>) -> u64 {
    slot.map_or(0, Ref::word)
}

impl Mdb {
    /// A slot without relatives, as boot makes them: revocable and first badged.
    pub const ALONE: Self = Self { prev: 0, next: REVOCABLE | FIRST_BADGED };

    /// A slot between `prev` and `next`.
    pub fn new(prev: Option<Ref<Cte>>, next: Option<Ref<Cte>>, revocable: bool, first_badged: bool) -> Self {
        let bits = if revocable { REVOCABLE } else { 0 } | if first_badged { FIRST_BADGED } else { 0 };
        Self { prev: word(prev), next: word(next) | bits }
    }
    /// The slot before.
    pub fn prev(self) -> Option<Ref<Cte>> {
        link(self.prev)
    }
    /// The slot behind.
    pub fn next(self) -> Option<Ref<Cte>> {
        link(self.next)
    }
    /// Whether descendants may follow.
    pub const fn revocable(self) -> bool {
        self.next & REVOCABLE != 0
    }
    /// Whether it does not descend from an equally badged one.
    pub const fn first_badged(self) -> bool {
        self.next & FIRST_BADGED != 0
    }
    fn set_prev(&mut self, slot: Option<Ref<Cte>>) {
        self.prev = word(slot);
    }
    fn set_next(&mut self, slot: Option<Ref<Cte>>) {
        self.next = word(slot) | self.next & BITS;
    }
    fn add_first_badged(&mut self, first_badged: bool) {
        self.next |= u64::from(first_badged) * FIRST_BADGED;
    }
}

fn inside(outer: Cap, inner: Cap) -> bool {
    let (Some((outer, outer_bits)), Some((inner, inner_bits))) = (outer.region(), inner.region()) else { return false };
    // Physical addresses: kernel addresses of devices wrap.
    let (outer, inner) = (outer.paddr().0, inner.paddr().0);
    outer <= inner && inner - outer + ((1 << inner_bits) - 1) < 1 << outer_bits
}

/// Whether `b` lies in the region of `a` (seL4 `sameRegionAs`).
pub fn same_region(a: Cap, b: Cap) -> bool {
    match a.kind() {
        Kind::Untyped => inside(a, b),
        Kind::Frame => b.is(Kind::Frame) && inside(a, b),
        Kind::Notification => (b.is(Kind::Notification) || b.is(Kind::SenderEntry)) && a.address() == b.address(),
        Kind::Endpoint | Kind::Tcb | Kind::PageTable | Kind::AsidPool | Kind::SenderTable | Kind::Reply => {
            b.is(a.kind()) && a.address() == b.address()
        }
        Kind::CNode => b.is(Kind::CNode) && a.address() == b.address() && a.radix() == b.radix(),
        Kind::Domain | Kind::AsidControl => b.is(a.kind()),
        Kind::IrqControl => b.is(Kind::IrqControl) || b.is(Kind::IrqHandler),
        Kind::IrqHandler => b.is(Kind::IrqHandler) && a.irq() == b.irq(),
        Kind::Null | Kind::Zombie | Kind::SenderEntry => false,
    }
}

/// Whether `a` and `b` name one object (seL4 `sameObjectAs`).
pub fn same_object(a: Cap, b: Cap) -> bool {
    match a.kind() {
        Kind::Untyped | Kind::IrqControl => false,
        Kind::Frame => {
            b.is(Kind::Frame)
                && a.address() == b.address()
                && a.frame_size() == b.frame_size()
                && a.is_device() == b.is_device()
        }
        Kind::Notification => b.is(Kind::Notification) && a.address() == b.address(),
        _ => same_region(a, b),
    }
}

/// Whether slot contents `a` are the parent of `b`, which follows it (seL4 `isMDBParentOf`).
pub fn is_parent(a: &Cte, b: &Cte) -> bool {
    if !a.mdb.revocable() || !same_region(a.cap, b.cap) {
        return false;
    }
    match a.cap.kind() {
        Kind::Endpoint | Kind::Notification => {
            a.cap.badge() == 0 || a.cap.badge() == b.cap.badge() && !b.mdb.first_badged()
        }
        _ => true,
    }
}

/// Whether a copy of `parent` that becomes `new` may have descendants of its own (seL4 `isCapRevocable`).
fn is_revocable(new: Cap, parent: Cap) -> bool {
    match new.kind() {
        Kind::Endpoint | Kind::Notification => new.badge() != parent.badge(),
        Kind::IrqHandler => parent.is(Kind::IrqControl),
        Kind::Untyped => true,
        _ => false,
    }
}

impl Kernel {
    /// The slot's capability.
    #[inline(always)]
    pub fn cap(&self, slot: Ref<Cte>) -> Cap {
        self.get(slot).cap
    }

    /// Puts a capability in an empty slot, between `prev` and what follows it.
    fn link_after(&mut self, prev: Ref<Cte>, slot: Ref<Cte>, cap: Cap, revocable: bool, first_badged: bool) {
        debug_assert!(self.cap(slot).is_null());
        let next = self.get(prev).mdb.next();
        *self.get_mut(slot) = Cte { cap, mdb: Mdb::new(Some(prev), next, revocable, first_badged) };
        self.get_mut(prev).mdb.set_next(Some(slot));
        if let Some(next) = next {
            self.get_mut(next).mdb.set_prev(Some(slot));
        }
    }

    /// The last slot of the run of sender-table entries that were made from `slot`, or `slot` itself.
    fn end_of_entries(&self, slot: Ref<Cte>) -> Ref<Cte> {
        let mut end = slot;
        if self.cap(slot).is(Kind::Notification) {
            while let Some(next) = self.get(end).mdb.next().filter(|&next| self.cap(next).is(Kind::SenderEntry)) {
                end = next;
            }
        }
        end
    }

    /// Copies: `cap`, derived from the one in `source`, goes to the empty slot `slot` (seL4 `cteInsert`).
    pub fn insert(&mut self, cap: Cap, source: Ref<Cte>, slot: Ref<Cte>) {
        let parent = self.cap(source);
        let revocable = is_revocable(cap, parent);
        if cap.is(Kind::Untyped) && parent.is(Kind::Untyped) {
            // Only the copy can be used while it exists.
            self.get_mut(source).cap = parent.with_untyped_free(1 << parent.untyped_bits());
        }
        let place = self.end_of_entries(source);
        self.link_after(place, slot, cap, revocable, revocable);
    }

    /// A capability to a new object goes to `slot`, a child of the one in `parent` (seL4 `insertNewCap`).
    pub fn insert_new(&mut self, cap: Cap, parent: Ref<Cte>, slot: Ref<Cte>) {
        self.link_after(parent, slot, cap, true, true);
    }

    /// As `insert_new`, but without descendants of its own: ASID pools and entries of sender tables.
    pub fn insert_leaf(&mut self, cap: Cap, parent: Ref<Cte>, slot: Ref<Cte>) {
        self.link_after(parent, slot, cap, false, false);
    }

    /// Moves the capability, as `cap`, from `source` to the empty slot `slot` (seL4 `cteMove`).
    pub fn move_cap(&mut self, cap: Cap, source: Ref<Cte>, slot: Ref<Cte>) {
        debug_assert!(self.cap(slot).is_null());
        let mdb = core::mem::take(self.get_mut(source)).mdb;
        *self.get_mut(slot) = Cte { cap, mdb };
        self.relink(slot);
    }

    /// Exchanges two slots: `first` gets `second_cap`, and the other way round (seL4 `cteSwap`).
    pub fn swap_caps(&mut self, first_cap: Cap, first: Ref<Cte>, second_cap: Cap, second: Ref<Cte>) {
        let mut first_mdb = self.get(first).mdb;
        let mut second_mdb = self.get(second).mdb;
        // Neighbours: a link to the other one becomes a link to its new place.
        let moved = |slot: Option<Ref<Cte>>| match slot {
            Some(slot) if slot == first => Some(second),
            Some(slot) if slot == second => Some(first),
            other => other,
        };
        for mdb in [&mut first_mdb, &mut second_mdb] {
            let (prev, next) = (moved(mdb.prev()), moved(mdb.next()));
            mdb.set_prev(prev);
            mdb.set_next(next);
        }
        *self.get_mut(first) = Cte { cap: second_cap, mdb: second_mdb };
        *self.get_mut(second) = Cte { cap: first_cap, mdb: first_mdb };
        self.relink(first);
        self.relink(second);
    }

    /// Tells the neighbours of `slot` where it is.
    fn relink(&mut self, slot: Ref<Cte>) {
        let mdb = self.get(slot).mdb;
        if let Some(prev) = mdb.prev() {
            self.get_mut(prev).mdb.set_next(Some(slot));
        }
        if let Some(next) = mdb.next() {
            self.get_mut(next).mdb.set_prev(Some(slot));
        }
    }

    /// Empties a slot.
    pub fn unlink(&mut self, slot: Ref<Cte>) {
        let mdb = core::mem::take(self.get_mut(slot)).mdb;
        if let Some(prev) = mdb.prev() {
            self.get_mut(prev).mdb.set_next(mdb.next());
        }
        if let Some(next) = mdb.next() {
            let next = &mut self.get_mut(next).mdb;
            next.set_prev(mdb.prev());
            next.add_first_badged(mdb.first_badged());
        }
    }

    /// The slot behind, if it descends from `slot`.
    pub fn first_child(&self, slot: Ref<Cte>) -> Option<Ref<Cte>> {
        let parent = self.get(slot);
        parent.mdb.next().filter(|&next| is_parent(parent, self.get(next)))
    }

    /// RevokeFirst if the capability has descendants (seL4 `ensureNoChildren`).
    pub fn ensure_no_children(&self, slot: Ref<Cte>) -> Result<(), Refusal> {
        self.first_child(slot).map_or(Ok(()), |_| Err(Refusal::RevokeFirst))
    }

    /// DeleteFirst if the slot is in use (seL4 `ensureEmptySlot`).
    pub fn ensure_empty(&self, slot: Ref<Cte>) -> Result<(), Refusal> {
        if self.cap(slot).is_null() { Ok(()) } else { Err(Refusal::DeleteFirst) }
    }

    /// Whether no other slot names the object (seL4 `isFinalCapability`).
    pub fn is_final(&self, slot: Ref<Cte>) -> bool {
        let Cte { cap, mdb } = *self.get(slot);
        let mut prev = mdb.prev();
        while let Some(entry) = prev.filter(|&prev| self.cap(prev).is(Kind::SenderEntry)) {
            prev = self.get(entry).mdb.prev();
        }
        let next = self.get(self.end_of_entries(slot)).mdb.next();
        let same = |other: Option<Ref<Cte>>| other.is_some_and(|other| same_object(self.cap(other), cap));
        !same(prev) && !same(next)
    }

    /// Whether deleting the capability would be a long operation (seL4 `slotCapLongRunningDelete`).
    pub fn deletes_long(&self, slot: Ref<Cte>) -> bool {
        matches!(self.cap(slot).kind(), Kind::Tcb | Kind::Zombie | Kind::CNode) && self.is_final(slot)
    }

    /// What a copy of `cap`, which lies in `slot`, is (seL4 `deriveCap`). Null: it cannot be copied.
    pub fn derive(&self, slot: Ref<Cte>, cap: Cap) -> Result<Cap, Refusal> {
        Ok(match cap.kind() {
            Kind::Zombie | Kind::IrqControl | Kind::Reply | Kind::SenderEntry => Cap::NULL,
            Kind::Untyped => {
                self.ensure_no_children(slot)?;
                cap
            }
            Kind::Frame => cap.unmapped(),
            Kind::PageTable if !cap.is_mapped_table() => return Err(Refusal::IllegalOperation),
            Kind::SenderTable => cap.uninstalled(),
            _ => cap,
        })
    }
}
