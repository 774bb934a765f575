//! The fast path changes nothing but time: two worlds do the same random things, one with it and one without, and are equal after
//! every step in every word of memory, every queue and every decision. Nor does handing a thread over to an idle core: when all cores
//! have taken what they were handed, everything is as if it had gone through the ready queues.

use abi::extension::{SIGNAL_RECV, WAIT_UNTIL};
use abi::message::MessageInfo;
use abi::syscall::{CALL, NB_RECV, NB_SEND, RECV, REPLY_RECV, SEND, YIELD};
use proptest::prelude::*;

use super::play::{Character, Kind, Play, Step, build, characters, step};
use crate::object::tcb::ThreadState;

const SLOW: Kind = Kind { fastpath: false, hands_over: true };
const FAST: Kind = Kind { fastpath: true, hands_over: true };
const QUEUED: Kind = Kind { fastpath: true, hands_over: false };

fn assert_equal(one: &Play, other: &Play, place: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(one.state(), other.state(), "{}", place);
    let (one, other) = (one.memory(), other.memory());
    if let Some(at) = one.iter().zip(&other).position(|(a, b)| a != b) {
        prop_assert!(false, "{place}: memory differs at {at:#x}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 48 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_slow_are_equal(
        characters in characters(1),
        doorbell in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut slow = build(&characters, 1, doorbell, SLOW);
        let mut fast = build(&characters, 1, doorbell, FAST);
        for (index, step) in steps.iter().enumerate() {
            slow.step_on(0, step);
            fast.step_on(0, step);
            assert_equal(&slow, &fast, &format!("step {index}"))?;
        }
        fast.w.check_invariants();
    }

}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 24 },
        max_shrink_iters: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn fast_and_slow_are_equal_on_several_cores(
        characters in characters(2),
        doorbell in any::<bool>(),
        steps in prop::collection::vec((0usize..2, step()), 1..90),
    ) {
        let [mut slow, mut fast, mut queued] = [SLOW, FAST, QUEUED].map(|kind| build(&characters, 2, doorbell, kind));
        for (index, (core, step)) in steps.iter().enumerate() {
            for play in [&mut slow, &mut fast, &mut queued] {
                play.step_on(*core, step);
            }
            assert_equal(&slow, &fast, &format!("step {index} on {core}"))?;
            fast.w.check_invariants();
            // Not always: what waits to be taken must stand further steps.
            if index % 8 == 7 {
                [&mut slow, &mut fast, &mut queued].into_iter().for_each(Play::all_come);
                assert_equal(&fast, &queued, &format!("hand-overs, step {index} on {core}"))?;
            }
        }
    }
}

/// A test that never leaves the slow path would prove nothing. A doorbell without pending bits does not keep a server from it.
#[test]
fn the_fast_path_is_taken() {
    for doorbell in [false, true] {
        let mut play = build(&vec![Character::plain(20); 2], 1, doorbell, FAST);
        let info = MessageInfo::new(1, 0, 0, 2).0;
        let long = MessageInfo::new(1, 0, 0, 10).0;
        let reply = Step::Syscall { number: REPLY_RECV, cap: 0, other: 0, info };
        // The thread that was resumed last runs first. Let the one with the bound notification, which has not run yet, serve.
        play.step_on(0, &Step::Syscall { number: YIELD, cap: 0, other: 0, info: 0 });
        let plain = [
            (RECV, 0, 0),
            (CALL, 1, info),
            (REPLY_RECV, 0, info),
            (CALL, 1, long),
            (REPLY_RECV, 0, long),
            (NB_SEND, 12, 0),
            (CALL, 1, info),
        ];
        for (taken, (number, cap, info)) in plain.into_iter().enumerate() {
            play.step_on(0, &Step::Syscall { number, cap, other: 0, info });
            assert_eq!(play.taken, taken + 1, "system call {number}");
        }
        assert_eq!(play.w.running(), Some(play.threads[0].tcb));
        // The bit comes first: the caller gets its reply, and the server goes on.
        play.step_on(0, &Step::Post(4));
        play.step_on(0, &reply);
        assert_eq!(play.taken, plain.len() + usize::from(!doorbell));
        assert_eq!(play.w.state(play.threads[1]), ThreadState::Running);
        let server = if doorbell { ThreadState::Running } else { ThreadState::BlockedOnReceive };
        assert_eq!(play.w.state(play.threads[0]), server);
    }
}

