//! Waits that end at a time.

use abi::extension::{TCB_BIND_USER_INTERRUPT, WAIT_UNTIL};
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{NB_RECV, RECV, SEND};
use proptest::prelude::*;

use super::world::{Thread, World, with_cores, with_receivers};
use crate::arch::host::{Effect, TICK};
use crate::arch::register::{A0, A6};
use crate::arch::{Arch, Interrupt};
use crate::object::notification::Notification;
use crate::object::tcb::ThreadState::*;

/// Whoever runs waits on `cptr` until `until`, after it has signalled `other`.
fn wait_until(w: &mut World, cptr: u64, until: u64, other: u64) {
    let current = w.running().expect("somebody runs");
    w.k.get_mut(current).context.x[A6] = other;
    w.syscall(WAIT_UNTIL, cptr, 0, &[until], &[]);
}

/// A thread that waits on `cptr` until `until`; its badge register shows what it gets.
fn waiter(w: &mut World, priority: u64, cptr: u64, until: u64) -> Thread {
    let thread = w.thread(priority);
    w.resume(thread);
    w.run_as(thread, |w| wait_until(w, cptr, until, 0));
    thread
}

/// It becomes `now`, and the timer interrupts if it is set to that or earlier.
fn time_comes(w: &mut World, now: u64) {
    w.k.arch.now = now;
    let core = w.k.arch.core;
    while w.k.arch.timers[core] <= now {
        w.interrupt(Interrupt::Timer);
    }
}

fn is_set(w: &World, thread: Thread) -> bool {
    w.k.get(thread.tcb).alarm.is_set()
}

#[test]
fn the_time_ends_a_wait_with_badge_0() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    w.effects();
    let thread = waiter(&mut w, 10, ntfn, 400);
    assert!(w.effects().contains(&Effect::SetTimer(400)));
    assert_eq!(w.state(thread), BlockedOnNotification);
    time_comes(&mut w, 399);
    assert_eq!(w.state(thread), BlockedOnNotification);
    time_comes(&mut w, 400);
    assert_eq!((w.state(thread), w.register(thread, A0)), (Running, 0));
    assert!(!is_set(&w, thread));
    assert_eq!(w.k.get(w.object::<Notification>(ntfn)).state(), 0, "it is in no queue any more");
    assert_eq!(w.k.arch.timers[0], TICK, "the tick is where it was");
    time_comes(&mut w, TICK);
    assert_eq!(w.k.arch.timers[0], 2 * TICK);
}

#[test]
fn a_signal_comes_first_and_the_alarm_is_in_vain() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let badged = w.mint(ntfn, Rights::ALL, 4);
    let thread = waiter(&mut w, 10, ntfn, 400);
    w.syscall(SEND, badged, 0, &[], &[]);
    assert_eq!((w.state(thread), w.register(thread, A0)), (Running, 4));
    // It waits for good now.
    w.run_as(thread, |w| w.syscall(RECV, ntfn, 0, &[], &[]));
    assert!(is_set(&w, thread));
    time_comes(&mut w, 500);
    assert_eq!(w.state(thread), BlockedOnNotification);
    assert!(!is_set(&w, thread));
}

#[test]
fn a_time_that_has_come_only_looks() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let badged = w.mint(ntfn, Rights::ALL, 4);
    w.k.arch.now = 100;
    let root = w.root;
    for (until, signalled) in [(100, false), (0, false), (7, true)] {
        if signalled {
            w.syscall(SEND, badged, 0, &[], &[]);
        }
        wait_until(&mut w, ntfn, until, 0);
        assert!(w.runs(root));
        assert_eq!(w.register(root, A0), if signalled { 4 } else { 0 });
        assert!(!is_set(&w, root));
    }
}

