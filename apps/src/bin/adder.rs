//! A server: answers every request with the sum of its words, on all of its channels, over either transport.
//!
//! Argument `forgive`: whether a client that broke the protocol may connect again, from the next request of anybody on. How often that
//! happened is said every 1,024 times.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;
    use libipc::port::GuestPort;
    use libipc::{Executor, Message, OpenError, Server};
    use userlib::{Env, println};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port)?;
        let (forgive, forgiven) = (env.arg_or("forgive", false), Cell::new(0u64));
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            loop {
                let request = server.recv().await;
                if forgive {
                    pardon(env, &server, &forgiven);
                }
                let sum = request.message().payload().iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
                request.reply(Message::new(0, [sum]));
            }
        };
        if executor.spawn(serve).is_err() {
            unreachable!("the executor has a place for one task");
        }
        println!("{}: serving {} channels", env.name(), env.channels().count());
        executor.run(&port);
        Ok(())
    }

    fn pardon(env: &Env, server: &Server, forgiven: &Cell<u64>) {
        for channel in (0..server.channels()).filter(|channel| server.misbehaviour(*channel).is_some()) {
            server.forgive(channel);
            forgiven.set(forgiven.get() + 1);
            if forgiven.get().is_multiple_of(1024) {
                println!("{}: forgave {} times", env.name(), forgiven.get());
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("adder is a guest program; run it with `cargo run -p images -- run pair`");
}
