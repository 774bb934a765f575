//! A client: asks the server of each of its channels for sums, checks every answer, and leaves.
//!
//! Argument `calls`: how many on each channel.

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
        let calls = env.arg_or("calls", 100u64);
        for channel in env.channels() {
            let client = Client::from_env(env, channel.name)?;
            let right = Cell::new(0);
            let executor = Executor::new(1);
            executor.attach(&client);
            let ask = async {
                for number in 0..calls {
                    let answer = client.call(Message::new(1, [number, 1, 2, 3, 4, 5])).await;
                    right.set(right.get() + u64::from(answer.is_ok_and(|answer| answer.words[0] == number + 15)));
                }
            };
            if executor.spawn(ask).is_err() {
                unreachable!("the executor has a place for one task");
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
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("asker is a guest program; run it with `cargo run -p images -- run pair`");
}
