//! The fast path of Call and ReplyRecv: short messages between threads of one core, when the result is a plain switch.
//!
//! Each function gathers, checks a list of conditions of which every one falls back to the slow path with nothing changed, passes the
//! commit line, and then does exactly what the slow path would have done. `tests/fastpath_equiv.rs` compares the two on random
//! worlds, word by word.

use abi::rights::Rights;

use crate::api::fault::Fault;
use crate::arch::Arch;
use crate::arch::register::{A0, A1, A2};
use crate::mem::{Paddr, Ref};
use crate::object::cap::{Cap, Cte, Kind};
use crate::object::endpoint::{self, Endpoint};
use crate::object::mdb::Mdb;
use crate::object::notification;
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::object::{user_interrupt, vspace};
use crate::state::Kernel;

/// Bits of the info word that hold length and number of capabilities.
const SIZE_BITS: u64 = 0x1FF;
/// Bits of the info word that arrive: label and length.
const DELIVERED_BITS: u64 = !0xFFF | 0x7F;
/// Most words: those in registers, without capabilities.
const MAX_SIZE: u64 = abi::message::REGISTERS as u64;

/// The message of the current thread, if it is short.
#[inline(always)]
fn short_message_fp(k: &Kernel, thread: Ref<Tcb>) -> Option<(u64, u64)> {
    let tcb = k.get(thread);
    let (cptr, info) = (tcb.context.x[A0], tcb.context.x[A1]);
    (info & SIZE_BITS <= MAX_SIZE && tcb.fault == Fault::None).then_some((cptr, info & DELIVERED_BITS))
}

/// `cspace::lookup_slot` without the reasons.
#[inline(always)]
fn lookup_fp(k: &Kernel, root: Cap, cptr: u64) -> Option<Cap> {
    let mut node = root;
    let mut left = 64u32;
    while node.is(Kind::CNode) {
        let (radix, size) = (node.radix() as u32, node.guard_size() as u32);
        let level = radix + size;
        if level > left {
            return None;
        }
        let guard = cptr >> (left.wrapping_sub(size) & 63) & ((1 << size) - 1);
        if guard != node.guard() {
            return None;
        }
        left -= level;
        node = k.cap(node.slot((cptr >> left) as usize & ((1 << radix) - 1)));
        if left == 0 {
            return Some(node);
        }
    }
    (left != 64).then_some(node)
}

/// Where `thread` runs: root table and ASID, if it can run there.
#[inline(always)]
fn space_fp(k: &Kernel, thread: Ref<Tcb>) -> Option<(Paddr, u16)> {
    let cap = k.get(thread).cap(Slot::VSpace);
    let asid = cap.mapped_asid();
    let table = cap.object::<vspace::PageTable>().filter(|_| cap.is_mapped_table())?;
    (vspace::find_root(k, asid).ok()? == table).then_some((table.kva().paddr(), asid))
}

/// Hands message and core over.
#[inline(always)]
fn switch_fp(k: &mut Kernel, from: Ref<Tcb>, to: Ref<Tcb>, badge: u64, info: u64, (root, asid): (Paddr, u16)) {
    // Word by word: a call of memcpy costs more than the words.
    for index in 0..MAX_SIZE {
        if index == info & SIZE_BITS {
            break;
        }
        let register = A2 + index as usize;
        k.get_mut(to).context.x[register] = k.get(from).context.x[register];
    }
    let target = k.get_mut(to);
    target.context.x[A0] = badge;
    target.context.x[A1] = info;
    target.state = ThreadState::Running;
    k.arch.switch_space(root, asid);
    user_interrupt::switch(k, Some(to));
    k.this_mut().current = Some(to);
}

/// Call. `None`: the slow path has to do it.
#[inline]
pub fn call(k: &mut Kernel) -> Option<Ref<Tcb>> {
    // Gather.
    let caller = k.current();
    // A short message without capabilities, from a thread without a fault to deliver.
    let (cptr, info) = short_message_fp(k, caller)?;
    let cap = lookup_fp(k, k.get(caller).cap(Slot::CSpace), cptr)?;
    let endpoint = cap.object::<Endpoint>()?;
    let rights = cap.rights();
    // The capability lets us send and be replied to.
    if !rights.contains(Rights::WRITE) || rights.0 & (Rights::GRANT.0 | Rights::GRANT_REPLY.0) == 0 {
        return None;
    }
    // Somebody waits for it.
    let queue = k.get(endpoint).queue;
    if queue.state() != endpoint::RECEIVERS {
        return None;
    }
    let receiver = queue.head()?;
    // The receiver can run, on this core.
    let space = space_fp(k, receiver)?;
    let tcb = k.get(receiver);
    if usize::from(tcb.core) != k.core {
        return None;
    }
    // Nobody else would be chosen.
    if tcb.priority < k.get(caller).priority && !k.is_best(tcb.priority) {
        return None;
    }
    let grant = tcb.can_grant;

    // ---- Commit: from here on nothing falls back. ----

    k.queue_pop(endpoint);
    k.get_mut(caller).state = ThreadState::BlockedOnReply;
    let (master, slot) = (caller.slot(Slot::Reply), receiver.slot(Slot::Caller));
    let next = k.get(master).mdb.next();
    debug_assert!(next.is_none(), "one reply capability at most");
    k.get_mut(master).mdb = Mdb::new(None, Some(slot), true, true);
    *k.get_mut(slot) = Cte { cap: Cap::reply(caller, grant, false), mdb: Mdb::new(Some(master), None, false, false) };
    switch_fp(k, caller, receiver, cap.badge(), info, space);
    Some(receiver)
}

/// ReplyRecv. `None`: the slow path has to do it.
#[inline]
pub fn reply_recv(k: &mut Kernel) -> Option<Ref<Tcb>> {
    // Gather.
    let server = k.current();
    // A short reply without capabilities.
    let (cptr, info) = short_message_fp(k, server)?;
    let tcb = k.get(server);
    let cap = lookup_fp(k, tcb.cap(Slot::CSpace), cptr)?;
    // The capability lets us receive.
    let endpoint = cap.object::<Endpoint>()?;
    if !cap.rights().contains(Rights::READ) {
        return None;
    }
    // No signal to take first, and no doorbell to look at.
    if let Some(bound) = tcb.bound_notification {
        let bound = k.get(bound);
        if bound.state() == notification::ACTIVE || bound.receiver() != 0 {
            return None;
        }
    }
    // Nobody waits to send, so we shall block.
    if k.get(endpoint).queue.state() == endpoint::SENDERS {
        return None;
    }
    // Somebody waits for the reply, and not with a fault.
    let reply = tcb.cap(Slot::Caller);
    if !reply.is(Kind::Reply) || reply.reply_master() {
        return None;
    }
    let caller = reply.reply_caller();
    let tcb = k.get(caller);
    if tcb.fault != Fault::None || usize::from(tcb.core) != k.core {
        return None;
    }
    // Nobody else would be chosen.
    if !k.is_best(tcb.priority) {
        return None;
    }
    let space = space_fp(k, caller)?;

    // ---- Commit: from here on nothing falls back. ----

    let (master, slot) = (caller.slot(Slot::Reply), server.slot(Slot::Caller));
    *k.get_mut(slot) = Cte::default();
    k.get_mut(master).mdb = Mdb::ALONE;
    let tcb = k.get_mut(server);
    tcb.state = ThreadState::BlockedOnReceive;
    tcb.can_grant = cap.rights().contains(Rights::GRANT);
    k.queue_append(endpoint, server, endpoint::RECEIVERS);
    switch_fp(k, server, caller, 0, info, space);
    Some(caller)
}
