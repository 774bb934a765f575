//! The three ways into the kernel: system call, interrupt, fault. Each ends with the scheduler's decision.

use abi::error::LookupFailure;
use abi::extension;
use abi::fault as layout;
use abi::message::MessageInfo;
use abi::rights::Rights;
use abi::syscall;

use super::debug;
use super::error::Stop;
use super::fault::{self, Fault};
use super::invocation::{self, Answer, Invocation, Origin};
use crate::arch::register::{A0, A1, A2, A6, A7};
use crate::arch::{Arch, Interrupt};
use crate::fastpath::{self, Size};
use crate::handoff;
use crate::mem::Ref;
use crate::object::cap::{Cap, Kind};
use crate::object::endpoint::{self, Endpoint, SendRights};
use crate::object::irq;
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::special;
use crate::state::{Kernel, Next};
use crate::syscall_ring::{self, handover};
use crate::{alarm, cspace, fpu, log, sched, thread, utilisation};

/// The current thread executed `ecall`; its registers are in its context.
pub fn handle_syscall(k: &mut Kernel) -> Next {
    match fast_syscall(k) {
        Some(next) => {
            special::switch(k, next.thread());
            next
        }
        None => slow_syscall(k),
    }
}

/// The fast path of a system call. Its types are the system calls that have one.
pub trait FastPath {
    /// Whether the thread may go on at once, with its special registers.
    const MAY_GO_ON: bool;

    /// The system call of `current`, the current thread, with its registers a0 and a1, which the trap handler has at hand. If the fast path
    /// takes it: what runs next, with what is left to do: `special::switch`. Otherwise nothing has changed.
    ///
    /// Each exists twice: for a kernel with one core, and for one with several, where whoever a thread talks to may belong to another.
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next>;
}

/// The fast path of whatever system call the registers of the current thread hold.
pub fn fast_syscall(k: &mut Kernel) -> Option<Next> {
    if k.arch.cores() > 1 { fast_syscall_on::<true>(k) } else { fast_syscall_on::<false>(k) }
}

fn fast_syscall_on<const SEVERAL: bool>(k: &mut Kernel) -> Option<Next> {
    let current = k.current();
    let x = &k.get(current).context.x;
    let (number, cptr, info) = (x[A7] as isize, x[A0], x[A1]);
    let path = match number {
        syscall::CALL => Call::follow::<SEVERAL>,
        syscall::REPLY_RECV => ReplyRecv::follow::<SEVERAL>,
        syscall::SEND | syscall::NB_SEND => Send::follow::<SEVERAL>,
        syscall::RECV => Recv::follow::<SEVERAL>,
        syscall::NB_RECV => NbRecv::follow::<SEVERAL>,
        syscall::YIELD => Yield::follow::<SEVERAL>,
        extension::SIGNAL_RECV => SignalRecv::follow::<SEVERAL>,
        extension::WAIT_UNTIL => WaitUntil::follow::<SEVERAL>,
        _ => return None,
    };
    path(k, current, cptr, info)
}

/// Call.
pub struct Call;

impl FastPath for Call {
    const MAY_GO_ON: bool = false;

    #[inline(always)] // this and the following: the trap handler has copies of each, in functions that save few registers
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next> {
        if k.config.fastpath { fastpath::call::<SEVERAL>(k, Size::of(info)?, current, cptr, info) } else { None }
    }
}

/// ReplyRecv.
pub struct ReplyRecv;

impl FastPath for ReplyRecv {
    const MAY_GO_ON: bool = false;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next> {
        if k.config.fastpath { fastpath::reply_recv::<SEVERAL>(k, Size::of(info)?, current, cptr, info) } else { None }
    }
}

/// Send and NBSend.
pub struct Send;

impl FastPath for Send {
    const MAY_GO_ON: bool = true;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next> {
        if k.config.fastpath { fastpath::send::<SEVERAL>(k, current, cptr, info) } else { None }
    }
}

/// Recv.
pub struct Recv;

impl FastPath for Recv {
    const MAY_GO_ON: bool = true;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, _info: u64) -> Option<Next> {
        if k.config.fastpath { fastpath::receive::<SEVERAL>(k, current, cptr, true) } else { None }
    }
}

/// NBRecv.
pub struct NbRecv;

impl FastPath for NbRecv {
    const MAY_GO_ON: bool = true;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, _info: u64) -> Option<Next> {
        if k.config.fastpath { fastpath::receive::<SEVERAL>(k, current, cptr, false) } else { None }
    }
}

/// SignalRecv.
pub struct SignalRecv;

impl FastPath for SignalRecv {
    const MAY_GO_ON: bool = false;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, _info: u64) -> Option<Next> {
        if k.config.fastpath { handoff::signal_recv::<SEVERAL>(k, current, cptr) } else { None }
    }
}

/// WaitUntil: as SignalRecv or Recv, if the alarm is set.
pub struct WaitUntil;

