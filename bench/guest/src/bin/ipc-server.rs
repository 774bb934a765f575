//! The server of the null-call experiment: it answers at once, or multiplies two matrices first, over an endpoint or over rings.
//!
//! Arguments: `load`, rows and columns of the matrices, 0 for none; `armed`: over rings, waits for user interrupts instead of looking.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use bench_guest::matrix::Matrices;
    use bench_guest::null_call::{INTERRUPTS, NULL, answer};
    use bench_guest::patience::patience;
    use libipc::port::{GuestPort, Port as _};
    use libipc::{Executor, Message, Server};
    use userlib::MessageInfo;
    use userlib::cap::Endpoint;
    use userlib::env::{Env, Transport};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) {
        let Some(channel) = env.channel("ipc") else { panic!("the manifest has no channel \"ipc\"") };
        let load = Matrices::new(env.arg_or("load", 0));
        match channel.transport {
            Transport::Sync { endpoint } => serve_endpoint(endpoint, load),
            Transport::Async { .. } => serve_rings(env, load),
        }
    }

    /// Answers calls over rings for ever.
    fn serve_rings(env: &Env, mut load: Matrices) {
        let port = GuestPort::from_env(env);
        let server = match Server::from_env(env, &port) {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        };
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            loop {
                let request = server.recv().await;
                let word = match request.message().op {
                    NULL => {
                        load.work();
                        answer(request.message().words[0])
                    }
                    INTERRUPTS => port.user_interrupts(),
                    op => panic!("operation {op} is unknown"),
                };
                request.reply(Message::new(0, [word]));
            }
        };
        if executor.spawn(serve).is_err() {
            unreachable!("the executor has a place for one task");
        }
        executor.run_with(&port, patience(env.arg_or("armed", false), &port));
    }

    /// Answers calls over an endpoint for ever.
    fn serve_endpoint(endpoint: Endpoint, mut load: Matrices) -> ! {
        let mut message = endpoint.recv();
        loop {
            let word = match u16::try_from(message.info.label()) {
                Ok(NULL) => {
                    load.work();
                    answer(message.words[0])
                }
                // Nobody sends user interrupts to a server of endpoints.
                Ok(INTERRUPTS) => 0,
                _ => panic!("operation {} is unknown", message.info.label()),
            };
            message = endpoint.reply_recv(MessageInfo::new(0, 0, 0, 1), [word, 0, 0, 0]);
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("ipc-server is a guest program; run it with `cargo run --release -p bench -- ipc`");
}
