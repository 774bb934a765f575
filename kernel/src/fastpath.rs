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
use crate::object::vspace;
use crate::special;
use crate::state::Kernel;

/// Bits of the info word that hold length and number of capabilities.
const SIZE_BITS: u64 = 0x1FF;
/// Bits of the info word that arrive: label and length.
const DELIVERED_BITS: u64 = !0xFFF | 0x7F;
/// Most words: those in registers, without capabilities.
const MAX_SIZE: u64 = abi::message::REGISTERS as u64;

/// Whether the message of `thread` is short, without capabilities, and no fault.
#[inline(always)]
fn is_short_fp(k: &Kernel, thread: Ref<Tcb>, info: u64) -> bool {
    info & SIZE_BITS <= MAX_SIZE && k.get(thread).fault == Fault::None
}

/// `cspace::lookup_slot` without the reasons.
#[inline(always)]
pub(crate) fn lookup_fp(k: &Kernel, root: Cap, cptr: u64) -> Option<Cap> {
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
pub(crate) fn space_fp(k: &Kernel, thread: Ref<Tcb>) -> Option<(Paddr, u16)> {
    let cap = k.get(thread).cap(Slot::VSpace);
    let table = cap.mapped_table()?;
    let asid = cap.mapped_asid();
    (vspace::find_root(k, asid).ok()? == table).then_some((table.kva().paddr(), asid))
}

/// Whether `to` would be chosen if `from` stops and nobody else is woken: on this core, and nobody ready is better.
#[inline(always)]
pub(crate) fn follows_fp(k: &Kernel, from: Ref<Tcb>, to: Ref<Tcb>) -> bool {
    let (from, to) = (k.get(from), k.get(to));
    usize::from(to.core) == k.core && (to.priority >= from.priority || k.is_best(to.priority))
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
    target.context.x[A1] = info & DELIVERED_BITS;
    target.state = ThreadState::Running;
    k.this_mut().current = Some(to);
    k.arch.switch_space(root, asid);
    special::switch(k, Some(to));
}

/// Call by `caller`, the current thread. `None`: the slow path has to do it.
#[inline(always)]
pub fn call(k: &mut Kernel, caller: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    // Gather.
    if !is_short_fp(k, caller, info) {
        return None;
    }
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
    // The receiver can run, and would be chosen.
    if !follows_fp(k, caller, receiver) {
        return None;
    }
    let space = space_fp(k, receiver)?;
    let grant = k.get(receiver).can_grant;

    // ---- Commit: from here on nothing falls back. ----

    k.queue_pop(endpoint);
    k.get_mut(caller).state = ThreadState::BlockedOnReply;
    let (master, slot) = (caller.slot(Slot::Reply), receiver.slot(Slot::Caller));
    debug_assert!(k.get(master).mdb.next().is_none(), "one reply capability at most");
    k.get_mut(master).mdb = Mdb::new(None, Some(slot), true, true);
    *k.get_mut(slot) = Cte { cap: Cap::reply(caller, grant, false), mdb: Mdb::new(Some(master), None, false, false) };
    switch_fp(k, caller, receiver, cap.badge(), info, space);
    Some(receiver)
}

/// ReplyRecv by `server`, the current thread. `None`: the slow path has to do it.
#[inline(always)]
pub fn reply_recv(k: &mut Kernel, server: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    // Gather.
    if !is_short_fp(k, server, info) {
        return None;
    }
    let tcb = k.get(server);
    let cap = lookup_fp(k, tcb.cap(Slot::CSpace), cptr)?;
    // The capability lets us receive.
    let endpoint = cap.object::<Endpoint>()?;
    if !cap.rights().contains(Rights::READ) {
        return None;
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
    // The caller can run, and would be chosen.
    if k.get(caller).fault != Fault::None || !follows_fp(k, server, caller) {
        return None;
    }
    let space = space_fp(k, caller)?;
    // No signal to take first.
    if let Some(bound) = tcb.bound_notification
        && notification::has_signal(k, bound)
    {
        return None;
    }

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
