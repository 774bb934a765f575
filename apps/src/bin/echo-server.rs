//! Answers every byte on a TCP port with that byte xor 0x5A: the far end of the socket measurements.
//!
//! Arguments: `port`, 7 by default; `connections`, how many may be open or waiting at a time, 32 by default. Over an
//! asynchronous channel each connection is a coroutine of thread 0; over an endpoint each is one of the program's threads, which takes the
//! next when it has ended, so the manifest gives as many threads as connections.
//!
//! A reply differs from its request, so that a segment reflected by mistake does not pass for an answer.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use libipc::executor::Spawner;
    use libipc::port::GuestPort;
    use libipc::{Client, Executor};
    use nwp_api::{Failure, conn, sync};
    use userlib::env::Transport;
    use userlib::{Env, println};

    userlib::program!(main);

    /// Bytes answered at a time; what comes in one segment is more only in bulk transfers.
    const CHUNK: usize = 1024;
    const REPLY_XOR: u8 = 0x5A;

    fn main(env: &'static Env, thread: usize) {
        let Some(channel) = env.channel("net") else { panic!("the manifest has no channel \"net\"") };
        let result = match channel.transport {
            Transport::Async { .. } if thread != 0 => return,
            Transport::Async { .. } => serve_coroutines(env),
            Transport::Sync { .. } => serve_thread(env, thread),
        };
        if let Err(failure) = result {
            panic!("network server: {failure}");
        }
    }

    fn client(env: &Env, thread: usize) -> Client {
        Client::for_thread(env, "net", thread).unwrap_or_else(|error| panic!("channel \"net\": {error}"))
    }

    fn connections(env: &Env) -> usize {
        env.arg_or("connections", 32)
    }

    /// The port and how many connections may wait there.
    fn address(env: &Env) -> (u16, u16) {
        (env.arg_or("port", 7), u16::try_from(connections(env)).unwrap_or(u16::MAX))
    }

    /// The answer to `request` in the first bytes of `reply`.
    fn answer<'r>(request: &[u8], reply: &'r mut [u8; CHUNK]) -> &'r [u8] {
        for (to, from) in reply.iter_mut().zip(request) {
            *to = from ^ REPLY_XOR;
        }
        &reply[..request.len()]
    }

    fn serve_coroutines(env: &Env) -> Result<(), Failure> {
        let port = GuestPort::from_env(env);
        let client = client(env, 0);
        let executor = Executor::new(connections(env) + 1);
        executor.attach(&client);
        let spawner = executor.spawner();
        let acceptor = async {
            if let Err(failure) = accept(env, &client, spawner).await {
                panic!("network server: {failure}");
            }
        };
        if executor.spawn(acceptor).is_err() {
            unreachable!("the executor has a place for the acceptor");
        }
        executor.run(&port);
        Ok(())
    }

    /// Starts a coroutine for each connection; one that comes when all places are taken is closed.
    async fn accept<'c>(env: &Env, client: &'c Client, spawner: Spawner<'c>) -> Result<(), Failure> {
        let (port, backlog) = address(env);
        let listener = conn::Network::new(client).listen(port, backlog).await?;
        println!("{}: port {port}, coroutines", env.name());
        loop {
            let conn = listener.accept().await?;
            let echo = async move {
                // Its connection has failed and is closed by now; the others go on.
                let _ = echo_coroutine(conn).await;
            };
            // Dropping the refused task closes its connection.
            let _ = spawner.spawn(echo);
        }
    }

    async fn echo_coroutine(mut conn: conn::Conn<'_>) -> Result<(), Failure> {
        let (mut request, mut reply) = ([0; CHUNK], [0; CHUNK]);
        let mut length = conn.read(&mut request).await?;
        while length > 0 {
            // One message: the reply goes out, the next request comes in.
            length = conn.call(answer(&request[..length], &mut reply), &mut request).await?;
        }
        conn.close().await
    }

    fn serve_thread(env: &Env, thread: usize) -> Result<(), Failure> {
        let client = client(env, thread);
        let network = sync::Network::new(&client);
        let (port, backlog) = address(env);
        // All threads open the same port, and so share one listener.
        let listener = network.listen(port, backlog)?;
        if thread == 0 {
            println!("{}: port {port}, {} threads", env.name(), env.threads());
        }
        loop {
            // A connection that has failed is closed by now; the thread takes the next.
            let _ = echo_blocking(listener.accept()?);
        }
    }

    fn echo_blocking(mut conn: sync::Conn<'_>) -> Result<(), Failure> {
        let (mut request, mut reply) = ([0; CHUNK], [0; CHUNK]);
        let mut length = conn.read(&mut request)?;
        while length > 0 {
            length = conn.call(answer(&request[..length], &mut reply), &mut request)?;
        }
        conn.close()
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("echo-server is a guest program; run it with `cargo run -p images -- run echo`");
}
