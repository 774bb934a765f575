//! The fast path: system calls whose result is plain, without the detours that the general case needs.
//!
//! | file | what |
//! |---|---|
//! | this one | Call and ReplyRecv |
//! | `signal.rs` | Send to a notification, or to nothing |
//! | `wait.rs` | Recv of a signal or of nothing, and Yield |
//!
//! Each function gathers, checks a list of conditions of which every one falls back to the slow path with nothing changed, passes the
//! commit line, and then does exactly what the slow path would have done. `tests/fastpath_equiv.rs` compares the two on random
//! worlds, word by word.
//!
//! With several cores, the partner may belong to another: then that core gets it (`sched::ready_elsewhere`), and this one what else it
//! has to run, or nothing. That, and the claims on lines that other cores write, is behind the constant `SEVERAL`, so that a kernel with
//! one core has none of it.
//!
//! Short messages (in registers) come first and are inlined into the trap handler, which then saves nothing. Everything else is one
//! jump away.

mod signal;
mod wait;

pub use signal::send;
pub use wait::{receive, yield_now};

use core::hint::cold_path;

use abi::message::{MAX_LENGTH, REGISTERS};
use abi::rights::Rights;

use crate::api::fault::Fault;
use crate::arch::Arch;
use crate::arch::register::{A0, A1, A2};
use crate::mem::{Buffer, Paddr, Ref};
use crate::object::cap::{Cap, Cte, Kind};
use crate::object::endpoint::{self, Endpoint};
use crate::object::mdb::Mdb;
use crate::object::notification;
use crate::object::tcb::{self, Slot, Tcb, ThreadState};
use crate::object::vspace;
use crate::sched;
use crate::state::{Kernel, Next};
use crate::thread;

/// Bits of the info word that hold the number of capabilities.
const CAPS_BITS: u64 = 0x180;
/// Bits of the info word that hold the length.
const LENGTH_BITS: u64 = 0x7F;
/// Bits of the info word that arrive: label and length.
const DELIVERED_BITS: u64 = !0xFFF | LENGTH_BITS;

/// Which messages a function takes: none carries capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Those in registers.
    Short,
    /// Those that also use the IPC buffers.
    Long,
}

