//! A server that dies: it answers with the sum of the words, as `adder` does, and panics when it has taken `life` requests. What it holds
//! then is never answered. For systems that show what becomes of its clients.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use libipc::port::GuestPort;
    use libipc::{Executor, Message, OpenError, Server};
    use userlib::Env;

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port)?;
        let life = env.arg_or("life", 100u64);
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            loop {
                let request = server.recv().await;
                assert!(server.requests() < life, "as asked, after {life} requests");
                let sum = request.message().payload().iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
                request.reply(Message::new(0, [sum]));
            }
        };
        if executor.spawn(serve).is_err() {
            unreachable!("the executor has a place for one task");
        }
        executor.run(&port);
        Ok(())
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("mortal is a guest program; run it with `cargo run -p images -- run restart`");
}
