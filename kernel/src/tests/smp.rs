//! Several cores under the big lock: the world executes the kernel as one core at a time.

use abi::label::Label::*;
use abi::object as ty;
use abi::syscall::{CALL, RECV, SEND};

use super::world::{Thread, World, with_cores};
use crate::api::syscall::{handle_interrupt, handle_wake};
use crate::arch::Interrupt;
use crate::arch::host::Effect;
use crate::object::tcb::ThreadState::*;

/// A thread of core 1 that waits for a signal there, and the notification; core 1 idles and looks.
fn waiter(w: &mut World, priority: u64) -> (Thread, u64) {
    let notification = w.make(ty::NOTIFICATION, 0);
    let thread = remote(w, priority);
    w.k.arch.core = 1;
    w.syscall(RECV, notification, 0, &[], &[]);
    w.k.arch.core = 0;
    w.k.arch.waits[1] = true;
    w.effects();
    (thread, notification)
}

/// Core 1 takes what it was handed.
fn come(w: &mut World) {
    w.k.arch.core = 1;
    let _ = handle_wake(&mut w.k);
    w.k.arch.core = 0;
    w.check_invariants();
}

#[test]
fn a_core_that_idles_is_handed_the_thread() {
    let mut w = with_cores(2);
    let (thread, notification) = waiter(&mut w, 100);
    w.syscall(SEND, notification, 0, &[], &[]);
    assert_eq!(w.effects(), [], "it needs no interrupt");
    assert_eq!(w.k.arch.handed[1], Some(thread.tcb));
    assert!(!w.k.get(thread.tcb).queued && w.k.cores[1].ready_summary == 0);
    come(&mut w);
    assert!(runs_on(&w, 1, thread));
    assert_eq!(w.k.arch.handed[1], None);
}

#[test]
fn a_thread_that_was_handed_over_is_an_ordinary_one_as_soon_as_somebody_asks() {
    // A second one of that core becomes ready: the first was ready before.
    let mut w = with_cores(2);
    let (second, another) = waiter(&mut w, 100);
    let (first, notification) = waiter(&mut w, 100);
    w.syscall(SEND, notification, 0, &[], &[]);
    w.syscall(SEND, another, 0, &[], &[]);
    assert_eq!(w.k.arch.handed[1], None);
    assert!(w.k.get(first.tcb).queued && w.k.get(second.tcb).queued);
    assert_eq!(w.effects(), [Effect::CallCores(2), Effect::CallCores(2)]);
    software_interrupt(&mut w, 1);
    assert!(runs_on(&w, 1, second), "who became ready last is at the head, as without handing over");

    // It is looked at, changed, moved, suspended, deleted.
    let touches: [fn(&mut World, Thread); 5] = [
        |w, thread| drop(w.ok(thread.slot, TCBReadRegisters, &[0, 1], &[])),
        |w, thread| drop(w.ok(thread.slot, TCBSetPriority, &[50], &[abi::bootinfo::slot::TCB])),
        |w, thread| drop(w.ok(thread.slot, TCBSetAffinity, &[0], &[])),
        |w, thread| drop(w.ok(thread.slot, TCBSuspend, &[], &[])),
        |w, thread| w.delete(thread.slot),
    ];
    for touch in touches {
        let mut w = with_cores(2);
        let (thread, notification) = waiter(&mut w, 100);
        w.syscall(SEND, notification, 0, &[], &[]);
        assert_eq!(w.k.arch.handed[1], Some(thread.tcb));
        touch(&mut w, thread);
        assert_eq!(w.k.arch.handed[1], None);
        assert!(w.effects().contains(&Effect::CallCores(2)), "the core comes and looks");
    }
}

/// Executes the kernel on `core` because of a software interrupt.
fn software_interrupt(w: &mut World, core: usize) {
    let before = w.k.core();
    w.k.arch.core = core;
    w.k.arch.pending.push_back(Interrupt::Software);
    let _ = handle_interrupt(&mut w.k);
    w.k.arch.core = before;
}

fn runs_on(w: &World, core: usize, thread: Thread) -> bool {
    w.k.cores[core].current == Some(thread.tcb)
}

/// A thread on core 1 that runs there.
fn remote(w: &mut World, priority: u64) -> Thread {
    let thread = w.thread(priority);
    w.ok(thread.slot, TCBSetAffinity, &[1], &[]);
    w.resume(thread);
    software_interrupt(w, 1);
    assert!(runs_on(w, 1, thread));
    thread
}

