//! A memory server: maps pages into the address space of its client, and takes them away again, as the client's messages ask.
//!
//! It owns `untyped` memory, which it makes `pages` frames of, and manages the client's address space (`spaces`). How a request becomes an
//! invocation of the kernel follows the channel: over rings, `tasks` coroutines put invocations into the system-call ring, so that what
//! came in one round is one entry of the kernel; over an endpoint each is a system call of its own. Messages: see `apps::memory`.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use apps::memory::{MAP, MOVE, UNMAP, Window};
    use libipc::port::GuestPort;
    use libipc::syscall_ring::{SyscallError, SyscallRing, Trap};
    use libipc::{Executor, Message, Request, Server};
    use userlib::MessageInfo;
    use userlib::cap::{Attributes, Code, Endpoint, Error, Frame, ObjectType, PageTable, Result, Rights, VSpace, slot};
    use userlib::env::{Env, Transport};

    userlib::program!(main);

    /// What the client may have mapped, and where.
    #[derive(Clone, Copy)]
    struct Pages {
        /// Slot of the first frame.
        first: u64,
        window: Window,
        space: VSpace,
    }

    impl Pages {
        /// Makes `count` frames of the program's untyped memory, and the page tables above the window of `space`.
        fn new(env: &Env, count: u64, space: VSpace) -> Result<Self> {
            let Some(memory) = env.untyped() else { panic!("the manifest gives no untyped memory") };
            let slots = env.reply_slots();
            let window = Window::new(count);
            // After a restart: what was made before is there still.
            slot::CNODE.slot(memory.untyped.0.0).revoke()?;
            memory.untyped.retype(ObjectType::Frame, slot::CNODE.slot(slots.first), count)?;
            let pages = Self { first: slots.first, window, space };
            let mut table = slots.first + count;
            loop {
                match pages.frame(0).map(space, window.address(0), Rights::READ_WRITE, Attributes::ExecuteNever) {
                    Err(Error { code: Code::FailedLookup, .. }) => {
                        memory.untyped.retype(ObjectType::PageTable, slot::CNODE.slot(table), 1)?;
                        PageTable(userlib::cap::CPtr(table)).map(space, window.address(0))?;
                        table += 1;
                    }
                    mapped => break mapped.and_then(|()| pages.frame(0).unmap())?,
                }
            }
            Ok(pages)
        }

        fn frame(self, page: u64) -> Frame {
            Frame(userlib::cap::CPtr(self.first + page))
        }

        fn mapping(self, page: u64, place: u64) -> userlib::cap::Request<3, 1> {
            let address = self.window.address(place);
            self.frame(page).to_map(self.space, address, Rights::READ_WRITE, Attributes::ExecuteNever)
        }

        /// Page and place of a message; neither is believed.
        fn arguments(self, words: &[u64]) -> Option<(u64, u64)> {
            let (&page, &place) = (words.first()?, words.get(1)?);
            (page < self.window.pages() && place < self.window.pages()).then_some((page, place))
        }
    }

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

    /// Serves over rings for ever.
    fn serve_rings(env: &Env, pages: Pages) {
        let port = GuestPort::from_env(env);
        let server = match Server::from_env(env, &port) {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        };
        let Some(ring) = SyscallRing::from_env(env) else { panic!("the manifest gives no system-call ring") };
        let tasks = env.arg_or("tasks", 64);
        let executor = Executor::new(tasks);
        executor.attach(&server);
        executor.attach(&ring);
        for _ in 0..tasks {
            let (server, ring) = (&server, &ring);
            let serve = async move {
                loop {
                    answer(server.recv().await, ring, pages).await;
                }
            };
            if executor.spawn(serve).is_err() {
                unreachable!("the executor has a place for each task");
            }
        }
        executor.run(&port);
    }

    /// Answers one request: word 0 is 0, or the kernel's error. A request that makes no sense is dropped.
    async fn answer(request: Request<'_>, ring: &SyscallRing<Trap>, pages: Pages) {
        let message = request.message();
        let Some((page, place)) = pages.arguments(message.payload()) else { return };
        let op = message.op;
        let outcome = loop {
            let outcome = match op {
                MAP => ring.invoke(pages.mapping(page, place)).await,
                UNMAP => ring.invoke(pages.frame(page).to_unmap()).await,
                MOVE => {
                    let [unmapped, mapped] =
                        ring.invoke_linked(pages.frame(page).to_unmap(), pages.mapping(page, place));
                    // The second is not carried out unless the first succeeds, and says so.
                    let _ = unmapped.await;
                    mapped.await
                }
                _ => return,
            };
            match outcome {
                Err(SyscallError::Full) => ring.room().await,
                outcome => break outcome,
            }
        };
        let error = match outcome {
            Ok(_) => 0,
            Err(SyscallError::Refused { label, .. }) => label,
            // Nothing can be carried out any more: the client's calls fail.
            Err(_) => return,
        };
        request.reply(Message::new(0, [error]));
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
