//! A memory server: maps pages into the address space of its client, and takes them away again, as the client's messages ask.
//!
//! It owns `untyped` memory, which it makes `pages` frames of, and manages the client's address space (`spaces`). How a request becomes an
//! invocation of the kernel follows the channel. Over an endpoint each is a system call. Over rings two coroutines make a pipeline:
//! one takes requests and puts invocations into the system-call ring, the other takes answers out and replies; the ring answers in the
//! order of its lines. So all requests that have come are one entry of the kernel; with `hand-over-from = "N"` another hart may do N or
//! more. (A coroutine for each request would do too, but those that wait for one are woken one by one, and a batch is what one round
//! brings together.) Messages: `apps::memory`.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod pages;

#[cfg(target_os = "none")]
mod program {
    use alloc::collections::VecDeque;
    use core::cell::{Cell, RefCell};
    use core::future::{Future as _, poll_fn};
    use core::pin::Pin;
    use core::task::{Context, Poll, Waker};

    use crate::pages::Pages;
    use apps::memory::{MAP, MOVE, UNMAP};
    use libipc::port::GuestPort;
    use libipc::syscall_ring::{SyscallCall, SyscallError, SyscallRing, Trap};
    use libipc::{Executor, Message, Request, Server};
    use userlib::MessageInfo;
    use userlib::cap::{Code, Endpoint, Error};
    use userlib::env::{Env, Transport};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) {
        let Some(channel) = env.channel("memory") else { panic!("the manifest has no channel \"memory\"") };
        let client = env.arg("client").unwrap_or("memory-client");
        let Some(space) = env.space(client) else { panic!("the manifest gives no address space of {client}") };
        let pages = match Pages::new(env, env.arg_or("pages", 64), space) {
            Ok(pages) => pages,
            Err(error) => panic!("cannot make pages: {error}"),
        };
        match channel.transport {
            Transport::Sync { endpoint } => serve_endpoint(endpoint, pages),
            Transport::Async { .. } => serve_rings(env, pages),
        }
    }

    /// Requests whose invocations are in the ring, in its order. The queue grows to what is under way at a time, and no further: it is used all
    /// around, and its memory is to stay in the cache.
    struct UnderWay<'r> {
        requests: RefCell<VecDeque<(Request<'r>, SyscallCall<'r, Trap>)>>,
        /// Who waits for the next.
        waits: Cell<Option<Waker>>,
    }

    impl<'r> UnderWay<'r> {
        fn new() -> Self {
            Self { requests: RefCell::new(VecDeque::new()), waits: Cell::new(None) }
        }

        #[inline(always)] // has one caller
        fn push(&self, request: Request<'r>, call: SyscallCall<'r, Trap>) {
            self.requests.borrow_mut().push_back((request, call));
            if let Some(waker) = self.waits.take() {
                waker.wake();
            }
        }

        /// Replies to the oldest, and to those behind it, as far as they have been carried out.
        #[inline(always)] // as `push`
        fn poll_reply(&self, context: &mut Context<'_>) -> Poll<()> {
            loop {
                let mut requests = self.requests.borrow_mut();
                let Some((_, call)) = requests.front_mut() else {
                    self.waits.set(Some(context.waker().clone()));
                    return Poll::Pending;
                };
                let Poll::Ready(answer) = Pin::new(call).poll(context) else { return Poll::Pending };
                let request = requests.pop_front().map(|(request, _)| request);
                drop(requests);
                let error = match answer {
                    Ok(_) => 0,
                    Err(SyscallError::Refused { label, .. }) => label,
                    Err(SyscallError::Skipped) => Code::IllegalOperation as u64,
                    // Without a ring nothing can be done any more: the request is dropped, and the client's call fails.
                    Err(SyscallError::Full | SyscallError::Closed) => continue,
                };
                if let Some(request) = request {
                    request.reply(Message::new(0, [error]));
                }
            }
        }
    }

    /// Serves over rings for ever.
    fn serve_rings(env: &Env, pages: Pages) {
        let port = GuestPort::from_env(env);
        let server = match Server::from_env(env, &port) {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        };
        let Some(ring) = SyscallRing::from_env(env) else { panic!("the manifest gives no system-call ring") };
        if let Some(lines) = env.arg("hand-over-from").and_then(|word| word.parse().ok()) {
            ring.hand_over_from(lines);
        }
        let under_way = UnderWay::new();
        let executor = Executor::new(2);
        executor.attach(&server);
        executor.attach(&ring);
        let take = async {
            loop {
                // Two lines, for a pair; while there is none, requests wait in their channel.
                ring.room(2).await;
                let request = server.recv().await;
                // A request that makes no sense is dropped: the client's call fails.
                if let Some(call) = invoke(&ring, pages, request.message()) {
                    under_way.push(request, call);
                }
            }
        };
        let reply = poll_fn(|context| under_way.poll_reply(context));
        if executor.spawn(take).is_err() || executor.spawn(reply).is_err() {
            unreachable!("the executor has a place for each task");
        }
        executor.run(&port);
    }

    /// Puts what a message asks for into the ring.
    #[inline(always)] // has one caller
    fn invoke<'r>(ring: &'r SyscallRing<Trap>, pages: Pages, message: &Message) -> Option<SyscallCall<'r, Trap>> {
        let (page, place) = pages.arguments(message.payload())?;
        match message.op {
            MAP => Some(ring.invoke(pages.mapping(page, place))),
            UNMAP => Some(ring.invoke(pages.frame(page).to_unmap())),
            MOVE => {
                let [_, mapped] = ring.invoke_linked(pages.frame(page).to_unmap(), pages.mapping(page, place));
                Some(mapped)
            }
            _ => None,
        }
    }

    /// Serves over an endpoint for ever.
    fn serve_endpoint(endpoint: Endpoint, pages: Pages) -> ! {
        let mut message = endpoint.recv();
        loop {
            let outcome = match (u16::try_from(message.info.label()), pages.arguments(&message.words)) {
                (Ok(MAP), Some((page, place))) => pages.mapping(page, place).call().map(drop),
                (Ok(UNMAP), Some((page, _))) => pages.frame(page).unmap(),
                (Ok(MOVE), Some((page, place))) => {
                    pages.frame(page).unmap().and_then(|()| pages.mapping(page, place).call().map(drop))
                }
                _ => Err(Error { code: Code::InvalidArgument, words: [0; 4] }),
            };
            let error = outcome.map_or_else(|error| error.code as u64, |()| 0);
            message = endpoint.reply_recv(MessageInfo::new(0, 0, 0, 1), [error, 0, 0, 0]);
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("memory-server is a guest program; run it with `cargo run -p images -- run memory`");
}
