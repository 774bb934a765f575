//! Fair service between many clients: shares under a flood, and what the flood costs the others in time.
//!
//! Time is counted in requests served, so a figure here is one of the schedule alone. The guest benchmark measures cycles.
#![cfg(not(loom))]

mod world;

use std::cell::{Cell, RefCell};

use libipc::channel::Memory;
use libipc::{Client, Executor, Server};
use world::{Here, World, ask, yield_once};

/// Client 0 keeps `flood` calls in flight, the others `ordinary`; all ask for ever. Per client: calls answered, and how many
/// requests the server served while each call waited.
struct Load {
    clients: usize,
    flood: usize,
    ordinary: usize,
    /// Calls of a client that is not flooding are this far apart, in requests served; 0: at once.
    pause: u64,
    calls: u64,
    weights: &'static [(usize, u32)],
    /// Cost of the flooder's requests beyond 1.
    extra: u32,
}

fn served(load: &Load) -> (Vec<u64>, Vec<Vec<u64>>) {
    let entries = load.flood.max(load.ordinary).next_power_of_two().max(2);
    let memories: Vec<Memory> = (0..load.clients).map(|_| Memory::leak(entries, 0).unwrap()).collect();
    let clients: Vec<Client<Here>> = memories.iter().map(|memory| Client::new(memory, Here)).collect();
    let server = Server::new(memories.iter().map(|memory| (*memory, Here)));
    load.weights.iter().for_each(|(channel, weight)| server.set_weight(*channel, *weight));
    let answered = RefCell::new(vec![0; load.clients]);
    let waits = RefCell::new(vec![Vec::new(); load.clients]);
    let (clock, done) = (Cell::new(0), Cell::new(false));
    let world = World::default();
    let tasks = (load.clients - 1) * load.ordinary + load.flood + 1;
    let executor = Executor::new(tasks);
    clients.iter().for_each(|client| executor.attach(client));
    executor.attach(&server);
    for (index, client) in clients.iter().enumerate() {
        let in_flight = if index == 0 { load.flood } else { load.ordinary };
        for _ in 0..in_flight {
            let (answered, waits, clock, done) = (&answered, &waits, &clock, &done);
            let asking = async move {
                while !done.get() {
                    let start: u64 = clock.get();
                    if client.call(ask(0)).await.is_err() {
                        return; // the server has closed
                    }
                    answered.borrow_mut()[index] += 1;
                    waits.borrow_mut()[index].push(clock.get() - start);
                    while index > 0 && load.pause > 0 && clock.get() < start + load.pause && !done.get() {
                        yield_once().await;
                    }
                }
            };
            executor.spawn(asking).unwrap();
        }
    }
    let serving = async {
        while clock.get() < load.calls {
            let request = server.recv().await;
            clock.set(clock.get() + 1);
            if request.channel() == 0 {
                request.charge(load.extra);
                clock.set(clock.get() + u64::from(load.extra));
            }
            request.reply(ask(0));
        }
        done.set(true);
        server.close();
    };
    executor.spawn(serving).unwrap();
    executor.run(&world);
    drop(executor);
    (answered.take(), waits.take())
}

/// Jain's index: 1 if all are equal, 1/n if one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

fn quantile(mut waits: Vec<u64>, quantile: f64) -> u64 {
    waits.sort_unstable();
    waits[((waits.len() - 1) as f64 * quantile) as usize]
}

const PLAIN: Load = Load { clients: 64, flood: 16, ordinary: 16, pause: 0, calls: 64_000, weights: &[], extra: 0 };

/// 64 clients, 1,024 calls in flight.
#[test]
fn sixty_four_clients_with_a_thousand_calls_share_alike() {
    let (answered, _) = served(&PLAIN);
    let shares: Vec<f64> = answered.iter().map(|calls| *calls as f64).collect();
    assert!(jain(&shares) >= 0.999, "{answered:?}");
}

#[test]
fn a_flood_leaves_the_others_their_share() {
    let (answered, _) = served(&Load { flood: 512, ordinary: 2, ..PLAIN });
    let fair = answered.iter().sum::<u64>() as f64 / 64.0;
    let shares: Vec<f64> = answered.iter().map(|calls| *calls as f64).collect();
    assert!(jain(&shares) >= 0.99, "Jain's index {}: {answered:?}", jain(&shares));
    assert!(answered[1..].iter().all(|calls| *calls as f64 >= 0.95 * fair), "fair share {fair}: {answered:?}");
}

