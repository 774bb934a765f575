//! The server of the fairness experiment: it works for each request, counts whose it was, and tells its clients when to stop.
//!
//! Arguments: `load`, rows and columns of the matrices that it multiplies for a request; `batch`, requests of a round; `weights`, the channels'
//! weights, separated by blanks and repeated for further channels. Not counted are the requests until everybody has been served, and `warmup` more; then
//! come `measured` ones that are.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod program {
    use alloc::vec;
    use alloc::vec::Vec;
    use bench_guest::fairness::{MEASURED, STOP, WARMUP};
    use bench_guest::matrix::Matrices;
    use libipc::port::GuestPort;
    use libipc::{Executor, Message, OpenError, Server};
    use userlib::{Env, println};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port)?;
        let weights: Vec<u32> = env.arg("weights").unwrap_or("1").split(' ').map(weight).collect();
        for (channel, weight) in (0..server.channels()).zip(weights.iter().cycle()) {
            server.set_weight(channel, *weight);
        }
        server.set_batch(env.arg_or("batch", 1));
        let mut load = Matrices::new(env.arg_or("load", 5));
        let (warmup, measured) = (env.arg_or("warmup", 0u64), env.arg_or("measured", 1000u64));
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            let mut served = vec![0u64; server.channels()];
            let mut answer = async |phase, served: &mut [u64]| {
                let request = server.recv().await;
                load.work();
                served[request.channel()] += 1;
                request.reply(Message::new(phase, []));
            };
            while served.contains(&0) {
                answer(WARMUP, &mut served).await;
            }
            for _ in 0..warmup {
                answer(WARMUP, &mut served).await;
            }
            served.fill(0);
            for _ in 0..measured {
                answer(MEASURED, &mut served).await;
            }
            println!("@{{\"served\":{served:?}}}");
            loop {
                server.recv().await.reply(Message::new(STOP, []));
            }
        };
        if executor.spawn(serve).is_err() {
            unreachable!("the executor has a place for one task");
        }
        executor.run(&port);
        Ok(())
    }

    fn weight(word: &str) -> u32 {
        match word.parse() {
            Ok(weight) => weight,
            Err(_) => panic!("weight \"{word}\" is not a number"),
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("fair-server is a guest program; run it with `cargo run --release -p bench -- ipc`");
}
