//! Deletion and revocation.
//!
//! Deleting the last capability to a CNode or TCB means deleting the slots inside it, which may hold the last capabilities to further
//! such objects, and so on. It is done without recursion over the depth, and can stop after any slot: the capability becomes a
//! *zombie*, which counts the slots left. A zombie met inside another one is exchanged with the slot that is being deleted, so the
//! chain of dying objects hangs on itself and the outermost deletion works it off (seL4's algorithm).

use abi::config::MAX_NUM_WORK_UNITS_PER_PREEMPTION;

use super::cap::{Cap, Cte, Kind};
use super::tcb::{SLOT_COUNT, Tcb};
use super::{endpoint, irq, notification, sender_table, user_interrupt, vspace};
use crate::api::error::Preempted;
use crate::arch::Arch;
use crate::mem::Ref;
use crate::state::Kernel;
use crate::{fpu, sched, thread};

/// What is left to do after a slot has been emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleanup {
    Nothing,
    /// The interrupt can be issued again.
    Irq(usize),
}

impl Kernel {
    /// One unit of a long operation is done; stops it where an interrupt has waited long enough.
    pub fn preemption_point(&mut self) -> Result<(), Preempted> {
        self.work_units += 1;
        if self.work_units < MAX_NUM_WORK_UNITS_PER_PREEMPTION {
            return Ok(());
        }
        self.work_units = 0;
        if self.arch.preempts() { Err(Preempted) } else { Ok(()) }
    }
}

/// CNode_Revoke (seL4 `cteRevoke`): deletes all descendants of the slot. Entries of sender tables are descendants of the capability
/// that was registered even where a copy of it would be a sibling.
pub fn revoke(k: &mut Kernel, slot: Ref<Cte>) -> Result<(), Preempted> {
    delete_entries(k, slot);
    while let Some(child) = k.first_child(slot) {
        delete(k, child)?;
        k.preemption_point()?;
    }
    Ok(())
}

/// CNode_Delete (seL4 `cteDelete`).
pub fn delete(k: &mut Kernel, slot: Ref<Cte>) -> Result<(), Preempted> {
    let (_, cleanup) = finalise(k, slot, true)?;
    empty(k, slot, cleanup);
    Ok(())
}

/// Deletes a slot inside a dying object; it may keep a zombie, which is then worked off from outside.
fn delete_inside(k: &mut Kernel, slot: Ref<Cte>) -> Result<(), Preempted> {
    let (removable, cleanup) = finalise(k, slot, false)?;
    if removable {
        empty(k, slot, cleanup);
    }
    Ok(())
}

/// Deletes a capability that cannot become a zombie: reply capabilities, notifications of interrupts (seL4 `cteDeleteOne`).
pub fn delete_one(k: &mut Kernel, slot: Ref<Cte>) {
    let cap = k.cap(slot);
    if cap.is_null() {
        return;
    }
    delete_entries(k, slot);
    let last = k.is_final(slot);
    let (rest, cleanup) = finalise_cap(k, slot, cap, last);
    debug_assert!(rest.is_null());
    empty(k, slot, cleanup);
}

fn empty(k: &mut Kernel, slot: Ref<Cte>, cleanup: Cleanup) {
    if !k.cap(slot).is_null() {
        k.unlink(slot);
    }
    if let Cleanup::Irq(irq) = cleanup {
        irq::release(k, irq);
    }
}

/// Whether `cap`, in `slot`, is nothing but an empty shell.
fn is_removable(cap: Cap, slot: Ref<Cte>) -> bool {
    match cap.kind() {
        Kind::Null => true,
        Kind::Zombie => cap.zombie_slots() == 0 || cap.zombie_slots() == 1 && cap.zombie_slot(0) == slot,
        _ => false,
    }
}

/// Entries of sender tables that were made from a notification capability go away with it.
fn delete_entries(k: &mut Kernel, slot: Ref<Cte>) {
    while k.cap(slot).is(Kind::Notification) {
        match k.get(slot).mdb.next() {
            Some(entry) if k.cap(entry).is(Kind::SenderEntry) => sender_table::clear(k, entry),
            _ => break,
        }
    }
}

