//! A client of the fairness experiment: it keeps calls in flight until the server says stop, and says how long the counted ones took.
//!
//! Arguments: `depth` calls in flight; `pause`, microseconds from the start of a call to that of the next, on average, 0 for at once.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod program {
    use alloc::vec::Vec;
    use bench_guest::fairness::{MEASURED, STOP, quantile};
    use core::cell::RefCell;
    use libipc::executor::Timers;
    use libipc::port::{GuestClock, GuestPort};
    use libipc::{CallError, Client, Executor, Message, OpenError};
    use userlib::{Env, println, time};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let channel = env.channels().next().ok_or(OpenError::NoChannel)?;
        let client = Client::from_env(env, channel.name)?;
        let clock = GuestClock::from_env(env);
        let timers = Timers::new(&clock);
        let (depth, pause) = (env.arg_or("depth", 1usize), timers.ticks(env.arg_or("pause", 0u64)));
        let samples = RefCell::new(Vec::new());
        let executor = Executor::new(depth);
        executor.attach(&client);
        executor.attach(&timers);
        for _ in 0..depth {
            if executor.spawn(ask(&client, &timers, pause, channel.index as u64, &samples)).is_err() {
                unreachable!("the executor has a place for each");
            }
        }
        executor.run(&port);
        drop(executor);
        let mut samples = samples.take();
        samples.sort_unstable();
        let [p50, p99] = [0.5, 0.99].map(|at| quantile(&samples, at));
        println!("@{{\"client\":{},\"calls\":{},\"p50\":{p50},\"p99\":{p99}}}", channel.index, samples.len());
        Ok(())
    }

    async fn ask(client: &Client, timers: &Timers<'_>, pause: u64, mut random: u64, samples: &RefCell<Vec<u64>>) {
        let mut next = 0;
        loop {
            if pause > 0 {
                timers.at(next).await;
                // From half to one and a half of the pause (Knuth's linear congruential generator): clients of one pace do not stay in step.
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                next = timers.now() + pause / 2 + (random >> 33) % (pause + 1);
            }
            let start = time::cycles();
            match answer(client.call(Message::new(0, [])).await) {
                MEASURED => samples.borrow_mut().push(time::cycles() - start),
                STOP => return,
                _ => {}
            }
        }
    }

    fn answer(reply: Result<Message, CallError>) -> u16 {
        match reply {
            Ok(reply) => reply.op,
            Err(error) => panic!("{error}"),
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("fair-client is a guest program; run it with `cargo run --release -p bench -- ipc`");
}
