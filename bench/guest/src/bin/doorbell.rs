//! Two of these wake each other in turn; the channel between them carries nothing, only its doorbells are used. The client end leads:
//! it counts cycles and ends the run.
//!
//! Arguments: `waits`, how each waits (`watching` its doorbell, in a `coroutine`, `blocked` in the kernel); `warmup` rounds, then
//! `rounds` to time. A round is two wakes, one each way.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;

    use libipc::Executor;
    use libipc::bell::Ring as _;
    use libipc::executor::Events;
    use libipc::port::{GuestPort, Patience, Peer, Port as _};
    use userlib::env::{Env, Role, Transport};
    use userlib::{println, time};

    userlib::program!(main);

    /// Looks at the doorbell before an executor gives up and blocks: more than any wake takes.
    const LONG: u32 = 1 << 20;

    fn main(env: &'static Env, _: usize) {
        let Some(channel) = env.channel("bells") else { panic!("the manifest has no channel \"bells\"") };
        let Transport::Async { vector, peer, peer_hart, .. } = channel.transport else {
            panic!("the channel is not asynchronous")
        };
        let leads = channel.role == Role::Client;
        let port = GuestPort::from_env(env);
        assert!(env.user_interrupts(), "this machine has no user interrupts");
        let peer = Peer::new(env, peer, peer_hart, channel.index);
        let (warmup, rounds) = (env.arg_or("warmup", 64u64), env.arg_or("rounds", 1024u64));
        let started = Cell::new(0);
        let round = |number| {
            if leads && number == warmup {
                started.set(time::cycles());
            }
        };
        let waits = env.arg("waits").unwrap_or("watching");
        match waits {
            "watching" => (0..warmup + rounds).for_each(|number| {
                round(number);
                if leads {
                    peer.interrupt();
                }
                while port.take() == 0 {}
                if !leads {
                    peer.interrupt();
                }
            }),
            "coroutine" | "blocked" => {
                let blocked = waits == "blocked";
                let wake = || if blocked { peer.signal() } else { peer.interrupt() };
                let events = Events::new();
                let executor = Executor::new(1);
                executor.attach(&events);
                let task = async {
                    for number in 0..warmup + rounds {
                        round(number);
                        if leads {
                            wake();
                        }
                        events.event(vector).await;
                        if !leads {
                            wake();
                        }
                    }
                };
                if executor.spawn(task).is_err() {
                    unreachable!("the executor has a place for one task");
                }
                let patience = if blocked { Patience::NONE } else { Patience { polls: 0, watches: LONG } };
                executor.run_with(&port, patience);
            }
            other => panic!("nobody waits by {other}"),
        }
        if leads {
            let cycles = time::cycles() - started.get();
            println!("@{{\"waits\":\"{waits}\",\"wakes\":{},\"cycles\":{cycles}}}", 2 * rounds);
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("doorbell is a guest program; run it with `cargo run --release -p bench -- ipc`");
}
