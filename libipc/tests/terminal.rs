//! Whatever clients, servers and the clock do: every call ends exactly once, with its own reply or a typed error; every request is
//! executed at most once; and when all is over nothing is held for anybody.
#![cfg(not(loom))]

mod world;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use futures::StreamExt;
use libipc::executor::Timers;
use libipc::{CallError, Client, Executor, Message, SendError, Server};
use proptest::prelude::*;
use world::{Here, World, pair, yield_once};

/// What the server does with a request: words 1 to 3 of the message.
#[derive(Clone, Copy, Debug)]
struct Fate {
    delay: u64,
    action: u64,
    completions: u64,
}

/// 0 is a reply.
const REFUSE: u64 = 1;
const DROP: u64 = 2;
const UNTIL_CANCELLED: u64 = 3;
/// Not drawn: the broken server.
const FORGET: u64 = 4;

#[derive(Clone, Debug)]
enum Step {
    Call(Fate, Option<u64>),
    Abandon(Fate),
    Lend(Fate, Option<u64>),
    Link([Fate; 3]),
    Subscribe(Fate, usize, usize),
    Send(Fate),
    Sleep(u64),
    CloseClient,
    CloseServer,
}

fn fate() -> impl Strategy<Value = Fate> {
    (0u64..30, 0u64..4, 0u64..6).prop_map(|(delay, action, completions)| Fate { delay, action, completions })
}

fn step() -> impl Strategy<Value = Step> {
    let patience = prop::option::of(1u64..40);
    prop_oneof![
        6 => (fate(), patience.clone()).prop_map(|(fate, patience)| Step::Call(fate, patience)),
        2 => fate().prop_map(Step::Abandon),
        3 => (fate(), patience).prop_map(|(fate, patience)| Step::Lend(fate, patience)),
        2 => [fate(), fate(), fate()].prop_map(Step::Link),
        2 => (fate(), 1usize..4, 0usize..8).prop_map(|(fate, window, take)| Step::Subscribe(fate, window, take)),
        2 => fate().prop_map(Step::Send),
        2 => (1u64..20).prop_map(Step::Sleep),
        1 => Just(Step::CloseClient),
        1 => Just(Step::CloseServer),
    ]
}

struct Run<'a> {
    client: &'a Client<Here>,
    server: &'a Server<Here>,
    timers: &'a Timers<'a>,
    /// Number of the next message.
    next: Cell<u64>,
    /// Messages that the server has seen.
    seen: RefCell<HashSet<u64>>,
    asking: Cell<usize>,
}

