//! Asks the memory server for pages: each of `depth` coroutines, or over an endpoint threads, has one mapped, writes and reads it, and has it
//! taken away, time and again. Prints the cycles of `rounds` pairs, after `warmup`; in the first round it looks what the pages hold.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;
    use core::sync::atomic::{AtomicU64, Ordering};

    use apps::memory::{MAP, MOVE, UNMAP, Window};
    use libipc::port::GuestPort;
    use libipc::{Client, Executor, Message};
    use userlib::cap::Endpoint;
    use userlib::env::{Env, Transport};
    use userlib::{MessageInfo, println, time};

    userlib::program!(main);

    /// What the manifest asks for.
    #[derive(Clone, Copy)]
    struct Plan {
        depth: u64,
        warmup: u64,
        rounds: u64,
    }

    fn main(env: &'static Env, _: usize) {
        let plan = Plan {
            depth: env.arg_or("depth", 16),
            warmup: env.arg_or("warmup", 256),
            rounds: env.arg_or("rounds", 1024),
        };
        let Some(channel) = env.channel("memory") else { panic!("the manifest has no channel \"memory\"") };
        let cycles = match channel.transport {
            Transport::Sync { endpoint } => over_endpoint(plan, endpoint),
            Transport::Async { .. } => over_rings(env, plan),
        };
        println!("@{{\"depth\":{},\"rounds\":{},\"cycles\":{cycles}}}", plan.depth, plan.rounds);
    }

    /// Writes and reads the page that is mapped at place `place`.
    fn touch(place: u64, value: u64) {
        let word = Window::new(place + 1).address(place) as *const AtomicU64;
        // SAFETY: the server has just mapped a page there, writable, and takes it away when this program asks. Nothing else of this
        // program is there; the word is accessed as an atomic.
        let word = unsafe { &*word };
        word.store(value, Ordering::Relaxed);
        assert_eq!(word.load(Ordering::Relaxed), value);
    }

    fn expect_done(what: &str, error: u64) {
        if error != 0 {
            panic!("{what}: error {error}");
        }
    }

    /// Pairs of map and unmap by coroutines; gives the cycles of the timed ones.
    fn over_rings(env: &Env, plan: Plan) -> u64 {
        let port = GuestPort::from_env(env);
        let client = match Client::from_env(env, "memory") {
            Ok(client) => client,
            Err(error) => panic!("{error}"),
        };
        check_by_messages(env, &client, &port);
        let (left, start) = (Cell::new(plan.warmup + plan.rounds), Cell::new(0));
        let executor = Executor::new(plan.depth as usize);
        executor.attach(&client);
        for page in 0..plan.depth {
            let (client, left, start) = (&client, &left, &start);
            let task = async move {
                while left.get() > 0 {
                    if left.get() == plan.rounds {
                        start.set(time::cycles());
                    }
                    left.set(left.get() - 1);
                    for op in [MAP, UNMAP] {
                        match client.call(Message::new(op, [page, page])).await {
                            Ok(reply) => expect_done("page", reply.words[0]),
                            Err(error) => panic!("the memory server does not answer: {error}"),
                        }
                    }
                }
            };
            if executor.spawn(task).is_err() {
                unreachable!("the executor has a place for each task");
            }
        }
        executor.run(&port);
        time::cycles() - start.get()
    }

    /// Every page is mapped, used, moved, used again and unmapped; what makes no sense is refused.
    fn check_by_messages(env: &Env, client: &Client, port: &GuestPort) {
        let pages: u64 = env.arg_or("pages", 64);
        let executor = Executor::new(1);
        executor.attach(client);
        let check = async {
            let ask = |op, words| async move {
                match client.call(Message::new(op, words)).await {
                    Ok(reply) => Some(reply.words[0]),
                    Err(_) => None,
                }
            };
            for page in 0..pages {
                assert_eq!(ask(MAP, [page, page]).await, Some(0));
                touch(page, page + 1);
            }
            assert_eq!(ask(MOVE, [0, 1]).await, Some(8), "another page is there");
            assert_eq!(ask(MAP, [0, 0]).await, Some(0));
            for page in 0..pages {
                touch(page, page + 7);
                assert_eq!(ask(UNMAP, [page, 0]).await, Some(0));
            }
            assert_eq!(ask(MAP, [3, 0]).await, Some(0));
            assert_eq!(ask(MOVE, [3, 5]).await, Some(0));
            touch(5, 3);
            assert_eq!(ask(UNMAP, [3, 0]).await, Some(0));
            assert_eq!(ask(MAP, [pages, 0]).await, None, "no such page");
        };
        if executor.spawn(check).is_err() {
            unreachable!("the executor has a place for one task");
        }
        executor.run(port);
    }

    /// The same pairs by calls.
    fn over_endpoint(plan: Plan, endpoint: Endpoint) -> u64 {
        let ask = |op: u16, page: u64| {
            let reply = endpoint.call(MessageInfo::new(op.into(), 0, 0, 2), [page, page, 0, 0]);
            expect_done("page", reply.words[0]);
        };
        let pair = |round: u64| {
            let page = round % plan.depth;
            ask(MAP, page);
            if round < plan.depth {
                touch(page, round);
            }
            ask(UNMAP, page);
        };
        (0..plan.warmup).for_each(pair);
        let start = time::cycles();
        (plan.warmup..plan.warmup + plan.rounds).for_each(pair);
        time::cycles() - start
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("memory-client is a guest program; run it with `cargo run -p images -- run memory`");
}
