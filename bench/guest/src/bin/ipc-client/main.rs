//! The caller of the null-call experiment.
//!
//! Arguments: `calls` to time, `warmup` calls before them, `concurrency` calls in flight. Over an endpoint a call in flight
//! is a thread, and the manifest gives as many; over rings it is a coroutine of thread 0. Every reply is checked. `armed`: over rings,
//! waits for user interrupts instead of looking.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod coroutines;
#[cfg(target_os = "none")]
mod threads;

#[cfg(target_os = "none")]
mod program {
    use userlib::env::{Env, Transport};
    use userlib::println;

    userlib::program!(main);

    /// What the manifest asks for.
    #[derive(Clone, Copy)]
    pub struct Plan {
        /// Calls in flight.
        pub concurrency: usize,
        /// Calls before the timed ones.
        pub warmup: u64,
        /// Calls to time.
        pub calls: u64,
        /// Waits for user interrupts instead of looking.
        pub armed: bool,
    }

    fn main(env: &'static Env, thread: usize) {
        let plan = Plan {
            concurrency: env.arg_or("concurrency", 1),
            warmup: env.arg_or("warmup", 256),
            calls: env.arg_or("calls", 2048),
            armed: env.arg_or("armed", false),
        };
        let Some(channel) = env.channel("ipc") else { panic!("the manifest has no channel \"ipc\"") };
        match channel.transport {
            Transport::Sync { endpoint } => super::threads::run(env, plan, endpoint, thread),
            Transport::Async { .. } => super::coroutines::run(env, plan, channel.name),
        }
    }

    /// Prints the totals for the host, with the user interrupts of client and server.
    pub fn report(plan: Plan, cycles: u64, [client, server]: [u64; 2]) {
        let Plan { concurrency, calls, .. } = plan;
        println!(
            "@{{\"concurrency\":{concurrency},\"calls\":{calls},\"cycles\":{cycles},\
             \"client_interrupts\":{client},\"server_interrupts\":{server}}}"
        );
    }

    /// Ends the run if `reply` is not the answer to `request`.
    #[inline(always)]
    pub fn check(request: u64, reply: u64) {
        if reply != bench_guest::null_call::answer(request) {
            panic!("call {request:#x} was answered with {reply:#x}");
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("ipc-client is a guest program; run it with `cargo run --release -p bench -- ipc`");
}
