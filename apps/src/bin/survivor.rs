//! A client that outlives its server: each coroutine asks for sums, and when the server is gone it connects to the next one and asks again.
//!
//! Arguments `coroutines` and `calls`: how many ask, and how many answers each wants.

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
    }

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let (coroutines, calls) = (env.arg_or("coroutines", 8usize), env.arg_or("calls", 100u64));
        let client = Client::from_env(env, "sums")?;
        let counts = Counts::default();
        let executor = Executor::new(coroutines);
        executor.attach(&client);
        for _ in 0..coroutines {
            if executor.spawn(ask(&client, calls, &counts)).is_err() {
                unreachable!("the executor has a place for each");
            }
        }
        executor.run(&port);
        let (right, lost) = (counts.right.get(), counts.lost.get());
        println!("{}: {right} answers right, {lost} calls lost with their server", env.name());
        assert_eq!((right, client.holdings()), (coroutines as u64 * calls, Holdings::default()));
        Ok(())
    }

    async fn ask(client: &Client, calls: u64, counts: &Counts) {
        let mut number = 0;
        while number < calls {
            match client.call(Message::new(1, [number, 1, 2])).await {
                Ok(answer) => {
                    assert_eq!(answer.payload(), [number + 3]);
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