/// Makes the slot's capability harmless; gives whether the slot may be emptied (seL4 `finaliseSlot`).
fn finalise(k: &mut Kernel, slot: Ref<Cte>, outermost: bool) -> Result<(bool, Cleanup), Preempted> {
    loop {
        let cap = k.cap(slot);
        if cap.is_null() {
            return Ok((true, Cleanup::Nothing));
        }
        delete_entries(k, slot);
        let last = k.is_final(slot);
        let (rest, cleanup) = finalise_cap(k, slot, cap, last);
        if is_removable(rest, slot) {
            return Ok((true, cleanup));
        }
        k.get_mut(slot).cap = rest;
        if !outermost && rest.zombie_slot(0) == slot {
            return Ok((false, cleanup));
        }
        reduce_zombie(k, slot, outermost)?;
        k.preemption_point()?;
    }
}

/// Takes one slot off the zombie in `slot` (seL4 `reduceZombie`).
fn reduce_zombie(k: &mut Kernel, slot: Ref<Cte>, outermost: bool) -> Result<(), Preempted> {
    let zombie = k.cap(slot);
    let first = zombie.zombie_slot(0);
    let left = zombie.zombie_slots();
    debug_assert!(left > 0);
    if !outermost {
        // Exchange with the first slot of the dying object: it then holds the zombie that names itself.
        debug_assert!(first != slot);
        let other = k.cap(first);
        k.swap_caps(other, first, zombie, slot);
        return Ok(());
    }
    let last = zombie.zombie_slot(left - 1);
    delete_inside(k, last)?;
    // The deletion may have moved another zombie here; then that one is next.
    let now = k.cap(slot);
    if now.is(Kind::Zombie) && now.zombie_slot(0) == first && now.zombie_slots() == left {
        debug_assert!(k.cap(last).is_null());
        k.get_mut(slot).cap = now.with_zombie_slots(left - 1);
    }
    Ok(())
}

/// What deleting this capability does to its object; gives what has to stay in the slot (seL4 `finaliseCap`).
fn finalise_cap(k: &mut Kernel, slot: Ref<Cte>, cap: Cap, last: bool) -> (Cap, Cleanup) {
    match cap.kind() {
        Kind::Frame => vspace::unmap_frame(k, cap),
        Kind::PageTable if last => vspace::finalise_table(k, cap),
        Kind::AsidPool if last => vspace::finalise_pool(k, cap),
        Kind::Endpoint if last => {
            if let Some(endpoint) = cap.object::<endpoint::Endpoint>() {
                endpoint::cancel_all(k, endpoint);
            }
        }
        Kind::Notification if last => {
            if let Some(notification) = cap.object() {
                notification::finalise(k, notification);
            }
        }
        Kind::IrqHandler if last => {
            irq::forget_notification(k, cap.irq());
            return (Cap::NULL, Cleanup::Irq(cap.irq()));
        }
        Kind::SenderTable => sender_table::finalise(k, cap, last),
        Kind::SenderEntry => sender_table::disable(k, slot, cap),
        Kind::CNode if last => return (Cap::zombie_cnode(cap.address(), cap.radix()), Cleanup::Nothing),
        Kind::Tcb if last => {
            if let Some(tcb) = cap.object() {
                finalise_tcb(k, tcb);
            }
            return (Cap::zombie_tcb(cap.address(), SLOT_COUNT as u64), Cleanup::Nothing);
        }
        Kind::Zombie => return (cap, Cleanup::Nothing),
        _ => {}
    }
    (Cap::NULL, Cleanup::Nothing)
}

fn finalise_tcb(k: &mut Kernel, tcb: Ref<Tcb>) {
    sched::stall(k, tcb);
    notification::unbind_thread(k, tcb);
    user_interrupt::forget_thread(k, tcb);
    fpu::release(k, tcb);
    thread::suspend(k, tcb);
    thread::delist(k, tcb);
}
