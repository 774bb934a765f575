//! A client: asks the server of each of its channels for sums, checks every answer, and leaves.
//!
//! Arguments `calls`: how many on each channel; `in-flight`: how many at a time.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;
    use libipc::port::GuestPort;
    use libipc::{Client, Executor, Message, OpenError};
    use userlib::env::Transport;
    use userlib::{Env, println, time};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let (calls, in_flight) = (env.arg_or("calls", 100u64), env.arg_or("in-flight", 1usize));
        for channel in env.channels() {
            let client = Client::from_env(env, channel.name)?;
            let (right, made) = (Cell::new(0), Cell::new(0));
            let executor = Executor::new(in_flight);
            executor.attach(&client);
            for _ in 0..in_flight {
                if executor.spawn(ask(&client, calls, &made, &right)).is_err() {
                    unreachable!("the executor has a place for each");
                }
            }
            let start = time::cycles();
            executor.run(&port);
            let each = (time::cycles() - start) / calls.max(1);
            let transport = match channel.transport {
                Transport::Async { .. } => "rings",
                Transport::Sync { .. } => "an endpoint",
            };
            println!(
                "{}: {}: {} of {calls} answers right over {transport}, {each} cycles each",
                env.name(),
                channel.name,
                right.get()
            );
            assert_eq!(right.get(), calls);
        }
        Ok(())
    }

    /// Asks until `calls` are made by all together.
    async fn ask(client: &Client, calls: u64, made: &Cell<u64>, right: &Cell<u64>) {
        while made.get() < calls {
            let number = made.replace(made.get() + 1);
            let answer = client.call(Message::new(1, [number, 1, 2, 3, 4, 5])).await;
            right.set(right.get() + u64::from(answer.is_ok_and(|answer| answer.words[0] == number + 15)));
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("asker is a guest program; run it with `cargo run -p images -- run pair`");
}
