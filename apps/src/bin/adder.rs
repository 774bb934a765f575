//! A server: answers every request with the sum of its words, on all of its channels, over either transport.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use libipc::port::GuestPort;
    use libipc::{Executor, Message, OpenError, Server};
    use userlib::{Env, println};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port)?;
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            loop {
                let request = server.recv().await;
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
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("adder is a guest program; run it with `cargo run -p images -- run pair`");
}
