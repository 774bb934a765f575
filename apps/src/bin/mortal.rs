//! A server that dies: it answers with the sum of the words and all words but the first, and panics when it has taken `life` requests. What it
//! holds then is never answered. For systems that show what becomes of its clients.
//!
//! The first word of a request is its number: each must be the one after the last, or something was lost, doubled or out of order.

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
        let life = env.arg_or("life", 100u64);
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            let mut last = None;
            loop {
                let request = server.recv().await;
                assert!(server.requests() < life, "as asked, after {life} requests");
                let [number, who, what] = *request.message().payload() else { panic!("a request of another length") };
                // Said, and the test fails by it: a panic would only start the next server.
                let expected = last.map_or(number, |last: u64| last + 1);
                if number != expected {
                    println!("{}: request {number} came in place of {expected}", env.name());
                }
                last = Some(number);
                request.reply(Message::new(0, [number + who + what, who, what]));
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