/// Clients that ask now and then, beside one that asks like them, and beside one that floods.
#[test]
fn a_flood_at_most_doubles_what_the_others_wait() {
    let p99 = |flood| {
        let load = Load { flood, ordinary: 1, pause: 256, ..PLAIN };
        let (_, waits) = served(&load);
        quantile(waits[1..].concat(), 0.99)
    };
    let (alone, flooded) = (p99(1), p99(512));
    assert!(flooded <= 2 * alone, "{alone} requests served while a call waited, {flooded} with a flood");
}

#[test]
fn shares_follow_weights() {
    let (answered, _) =
        served(&Load { clients: 4, flood: 64, ordinary: 64, calls: 40_000, weights: &[(1, 3), (2, 4)], ..PLAIN });
    let shares: Vec<f64> =
        answered.iter().zip([1.0, 3.0, 4.0, 1.0]).map(|(calls, weight)| *calls as f64 / weight).collect();
    assert!(jain(&shares) >= 0.999, "{answered:?}");
}

/// A request that costs as much as four others is paid for: the share is one of work, not of requests.
#[test]
fn work_that_is_charged_counts() {
    let (answered, _) = served(&Load { clients: 4, flood: 64, ordinary: 64, extra: 3, calls: 40_000, ..PLAIN });
    let work: Vec<f64> = answered.iter().zip([4.0, 1.0, 1.0, 1.0]).map(|(calls, cost)| *calls as f64 * cost).collect();
    assert!(jain(&work) >= 0.99, "{answered:?}");
}

/// The measure can fail: with a weight that outbids everybody the flood gets what it wants.
#[test]
fn without_equal_weights_the_flood_is_seen() {
    let (answered, _) = served(&Load { flood: 512, ordinary: 2, weights: &[(0, 512)], ..PLAIN });
    let shares: Vec<f64> = answered.iter().map(|calls| *calls as f64).collect();
    assert!(jain(&shares) < 0.5, "{answered:?}");
}

/// A limit on calls in flight holds a client back, and only that client; nobody is refused.
#[test]
fn a_client_at_its_limit_is_passed_over() {
    let memories = [Memory::leak(8, 0).unwrap(), Memory::leak(8, 0).unwrap()];
    let clients = memories.map(|memory| Client::new(&memory, Here));
    let server = Server::new(memories.map(|memory| (memory, Here)));
    server.set_limit(0, 2);
    let world = World::default();
    let executor = Executor::new(2);
    clients.iter().for_each(|client| executor.attach(client));
    executor.attach(&server);
    let serving = async {
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(server.recv().await);
        }
        let from: Vec<usize> = held.iter().map(|request| request.channel()).collect();
        assert_eq!(from.iter().filter(|channel| **channel == 0).count(), 2, "{from:?}");
        held.into_iter().for_each(|request| request.reply(ask(0)));
        for _ in 0..6 {
            server.recv().await.reply(ask(0));
        }
    };
    executor.spawn(serving).unwrap();
    let asking = async {
        let first = futures::future::join_all((0..8).map(|value| clients[0].call(ask(value))));
        let second = futures::future::join_all((0..4).map(|value| clients[1].call(ask(value))));
        let (first, second) = futures::join!(first, second);
        assert!(first.iter().chain(&second).all(Result::is_ok));
    };
    executor.spawn(asking).unwrap();
    executor.run(&world);
}

/// Workers that wait for something else while they hold a request: all that are needed come to work within a few rounds, not one a round.
#[test]
fn workers_that_wait_are_joined_by_others() {
    let memory = Memory::leak(64, 0).unwrap();
    let (client, server) = (Client::new(&memory, Here), Server::new([(memory, Here)]));
    let world = World::default();
    let (rounds, most) = (Cell::new(0), Cell::new(0));
    let executor = Executor::new(66);
    executor.attach(&client);
    executor.attach(&server);
    for _ in 0..64 {
        let (server, rounds, most) = (&server, &rounds, &most);
        let worker = async move {
            let request = server.recv().await;
            most.set(most.get().max(rounds.get()));
            while rounds.get() < 40 {
                yield_once().await; // waits for something else
            }
            request.reply(ask(0));
        };
        executor.spawn(worker).unwrap();
    }
    let counting = async {
        for _ in 0..41 {
            rounds.set(rounds.get() + 1);
            yield_once().await;
        }
    };
    executor.spawn(counting).unwrap();
    let asking = async {
        let replies = futures::future::join_all((0..64).map(|value| client.call(ask(value)))).await;
        assert!(replies.iter().all(Result::is_ok));
    };
    executor.spawn(asking).unwrap();
    executor.run(&world);
    assert!(most.get() <= 10, "the last request of 64 was taken in round {}", most.get());
}