#[test]
fn a_message_or_the_time_ends_a_wait_on_an_endpoint() {
    let mut w = World::new();
    let (endpoint, ntfn) = (w.make(ty::ENDPOINT, 0), w.make(ty::NOTIFICATION, 0));
    let badged = w.mint(ntfn, Rights::ALL, 8);
    let server = waiter(&mut w, 10, endpoint, 400);
    assert_eq!(w.state(server), BlockedOnReceive);
    w.syscall(SEND, endpoint, 5, &[6, 7], &[]);
    assert_eq!(w.state(server), Running);
    assert_eq!((w.message(server).label, w.message(server).words), (5, vec![6, 7]));
    w.run_as(server, |w| wait_until(w, endpoint, 450, 0));
    time_comes(&mut w, 450);
    assert_eq!((w.state(server), w.register(server, A0)), (Running, 0));
    // And a signal of the bound notification.
    w.ok(server.slot, TCBBindNotification, &[], &[ntfn]);
    w.run_as(server, |w| wait_until(w, endpoint, 480, 0));
    w.syscall(SEND, badged, 0, &[], &[]);
    assert_eq!((w.state(server), w.register(server, A0)), (Running, 8));
    w.interrupt(Interrupt::Timer);
    // A fault in place of the wait leaves no alarm.
    w.run_as(server, |w| wait_until(w, 1 << 40, 700, 0));
    assert_eq!((w.state(server), is_set(&w, server)), (Inactive, false));
}

#[test]
fn later_times_find_the_alarm_set_and_earlier_ones_set_it() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let thread = waiter(&mut w, 10, ntfn, 300);
    let again = |w: &mut World, until| {
        w.syscall(SEND, ntfn, 0, &[], &[]);
        w.effects();
        w.run_as(thread, |w| wait_until(w, ntfn, until, 0));
        let set = w.effects().iter().any(|effect| matches!(effect, Effect::SetTimer(_)));
        (w.k.get(thread.tcb).alarm.at, set)
    };
    assert_eq!(again(&mut w, 500), (300, false));
    assert_eq!(again(&mut w, 300), (300, false));
    assert_eq!(again(&mut w, 200), (200, true));
    assert_eq!(again(&mut w, u64::MAX), (200, false));
    assert_eq!(again(&mut w, 600), (200, false));
    // It goes off in vain once, and then at the right time.
    time_comes(&mut w, 200);
    assert_eq!((w.state(thread), w.k.get(thread.tcb).alarm.at), (BlockedOnNotification, 600));
    time_comes(&mut w, 600);
    assert_eq!(w.state(thread), Running);
}

#[test]
fn who_is_stopped_or_deleted_is_not_woken() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let (stopped, deleted) = (waiter(&mut w, 10, ntfn, 300), waiter(&mut w, 10, ntfn, 200));
    w.ok(stopped.slot, TCBSuspend, &[], &[]);
    w.delete(deleted.slot);
    time_comes(&mut w, 250);
    w.ok(stopped.slot, TCBResume, &[], &[]);
    // It executes its system call again.
    w.run_as(stopped, |w| w.trap(WAIT_UNTIL));
    assert_eq!(w.state(stopped), BlockedOnNotification);
    // What it waits for goes away: it faults, long before the time.
    w.delete(ntfn);
    assert_eq!(w.state(stopped), Restart);
    w.run_as(stopped, |w| w.trap(WAIT_UNTIL));
    assert_eq!(w.state(stopped), Inactive);
    time_comes(&mut w, 300);
    assert_eq!(w.state(stopped), Inactive);
}

#[test]
fn it_signals_first() {
    let mut w = World::new();
    let (own, other) = (w.make(ty::NOTIFICATION, 0), w.make(ty::NOTIFICATION, 0));
    let peer = w.receiver(20, other);
    let thread = w.thread(20);
    w.resume(thread);
    w.run_as(thread, |w| wait_until(w, own, 300, other));
    assert_eq!((w.state(thread), w.state(peer)), (BlockedOnNotification, Running));
    // Also if the time has come.
    w.k.arch.now = 300;
    w.run_as(peer, |w| wait_until(w, other, 300, own));
    assert_eq!((w.state(thread), w.state(peer)), (Running, Running));
}

#[test]
fn the_bits_of_a_doorbell_end_it() {
    let mut w = with_receivers(4);
    let ntfn = w.make(ty::NOTIFICATION, 0);
    assert_eq!(w.call(w.root.slot, TCB_BIND_USER_INTERRUPT, &[], &[ntfn]).0, 0);
    let receiver = w.k.get(w.object::<Notification>(ntfn)).receiver();
    w.k.arch.post_receiver(receiver, 0x40);
    wait_until(&mut w, ntfn, 300, 0);
    assert!(w.runs(w.root));
    assert_eq!(w.register(w.root, A0), 0x40);
}

