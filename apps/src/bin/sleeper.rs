//! A server that sleeps: it answers each request with its words, `delay` microseconds after it came, unless the client has given up by then.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use libipc::executor::Timers;
    use libipc::port::{GuestClock, GuestPort};
    use libipc::{Executor, OpenError, Server};
    use userlib::Env;

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port)?;
        let clock = GuestClock::from_env(env);
        let timers = Timers::new(&clock);
        let delay = timers.ticks(env.arg_or("delay", 1000));
        let executor = Executor::new(1);
        executor.attach(&server);
        executor.attach(&timers);
        let serve = async {
            loop {
                let request = server.recv().await;
                let answer = *request.message();
                if timers.deadline(timers.now() + delay, request.cancelled()).await.is_none() {
                    request.reply(answer);
                }
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
    println!("sleeper is a guest program; run it with `cargo run -p images -- run deadline`");
}
