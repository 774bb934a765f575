//! A client that does not wait for ever: each call has a deadline, `patience` microseconds after it was made.
//!
//! Over rings its servers are slower than that: every call must end at its deadline, not before it and not much later. Over an endpoint
//! a call cannot be given up; there it must take the time that the server sleeps, which is `delay` here too.
//!
//! Argument `calls`: how many on each channel.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;
    use libipc::executor::Timers;
    use libipc::port::{GuestClock, GuestPort};
    use libipc::{CallError, Client, Executor, Message, OpenError};
    use userlib::env::Transport;
    use userlib::{Env, println};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let clock = GuestClock::from_env(env);
        let timers = Timers::new(&clock);
        let calls = env.arg_or("calls", 20u64);
        let (patience, delay) = (timers.ticks(env.arg_or("patience", 500)), timers.ticks(env.arg_or("delay", 500)));
        for channel in env.channels() {
            let client = Client::from_env(env, channel.name)?;
            let rings = matches!(channel.transport, Transport::Async { .. });
            let latest = Cell::new(0);
            let executor = Executor::new(1);
            executor.attach(&client);
            executor.attach(&timers);
            let ask = async {
                for number in 0..calls {
                    let message = Message::new(1, [number]);
                    let at = timers.now() + if rings { patience } else { delay };
                    if rings {
                        assert_eq!(client.call(message).by(timers.at(at)).await, Err(CallError::Deadline));
                    } else {
                        assert_eq!(client.call(message).await, Ok(message));
                    }
                    let late = timers.now().checked_sub(at).expect("not before its time");
                    // The first call also waits until the server has started.
                    if number > 0 {
                        latest.set(latest.get().max(late));
                    }
                }
            };
            if executor.spawn(ask).is_err() {
                unreachable!("the executor has a place for one task");
            }
            executor.run(&port);
            let what = if rings { "ended at their deadlines" } else { "were answered in time" };
            println!("{}: {}: {calls} calls {what}, at most {} ticks late", env.name(), channel.name, latest.get());
        }
        Ok(())
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("punctual is a guest program; run it with `cargo run -p images -- run deadline`");
}