#[test]
fn a_thread_moves_to_another_core_which_is_told_only_if_it_matters() {
    let mut w = with_cores(2);
    let thread = w.thread(100);
    w.effects();
    w.ok(thread.slot, TCBSetAffinity, &[1], &[]);
    assert_eq!(w.effects(), []);
    w.resume(thread);
    assert_eq!(w.effects(), [Effect::CallCores(2)], "core 1 idles");
    software_interrupt(&mut w, 1);
    assert!(runs_on(&w, 1, thread));
    let worse = w.thread(50);
    w.ok(worse.slot, TCBSetAffinity, &[1], &[]);
    w.effects();
    w.resume(worse);
    assert_eq!(w.effects(), [], "core 1 has better to do");
    assert_eq!(w.invoke(worse.slot, TCBSetAffinity, &[2], &[]), (3, vec![]));
    w.check_invariants();
}

#[test]
fn messages_and_signals_cross_cores() {
    let mut w = with_cores(2);
    let endpoint = w.make(ty::ENDPOINT, 0);
    let server = remote(&mut w, 100);
    w.k.arch.core = 1;
    w.syscall(RECV, endpoint, 0, &[], &[]);
    w.k.arch.core = 0;
    w.effects();
    w.syscall(CALL, endpoint, 3, &[1], &[]);
    assert_eq!(w.state(w.root), BlockedOnReply);
    assert_eq!(w.running(), None, "core 0 has nobody else");
    assert_eq!(w.effects(), [Effect::CallCores(2)]);
    software_interrupt(&mut w, 1);
    assert!(runs_on(&w, 1, server));
    assert_eq!(w.message(server).words, [1]);
    w.k.arch.core = 1;
    w.syscall(abi::syscall::REPLY, 0, 4, &[2], &[]);
    assert!(runs_on(&w, 1, server));
    w.k.arch.core = 0;
    software_interrupt(&mut w, 0);
    assert!(w.runs(w.root));
    assert_eq!(w.message(w.root).words, [2]);
}

#[test]
fn a_thread_that_runs_elsewhere_is_stopped_before_it_is_touched() {
    let mut w = with_cores(2);
    let thread = remote(&mut w, 100);
    w.effects();
    w.ok(thread.slot, TCBSuspend, &[], &[]);
    assert_eq!(w.effects()[0], Effect::StallCore(1));
    assert_eq!(w.state(thread), Inactive);
    assert_eq!(w.k.cores[1].current, w.k.cores[1].idle);
    // Read with it running again: it is an ordinary ready thread afterwards.
    w.resume(thread);
    software_interrupt(&mut w, 1);
    w.ok(thread.slot, TCBReadRegisters, &[0, 1], &[]);
    assert_eq!(w.state(thread), Restart);
    assert!(w.k.get(thread.tcb).queued);
    software_interrupt(&mut w, 1);
    assert!(runs_on(&w, 1, thread));
    // Deleting it stops its core too.
    w.effects();
    w.delete(thread.slot);
    assert!(w.effects().contains(&Effect::StallCore(1)));
    assert_eq!(w.k.cores[1].current, w.k.cores[1].idle);
}

#[test]
fn a_thread_that_does_not_run_needs_no_stop() {
    let mut w = with_cores(2);
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let thread = remote(&mut w, 100);
    w.k.arch.core = 1;
    w.syscall(RECV, ntfn, 0, &[], &[]);
    w.k.arch.core = 0;
    w.effects();
    w.ok(thread.slot, TCBSuspend, &[], &[]);
    assert_eq!(w.effects(), []);
    w.resume(thread);
    software_interrupt(&mut w, 1);
    w.k.arch.core = 1;
    w.trap(RECV);
    w.k.arch.core = 0;
    w.syscall(SEND, ntfn, 0, &[], &[]);
    assert_eq!(w.state(thread), Running);
    assert!(w.k.get(thread.tcb).queued);
}

#[test]
fn the_domain_of_a_thread_that_runs_elsewhere_is_set_after_it_was_stopped() {
    // Found by the fuzzer: the thread was put into a ready queue while it ran.
    let mut w = with_cores(2);
    let thread = remote(&mut w, 100);
    w.effects();
    w.ok(abi::bootinfo::slot::DOMAIN, DomainSetSet, &[0], &[thread.slot]);
    assert!(w.effects().contains(&Effect::StallCore(1)));
    assert!(!runs_on(&w, 1, thread));
}
