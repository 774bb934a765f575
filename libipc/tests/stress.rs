//! Two threads that really run at once: every reply is the right one, whatever the timing and the depth of sleep.
#![cfg(not(loom))]

use std::cell::Cell;
use std::thread;

use futures::future::join_all;
use libipc::channel::Memory;
use libipc::executor::Statistics;
use libipc::port::{Patience, Peer, ThreadPort};
use libipc::{Client, Executor, Message, Server};

/// Fewer rounds under Miri, which interprets each of them.
const CALLS: u64 = if cfg!(miri) { 40 } else { 20_000 };

fn answer(value: u64) -> u64 {
    value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ value >> 7
}

/// `clients` threads with `tasks` coroutines each call one server `CALLS` times in all.
fn run(clients: usize, tasks: usize, entries: usize, patience: Patience) -> Statistics {
    let memories: Vec<Memory> = (0..clients).map(|_| Memory::leak(entries, 0).unwrap()).collect();
    let server_port = ThreadPort::new();
    let client_ports: Vec<ThreadPort> = (0..clients).map(|_| ThreadPort::new()).collect();
    let calls_each = CALLS / (clients * tasks) as u64;
    let total = calls_each * (clients * tasks) as u64;
    let mut channels: Vec<(Memory, Peer)> = Vec::new();
    for (memory, port) in memories.iter().zip(&client_ports) {
        channels.push((*memory, port.peer(0)));
    }
    thread::scope(|scope| {
        let served = {
            let port = server_port.clone();
            scope.spawn(move || {
                let server = Server::new(channels);
                let executor = Executor::new(1);
                executor.attach(&server);
                executor
                    .spawn(async {
                        for _ in 0..total {
                            let request = server.recv().await;
                            let reply = Message::new(0, [answer(request.message().words[0]), request.channel() as u64]);
                            request.reply(reply);
                        }
                    })
                    .unwrap();
                executor.run_with(&port, patience);
                executor.statistics()
            })
        };
        for (index, (memory, port)) in memories.iter().zip(&client_ports).enumerate() {
            let to_server = server_port.peer(index as u32);
            scope.spawn(move || {
                let client = Client::new(memory, to_server);
                let done = Cell::new(0);
                let executor = Executor::new(tasks);
                executor.attach(&client);
                for task in 0..tasks as u64 {
                    let (client, done) = (&client, &done);
                    executor
                        .spawn(async move {
                            for call in 0..calls_each {
                                let value = call << 20 | task << 8 | index as u64;
                                let reply = client.call(Message::new(1, [value])).await.unwrap();
                                assert_eq!(reply.payload(), [answer(value), index as u64]);
                                done.set(done.get() + 1);
                            }
                        })
                        .unwrap();
                }
                executor.run_with(port, patience);
                assert_eq!(done.get(), calls_each * tasks as u64);
            });
        }
        served.join().unwrap()
    })
}

#[test]
fn one_call_at_a_time_parking_always() {
    let statistics = run(1, 1, 2, Patience::NONE);
    assert!(statistics.parks > 0, "the deep end was reached: {statistics:?}");
}

#[test]
fn one_call_at_a_time_patiently() {
    run(1, 1, 2, Patience { polls: 100, watches: 100 });
}

#[test]
fn many_calls_in_a_small_ring() {
    run(1, 8, 8, Patience { polls: 4, watches: 4 });
}

#[test]
fn many_clients_of_one_server() {
    run(3, 16, 32, Patience { polls: 2, watches: 2 });
}

#[test]
fn joined_calls_travel_as_one_batch() {
    let memory = Memory::leak(32, 0).unwrap();
    let (client_port, server_port) = (ThreadPort::new(), ThreadPort::new());
    let batches = CALLS / 32;
    let (to_client, to_server) = (client_port.peer(0), server_port.peer(0));
    thread::scope(|scope| {
        scope.spawn(move || {
            let server = Server::new([(memory, to_client)]);
            let executor = Executor::new(1);
            executor.attach(&server);
            executor
                .spawn(async {
                    for _ in 0..batches * 32 {
                        let request = server.recv().await;
                        let message = *request.message();
                        request.reply(message);
                    }
                })
                .unwrap();
            executor.run(&server_port);
        });
        let client = Client::new(&memory, to_server);
        let executor = Executor::new(1);
        executor.attach(&client);
        executor
            .spawn(async {
                for _ in 0..batches {
                    let replies = join_all((0..32).map(|value| client.call(Message::new(1, [value])))).await;
                    assert!(replies.iter().enumerate().all(|(value, reply)| reply.unwrap().words[0] == value as u64));
                }
            })
            .unwrap();
        executor.run(&client_port);
        let bells = client.bells();
        assert_eq!(bells.published, batches, "one batch for 32 calls");
        assert!(bells.interrupts + bells.signals <= batches, "at most one bell for each");
    });
}
