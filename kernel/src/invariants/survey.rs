//! What a check has seen: all slots in use, and a set of marks. Fixed memory, emptied by counting on.

use crate::mem::{Kva, Ref};
use crate::object::cap::{Cte, Kind};
use crate::object::tcb::SLOT_COUNT;
use crate::state::{IRQS, Kernel};

/// Most slots in use that a check can hold.
const SLOTS: usize = 8192;
const MARK_BITS: u32 = 15;

/// What an address is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Mark {
    /// A slot in use.
    Slot,
    /// A slot that a walk along a family has passed.
    Linked,
    /// An object whose capabilities have been passed; the address carries the type.
    Named,
    /// An existing thread.
    Thread,
    /// A thread in the queue of an object; the value is the object.
    Waiting,
    /// A thread in a ready queue.
    Ready,
    /// An entry of a page table that a capability accounts for; the value is what it allows.
    Mapped,
    /// A page table, or an object that has been looked at.
    Visited,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    value: u64,
    round: u64,
}

/// Memory of a check; large, to be kept.
pub struct Survey {
    round: u64,
    marks: [Entry; 1 << MARK_BITS],
    slots: [u64; SLOTS],
    count: usize,
}

impl Default for Survey {
    fn default() -> Self {
        Self::new()
    }
}

impl Survey {
    /// Good as the value of a static.
    pub const fn new() -> Self {
        Self { round: 0, marks: [Entry { key: 0, value: 0, round: 0 }; 1 << MARK_BITS], slots: [0; SLOTS], count: 0 }
    }

    /// Slots in use, at the last check.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Slot in use number `index`.
    pub fn slot(&self, index: usize) -> Ref<Cte> {
        // SAFETY: `push` stored the name of a slot.
        unsafe { Ref::assume(Kva(self.slots[index])) }
    }

    /// Where `key` is or would be.
    #[inline]
    fn place(&self, key: u64) -> usize {
        // Multiplicative hashing (Knuth, TAOCP 3, 6.4), then the next places in turn.
        let mut place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - MARK_BITS)) as usize;
        for _ in 0..self.marks.len() {
            let entry = &self.marks[place];
            if entry.round != self.round || entry.key == key {
                return place;
            }
            place = (place + 1) % self.marks.len();
        }
        panic!("more to mark than a check can hold");
    }

    /// Addresses are multiples of 8, and there are eight marks.
    #[inline]
    fn key(address: u64, mark: Mark) -> u64 {
        address ^ mark as u64
    }

    /// Marks an address with a value; gives whether it had no such mark.
    #[inline]
    pub fn set(&mut self, address: u64, mark: Mark, value: u64) -> bool {
        let key = Self::key(address, mark);
        let place = self.place(key);
        let entry = &mut self.marks[place];
        let fresh = entry.round != self.round;
        *entry = Entry { key, value, round: self.round };
        fresh
    }

    /// The value of an address's mark.
    #[inline]
    pub fn get(&self, address: u64, mark: Mark) -> Option<u64> {
        let entry = &self.marks[self.place(Self::key(address, mark))];
        (entry.round == self.round).then_some(entry.value)
    }

    /// Whether an address has a mark.
    #[inline]
    pub fn has(&self, address: u64, mark: Mark) -> bool {
        self.get(address, mark).is_some()
    }

    /// Notes a slot, if it is in use.
    fn push(&mut self, k: &Kernel, slot: Ref<Cte>) {
        let Cte { cap, mdb } = *k.get(slot);
        if cap.is_null() {
            assert!(mdb.prev().is_none() && mdb.next().is_none(), "the empty slot {slot:?} has relatives");
        } else if self.set(slot.word(), Mark::Slot, 0) {
            assert!(self.count < SLOTS, "more slots than a check can hold");
            self.slots[self.count] = slot.word();
            self.count += 1;
        }
    }

    /// Starts anew: finds all threads.
    pub(super) fn find_threads(&mut self, k: &Kernel) {
        self.round += 1;
        let (mut last, mut next) = (None, k.threads);
        while let Some(thread) = next {
            assert_eq!(k.get(thread).all_prev, last, "the list of threads is broken");
            assert!(self.set(thread.word(), Mark::Thread, 0), "the list of threads runs in a circle");
            (last, next) = (Some(thread), k.get(thread).all_next);
        }
    }

    /// Brings the slots in use up to date with a journal; `None`: finds them anew.
    ///
    /// A slot stays in the list only while it is in use. One that is emptied was opened, so it leaves at the next kernel exit, and its
    /// memory can become something else after that at the earliest.
    pub(super) fn update_slots(&mut self, k: &Kernel, opened: Option<impl Iterator<Item = Ref<Cte>>>) {
        let Some(opened) = opened else { return self.find_slots(k) };
        let mut index = 0;
        while index < self.count {
            let slot = self.slot(index);
            if k.cap(slot).is_null() {
                self.count -= 1;
                self.slots[index] = self.slots[self.count];
            } else {
                self.set(slot.word(), Mark::Slot, 0);
                index += 1;
            }
        }
        opened.for_each(|slot| self.push(k, slot));
    }

    /// Finds all slots in use.
    pub(super) fn find_slots(&mut self, k: &Kernel) {
        self.count = 0;
        let mut next = k.threads;
        while let Some(thread) = next {
            let first = thread.slots_start();
            (0..SLOT_COUNT).for_each(|index| self.push(k, nth(first, index as u64)));
            next = k.get(thread).all_next;
        }
        (0..IRQS).for_each(|irq| self.push(k, k.irq_slot(irq)));
        let mut index = 0;
        while index < self.count {
            let slot = self.slot(index);
            self.follow(k, slot);
            index += 1;
        }
    }

    /// Notes what can be reached from a slot.
    fn follow(&mut self, k: &Kernel, slot: Ref<Cte>) {
        let Cte { cap, mdb } = *k.get(slot);
        match cap.kind() {
            Kind::CNode if self.set(cap.address().0, Mark::Visited, 0) => {
                (0..1 << cap.radix()).for_each(|index| self.push(k, cap.slot(index)));
            }
            Kind::Zombie if cap.zombie_is_queue() => {}
            Kind::Zombie => (0..cap.zombie_slots()).for_each(|index| self.push(k, cap.zombie_slot(index))),
            Kind::Tcb => assert!(self.has(cap.address().0, Mark::Thread), "{slot:?} names no thread"),
            // A dying thread keeps its reply master to the end.
            Kind::Reply if !cap.reply_master() => {
                assert!(self.has(cap.reply_caller().word(), Mark::Thread), "{slot:?} is a reply to no thread");
            }
            _ => {}
        }
        for relative in [mdb.prev(), mdb.next()].into_iter().flatten() {
            self.push(k, relative);
        }
    }
}

/// Slot `index` behind `first`.
fn nth(first: Ref<Cte>, index: u64) -> Ref<Cte> {
    // SAFETY: the caller counts within the slots of one object.
    unsafe { Ref::assume(first.kva().offset(index * size_of::<Cte>() as u64)) }
}