impl FastPath for WaitUntil {
    const MAY_GO_ON: bool = true;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Next> {
        let tcb = k.get(current);
        if !tcb.alarm.covers(tcb.context.x[A2]) {
            return None;
        }
        match tcb.context.x[A6] {
            0 => Recv::follow::<SEVERAL>(k, current, cptr, info),
            _ => SignalRecv::follow::<SEVERAL>(k, current, cptr, info),
        }
    }
}

/// Yield.
pub struct Yield;

impl FastPath for Yield {
    const MAY_GO_ON: bool = true;

    #[inline(always)]
    fn follow<const SEVERAL: bool>(k: &mut Kernel, current: Ref<Tcb>, _cptr: u64, _info: u64) -> Option<Next> {
        if k.config.fastpath { fastpath::yield_now(k, current) } else { None }
    }
}

/// The whole of a system call without the fast path.
pub fn slow_syscall(k: &mut Kernel) -> Next {
    utilisation::enter(k);
    log::enter_syscall(k);
    let number = k.get(k.current()).context.x[A7] as isize;
    match number {
        syscall::CALL => send(k, true, true),
        syscall::REPLY_RECV => {
            reply(k);
            receive(k, true);
        }
        syscall::SEND => send(k, false, true),
        syscall::NB_SEND => send(k, false, false),
        syscall::RECV => receive(k, true),
        syscall::REPLY => reply(k),
        syscall::YIELD => yield_now(k),
        syscall::NB_RECV => receive(k, false),
        extension::SIGNAL_RECV => {
            signal(k);
            receive(k, true);
        }
        extension::WAIT_UNTIL => wait_until(k),
        extension::RING_ENTER => syscall_ring::enter(k),
        _ => match debug::handle(k, number) {
            Some(next) => {
                log::leave(k);
                return next;
            }
            None => {
                let current = k.current();
                fault::handle(k, current, Fault::UnknownSyscall { number: number as u64 }, None);
            }
        },
    }
    finish_entry(k)
}

/// The decision, and the end of the account of this entry.
fn finish_entry(k: &mut Kernel) -> Next {
    let next = sched::leave(k);
    utilisation::leave(k);
    log::leave(k);
    next
}

/// This core idled, and something woke it.
pub fn handle_wake(k: &mut Kernel) -> Next {
    utilisation::enter(k);
    log::enter_interrupt(k);
    if !sched::take_handed(k) {
        interrupt(k);
    }
    finish_entry(k)
}

/// An interrupt is pending on this core.
pub fn handle_interrupt(k: &mut Kernel) -> Next {
    utilisation::enter(k);
    log::enter_interrupt(k);
    interrupt(k);
    finish_entry(k)
}

/// `scause` of an illegal instruction.
const ILLEGAL_INSTRUCTION: u64 = 2;

/// The current thread trapped with exception `cause` (`scause`) at `address` (`stval`).
pub fn handle_fault(k: &mut Kernel, cause: u64, address: u64) -> Next {
    utilisation::enter(k);
    log::enter_fault(k, cause);
    if cause == ILLEGAL_INSTRUCTION && fpu::take(k) {
        log::leave(k);
        return Next::Run(k.current());
    }
    // Exception codes of the privileged manual: access and page faults of fetch, load, store.
    let fault = match cause {
        1 | 12 => Fault::Vm { address, status: layout::FSR_FETCH },
        5 | 13 => Fault::Vm { address, status: layout::FSR_LOAD },
        7 | 15 => Fault::Vm { address, status: layout::FSR_STORE },
        _ => Fault::User { cause },
    };
    let current = k.current();
    fault::handle(k, current, fault, None);
    finish_entry(k)
}

/// Deals with the most urgent pending interrupt of this core, if there is one.
pub fn interrupt(k: &mut Kernel) {
    let pending = k.arch.pending_interrupt();
    if let Some(interrupt) = pending {
        log::note_interrupt(k, interrupt);
    }
    match pending {
        Some(Interrupt::Source(source)) => irq::handle(k, source),
        Some(Interrupt::Timer) => {
            alarm::interrupt(k);
        }
        Some(Interrupt::Software) => {
            handover::help(k);
            sched::reschedule_required(k);
        }
        None => {}
    }
}

fn yield_now(k: &mut Kernel) {
    let current = k.current();
    sched::dequeue(k, current);
    sched::append(k, current);
    sched::reschedule_required(k);
}

fn cap_fault(k: &mut Kernel, thread: Ref<Tcb>, cptr: u64, receiving: bool, failure: LookupFailure) {
    fault::handle(k, thread, Fault::Cap { cptr, receiving }, Some(failure));
}