impl Run<'_> {
    /// A message with a number of its own.
    fn message(&self, fate: Fate) -> Message {
        let number = self.next.replace(self.next.get() + 1);
        Message::new(1, [number, fate.delay, fate.action, fate.completions])
    }

    async fn serve(&self) {
        loop {
            let request = self.server.recv().await;
            let message = *request.message();
            let [number, delay, action, completions, ..] = message.words;
            assert!(self.seen.borrow_mut().insert(number), "request {number} was executed twice");
            if action == UNTIL_CANCELLED && request.wants_reply() {
                // Long enough that nobody waits for ever.
                self.timers.deadline(self.timers.now() + 200, request.cancelled()).await;
            } else if delay > 0 {
                self.timers.sleep(delay).await;
            }
            if request.is_multishot() {
                for index in 0..completions {
                    request.window().await;
                    if request.more(Message::new(1, [number, index])).is_err() {
                        break;
                    }
                }
            }
            match action {
                REFUSE => request.refuse(message),
                DROP => drop(request),
                FORGET => std::mem::forget(request),
                _ => request.reply(message),
            }
        }
    }

    /// A reply is that of its own request, an error is one that could be.
    fn check(&self, sent: Message, result: Result<Message, CallError>, bounded: bool) {
        match result {
            Ok(reply) => assert_eq!(reply.words[0], sent.words[0], "the reply to another call"),
            Err(CallError::Dropped) => assert_eq!(sent.words[2], DROP),
            Err(CallError::Deadline) => assert!(bounded),
            Err(CallError::Closed | CallError::Cancelled) => {}
            Err(error @ (CallError::Full | CallError::Peer(_))) => panic!("{error}"),
        }
    }

    /// Waits until a call is possible, opening the channel again if it is closed.
    async fn ready(&self) {
        self.client.reconnect().await;
        self.client.credit().await;
    }

    async fn ask(&self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Call(fate, patience) => {
                    self.ready().await;
                    let message = self.message(*fate);
                    let Ok(call) = self.client.try_call(message) else { continue };
                    let result = match patience {
                        Some(ticks) => call.by(self.timers.sleep(*ticks)).await,
                        None => call.await,
                    };
                    self.check(message, result, patience.is_some());
                }
                Step::Abandon(fate) => {
                    self.ready().await;
                    let call = self.client.try_call(self.message(*fate));
                    yield_once().await;
                    drop(call);
                }
                Step::Lend(fate, patience) => {
                    self.ready().await;
                    let Some(buffer) = self.client.arena().take() else { continue };
                    let message = self.message(*fate);
                    let Ok(lent) = self.client.lend(message, buffer) else { continue };
                    let until = patience.map_or(u64::MAX, |ticks| self.timers.now() + ticks);
                    if let Some((result, _)) = self.timers.deadline(until, lent).await {
                        self.check(message, result, false);
                    }
                }
                Step::Link(fates) => {
                    self.ready().await;
                    let messages = fates.map(|fate| self.message(fate));
                    let Ok(calls) = self.client.link(messages) else { continue };
                    let mut broken = false;
                    for ((call, message), fate) in calls.into_iter().zip(messages).zip(fates) {
                        let result = call.await;
                        if broken {
                            assert!(matches!(result, Err(CallError::Cancelled | CallError::Closed)), "{result:?}");
                        }
                        self.check(message, result, false);
                        broken |= result.is_err() || fate.action == REFUSE;
                    }
                }
                Step::Subscribe(fate, window, take) => {
                    self.ready().await;
                    let message = self.message(*fate);
                    let Ok(mut stream) = self.client.subscribe(message, *window) else { continue };
                    let mut index = 0;
                    while let Some(item) = stream.next().await {
                        self.check(message, item, false);
                        if let Ok(item) = item
                            && item.len == 2
                        {
                            assert_eq!(item.words[1], index, "lost, doubled or out of order");
                            index += 1;
                        }
                        if index as usize == *take {
                            break;
                        }
                    }
                }
                Step::Send(fate) => {
                    self.ready().await;
                    match self.client.send(self.message(*fate)) {
                        Ok(()) | Err(SendError::Full(_) | SendError::Closed(_)) => {}
                        Err(SendError::Unsupported(_)) => unreachable!("rings carry them"),
                    }
                }
                Step::Sleep(ticks) => self.timers.sleep(*ticks).await,
                Step::CloseClient => self.client.close(),
                Step::CloseServer => self.server.close(),
            }
        }
        self.asking.set(self.asking.get() - 1);
    }
}

/// Two workers, any number of askers. Afterwards all is quiet, and nothing is held.
fn play(entries: usize, scripts: &[Vec<Step>]) {
    let world = World::default();
    let timers = Timers::new(&world);
    let (_, client, server) = pair(entries);
    let run = Run {
        client: &client,
        server: &server,
        timers: &timers,
        next: Cell::new(1),
        seen: RefCell::default(),
        asking: Cell::new(scripts.len()),
    };
    let quiet = Cell::new(false);
    let executor = Executor::new(scripts.len() + 1);
    executor.attach(&client);
    executor.attach(&server);
    executor.attach(&timers);
    for script in scripts {
        executor.spawn(run.ask(script)).unwrap();
    }
    let serving = async {
        // Workers that end when the askers have ended and the longest request is over.
        let end = async {
            while run.asking.get() > 0 {
                assert!(timers.now() < 50_000, "somebody waits for ever");
                timers.sleep(50).await;
            }
            timers.sleep(2000).await;
        };
        let workers = async { futures::join!(run.serve(), run.serve()) };
        futures::pin_mut!(end, workers);
        futures::future::select(end, workers).await;
        quiet.set(true);
    };
    executor.spawn(serving).unwrap();
    executor.run(&world);
    drop(executor);
    assert!(quiet.get());
    assert_eq!(client.holdings(), Default::default());
    assert_eq!(server.holdings(), Default::default());
    assert_eq!(timers.set(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_ends_once_and_leaves_nothing(
        entries in prop::sample::select(vec![4usize, 8, 16]),
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..12), 1..4),
    ) {
        play(entries, &scripts);
    }
}

/// The check can fail: a server that forgets a request leaves its caller waiting and its credit in use.
#[test]
#[should_panic(expected = "left == right")]
fn a_server_that_forgets_a_request_is_found_out() {
    let forget = Fate { delay: 0, action: FORGET, completions: 0 };
    play(4, &[vec![Step::Call(forget, Some(5))]]);
}
