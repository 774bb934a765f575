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
use crate::{alarm, cspace, fpu, sched, thread, utilisation};

/// The current thread executed `ecall`; its registers are in its context.
pub fn handle_syscall(k: &mut Kernel) -> Next {
    match fast_syscall(k) {
        Some(thread) => {
            special::switch(k, Some(thread));
            Next::Run(thread)
        }
        None => slow_syscall(k),
    }
}

/// The fast path of a system call of the current thread, with its registers a0 and a1, which the trap handler has at hand. If it takes
/// the call: who runs next, with what is left to do: `special::switch`. Otherwise nothing has changed.
pub type FastPath = fn(&mut Kernel, Ref<Tcb>, u64, u64) -> Option<Ref<Tcb>>;

/// The fast path of whatever system call the registers of the current thread hold.
pub fn fast_syscall(k: &mut Kernel) -> Option<Ref<Tcb>> {
    let current = k.current();
    let x = &k.get(current).context.x;
    let (number, cptr, info) = (x[A7] as isize, x[A0], x[A1]);
    let path = match number {
        syscall::CALL => fast_call,
        syscall::REPLY_RECV => fast_reply_recv,
        syscall::SEND | syscall::NB_SEND => fast_send,
        syscall::RECV => fast_receive,
        syscall::NB_RECV => fast_try_receive,
        syscall::YIELD => fast_yield,
        extension::SIGNAL_RECV => fast_signal_recv,
        extension::WAIT_UNTIL => fast_wait_until,
        _ => return None,
    };
    path(k, current, cptr, info)
}

/// The [`FastPath`] of Call.
#[inline(always)] // this and the following: the trap handler has one copy each, in a function that saves few registers
pub fn fast_call(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { fastpath::call(k, Size::of(info)?, current, cptr, info) } else { None }
}

/// The [`FastPath`] of ReplyRecv.
#[inline(always)]
pub fn fast_reply_recv(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { fastpath::reply_recv(k, Size::of(info)?, current, cptr, info) } else { None }
}

/// The [`FastPath`] of Send and NBSend.
#[inline(always)]
pub fn fast_send(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { fastpath::send(k, current, cptr, info) } else { None }
}

/// The [`FastPath`] of Recv.
#[inline(always)]
pub fn fast_receive(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, _info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { fastpath::receive(k, current, cptr, true) } else { None }
}

/// The [`FastPath`] of NBRecv.
#[inline(always)]
pub fn fast_try_receive(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, _info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { fastpath::receive(k, current, cptr, false) } else { None }
}

/// The [`FastPath`] of SignalRecv.
#[inline(always)]
pub fn fast_signal_recv(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, _info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { handoff::signal_recv(k, current, cptr) } else { None }
}

/// The [`FastPath`] of WaitUntil: that of SignalRecv or Recv, if the alarm is set.
#[inline(always)]
pub fn fast_wait_until(k: &mut Kernel, current: Ref<Tcb>, cptr: u64, info: u64) -> Option<Ref<Tcb>> {
    let tcb = k.get(current);
    if !tcb.alarm.covers(tcb.context.x[A2]) {
        return None;
    }
    match tcb.context.x[A6] {
        0 => fast_receive(k, current, cptr, info),
        _ => fast_signal_recv(k, current, cptr, info),
    }
}

/// The [`FastPath`] of Yield.
#[inline(always)]
pub fn fast_yield(k: &mut Kernel, current: Ref<Tcb>, _cptr: u64, _info: u64) -> Option<Ref<Tcb>> {
    if k.config.fastpath { fastpath::yield_now(k, current) } else { None }
}

/// The whole of a system call without the fast path.
pub fn slow_syscall(k: &mut Kernel) -> Next {
    utilisation::enter(k);
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
            Some(next) => return next,
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
    next
}

/// An interrupt is pending on this core.
pub fn handle_interrupt(k: &mut Kernel) -> Next {
    utilisation::enter(k);
    interrupt(k);
    finish_entry(k)
}

/// `scause` of an illegal instruction.
const ILLEGAL_INSTRUCTION: u64 = 2;

/// The current thread trapped with exception `cause` (`scause`) at `address` (`stval`).
pub fn handle_fault(k: &mut Kernel, cause: u64, address: u64) -> Next {
    utilisation::enter(k);
    if cause == ILLEGAL_INSTRUCTION && fpu::take(k) {
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
    match k.arch.pending_interrupt() {
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
