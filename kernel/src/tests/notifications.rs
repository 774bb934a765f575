//! Signals and waits.

use abi::bootinfo::slot;
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, NB_RECV, RECV, SEND};

use super::world::World;
use crate::arch::Interrupt;
use crate::arch::host::Effect;
use crate::arch::register::{A0, A1, A2};
use crate::object::tcb::ThreadState::*;

#[test]
fn signals_are_collected_and_taken_at_once() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let (one, two) = (w.mint(ntfn, Rights::WRITE, 0x10), w.mint(ntfn, Rights::ALL, 0x20));
    assert_eq!(w.call(one, 0, &[], &[]), (0, vec![]));
    w.syscall(SEND, two, 0, &[], &[]);
    let root = w.root;
    let x = &mut w.k.get_mut(root.tcb).context.x;
    (x[A0], x[A1], x[A2]) = (ntfn, 0, 0xAA);
    w.trap(NB_RECV);
    assert_eq!([A0, A1, A2].map(|r| w.register(root, r)), [0x30, 0, 0xAA]);
    w.syscall(NB_RECV, ntfn, 0, &[], &[]);
    assert_eq!(w.register(root, A0), 0);
}

#[test]
fn a_signal_wakes_the_first_waiter_only() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let badged = w.mint(ntfn, Rights::ALL, 4);
    let (first, second) = (w.receiver(10, ntfn), w.receiver(20, ntfn));
    assert_eq!(w.state(first), BlockedOnNotification);
    w.syscall(SEND, badged, 0, &[], &[]);
    assert_eq!((w.state(first), w.state(second)), (Running, BlockedOnNotification));
    assert_eq!(w.register(first, A0), 4);
}

#[test]
fn rights_are_needed_on_either_side() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let (read, write) = (w.copy(ntfn, Rights::READ), w.copy(ntfn, Rights::WRITE));
    assert_eq!(w.call(read, 0, &[], &[]), (2, vec![0]));
    let thread = w.thread(255);
    w.resume(thread);
    w.run_as(thread, |w| w.syscall(NB_RECV, write, 0, &[], &[]));
    assert_eq!(w.state(thread), Inactive, "it faults, without a handler");
}

#[test]
fn a_bound_thread_gets_the_signal_while_it_receives() {
    let mut w = World::new();
    let (ntfn, endpoint) = (w.make(ty::NOTIFICATION, 0), w.make(ty::ENDPOINT, 0));
    let badged = w.mint(ntfn, Rights::ALL, 8);
    let server = w.receiver(255, endpoint);
    w.ok(server.slot, TCBBindNotification, &[], &[ntfn]);
    w.syscall(SEND, badged, 0, &[], &[]);
    assert_eq!((w.state(server), w.register(server, A0)), (Running, 8));
    // A signal that is there already comes before any message.
    w.syscall(SEND, badged, 0, &[], &[]);
    w.run_as(server, |w| w.syscall(RECV, endpoint, 0, &[], &[]));
    assert_eq!((w.state(server), w.register(server, A0)), (Running, 8));
    // Nobody else may wait on it.
    let other = w.thread(255);
    w.resume(other);
    w.run_as(other, |w| w.syscall(RECV, ntfn, 0, &[], &[]));
    assert_eq!(w.state(other), Inactive);
}

#[test]
fn a_thread_that_waits_for_a_reply_is_not_disturbed() {
    let mut w = World::new();
    let (ntfn, endpoint) = (w.make(ty::NOTIFICATION, 0), w.make(ty::ENDPOINT, 0));
    let client = w.thread(255);
    w.ok(client.slot, TCBBindNotification, &[], &[ntfn]);
    w.resume(client);
    w.run_as(client, |w| w.syscall(CALL, endpoint, 0, &[], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    w.syscall(SEND, ntfn, 0, &[], &[]);
    assert_eq!(w.state(client), BlockedOnReply);
}

#[test]
fn deleting_either_side_unbinds() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let thread = w.thread(10);
    w.ok(thread.slot, TCBBindNotification, &[], &[ntfn]);
    w.delete(ntfn);
    assert!(w.k.get(thread.tcb).bound_notification.is_none());
    let second = w.make(ty::NOTIFICATION, 0);
    w.ok(thread.slot, TCBBindNotification, &[], &[second]);
    w.delete(thread.slot);
    let object = w.object::<crate::object::notification::Notification>(second);
    assert!(w.k.get(object).bound_thread().is_none());
}

#[test]
fn an_interrupt_signals_its_notification() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let badged = w.mint(ntfn, Rights::ALL, 1 << 63);
    let handler = w.fresh();
    w.ok(slot::IRQ_CONTROL, IRQIssueIRQHandler, &[10, handler, 64], &[slot::CNODE]);
    w.ok(handler, IRQSetIRQHandler, &[], &[badged]);
    assert!(w.effects().contains(&Effect::EnableSource(10)));
    w.interrupt(Interrupt::Source(10));
    w.syscall(NB_RECV, ntfn, 0, &[], &[]);
    assert_eq!(w.register(w.root, A0), 1 << 63);
    assert_eq!(w.effects(), [], "silent until it is acknowledged");
    w.ok(handler, IRQAckIRQ, &[], &[]);
    assert_eq!(w.effects(), [Effect::CompleteSource(10)]);
    // Revoking the notification takes the handler's copy away.
    w.revoke(ntfn);
    w.interrupt(Interrupt::Source(10));
    w.syscall(NB_RECV, ntfn, 0, &[], &[]);
    assert_eq!(w.register(w.root, A0), 0);
    // Deleting the handler masks the source and lets it be issued again.
    w.delete(handler);
    assert!(w.effects().contains(&Effect::DisableSource(10)));
    w.ok(slot::IRQ_CONTROL, IRQIssueIRQHandler, &[10, handler, 64], &[slot::CNODE]);
}

#[test]
fn a_notification_that_threads_wait_on_cannot_be_bound() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let waiter = w.receiver(100, ntfn);
    let other = w.thread(100);
    assert_eq!(w.invoke(other.slot, TCBBindNotification, &[], &[ntfn]), (3, vec![]));
    w.ok(waiter.slot, TCBSuspend, &[], &[]);
    assert_eq!(w.invoke(other.slot, TCBBindNotification, &[], &[ntfn]), (0, vec![]));
}