/// Thread 0 waits on its doorbell, thread 1 on another notification; each wakes the other.
#[test]
fn the_fast_path_of_signal_recv_is_taken() {
    for doorbell in [false, true] {
        let mut play = build(&vec![Character::plain(20); 2], 1, doorbell, FAST);
        let mut run = |number, cap, other| play.step_on(0, &Step::Syscall { number, cap, other, info: 0 });
        run(RECV, 11, 0);
        run(SIGNAL_RECV, 6, 11);
        run(SIGNAL_RECV, 11, 6);
        run(SIGNAL_RECV, 6, 11);
        assert_eq!(play.taken, 3);
        assert_eq!(play.w.state(play.threads[0]), ThreadState::BlockedOnNotification);
    }
}

#[test]
fn signals_and_waits_are_plain() {
    let mut play = build(&[10, 20].map(Character::plain), 1, false, FAST);
    let (worse, better) = (play.threads[0], play.threads[1]);
    let mut run = |number, cap, taken: usize| {
        play.step_on(0, &Step::Syscall { number, cap, other: 0, info: 0 });
        assert_eq!(play.taken, taken, "system call {number}");
    };
    // The notification is bound to the worse one; a signal without waiter stays.
    run(SEND, 6, 1);
    // Who is better waits for a message, and the worse one, which has not run yet, takes the signal.
    run(RECV, 5, 1);
    run(NB_RECV, 6, 2);
    run(NB_RECV, 6, 3);
    run(YIELD, 0, 4);
    assert_eq!(play.w.running(), Some(worse.tcb));
    assert_eq!(play.w.state(better), ThreadState::BlockedOnReceive);
}

/// Client and server on two cores that wait: no step of the conversation goes through the slow path or a ready queue.
#[test]
fn a_conversation_of_two_cores_is_handed_over() {
    let characters = [Character::plain(20), Character { core: 1, ..Character::plain(20) }];
    let mut play = build(&characters, 2, false, FAST);
    let info = MessageInfo::new(1, 0, 0, 2).0;
    let (client, server) = (play.threads[0], play.threads[1]);
    let mut run = |core, number, cap, info, taken| {
        play.step_on(core, &Step::Syscall { number, cap, other: 0, info });
        play.step_on(core, &Step::Wait);
        play.step_on(1 - core, &Step::Come);
        assert_eq!((play.taken, play.handed), taken, "system call {number}");
    };
    run(1, RECV, 0, 0, (1, 0));
    run(0, CALL, 1, info, (2, 1));
    run(1, REPLY_RECV, 0, info, (3, 2));
    run(0, CALL, 1, MessageInfo::new(1, 0, 0, 10).0, (4, 3));
    run(1, REPLY_RECV, 0, info, (5, 4));
    assert_eq!(play.w.k.cores[0].current, Some(client.tcb));
    assert_eq!(play.w.state(server), ThreadState::BlockedOnReceive);
    assert!(play.w.k.queues.iter().flatten().all(|queue| queue.head.is_none()));
}

/// A wait until a time takes the fast paths of waits without, once its alarm is set.
#[test]
fn the_fast_path_of_wait_until_is_taken() {
    let mut play = build(&vec![Character::plain(20); 2], 1, false, FAST);
    // `info` chooses the time: 500 ticks from now, then later ones.
    let mut run = |number, cap, other, info, taken: usize| {
        play.step_on(0, &Step::Syscall { number, cap, other, info });
        assert_eq!(play.taken, taken);
    };
    run(RECV, 11, 0, 0, 0);
    run(WAIT_UNTIL, 6, 11, 1, 0);
    run(WAIT_UNTIL, 11, 6, 1, 0);
    run(WAIT_UNTIL, 6, 11, 1, 1);
    run(WAIT_UNTIL, 11, 6, 2, 2);
    assert_eq!(play.w.state(play.threads[1]), ThreadState::BlockedOnNotification);
}
