//! Tasks of several urgencies, and who waits on what.
#![cfg(not(loom))]

mod world;

use std::cell::{Cell, RefCell};

use libipc::Executor;
use libipc::executor::{Events, Timers, Wait};
use world::{World, ask, pair, yield_once};

/// Urgent tasks run before the others whenever they are ready, however many others there are; and the others when no urgent one is.
#[test]
fn urgent_tasks_go_first() {
    let order = RefCell::new(String::new());
    let executor = Executor::with_levels(&[1, 100]);
    for _ in 0..2 {
        let order = &order;
        let slow = async move {
            for _ in 0..2 {
                order.borrow_mut().push('s');
                yield_once().await;
            }
        };
        executor.spawn(slow).unwrap();
    }
    let urgent = async {
        for _ in 0..3 {
            order.borrow_mut().push('u');
            yield_once().await;
        }
    };
    executor.spawn_at(0, "urgent", urgent).unwrap();
    executor.run(&World::default());
    assert_eq!(order.take(), "uuussss");
}

/// A reply wakes an urgent task in the next round although less urgent ones are busy for ever: they cannot hold it up.
#[test]
fn a_busy_level_does_not_hold_up_an_urgent_call() {
    let world = World::default();
    let (_, client, server) = pair(4);
    let (done, spins) = (Cell::new(false), Cell::new(0));
    let executor = Executor::with_levels(&[2, 64]);
    executor.attach(&client);
    executor.attach(&server);
    for _ in 0..64 {
        let (done, spins) = (&done, &spins);
        let busy = async move {
            while !done.get() {
                spins.set(spins.get() + 1);
                yield_once().await;
            }
        };
        executor.spawn(busy).unwrap();
    }
    let serving = async {
        for _ in 0..10 {
            server.recv().await.reply(ask(1));
        }
    };
    executor.spawn_at(0, "serving", serving).unwrap();
    let asking = async {
        for _ in 0..10 {
            client.call(ask(1)).await.unwrap();
        }
        done.set(true);
    };
    executor.spawn_at(0, "asking", asking).unwrap();
    executor.run(&world);
    // A call is two rounds of the urgent level; of the other level at most one round comes with each.
    assert!(spins.get() <= 64 * 20, "{} polls of busy tasks in the time of ten calls", spins.get());
}

#[test]
fn the_tree_tells_who_waits_on_what_and_how_long() {
    let world = World::default();
    let timers = Timers::new(&world);
    let events = Events::new();
    let (_, client, server) = pair(2);
    let text = RefCell::new(String::new());
    let executor = Executor::with_levels(&[1, 8]);
    executor.attach(&client);
    executor.attach(&server);
    executor.attach(&timers);
    executor.attach(&events);
    executor.record(&world);
    let observer = executor.observer();
    let looking = async {
        let observer = observer; // the executor must not be borrowed by its own task
        timers.sleep(70).await;
        let tree = observer.tree(timers.now());
        assert_eq!(tree.waits("sleeper"), [Wait::Time { at: 100 }]);
        assert!(matches!(tree.waits("caller")[..], [Wait::Reply { .. }]));
        text.replace(tree.to_string());
    };
    executor.spawn_at(0, "looking", looking).unwrap();
    let worker = async {
        let request = server.recv().await;
        timers.deadline(60, request.cancelled()).await;
        assert_eq!(timers.deadline(90, events.event(9)).await, None);
        request.reply(ask(1));
    };
    executor.spawn_at(1, "worker", worker).unwrap();
    executor.spawn_at(1, "caller", async { assert!(client.call(ask(1)).await.is_ok()) }).unwrap();
    executor.spawn_at(1, "sleeper", async { timers.at(100).await }).unwrap();
    executor.run(&world);
    let expected = "\
        task 64 \"worker\" level 1: waits for tick 90 or doorbell bit 9, 10 ticks\n\
        task 65 \"caller\" level 1: waits for the reply to call 0x10000, 70 ticks\n\
        task 66 \"sleeper\" level 1: waits for tick 100, 70 ticks\n";
    assert_eq!(text.take(), expected);
}
