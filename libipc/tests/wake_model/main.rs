//! The wake protocol, every state of it: nothing is lost, nobody sleeps for ever, every path ends.
//!
//! `world.rs` is the model, `explore.rs` visits its states. Each piece of the protocol has a variant without it in which the
//! explorer must find the failure: that is how we know that the model can see it.
//!
//! `WAKE_MODEL=full` (`make model`) adds the configurations that take minutes.
#![cfg(not(loom))]

mod explore;
mod world;

use explore::explore;
use world::{Rules, Setting, World};

/// Every path from the start of this configuration ends well.
fn holds(setting: Setting) {
    let explored = explore(World::new(setting)).unwrap_or_else(|found| panic!("{setting:?}\n{found:?}"));
    println!("{:9} states, longest path {:3}: {setting:?}", explored.states, explored.depth);
}

/// Some path of the protocol without one piece goes wrong, in the way that `what` says.
fn fails(what: &str, rules: Rules, setting: Setting) {
    match explore(World::new(Setting { rules, ..setting })) {
        Ok(explored) => panic!("{rules:?} holds in all {} states of {setting:?}", explored.states),
        Err(found) => assert_eq!(found.what, what, "{found:?}"),
    }
}

fn full() -> bool {
    std::env::var("WAKE_MODEL").is_ok_and(|value| value == "full")
}

/// A configuration of one client whose stores arrive late.
const ONE: Setting = Setting { clients: 1, calls: 4, ..Setting::PLAIN };
/// Two clients; their stores arrive at once.
const TWO: Setting = Setting { clients: 2, calls: 2, buffered: false, ..Setting::PLAIN };
/// Three.
const THREE: Setting = Setting { clients: 3, ..TWO };

const LOST: &str = "nothing can happen, and not all is done";

#[test]
fn one_client_loses_nothing() {
    for entries in [1, 2, 4] {
        for can_arm in [false, true] {
            holds(Setting { entries, can_arm, calls: 5, ..ONE });
        }
    }
}

#[test]
fn two_clients_lose_nothing() {
    holds(TWO);
    holds(Setting { can_arm: false, buffered: true, ..TWO });
    if full() {
        holds(Setting { buffered: true, ..TWO });
        holds(Setting { entries: 2, calls: 4, ..TWO });
    }
}

#[test]
fn three_clients_lose_nothing() {
    holds(Setting { can_arm: false, ..THREE });
    if full() {
        holds(THREE);
        holds(Setting { entries: 4, calls: 5, can_arm: false, ..THREE });
    }
}

/// Peers of one hart are signalled at the park of the one who rings, some of them earlier.
#[test]
fn handing_over_loses_nothing() {
    for crashes in [0, 1] {
        holds(Setting { one_hart: true, crashes, ..ONE });
        holds(Setting { one_hart: true, crashes, can_arm: false, ..TWO });
    }
    holds(Setting { one_hart: true, can_arm: false, ..THREE });
    if full() {
        holds(Setting { one_hart: true, crashes: 1, spurious: 1, ..TWO });
        holds(Setting { one_hart: true, ..THREE });
    }
}

/// Bells that nobody rang, by user interrupt and by signal, cost a round and nothing else.
#[test]
fn spurious_bells_do_no_harm() {
    holds(Setting { spurious: 2, ..ONE });
    holds(Setting { spurious: 2, can_arm: false, ..ONE });
    holds(Setting { spurious: 1, can_arm: false, ..TWO });
    if full() {
        holds(Setting { spurious: 2, ..TWO });
    }
}

/// Whoever crashes, in whatever step: the others end, and those whose server lives get all their answers.
#[test]
fn a_crash_harms_only_the_own_channels() {
    for can_arm in [false, true] {
        holds(Setting { crashes: 1, can_arm, ..ONE });
    }
    holds(Setting { crashes: 1, ..TWO });
    holds(Setting { crashes: 2, can_arm: false, ..TWO });
    if full() {
        holds(Setting { crashes: 2, ..TWO });
        holds(Setting { crashes: 1, can_arm: false, ..THREE });
    }
}

/// One client writes what it likes into the memory that it shares with the server; the other one gets all its answers.
#[test]
fn a_lying_client_harms_nobody_else() {
    holds(Setting { lies: 3, can_arm: false, ..TWO });
    holds(Setting { lies: 2, ..TWO });
    if full() {
        holds(Setting { lies: 2, can_arm: false, ..THREE });
        holds(Setting { lies: 2, can_arm: false, buffered: true, ..TWO });
    }
}

#[test]
fn the_producer_needs_its_fence() {
    fails(LOST, Rules { producer_fence: false, ..Rules::ALL }, ONE);
}

#[test]
fn the_consumer_needs_its_fence() {
    fails(LOST, Rules { consumer_fence: false, ..Rules::ALL }, ONE);
}

#[test]
fn the_consumer_must_look_again() {
    fails(LOST, Rules { look_again: false, ..Rules::ALL }, ONE);
}

/// Between a load that sees Armed and a store of Running the owner may have gone on to Blocked.
#[test]
fn a_claim_must_be_an_exchange() {
    fails(LOST, Rules { exchange: false, ..Rules::ALL }, ONE);
}

#[test]
fn a_signal_to_a_thread_that_does_not_wait_yet_must_be_kept() {
    fails(LOST, Rules { latched_signal: false, ..Rules::ALL }, ONE);
}

#[test]
fn handing_over_signals_before_it_waits() {
    fails(LOST, Rules { signal_first: false, ..Rules::ALL }, Setting { one_hart: true, ..ONE });
}

#[test]
fn a_crash_must_be_told() {
    fails(LOST, Rules { reap_signals: false, ..Rules::ALL }, Setting { crashes: 1, ..ONE });
}
