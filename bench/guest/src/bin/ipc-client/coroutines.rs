//! Calls over rings: as many coroutines as calls in flight, each awaiting its reply, on the executor of thread 0.
//!
//! The coroutines are made before the clock starts; it stops when the last of them has ended.

use core::cell::Cell;

use bench_guest::null_call::{INTERRUPTS, NULL, request, share};
use bench_guest::patience::patience;
use libipc::port::{GuestPort, Port as _};
use libipc::{CallError, Client, Executor, Message};
use userlib::{Env, time};

use crate::program::{Plan, check, report};

/// Measures and prints the totals.
///
/// # Panics
/// If the channel cannot be opened or fails, or a reply is wrong.
pub fn run(env: &Env, plan: Plan, channel: &str) {
    let port = GuestPort::from_env(env);
    let client = match Client::from_env(env, channel) {
        Ok(client) => client,
        Err(error) => panic!("channel \"{channel}\": {error}"),
    };
    let patience = patience(plan.armed, &port);
    callers(&client, plan, 0, plan.warmup).run_with(&port, patience);

    let timed = callers(&client, plan, plan.warmup, plan.calls);
    let server_before = server_interrupts(&client, &port);
    let client_before = port.user_interrupts();
    let cycles_before = time::cycles();
    timed.run_with(&port, patience);
    let cycles = time::cycles() - cycles_before;
    let client_interrupts = port.user_interrupts() - client_before;
    report(plan, cycles, [client_interrupts, server_interrupts(&client, &port) - server_before]);
}

/// An executor with the coroutines for `calls` calls, with requests numbered from `first`.
fn callers(client: &Client, plan: Plan, first: u64, calls: u64) -> Executor<'_> {
    let executor = Executor::new(plan.concurrency);
    executor.attach(client);
    for caller in 0..plan.concurrency {
        let indices = first..first + share(calls, plan.concurrency, caller);
        if executor.spawn(make_calls(client, caller, indices)).is_err() {
            unreachable!("the executor has a place for each caller");
        }
    }
    executor
}

/// Makes the calls with these indices, one after the other.
///
/// The block counts in what it captured, instead of copies of it: so a coroutine fits into one cache line.
fn make_calls(client: &Client, caller: usize, indices: core::ops::Range<u64>) -> impl Future<Output = ()> {
    let (mut index, end) = (indices.start, indices.end);
    async move {
        while index < end {
            let request = request(caller, index);
            index += 1;
            let reply = client.call(Message::new(NULL, [request])).await;
            check(request, word(reply));
        }
    }
}

/// The word that the server answered with.
fn word(reply: Result<Message, CallError>) -> u64 {
    match reply {
        Ok(reply) => reply.words[0],
        Err(error) => panic!("{error}"),
    }
}

/// User interrupts that the server has taken so far. Asking costs it one at most.
fn server_interrupts(client: &Client, port: &GuestPort) -> u64 {
    let answer = Cell::new(0);
    let executor = Executor::new(1);
    executor.attach(client);
    if executor.spawn(async { answer.set(word(client.call(Message::new(INTERRUPTS, [])).await)) }).is_err() {
        unreachable!("the executor has a place for one task");
    }
    executor.run(port);
    drop(executor);
    answer.get()
}
