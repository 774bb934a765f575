//! A client that outlives its server: each coroutine asks for sums, and when the server is gone it connects to the next one and asks again.
//!
//! Requests are numbered in the order in which they are made, so that the server sees what is lost, doubled or out of order; the answer shows
//! whose it is.
//!
//! Arguments `coroutines` and `calls`: how many ask, and how many answers each wants; `delay`: loops that a coroutine turns before a call, at most,
//! a different number each time; `losses`: after how many calls lost nobody asks any more (default: never).

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;
    use libipc::client::Holdings;
    use libipc::port::GuestPort;
    use libipc::{CallError, Client, Executor, Message, OpenError};
    use userlib::{Env, println};

    userlib::program!(main);

    /// What the coroutines count together.
    #[derive(Default)]
    struct Counts {
        right: Cell<u64>,
        lost: Cell<u64>,
        /// Requests made.
        made: Cell<u64>,
        /// So many may be lost.
        losses: u64,
    }

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let (coroutines, calls) = (env.arg_or("coroutines", 8usize), env.arg_or("calls", 100u64));
        let client = Client::from_env(env, "sums")?;
        let counts = Counts { losses: env.arg_or("losses", u64::MAX), ..Counts::default() };
        let executor = Executor::new(coroutines);
        executor.attach(&client);
        let delay = env.arg_or("delay", 0u64);
        for who in 0..coroutines as u64 {
            if executor.spawn(ask(&client, who, calls, delay, &counts)).is_err() {
                unreachable!("the executor has a place for each");
            }
        }
        executor.run(&port);
        let (right, lost) = (counts.right.get(), counts.lost.get());
        println!("{}: {right} answers right, {lost} calls lost with their server", env.name());
        assert!(right == coroutines as u64 * calls || lost >= counts.losses);
        assert_eq!(client.holdings(), Holdings::default());
        Ok(())
    }

    async fn ask(client: &Client, who: u64, calls: u64, delay: u64, counts: &Counts) {
        let mut number = 0;
        while number < calls && counts.lost.get() < counts.losses {
            let made = counts.made.get();
            counts.made.set(made + 1);
            // Multiplicative hashing (Knuth): scattered, and the same each time.
            let loops = (made.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % (delay + 1);
            (0..loops).for_each(|_| core::hint::spin_loop());
            match client.call(Message::new(1, [made, who, number])).await {
                Ok(answer) => {
                    assert_eq!(answer.payload(), [made + who + number, who, number]);
                    counts.right.set(counts.right.get() + 1);
                    number += 1;
                }
                Err(CallError::Closed) => {
                    counts.lost.set(counts.lost.get() + 1);
                    client.reconnect().await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("survivor is a guest program; run it with `cargo run -p images -- run restart`");
}
