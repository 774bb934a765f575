//! The executor's conversation with its environment, asserted whole.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use libipc::Executor;
use libipc::bell::Doze;
use libipc::executor::{Events, Link};
use libipc::port::{Patience, Port};

/// Records what is asked of it; `park` and `take` answer from a script.
#[derive(Default)]
struct Script {
    trace: RefCell<Vec<&'static str>>,
    /// Bits that `take` finds, call by call; then 0.
    taken: RefCell<VecDeque<u64>>,
    can_arm: bool,
    owes: bool,
    patience: Option<Patience>,
}

impl Script {
    fn log(&self, what: &'static str) {
        self.trace.borrow_mut().push(what);
    }
}

impl Port for Script {
    fn take(&self) -> u64 {
        self.taken.borrow_mut().pop_front().unwrap_or(0)
    }
    fn can_arm(&self) -> bool {
        self.can_arm
    }
    fn park(&self) -> u64 {
        self.log("park");
        1 << 5
    }
    fn flush(&self) {
        self.log("flush");
    }
    fn owes(&self) -> bool {
        self.owes
    }
    fn patience(&self) -> Patience {
        self.patience.unwrap_or(Patience::NONE)
    }
}

/// A link that records, and has something after `looks` looks.
struct Probe {
    script: Rc<Script>,
    looks: Cell<u32>,
    found: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Probe {
    fn new(script: &Rc<Script>, looks: u32) -> Self {
        Self { script: script.clone(), looks: Cell::new(looks), found: Cell::new(false), waker: RefCell::new(None) }
    }

    /// Resolves when the link was polled with something, or with bit 5 of the doorbell.
    async fn arrival(&self) {
        poll_fn(|context| {
            if self.found.get() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Link for Probe {
    fn poll(&self, bits: u64) -> bool {
        self.script.log("poll");
        let found = self.looks.get() == 0 || bits >> 5 & 1 != 0;
        if found {
            self.found.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        found
    }
    fn publish(&self) {
        self.script.log("publish");
    }
    fn doze(&self, doze: Doze) {
        self.script.log(match doze {
            Doze::Running => "running",
            Doze::Armed => "armed",
            Doze::Blocked => "blocked",
            Doze::Closed => "closed",
        });
    }
    fn is_ready(&self) -> bool {
        self.script.log("look");
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        left <= 1
    }
}

fn trace(script: Script, looks: u32) -> Vec<&'static str> {
    let script = Rc::new(script);
    let probe = Probe::new(&script, looks);
    let executor = Executor::new(1);
    executor.attach(&probe);
    executor.spawn(probe.arrival()).unwrap();
    executor.run(&*script);
    drop(executor);
    script.trace.take()
}

const ROUND: [&str; 2] = ["poll", "publish"];

#[test]
fn found_at_the_first_look_nobody_dozes() {
    let script = Script { patience: Some(Patience { polls: 1, watches: 0 }), ..Script::default() };
    let expected = [&ROUND[..], &["look", "flush"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(script, 1), expected);
}

#[test]
fn without_patience_it_blocks_at_once_and_looks_before_it_parks() {
    let parked = [&ROUND[..], &["blocked", "look", "park", "running"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(Script::default(), 100), parked);
    // What came before the announcement is found by the look behind it: no park.
    let rescued = [&ROUND[..], &["blocked", "look", "flush", "running"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(Script::default(), 1), rescued);
}

#[test]
fn with_user_interrupts_it_arms_then_blocks_looking_again_after_each() {
    let patience = Some(Patience { polls: 0, watches: 1 });
    let script = || Script { can_arm: true, patience, ..Script::default() };
    let parked = [
        &ROUND[..],
        &["look", "publish", "armed", "look", "publish", "blocked", "look", "park", "running"],
        &ROUND,
        &["flush"],
    ]
    .concat();
    assert_eq!(trace(script(), 100), parked);
    let rescued_armed =
        [&ROUND[..], &["look", "publish", "armed", "look", "flush", "running"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(script(), 2), rescued_armed);
    let rescued_blocked = [
        &ROUND[..],
        &["look", "publish", "armed", "look", "publish", "blocked", "look", "flush", "running"],
        &ROUND,
        &["flush"],
    ]
    .concat();
    assert_eq!(trace(script(), 3), rescued_blocked);
}

#[test]
fn a_user_interrupt_while_armed_ends_the_doze() {
    let script = Script {
        can_arm: true,
        patience: Some(Patience { polls: 0, watches: 3 }),
        taken: RefCell::new([0, 0, 1 << 5].into()), // first round, first and second look at the doorbell
        ..Script::default()
    };
    let expected = [&ROUND[..], &["look", "publish", "armed", "look", "flush", "running"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(script, 100), expected);
}

#[test]
fn patience_polls_before_it_dozes() {
    let script = Script { patience: Some(Patience { polls: 3, watches: 0 }), ..Script::default() };
    let expected = [&ROUND[..], &["look", "look", "look", "flush"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(script, 3), expected);
}

/// A peer of the own hart is to be woken: looking would only keep it from running.
#[test]
fn who_owes_a_bell_parks_at_once() {
    let script = || Script {
        can_arm: true,
        owes: true,
        patience: Some(Patience { polls: 100, watches: 100 }),
        ..Script::default()
    };
    let parked = [&ROUND[..], &["publish", "blocked", "look", "park", "running"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(script(), 100), parked);
    let found = [&ROUND[..], &["publish", "blocked", "look", "flush", "running"], &ROUND, &["flush"]].concat();
    assert_eq!(trace(script(), 1), found);
}

#[test]
fn a_task_that_wakes_itself_cannot_starve_another() {
    let order = RefCell::new(Vec::new());
    let executor = Executor::new(2);
    for name in ["first", "second"] {
        let order = &order;
        executor
            .spawn(async move {
                for _ in 0..3 {
                    order.borrow_mut().push(name);
                    let woken = Cell::new(false);
                    poll_fn(|context| {
                        if woken.replace(true) {
                            return Poll::Ready(());
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                }
            })
            .unwrap();
    }
    executor.run(&Script::default());
    assert_eq!(*order.borrow(), ["first", "second", "first", "second", "first", "second"]);
}

#[test]
fn events_are_latched_and_resolve_once_per_arrival() {
    let script = Rc::new(Script { taken: RefCell::new([1 << 63, 0, 1 << 62].into()), ..Script::default() });
    let events = Events::new();
    let seen = RefCell::new(Vec::new());
    let executor = Executor::new(2);
    executor.attach(&events);
    executor
        .spawn(async {
            let parked = events.event(5); // watched before it comes
            events.event(62).await;
            seen.borrow_mut().push(62);
            parked.await;
            seen.borrow_mut().push(5);
        })
        .unwrap();
    executor
        .spawn(async {
            events.event(63).await;
            seen.borrow_mut().push(63);
        })
        .unwrap();
    executor.run(&*script);
    assert_eq!(*seen.borrow(), [63, 62, 5]);
}

#[test]
fn a_full_pool_gives_the_task_back_and_a_finished_task_its_place() {
    let executor = Executor::new(1);
    let count = Rc::new(Cell::new(0));
    let spawner = executor.spawner();
    let counted = count.clone();
    executor
        .spawn(async move {
            counted.set(counted.get() + 1);
            let again = counted.clone();
            // The own place is taken until this task is done.
            assert!(spawner.spawn(async move { again.set(100) }).is_err());
        })
        .unwrap();
    assert!(executor.spawn(async {}).is_err());
    executor.run(&Script::default());
    executor.spawn(async {}).unwrap();
    executor.run(&Script::default());
    assert_eq!(count.get(), 1);
}

#[test]
fn more_than_one_word_of_tasks() {
    let sum = Cell::new(0);
    let executor = Executor::new(200);
    for index in 0..200 {
        let sum = &sum;
        executor.spawn(async move { sum.set(sum.get() + index) }).unwrap();
    }
    executor.run(&Script::default());
    assert_eq!(sum.get(), 199 * 200 / 2);
}

/// Waking {1, 2}, {2, 4} and all 64: each runs, none twice.
#[test]
fn every_subset_of_wakes_runs_exactly_that_subset() {
    for woken in [vec![1usize, 2], vec![2, 4], (0..64).collect(), vec![0, 63]] {
        let wakers = RefCell::new(vec![None::<Waker>; 64]);
        let runs = RefCell::new([0; 64]);
        let runs_then = RefCell::new([0; 64]);
        let turn = Cell::new(0);
        let executor = Executor::new(65);
        for index in 0..64 {
            let (wakers, runs, last) = (&wakers, &runs, Cell::new(false));
            executor
                .spawn(poll_fn(move |context| {
                    if last.replace(true) {
                        runs.borrow_mut()[index] += 1;
                        return Poll::Ready(());
                    }
                    wakers.borrow_mut()[index] = Some(context.waker().clone());
                    Poll::Pending
                }))
                .unwrap();
        }
        let (first, rest) = (woken.clone(), &wakers);
        let (runs, runs_then, turn) = (&runs, &runs_then, &turn);
        executor
            .spawn(poll_fn(move |context| {
                turn.set(turn.get() + 1);
                match turn.get() {
                    1 => (),
                    2 => first.iter().for_each(|index| rest.borrow()[*index].as_ref().unwrap().wake_by_ref()),
                    3 | 4 => *runs_then.borrow_mut() = *runs.borrow(),
                    _ => {
                        rest.borrow_mut().iter_mut().for_each(|waker| waker.take().unwrap().wake());
                        return Poll::Ready(());
                    }
                }
                context.waker().wake_by_ref();
                Poll::Pending
            }))
            .unwrap();
        executor.run(&Script::default());
        for index in 0..64 {
            assert_eq!(runs_then.borrow()[index], u32::from(woken.contains(&index)), "task {index} of {woken:?}");
        }
    }
}
