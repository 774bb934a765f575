//! Long operations let interrupts in, keep what they have done, and go on.

use abi::bootinfo::slot::CNODE as ROOT;
use abi::extension::*;
use abi::label::Label::{self, *};
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, RECV, SEND};

use super::world::{Thread, World, with_receivers};
use crate::arch::Interrupt;
use crate::arch::register::PC;
use crate::object::cap::Kind;
use crate::object::endpoint::Endpoint;
use crate::object::tcb::ThreadState::*;

/// Threads that wait: more than the units of work between two looks at pending interrupts.
const MANY: usize = if cfg!(miri) { 130 } else { 250 };

/// A call of the root task, with a tick pending: gives how often it was preempted. `between` looks at the world after each time.
fn call_with_ticks(
    w: &mut World,
    cptr: u64,
    label: Label,
    words: &[u64],
    mut between: impl FnMut(&mut World),
) -> usize {
    let (root, number) = (w.root, label.number(w.k.config.labels).expect("exists"));
    w.k.work_units = 0;
    w.k.arch.pending.push_back(Interrupt::Timer);
    w.syscall(CALL, cptr, number, words, &[]);
    let mut preempted = 0;
    while w.k.get(root.tcb).context.next_pc == w.register(root, PC) {
        assert!(w.runs(root));
        preempted += 1;
        between(w);
        w.k.arch.pending.push_back(Interrupt::Timer);
        w.trap(CALL);
    }
    w.k.arch.pending.clear();
    assert_eq!(w.message(root).label, 0);
    preempted
}

/// Threads that wait on `cptr(n)`.
fn waiters(w: &mut World, count: usize, number: isize, mut cptr: impl FnMut(&mut World, usize) -> u64) -> Vec<Thread> {
    w.check = false;
    let threads = (0..count).map(|index| {
        let cptr = cptr(w, index);
        let thread = w.thread(10);
        w.resume(thread);
        w.run_as(thread, |w| w.syscall(number, cptr, 0, &[], &[]));
        thread
    });
    let threads = threads.collect();
    w.check = true;
    threads
}

#[test]
fn waiters_of_a_dying_endpoint_are_restarted_in_steps() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let threads = waiters(&mut w, MANY, RECV, |_, _| endpoint);
    let preempted = call_with_ticks(&mut w, ROOT, CNodeDelete, &[endpoint, 64], |w| {
        // What is left is no endpoint any more: nobody can start to wait.
        assert!(w.cap(endpoint).is(Kind::Zombie));
        assert_eq!(w.call(endpoint, 0, &[], &[]).0, 2, "invalid capability");
        let root = w.root;
        let x = &mut w.k.get_mut(root.tcb).context.x;
        x[crate::arch::register::A0] = ROOT;
        x[crate::arch::register::A1] =
            abi::message::MessageInfo::new(CNodeDelete.number(abi::label::Table::Up).expect("exists"), 0, 0, 2).0;
        (x[crate::arch::register::A2], x[crate::arch::register::A3]) = (endpoint, 64);
    });
    assert_eq!(preempted, MANY / 100);
    assert!(w.cap(endpoint).is_null());
    assert!(threads.iter().all(|&thread| w.state(thread) == Restart));
}

#[test]
fn a_thread_leaves_the_queue_of_a_dying_notification() {
    let mut w = World::new();
    let notification = w.make(ty::NOTIFICATION, 0);
    let threads = waiters(&mut w, MANY, RECV, |_, _| notification);
    let number = CNodeDelete.number(w.k.config.labels).expect("exists");
    w.k.arch.pending.push_back(Interrupt::Timer);
    w.syscall(CALL, ROOT, number, &[notification, 64], &[]);
    assert!(w.cap(notification).is(Kind::Zombie));
    let last = threads[MANY - 1];
    assert_eq!(w.state(last), BlockedOnNotification);
    w.ok(last.slot, TCBSuspend, &[], &[]);
    assert_eq!(w.state(last), Inactive);
    w.delete(notification);
    assert!(w.cap(notification).is_null());
}

#[test]
fn senders_are_cancelled_in_steps_and_the_others_keep_their_order() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let badged = [w.mint(endpoint, Rights::ALL, 1), w.mint(endpoint, Rights::ALL, 2)];
    let threads = waiters(&mut w, MANY, SEND, |_, index| badged[index % 2]);
    let object = w.object::<Endpoint>(endpoint);
    let mut late = None;
    let preempted = call_with_ticks(&mut w, ROOT, CNodeCancelBadgedSends, &[badged[0], 64], |_| {});
    assert_eq!(preempted, MANY / 100);
    let mut next = w.k.get(object).queue.head();
    for (index, &thread) in threads.iter().enumerate() {
        let expected = if index % 2 == 0 { Restart } else { BlockedOnSend };
        assert_eq!(w.state(thread), expected);
        if index % 2 == 1 {
            assert_eq!(next, Some(thread.tcb), "out of order");
            next = w.k.get(thread.tcb).queue_next;
            late = Some(thread);
        }
    }
    assert_eq!(next, None);
    assert_eq!(w.k.get(object).queue.tail(), late.map(|thread| thread.tcb));
    // A second one visits everybody again.
    w.ok(ROOT, CNodeCancelBadgedSends, &[badged[1], 64], &[]);
    assert!(threads.iter().all(|&thread| w.state(thread) == Restart));
}

#[test]
fn no_more_than_512_entries_post_to_one_receiver() {
    let mut w = with_receivers(4);
    let notification = w.make(ty::NOTIFICATION, 0);
    let (error, _) = w.call(w.root.slot, TCB_BIND_USER_INTERRUPT, &[], &[notification]);
    assert_eq!(error, 0);
    let badged = w.mint(notification, Rights::READ_WRITE, 1);
    w.check = false;
    for _ in 0..4 {
        let table = w.make(SENDER_TABLE, 0);
        for index in 0..SENDER_TABLE_ENTRIES as u64 {
            assert_eq!(w.call(table, SENDER_TABLE_REGISTER, &[], &[badged]), (0, vec![index]));
        }
    }
    let table = w.make(SENDER_TABLE, 0);
    assert_eq!(w.call(table, SENDER_TABLE_REGISTER, &[], &[badged]), (10, vec![0]));
    w.check = true;
    let preempted = call_with_ticks(&mut w, ROOT, CNodeDelete, &[badged, 64], |_| {});
    assert_eq!(preempted, 512 / 100);
    assert_eq!(w.call(table, SENDER_TABLE_REGISTER, &[], &[badged]).0, 2, "it is gone");
}
