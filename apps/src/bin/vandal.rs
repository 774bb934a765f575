//! A client that destroys what it can: while it calls, it writes random words to anywhere in the memory that it shares with its server
//! (headers, doze words, counts, both rings, arena), rings the server's doorbell for nothing, and connects again when it is thrown out.
//!
//! Its own client end gets lost in this, so it waits for nothing for long. The server must not mind, nor the server's other clients.
//!
//! Arguments: `rounds`, how many calls it tries; `seed` of what it does.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use apps::random::Random;
    use core::cell::Cell;
    use core::future::{Future, poll_fn};
    use core::pin::pin;
    use core::sync::atomic::{AtomicU64, Ordering};
    use core::task::Poll;
    use libipc::port::GuestPort;
    use libipc::{CallError, Client, Executor, Message, OpenError};
    use userlib::env::{Region, Transport};
    use userlib::{Env, println, syscall};

    userlib::program!(main);

    /// How often it looks for an answer before it gives the call up.
    const LOOKS: u32 = 16;
    /// Words written in one round, at most.
    const WORDS: u64 = 4;

    /// What came of the calls.
    #[derive(Default)]
    struct Counts {
        answered: Cell<u64>,
        given_up: Cell<u64>,
        refused: Cell<u64>,
        reconnected: Cell<u64>,
    }

    fn main(env: &'static Env, _: usize) -> Result<(), OpenError> {
        let port = GuestPort::from_env(env);
        let channel = env.channels().next().ok_or(OpenError::NoChannel)?;
        let client = Client::from_env(env, channel.name)?;
        let Transport::Async { peer, ring, .. } = channel.transport else { return Err(OpenError::NoChannel) };
        let random = Random::new(env.arg_or("seed", 1));
        let rounds = env.arg_or("rounds", 1000u64);
        let counts = Counts::default();
        let executor = Executor::new(1);
        executor.attach(&client);
        let rage = async {
            for round in 0..rounds {
                if random.below(4) == 0 {
                    (0..=random.below(WORDS)).for_each(|_| write(&random, &[ring, channel.arena]));
                }
                let message = Message::new(random.next() as u16, [(); 6].map(|()| random.next()));
                attempt(&client, message, &counts).await;
                if round % 8 == 0 {
                    // Its own bell may be broken.
                    peer.signal();
                }
            }
        };
        if executor.spawn(rage).is_err() {
            unreachable!("the executor has a place for one task");
        }
        executor.run(&port);
        let Counts { answered, given_up, refused, reconnected } = &counts;
        println!(
            "{}: {rounds} calls tried: {} answered, {} given up, {} refused; connected again {} times",
            env.name(),
            answered.get(),
            given_up.get(),
            refused.get(),
            reconnected.get(),
        );
        Ok(())
    }

    /// One call, and what has to be done to make the next.
    async fn attempt(client: &Client, message: Message, counts: &Counts) {
        let count = |counter: &Cell<u64>| counter.set(counter.get() + 1);
        match briefly(client.call(message)).await {
            Some(Ok(_)) => count(&counts.answered),
            None => count(&counts.given_up),
            Some(Err(error)) => {
                count(&counts.refused);
                if error == CallError::Full {
                    // Calls that were given up and whose ends are lost.
                    client.close();
                }
                if briefly(client.reconnect()).await.is_some() {
                    count(&counts.reconnected);
                }
            }
        }
    }

    /// What the future resolves to, if it does soon.
    async fn briefly<F: Future>(future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut looks = 0;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if looks == LOOKS {
                return Poll::Ready(None);
            }
            looks += 1;
            // Ready again at once: this executor never waits, so it needs no bell. Others of this hart get their turn.
            context.waker().wake_by_ref();
            syscall::yield_now();
            Poll::Pending
        })
        .await
    }

    /// Writes a random word to a random place: as often in the lines before the rings as in the rest. Small numbers are as likely as large ones.
    fn write(random: &Random, regions: &[Region]) {
        let region = regions[random.below(regions.len() as u64) as usize];
        let size = if random.below(2) == 0 { region.size.min(libipc::channel::CONTROL_BYTES) } else { region.size };
        if size == 0 {
            return;
        }
        let address = region.address + random.below(size as u64 / 8) as usize * 8;
        let value = random.next() >> random.below(64);
        // SAFETY: the word is aligned, and the root task has mapped the region for as long as the program lives. Both ends access it through
        // atomics only and take nothing in it for granted.
        let word = unsafe { AtomicU64::from_ptr(core::ptr::with_exposed_provenance_mut(address)) };
        word.store(value, Ordering::Relaxed);
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("vandal is a guest program; run it with `cargo run -p images -- run vandal`");
}