impl Size {
    /// The size of the message of `info`; `None`: it carries capabilities or is longer than a message can be.
    #[inline(always)]
    pub fn of(info: u64) -> Option<Self> {
        // The capabilities lie above the length: one comparison sees both.
        match info & (CAPS_BITS | LENGTH_BITS) {
            size if size <= REGISTERS as u64 => Some(Self::Short),
            size if size <= MAX_LENGTH as u64 => Some(Self::Long),
            _ => None,
        }
    }
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
        cold_path();
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

/// What a core runs next on a fast path, and where.
#[derive(Clone, Copy)]
pub(crate) enum Successor {
    /// The thread that was woken.
    Woken(Ref<Tcb>, (Paddr, u16)),
    /// A thread that was ready.
    Ready(Ref<Tcb>, (Paddr, u16)),
    /// Nobody.
    Idle,
}

/// What runs if the current thread stops and nobody else is woken; `None`: that is not plain.
#[inline(always)]
pub(crate) fn next_fp(k: &Kernel) -> Option<Successor> {
    let Some(next) = k.best_ready() else { return Some(Successor::Idle) };
    let space = space_fp(k, next)?;
    (k.get(next).state == ThreadState::Running).then_some(Successor::Ready(next, space))
}

/// What runs if `from`, the current thread, stops and wakes `to`: `to`, on its own core; `None`: that is not plain.
#[inline(always)]
pub(crate) fn follower_fp<const SEVERAL: bool>(k: &Kernel, from: Ref<Tcb>, to: Ref<Tcb>) -> Option<Successor> {
    if SEVERAL && usize::from(k.get(to).core) != k.core() {
        return next_fp(k);
    }
    let rank = k.get(to).priority;
    if rank < k.get(from).priority {
        cold_path();
        if !k.is_best(rank) {
            return None;
        }
    }
    Some(Successor::Woken(to, space_fp(k, to)?))
}

/// The IPC buffers that a long message goes through; a short one needs none. `None`: one is missing.
#[inline(always)]
fn buffers_fp(k: &Kernel, size: Size, from: Ref<Tcb>, to: Ref<Tcb>) -> Option<Option<(Buffer, Buffer)>> {
    match size {
        Size::Short => Some(None),
        Size::Long => Some(Some((thread::buffer(k, from, false)?, thread::buffer(k, to, true)?))),
    }
}

/// Hands a message over, except for its capability.
#[inline(always)]
fn transfer_fp(k: &mut Kernel, from: Ref<Tcb>, to: Ref<Tcb>, badge: u64, info: u64, buffers: Option<(Buffer, Buffer)>) {
    // Word by word: a call of memcpy costs more than the words.
    for index in 0..REGISTERS {
        if buffers.is_none() && index as u64 == info & LENGTH_BITS {
            break;
        }
        k.get_mut(to).context.x[A2 + index] = k.get(from).context.x[A2 + index];
    }
    if let Some((from, to)) = buffers {
        k.copy_message_words(from, to, REGISTERS..(info & LENGTH_BITS) as usize);
    }
    let target = k.get_mut(to);
    target.context.x[A0] = badge;
    target.context.x[A1] = info & DELIVERED_BITS;
    target.state = ThreadState::Running;
}

/// Gives the core to `to`, which is ready and in no queue; its special registers are up to the caller (special.rs).
#[inline(always)]
pub(crate) fn run_fp(k: &mut Kernel, to: Ref<Tcb>, (root, asid): (Paddr, u16)) -> Option<Next> {
    k.this_mut().current = Some(to);
    k.arch.switch_space(root, asid);
    Some(Next::Run(to))
}

/// Gives the core to whoever `successor` says. Special registers as in `run_fp`.
#[inline(always)]
pub(crate) fn go_fp(k: &mut Kernel, successor: Successor) -> Option<Next> {
    match successor {
        Successor::Woken(thread, space) => run_fp(k, thread, space),
        Successor::Ready(thread, space) => {
            sched::dequeue(k, thread);
            run_fp(k, thread, space)
        }
        Successor::Idle => {
            let idle = k.idle();
            k.this_mut().current = Some(idle);
            Some(Next::Idle)
        }
    }
}

/// `woken` is runnable, and the current thread stops: ends the call.
#[inline(always)]
pub(crate) fn finish_fp<const SEVERAL: bool>(k: &mut Kernel, woken: Ref<Tcb>, successor: Successor) -> Option<Next> {
    if SEVERAL && !matches!(successor, Successor::Woken(..)) {
        sched::ready_elsewhere(k, woken);
        sched::call_others(k);
    }
    go_fp(k, successor)
}

/// What `thread` does is going to be read and changed, and another core may have changed it last.
#[inline(always)]
pub(crate) fn claim_fp<const SEVERAL: bool>(k: &Kernel, thread: Ref<Tcb>) {
    if SEVERAL {
        k.claim(thread, tcb::STATE);
    }
}

/// Call by `caller`, the current thread, of a message of that size. `None`: the slow path has to do it.
#[inline(always)]
pub fn call<const SEVERAL: bool>(k: &mut Kernel, size: Size, caller: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next> {
    // Gather. The caller has no fault to deliver instead.
    if k.get(caller).fault != Fault::None {
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
    if SEVERAL {
        k.claim(endpoint, 0);
    }
    let queue = k.get(endpoint).queue;
    if queue.state() != endpoint::RECEIVERS {
        return None;
    }
    let receiver = queue.head()?;
    // The receiver can run, and would be chosen.
    claim_fp::<SEVERAL>(k, receiver);
    let successor = follower_fp::<SEVERAL>(k, caller, receiver)?;
    let buffers = buffers_fp(k, size, caller, receiver)?;
    let grant = k.get(receiver).can_grant;

    // ---- Commit: from here on nothing falls back. ----

    k.queue_pop(endpoint);
    k.get_mut(caller).state = ThreadState::BlockedOnReply;
    let (master, slot) = (caller.slot(Slot::Reply), receiver.slot(Slot::Caller));
    debug_assert!(k.get(master).mdb.next().is_none(), "one reply capability at most");
    k.get_mut(master).mdb = Mdb::new(None, Some(slot), true, true);
    *k.get_mut(slot) = Cte { cap: Cap::reply(caller, grant, false), mdb: Mdb::new(Some(master), None, false, false) };
    transfer_fp(k, caller, receiver, cap.badge(), info, buffers);
    finish_fp::<SEVERAL>(k, receiver, successor)
}

/// ReplyRecv by `server`, the current thread, with a reply of that size. `None`: the slow path has to do it.
#[inline(always)]
pub fn reply_recv<const SEVERAL: bool>(
    k: &mut Kernel,
    size: Size,
    server: Ref<Tcb>,
    cptr: u64,
    info: u64,
) -> Option<Next> {
    // Gather. The server has no fault to deliver instead.
    let tcb = k.get(server);
    if tcb.fault != Fault::None {
        return None;
    }
    let cap = lookup_fp(k, tcb.cap(Slot::CSpace), cptr)?;
    // The capability lets us receive.
    let endpoint = cap.object::<Endpoint>()?;
    if !cap.rights().contains(Rights::READ) {
        return None;
    }
    // Nobody waits to send, so we shall block.
    if SEVERAL {
        k.claim(endpoint, 0);
        k.claim(server.slot(Slot::Caller), 0);
    }
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
    claim_fp::<SEVERAL>(k, caller);
    if k.get(caller).fault != Fault::None {
        return None;
    }
    let successor = follower_fp::<SEVERAL>(k, server, caller)?;
    let buffers = buffers_fp(k, size, server, caller)?;
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
    transfer_fp(k, server, caller, 0, info, buffers);
    finish_fp::<SEVERAL>(k, caller, successor)
}
