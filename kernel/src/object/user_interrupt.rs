//! User interrupts: receivers of the UINTC as kernel objects, and the switch of a core's user-interrupt registers.
//!
//! A receiver belongs to one notification and one thread (TCB_BindUserInterrupt). The kernel keeps the list of sender-table
//! entries that post to it, so that the receiver's number is not used again while any of them is valid.
//!
//! Switch: a core holds the state of at most one thread (`Core::loaded`). It is moved only when a thread with such state is
//! involved (special.rs). A core that idles holds none, or `wfi` would not sleep.

use super::cap::Cte;
use super::delete;
use super::notification::Notification;
use super::tcb::Tcb;
use crate::api::error::{Preempted, Refusal};
use crate::arch::Arch;
use crate::mem::{Paddr, Ref};
use crate::state::{Kernel, RECEIVERS};
use crate::{sched, special};

/// Account of one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its notification; `None`: the receiver is free.
    pub notification: Option<Ref<Notification>>,
    /// Its thread.
    pub thread: Option<Ref<Tcb>>,
    /// First of the sender-table entries that post to it.
    pub entries: Option<Ref<Cte>>,
    /// How many these are.
    pub entry_count: u16,
}

impl Receiver {
    /// Not in use.
    pub const FREE: Self = Self { notification: None, thread: None, entries: None, entry_count: 0 };
}

/// Brings this core's user-interrupt registers in line with the thread that runs next (`None`: idle).
pub fn exchange(k: &mut Kernel, next: Option<Ref<Tcb>>) {
    if k.this().loaded == next {
        return;
    }
    unload(k);
    if let Some(next) = next.filter(|&next| k.get(next).user_interrupt.in_use()) {
        let (arch, tcb) = k.with_arch(next);
        arch.load_user_interrupts(&mut tcb.user_interrupt);
        k.this_mut().loaded = Some(next);
    }
}

fn unload(k: &mut Kernel) {
    if let Some(thread) = k.this_mut().loaded.take() {
        let (arch, tcb) = k.with_arch(thread);
        arch.unload_user_interrupts(&mut tcb.user_interrupt);
    }
}

/// Changes the user-interrupt state of a thread while it is in memory; the current thread gets it back at once.
fn change(k: &mut Kernel, thread: Ref<Tcb>, edit: impl FnOnce(&mut Tcb)) {
    sched::stall(k, thread);
    if k.this().loaded == Some(thread) {
        unload(k);
    }
    let tcb = k.get_mut(thread);
    edit(tcb);
    tcb.note_special();
    if thread == k.current() {
        special::switch(k, Some(thread));
    }
}

/// The thread leaves this core: its state is in memory when this returns.
pub fn take_from_core(k: &mut Kernel, thread: Ref<Tcb>) {
    if k.this().loaded == Some(thread) {
        unload(k);
    }
}

/// TCB_BindUserInterrupt, the checks that need no capability: gives a free receiver.
pub fn check_bind(k: &Kernel, thread: Ref<Tcb>, notification: Ref<Notification>) -> Result<u16, Refusal> {
    let count = usize::from(k.arch.receivers()).min(RECEIVERS);
    let object = k.get(notification);
    let foreign = object.bound_thread().is_some_and(|bound| bound != thread);
    if count == 0 || foreign || object.receiver() != 0 || k.get(thread).user_interrupt.receiver != 0 {
        return Err(Refusal::IllegalOperation);
    }
    // Receiver 0 stands for none.
    let free = (1..count).find(|&index| k.receivers[index].notification.is_none());
    free.map(|index| index as u16).ok_or(Refusal::NotEnoughMemory(0))
}

/// TCB_BindUserInterrupt.
pub fn bind(k: &mut Kernel, thread: Ref<Tcb>, notification: Ref<Notification>, receiver: u16) {
    k.arch.reset_receiver(receiver);
    k.receivers[usize::from(receiver)] =
        Receiver { notification: Some(notification), thread: Some(thread), entries: None, entry_count: 0 };
    k.get_mut(notification).set_receiver(receiver);
    change(k, thread, |tcb| {
        let sender_table = tcb.user_interrupt.sender_table;
        tcb.user_interrupt = Default::default();
        tcb.user_interrupt.sender_table = sender_table;
        tcb.user_interrupt.receiver = receiver;
    });
}

/// Frees a receiver, if `receiver` is one: no entry posts to it any more, no thread has it.
pub fn release(k: &mut Kernel, receiver: u16) -> Result<(), Preempted> {
    if receiver == 0 {
        return Ok(());
    }
    while let Some(entry) = k.receivers[usize::from(receiver)].entries {
        delete::delete_one(k, entry);
        k.preemption_point()?;
    }
    let Receiver { notification, thread, .. } = k.receivers[usize::from(receiver)];
    if let Some(thread) = thread {
        change(k, thread, |tcb| tcb.user_interrupt.receiver = 0);
    }
    if let Some(notification) = notification {
        k.get_mut(notification).set_receiver(0);
    }
    k.arch.fence_senders();
    k.arch.reset_receiver(receiver);
    k.receivers[usize::from(receiver)] = Receiver::FREE;
    Ok(())
}

/// TCB_SetSenderTable: the table that `uipi.send` of the thread uses.
pub fn set_table(k: &mut Kernel, thread: Ref<Tcb>, table: Option<Paddr>) {
    change(k, thread, |tcb| tcb.user_interrupt.sender_table = table.map_or(0, |table| table.0));
}

/// The thread is being deleted. Its sender table goes with its slots.
pub fn forget_thread(k: &mut Kernel, thread: Ref<Tcb>) -> Result<(), Preempted> {
    release(k, k.get(thread).user_interrupt.receiver)
}
