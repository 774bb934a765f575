//! Deletion and revocation.
//!
//! Deleting the last capability to a CNode or TCB means deleting the slots inside it, which may hold the last capabilities to further
//! such objects, and so on. It is done without recursion over the depth, and can stop after any slot: the capability becomes a
//! *zombie*, which counts the slots left. A zombie met inside another one is exchanged with the slot that is being deleted, so the
//! chain of dying objects hangs on itself and the outermost deletion works it off (seL4's algorithm).
//!
//! Whatever else a user can make long is done in steps that keep what they did, with a preemption point after each: restarting the
//! waiters of an endpoint or notification (a zombie too, so that nobody can start to wait), taking away address spaces of an ASID pool,
//! clearing sender-table entries. So the deletion that is made again goes on where it stopped.

use abi::config::MAX_NUM_WORK_UNITS_PER_PREEMPTION;
use abi::object::bits;

use super::cap::{Cap, Cte, Kind};
use super::tcb::{SLOT_COUNT, Tcb};
use super::{endpoint, irq, notification, sender_table, user_interrupt, vspace};
use crate::api::error::Preempted;
use crate::arch::Arch;
use crate::mem::Ref;
use crate::state::Kernel;
use crate::syscall_ring::handover;
use crate::{alarm, fpu, log, sched, thread};

/// What is left to do after a slot has been emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleanup {
    Nothing,
    /// The interrupt can be issued again.
    Irq(usize),
}

impl Kernel {
    /// Something was done that may have made other cores answer: as long as many units. The next preemption point looks.
    pub fn count_costly_work(&mut self) {
        if self.arch.cores() > 1 {
            self.work_units = MAX_NUM_WORK_UNITS_PER_PREEMPTION;
        }
    }

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
    delete_entries(k, slot)?;
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

/// Deletes a capability whose object lives on: reply capabilities, entries of sender tables (seL4 `cteDeleteOne`).
pub fn delete_one(k: &mut Kernel, slot: Ref<Cte>) {
    let cap = k.cap(slot);
    debug_assert!(matches!(cap.kind(), Kind::Null | Kind::Reply | Kind::SenderEntry));
    if cap.is(Kind::SenderEntry) {
        sender_table::disable(k, slot, cap);
    }
    if !cap.is_null() {
        k.unlink(slot);
    }
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
        Kind::Zombie if cap.zombie_is_queue() => cap.zombie_slots() == 0,
        Kind::Zombie => cap.zombie_slots() == 0 || cap.zombie_slots() == 1 && cap.zombie_slot(0) == slot,
        _ => false,
    }
}

/// Entries of sender tables that were made from a notification capability go away with it.
fn delete_entries(k: &mut Kernel, slot: Ref<Cte>) -> Result<(), Preempted> {
    while k.cap(slot).is(Kind::Notification) {
        match k.get(slot).mdb.next() {
            Some(entry) if k.cap(entry).is(Kind::SenderEntry) => delete_one(k, entry),
            _ => break,
        }
        k.preemption_point()?;
    }
    Ok(())
}

/// Makes the slot's capability harmless; gives whether the slot may be emptied (seL4 `finaliseSlot`).
fn finalise(k: &mut Kernel, slot: Ref<Cte>, outermost: bool) -> Result<(bool, Cleanup), Preempted> {
    loop {
        let cap = k.cap(slot);
        if cap.is_null() {
            return Ok((true, Cleanup::Nothing));
        }
        delete_entries(k, slot)?;
        let last = k.is_final(slot);
        let (rest, cleanup) = finalise_cap(k, slot, cap, last)?;
        if is_removable(rest, slot) {
            return Ok((true, cleanup));
        }
        k.get_mut(slot).cap = rest;
        if rest.zombie_is_queue() {
            restart_waiter(k, slot);
        } else if !outermost && rest.zombie_slot(0) == slot {
            return Ok((false, cleanup));
        } else {
            reduce_zombie(k, slot, outermost)?;
        }
        k.preemption_point()?;
    }
}

/// Restarts one thread that waits for the dying object of the zombie in `slot`; the last one leaves an empty shell.
fn restart_waiter(k: &mut Kernel, slot: Ref<Cte>) {
    let zombie = k.cap(slot);
    if !endpoint::restart_first(k, zombie.zombie_queue_object()) {
        k.get_mut(slot).cap = zombie.with_zombie_slots(0);
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
fn finalise_cap(k: &mut Kernel, slot: Ref<Cte>, cap: Cap, last: bool) -> Result<(Cap, Cleanup), Preempted> {
    match cap.kind() {
        Kind::Frame => {
            vspace::unmap_frame(k, cap);
            log::forget(k, cap);
        }
        Kind::PageTable if last => vspace::finalise_table(k, cap),
        Kind::AsidPool if last => vspace::finalise_pool(k, cap)?,
        Kind::Endpoint if last => return Ok((Cap::zombie_queue(cap.address(), bits::ENDPOINT), Cleanup::Nothing)),
        Kind::Notification if last => {
            if let Some(notification) = cap.object() {
                notification::finalise(k, notification)?;
            }
            return Ok((Cap::zombie_queue(cap.address(), bits::NOTIFICATION), Cleanup::Nothing));
        }
        Kind::IrqHandler if last => {
            irq::forget_notification(k, cap.irq())?;
            return Ok((Cap::NULL, Cleanup::Irq(cap.irq())));
        }
        Kind::SenderTable => sender_table::finalise(k, cap, last)?,
        Kind::SenderEntry => sender_table::disable(k, slot, cap),
        Kind::CNode if last => return Ok((Cap::zombie_cnode(cap.address(), cap.radix()), Cleanup::Nothing)),
        Kind::Tcb if last => {
            if let Some(tcb) = cap.object() {
                finalise_tcb(k, tcb)?;
            }
            return Ok((Cap::zombie_tcb(cap.address(), SLOT_COUNT as u64), Cleanup::Nothing));
        }
        Kind::Zombie => return Ok((cap, Cleanup::Nothing)),
        _ => {}
    }
    Ok((Cap::NULL, Cleanup::Nothing))
}

fn finalise_tcb(k: &mut Kernel, tcb: Ref<Tcb>) -> Result<(), Preempted> {
    sched::stall(k, tcb);
    handover::forget(k, tcb);
    notification::unbind_thread(k, tcb);
    user_interrupt::forget_thread(k, tcb)?;
    fpu::release(k, tcb);
    thread::suspend(k, tcb);
    alarm::forget(k, tcb);
    thread::delist(k, tcb);
    Ok(())
}
