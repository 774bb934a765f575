//! Client and server on one thread, with a clock that stands still until everybody waits for it: what happens is a function of the
//! test alone.
#![allow(dead_code, reason = "each test uses its part of it")]

use std::cell::Cell;
use std::task::Poll;

use libipc::bell::Ring;
use libipc::channel::Memory;
use libipc::executor::{Clock, Timers};
use libipc::port::{Patience, Port};
use libipc::{Client, Executor, Message, Server};

/// Both ends are on this thread, so nobody ever has to be reached.
#[derive(Clone, Copy)]
pub struct Here;

impl Ring for Here {
    fn interrupt(&self) {}
    fn signal(&self) {}
}

/// Time in ticks of a microsecond. It moves when the executor parks: to the alarm. Without one, a wake-up was lost.
#[derive(Default)]
pub struct World {
    now: Cell<u64>,
    alarm: Cell<Option<u64>>,
    /// Rounds since time last moved.
    rounds: Cell<u32>,
}

impl Clock for World {
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn hz(&self) -> u64 {
        1_000_000
    }
    fn alarm(&self, at: u64) {
        self.alarm.set(Some(at));
    }
}

impl Port for World {
    fn take(&self) -> u64 {
        self.rounds.set(self.rounds.get() + 1);
        assert!(self.rounds.get() < 1_000_000, "the executor goes round and round without getting anywhere");
        0
    }
    fn can_arm(&self) -> bool {
        false
    }
    fn park(&self) -> u64 {
        let at = self.alarm.take().expect("nothing to do, but tasks are left: a wake-up was lost");
        self.now.set(self.now.get().max(at));
        self.rounds.set(0);
        0
    }
    fn patience(&self) -> Patience {
        Patience::NONE
    }
}

impl World {
    /// Lets time pass while a task computes.
    pub fn pass(&self, ticks: u64) {
        self.now.set(self.now.get() + ticks);
    }
}

pub fn pair(entries: usize) -> (Memory, Client<Here>, Server<Here>) {
    let memory = Memory::leak(entries, 4096).unwrap();
    (memory, Client::new(&memory, Here), Server::new([(memory, Here)]))
}

pub fn ask(value: u64) -> Message {
    Message::new(1, [value])
}

/// Runs `tasks` with client, server and timers attached, until all of them are done.
pub fn run<'a>(
    world: &'a World,
    timers: &'a Timers<'a>,
    client: &'a Client<Here>,
    server: &'a Server<Here>,
    tasks: impl IntoIterator<Item = std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>>,
) {
    let executor = Executor::new(64);
    executor.attach(client);
    executor.attach(server);
    executor.attach(timers);
    for task in tasks {
        executor.spawn(task).unwrap();
    }
    executor.run(world);
}

/// Lets every other ready task run once.
pub async fn yield_once() {
    let yielded = Cell::new(false);
    std::future::poll_fn(|context| {
        if yielded.replace(true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
