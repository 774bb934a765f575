//! Who runs next.

use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{RECV, SEND, YIELD};

use super::world::{Thread, World};
use crate::arch::Interrupt;
use crate::object::tcb::ThreadState::*;

/// The order in which threads run when whoever runs yields.
fn yields(w: &mut World, count: usize, names: &[(Thread, char)]) -> String {
    (0..count)
        .map(|_| {
            let running = w.running().expect("somebody");
            w.syscall(YIELD, 0, 0, &[], &[]);
            names.iter().find(|(thread, _)| thread.tcb == running).map_or('?', |&(_, name)| name)
        })
        .collect()
}

/// Current C, ready P and a thread V that waits on the notification, all of one priority.
fn three() -> (World, [(Thread, char); 3], u64) {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let v = w.receiver(255, ntfn);
    let p = w.thread(255);
    w.resume(p);
    let root = w.root;
    (w, [(root, 'C'), (p, 'P'), (v, 'V')], ntfn)
}

#[test]
fn a_woken_thread_of_equal_priority_goes_to_the_tail() {
    let (mut w, names, ntfn) = three();
    w.syscall(SEND, ntfn, 0, &[], &[]);
    assert!(w.runs(w.root));
    assert_eq!(yields(&mut w, 6, &names), "CPVCPV");
}

#[test]
fn a_resumed_thread_of_equal_priority_runs_next() {
    let (mut w, names, _) = three();
    w.ok(names[2].0.slot, TCBSuspend, &[], &[]);
    w.ok(names[2].0.slot, TCBResume, &[], &[]);
    assert!(w.runs(w.root));
    assert_eq!(yields(&mut w, 3, &names), "CVP");
}

#[test]
fn a_better_thread_runs_at_once_and_a_worse_one_waits() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let waiter = w.receiver(100, ntfn);
    w.syscall(SEND, ntfn, 0, &[], &[]);
    assert!(w.runs(w.root));
    w.syscall(YIELD, 0, 0, &[], &[]);
    assert!(w.runs(w.root), "nobody of its priority is ready");
    w.run_as(waiter, |w| w.syscall(RECV, ntfn, 0, &[], &[]));
    w.ok(w.root.slot, TCBSetPriority, &[50], &[w.root.slot]);
    w.syscall(SEND, ntfn, 0, &[], &[]);
    assert!(w.runs(waiter));
}

#[test]
fn a_time_slice_lasts_five_ticks() {
    let mut w = World::new();
    let other = w.thread(255);
    w.resume(other);
    for tick in 1..=10 {
        w.interrupt(Interrupt::Timer);
        assert_eq!(w.runs(other), (5..10).contains(&tick), "tick {tick}");
    }
}

#[test]
fn the_core_idles_when_nobody_is_ready_and_wakes_on_an_interrupt() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let handler = w.fresh();
    let cnode = abi::bootinfo::slot::CNODE;
    w.ok(abi::bootinfo::slot::IRQ_CONTROL, IRQIssueIRQHandler, &[5, handler, 64], &[cnode]);
    w.ok(handler, IRQSetIRQHandler, &[], &[ntfn]);
    let space = w.k.arch.space();
    w.syscall(RECV, ntfn, 0, &[], &[]);
    assert_eq!(w.running(), None);
    assert_eq!(w.k.arch.space(), space, "an idle core stays in the address space that it was in");
    w.interrupt(Interrupt::Timer);
    assert_eq!(w.running(), None);
    w.interrupt(Interrupt::Source(5));
    assert!(w.runs(w.root));
    assert_eq!(w.k.arch.space(), space);
}

#[test]
fn priorities_move_ready_threads() {
    let mut w = World::new();
    let threads: Vec<Thread> = [10, 20, 30].map(|priority| w.thread(priority)).into();
    threads.iter().for_each(|&thread| w.resume(thread));
    w.ok(threads[0].slot, TCBSetPriority, &[40], &[w.root.slot]);
    let number = TCBSetPriority.number(w.k.config.labels).expect("exists");
    w.syscall(abi::syscall::CALL, w.root.slot, number, &[1], &[w.root.slot]);
    // The root task is preempted by the best.
    assert!(w.runs(threads[0]));
    w.syscall(RECV, 0, 0, &[], &[]);
    assert_eq!(w.state(threads[0]), Inactive);
    assert!(w.runs(threads[2]));
}

#[test]
fn a_thread_that_suspends_itself_does_it_again_when_resumed() {
    let mut w = World::new();
    let thread = w.thread(100);
    w.resume(thread);
    w.run_as(thread, |w| w.syscall(abi::syscall::CALL, thread.slot, 11, &[], &[]));
    assert_eq!(w.state(thread), Inactive);
    let words = w.ok(thread.slot, TCBReadRegisters, &[0, 1], &[]);
    assert_eq!(words, [super::world::CODE], "at its ecall");
    w.resume(thread);
    w.run_as(thread, |w| w.trap(abi::syscall::CALL));
    assert_eq!(w.state(thread), Inactive);
}

#[test]
fn restarted_waiters_are_put_at_the_head() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let badged = w.mint(endpoint, Rights::ALL, 1);
    let waiters: Vec<Thread> = (0..3).map(|_| w.receiver(255, endpoint)).collect();
    w.delete(badged);
    w.delete(endpoint);
    // Each was put at the head of the queue: the last runs first, behind the caller that goes on.
    assert!(waiters.iter().all(|&thread| w.state(thread) == Restart));
    assert_eq!(w.k.queues[0][255].head, Some(waiters[2].tcb));
}