#[test]
fn an_interrupt_looks_at_so_many_and_the_next_comes_at_once() {
    let mut w = World::new();
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let threads: Vec<Thread> = (0..40).map(|_| waiter(&mut w, 10, ntfn, 300)).collect();
    w.k.arch.now = 300;
    w.interrupt(Interrupt::Timer);
    let woken = |w: &World| threads.iter().filter(|&&thread| w.state(thread) == Running).count();
    assert_eq!((woken(&w), w.k.arch.timers[0]), (32, 300));
    w.interrupt(Interrupt::Timer);
    assert_eq!((woken(&w), w.k.arch.timers[0]), (40, TICK));
}

#[test]
fn a_thread_that_has_moved_is_woken_where_it_is() {
    let mut w = with_cores(2);
    let ntfn = w.make(ty::NOTIFICATION, 0);
    let thread = waiter(&mut w, 10, ntfn, 300);
    w.ok(thread.slot, TCBSetAffinity, &[1], &[]);
    w.effects();
    time_comes(&mut w, 300);
    assert_eq!(w.state(thread), Running);
    assert!(w.effects().contains(&Effect::CallCores(2)));
    // Its next alarm is the other core's.
    w.k.arch.core = 1;
    w.interrupt(Interrupt::Software);
    wait_until(&mut w, ntfn, 600, 0);
    w.k.arch.core = 0;
    assert_eq!((w.k.timers[0].first, w.k.timers[1].first), (None, Some(thread.tcb)));
    w.delete(thread.slot);
    assert_eq!(w.k.timers[1].first, None);
}

/// What threads do with their alarms.
#[derive(Clone, Debug)]
enum Step {
    Wait(usize, u64),
    Signal(usize),
    Stop(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let thread = || 0usize..20;
    prop_oneof![
        8 => (thread(), 1u64..900).prop_map(|(thread, ticks)| Step::Wait(thread, ticks)),
        2 => thread().prop_map(Step::Signal),
        1 => thread().prop_map(Step::Stop),
        3 => (0u64..300).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Twenty threads against a list of who waits until when.
    #[test]
    fn everybody_is_woken_in_time_and_nobody_before(steps in prop::collection::vec(step(), 1..120)) {
        let mut w = World::new();
        let objects: Vec<u64> = (0..20).map(|_| w.make(ty::NOTIFICATION, 0)).collect();
        let threads: Vec<Thread> = (0..20).map(|_| w.thread(10)).collect();
        threads.iter().for_each(|&thread| w.resume(thread));
        let mut waits: Vec<Option<u64>> = vec![None; 20];
        for step in steps {
            match step {
                Step::Wait(index, ticks) if waits[index].is_none() => {
                    let until = w.k.arch.now + ticks;
                    if !w.k.get(threads[index].tcb).is_runnable() {
                        w.resume(threads[index]);
                    }
                    w.run_as(threads[index], |w| wait_until(w, objects[index], until, 0));
                    waits[index] = Some(until);
                }
                Step::Wait(..) => {}
                // A signal that nobody waits for would end the next wait.
                Step::Signal(index) if waits[index].take().is_some() => w.syscall(SEND, objects[index], 0, &[], &[]),
                Step::Signal(index) => w.syscall(NB_RECV, objects[index], 0, &[], &[]),
                Step::Stop(index) => {
                    w.ok(threads[index].slot, TCBSuspend, &[], &[]);
                    waits[index] = None;
                }
                Step::Pass(ticks) => {
                    let now = w.k.arch.now + ticks;
                    time_comes(&mut w, now);
                    for (index, until) in waits.iter_mut().enumerate() {
                        let over = until.is_some_and(|until| until <= now);
                        if until.is_some() {
                            let state = w.state(threads[index]);
                            prop_assert_eq!(state == BlockedOnNotification, !over, "thread {}", index);
                        }
                        if over {
                            *until = None;
                        }
                    }
                }
            }
        }
    }
}