/// Send, NBSend and Call (seL4 `handleInvocation`).
fn send(k: &mut Kernel, call: bool, blocking: bool) {
    let caller = k.current();
    let (cptr, info) = {
        let x = &k.get(caller).context.x;
        (x[A0], MessageInfo(x[A1]))
    };
    let slot = match cspace::lookup_slot(k, caller, cptr) {
        Ok(slot) => slot,
        Err(failure) if blocking => return cap_fault(k, caller, cptr, false, failure),
        Err(_) => return,
    };
    let buffer = thread::buffer(k, caller, false);
    let extra = match thread::extra_caps(k, caller, info, buffer) {
        Ok(extra) => extra,
        Err((cptr, failure)) if blocking => return cap_fault(k, caller, cptr, false, failure),
        Err(_) => return,
    };
    let length = match buffer {
        Some(_) => info.length(),
        None => info.length().min(abi::message::REGISTERS),
    };
    let cap = k.cap(slot);
    let request =
        Invocation { caller, slot, cap, label: info.label(), length, origin: Origin::Trap(buffer), extra, call };
    match dispatch(k, &request, blocking) {
        Ok(()) => {}
        Err(Stop::Preempted) => interrupt(k),
        Err(Stop::Refused(refusal)) => {
            if call {
                let (label, words, length) = refusal.reply();
                invocation::answer(k, caller, label, &words[..length], length);
            }
        }
    }
}

fn dispatch(k: &mut Kernel, request: &Invocation, blocking: bool) -> Result<(), Stop> {
    let Invocation { caller, cap, call, .. } = *request;
    match cap.kind() {
        Kind::Endpoint => {
            let endpoint = endpoint::sendable(cap)?;
            request.commit(k);
            endpoint::send(k, caller, endpoint, SendRights::of(cap), call, blocking);
            // A send that did not block, and whose sender is not waiting for a reply, is over.
            finish(k, request, None);
            Ok(())
        }
        Kind::Reply => {
            if cap.reply_master() {
                return Err(super::error::Refusal::InvalidCapability(0).into());
            }
            request.commit(k);
            thread::reply(k, caller, request.slot);
            finish(k, request, Some(Answer::Empty));
            Ok(())
        }
        _ => {
            let answer = invocation::decode(k, request)?;
            finish(k, request, Some(answer));
            Ok(())
        }
    }
}

/// The request was carried out. If the caller is still at it, it goes on behind its `ecall`, with the answer.
fn finish(k: &mut Kernel, request: &Invocation, answer: Option<Answer>) {
    let caller = request.caller;
    if k.get(caller).state != ThreadState::Restart {
        return;
    }
    if let Some(answer) = answer.filter(|_| request.call) {
        match answer {
            Answer::Empty => invocation::answer(k, caller, 0, &[], 0),
            Answer::Words(words, length) => invocation::answer(k, caller, 0, &words[..length.min(4)], length),
        }
    }
    thread::set_state(k, caller, ThreadState::Running);
}

/// Reply (seL4 `handleReply`).
fn reply(k: &mut Kernel) {
    let current = k.current();
    thread::reply(k, current, current.slot(Slot::Caller));
}

/// The first half of SignalRecv. As with NBSend, a capability that cannot be signalled is no fault: its owner may have taken it
/// back at any time.
fn signal(k: &mut Kernel) {
    let current = k.current();
    let cptr = k.get(current).context.x[A6];
    let Ok(slot) = cspace::lookup_slot(k, current, cptr) else { return };
    let cap = k.cap(slot);
    if let Some(object) = notification::signallable(cap) {
        notification::signal(k, object, cap.badge());
    }
}

/// WaitUntil: SignalRecv, or Recv if there is nothing to signal, that ends at a time.
#[inline(never)] // the other system calls would save registers for it
fn wait_until(k: &mut Kernel) {
    let current = k.current();
    let (until, other) = {
        let x = &k.get(current).context.x;
        (x[A2], x[A6])
    };
    let blocking = !alarm::has_come(k, until);
    if other != 0 {
        signal(k);
    }
    receive(k, blocking);
    alarm::set(k, current);
}

/// Recv and NBRecv (seL4 `handleRecv`).
fn receive(k: &mut Kernel, blocking: bool) {
    let receiver = k.current();
    let cptr = k.get(receiver).context.x[A0];
    let slot = match cspace::lookup_slot(k, receiver, cptr) {
        Ok(slot) => slot,
        Err(failure) => return cap_fault(k, receiver, cptr, true, failure),
    };
    let cap = k.cap(slot);
    if cap.rights().contains(Rights::READ) {
        if let Some(endpoint) = cap.object::<Endpoint>() {
            thread::delete_caller(k, receiver);
            return endpoint::receive(k, receiver, endpoint, cap, blocking);
        }
        if let Some(object) = waitable(k, receiver, cap) {
            return notification::wait(k, receiver, object, blocking);
        }
    }
    cap_fault(k, receiver, cptr, true, LookupFailure::MissingCapability { bits_left: 0 });
}

/// The notification of `cap`, unless it is bound to another thread.
fn waitable(k: &Kernel, waiter: Ref<Tcb>, cap: Cap) -> Option<Ref<Notification>> {
    cap.object::<Notification>().filter(|&object| k.get(object).bound_thread().is_none_or(|bound| bound == waiter))
}
