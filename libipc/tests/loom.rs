//! Every interleaving, and every value that a weak memory may return, of the places where two harts meet.
//!
//! Run with `make loom`. Each model has variants with one piece left out; the checker must find their failure (a lost wake-up
//! shows as a deadlock), which is how we know that the model can see what it is meant to exclude.
//!
//! Whatever touches a modelled atomic when it is dropped is leaked: a model that fails unwinds, and loom is gone by then.
#![cfg(loom)]

use std::cell::RefCell;
use std::sync::Arc;

use libipc::bell::{Doze, DozeWord, Ring, full_fence};
use libipc::channel::Memory;
use libipc::entry::{Entry, Kind, Packet};
use libipc::port::{Patience, Port};
use libipc::ring::{Consumer, Producer};
use libipc::{CallError, Client, Executor, Message, Server};
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

/// Explores with at most `preemptions` involuntary switches, which is where races live.
fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(test);
}

fn ring(entries: usize) -> (Producer, Consumer) {
    let entries: &'static [Entry] = Box::leak((0..entries).map(|_| Entry::new()).collect());
    (Producer::new(entries), Consumer::new(entries))
}

/// Takes the next packet, a call.
fn pop(consumer: &Consumer) -> Option<Packet> {
    let arrival = consumer.peek().unwrap()?;
    assert!(arrival.is(Kind::Call));
    let packet = Packet { kind: Kind::Call, cookie: arrival.cookie(), message: arrival.message() };
    consumer.advance();
    Some(packet)
}

fn packet(value: u64) -> Packet {
    Packet { kind: Kind::Call, cookie: !value, message: Message::new(1, [value, value + 1, value + 2]) }
}

/// A doorbell of a modelled thread: a user interrupt sets bits, only a signal ends a wait.
#[derive(Default)]
struct Doorbell {
    bits: AtomicU64,
    signalled: Mutex<bool>,
    rung: Condvar,
}

impl Doorbell {
    fn interrupt(&self) {
        self.bits.fetch_or(1, Ordering::Relaxed);
    }

    fn signal(&self) {
        *self.signalled.lock().unwrap() = true;
        self.rung.notify_one();
    }

    fn wait(&self) {
        let mut signalled = self.signalled.lock().unwrap();
        while !*signalled {
            signalled = self.rung.wait(signalled).unwrap();
        }
        *signalled = false;
    }
}

// The bell -----------------------------------------------------------------------------------------------------------

/// Which pieces of the protocol the model keeps.
#[derive(Clone, Copy)]
struct Bell {
    producer_fence: bool,
    consumer_fence: bool,
    look_after_armed: bool,
    look_after_blocked: bool,
}

const WHOLE: Bell =
    Bell { producer_fence: true, consumer_fence: true, look_after_armed: true, look_after_blocked: true };

/// One entry from a producer to a consumer that goes through Armed to Blocked: the consumer must get it.
fn one_entry_through(bell: Bell) {
    model(3, move || {
        let (producer, consumer) = ring(2);
        let doze = Arc::new(DozeWord::new());
        let doorbell = Arc::new(Doorbell::default());
        let sender = {
            let (doze, doorbell) = (doze.clone(), doorbell.clone());
            thread::spawn(move || {
                producer.push(&packet(7));
                if bell.producer_fence {
                    full_fence();
                }
                match doze.claim() {
                    Doze::Armed => doorbell.interrupt(),
                    Doze::Blocked => doorbell.signal(),
                    Doze::Running | Doze::Closed => (),
                }
            })
        };
        let announce = |state| {
            doze.doze(state);
            if bell.consumer_fence {
                full_fence();
            }
        };
        announce(Doze::Armed);
        if !bell.look_after_armed || !consumer.is_ready() {
            announce(Doze::Blocked);
            if !bell.look_after_blocked || !consumer.is_ready() {
                doorbell.wait();
            }
        }
        doze.doze(Doze::Running);
        assert_eq!(pop(&consumer), Some(packet(7)));
        sender.join().unwrap();
    });
}

#[test]
fn a_dozing_consumer_gets_its_entry() {
    one_entry_through(WHOLE);
}

#[test]
fn the_look_between_armed_and_blocked_only_saves_time() {
    one_entry_through(Bell { look_after_armed: false, ..WHOLE });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_producers_fence_a_wake_up_is_lost() {
    one_entry_through(Bell { producer_fence: false, ..WHOLE });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_consumers_fence_a_wake_up_is_lost() {
    one_entry_through(Bell { consumer_fence: false, ..WHOLE });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_last_look_a_wake_up_is_lost() {
    one_entry_through(Bell { look_after_blocked: false, ..WHOLE });
}

// The ring -----------------------------------------------------------------------------------------------------------

#[test]
fn an_entry_is_seen_whole_or_not_at_all() {
    model(3, || {
        let (producer, consumer) = ring(2);
        let sender = thread::spawn(move || (0..2).for_each(|value| producer.push(&packet(value * 10))));
        for value in 0..2 {
            if let Some(seen) = pop(&consumer) {
                assert_eq!(seen, packet(value * 10));
            } else {
                break;
            }
        }
        sender.join().unwrap();
    });
}

/// An entry whose validity is stored without release.
#[test]
#[should_panic(expected = "torn")]
fn without_release_an_entry_is_seen_torn() {
    model(3, || {
        let (head, word) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let sender = {
            let (head, word) = (head.clone(), word.clone());
            thread::spawn(move || {
                word.store(7, Ordering::Relaxed);
                head.store(1, Ordering::Relaxed);
            })
        };
        if head.load(Ordering::Acquire) == 1 {
            assert_eq!(word.load(Ordering::Relaxed), 7, "torn");
        }
        sender.join().unwrap();
    });
}

/// A lap is overwritten only after the consumer gave the credit back, here by answering through a second ring.
#[test]
fn an_entry_is_not_overwritten_while_it_is_read() {
    model(3, || {
        let (requests, server) = ring(2);
        let (replies, client) = ring(2);
        let echo = thread::spawn(move || {
            let mut served = 0;
            while served < 3 {
                match pop(&server) {
                    Some(request) => {
                        replies.push(&request);
                        served += 1;
                    }
                    None => thread::yield_now(),
                }
            }
        });
        requests.push(&packet(0));
        requests.push(&packet(10));
        let mut next = 20;
        for value in [0, 10, 20] {
            let reply = loop {
                match pop(&client) {
                    Some(reply) => break reply,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(reply, packet(value));
            if next == 20 {
                requests.push(&packet(next)); // entry 0 again
                next += 10;
            }
        }
        echo.join().unwrap();
    });
}

// Executors, calls, closing --------------------------------------------------------------------------------------------

struct ModelPort {
    doorbell: Arc<Doorbell>,
    can_arm: bool,
}

impl Port for ModelPort {
    fn take(&self) -> u64 {
        self.doorbell.bits.swap(0, Ordering::Relaxed)
    }
    fn can_arm(&self) -> bool {
        self.can_arm
    }
    fn park(&self) -> u64 {
        self.doorbell.wait();
        0
    }
    fn patience(&self) -> Patience {
        Patience::NONE
    }
}

struct Peer(Arc<Doorbell>);

impl Ring for Peer {
    fn interrupt(&self) {
        self.0.interrupt();
    }
    fn signal(&self) {
        self.0.signal();
    }
}

/// A peer whose user interrupts and signals are both lost.
struct Deaf;

impl Ring for Deaf {
    fn interrupt(&self) {}
    fn signal(&self) {}
}

/// The real client and server with their executors on two threads. `serve` and `ask` are their only tasks.
fn two_programs<R: Ring + Send + 'static>(
    can_arm: bool,
    to_client: impl Fn(Arc<Doorbell>) -> R + Send + Sync + 'static,
    serve: impl AsyncFn(&'static Server<R>) + Clone + Send + Sync + 'static,
    ask: impl AsyncFn(&'static Client<Peer>) + Send + Sync + 'static,
) {
    two_programs_within((3, 2), can_arm, to_client, serve, ask);
}

/// As [`two_programs`], with rings of `entries`; long conversations are explored with fewer preemptions.
fn two_programs_within<R: Ring + Send + 'static>(
    (preemptions, entries): (usize, usize),
    can_arm: bool,
    to_client: impl Fn(Arc<Doorbell>) -> R + Send + Sync + 'static,
    serve: impl AsyncFn(&'static Server<R>) + Clone + Send + Sync + 'static,
    ask: impl AsyncFn(&'static Client<Peer>) + Send + Sync + 'static,
) {
    let ask = Arc::new(ask);
    let to_client = Arc::new(to_client);
    model(preemptions, move || {
        let memory = Memory::leak(entries, 0).unwrap();
        let doorbells = [Arc::new(Doorbell::default()), Arc::new(Doorbell::default())];
        let server_thread = {
            let (serve, ring) = (serve.clone(), to_client(doorbells[0].clone()));
            let doorbell = doorbells[1].clone();
            thread::spawn(move || {
                let server: &Server<R> = Box::leak(Box::new(Server::new([(memory, ring)])));
                let executor = Box::leak(Box::new(Executor::new(1)));
                executor.attach(server);
                let _ = executor.spawn(serve(server));
                executor.run(&ModelPort { doorbell, can_arm });
            })
        };
        let client = Box::leak(Box::new(Client::new(&memory, Peer(doorbells[1].clone()))));
        let executor = Box::leak(Box::new(Executor::new(1)));
        executor.attach(client);
        let _ = executor.spawn(ask(client));
        executor.run(&ModelPort { doorbell: doorbells[0].clone(), can_arm });
        server_thread.join().unwrap();
    });
}

fn message(value: u64) -> Message {
    Message::new(1, [value])
}

async fn answer_one<R: Ring>(server: &Server<R>) {
    let request = server.recv().await;
    let value = request.message().words[0];
    request.reply(message(value + 1));
}

#[test]
fn a_call_comes_back_between_threads_that_block() {
    two_programs(false, Peer, answer_one, async |client: &'static Client<Peer>| {
        assert_eq!(client.call(message(1)).await, Ok(message(2)));
    });
}

#[test]
fn a_call_comes_back_between_threads_that_arm_first() {
    two_programs(true, Peer, answer_one, async |client: &'static Client<Peer>| {
        assert_eq!(client.call(message(1)).await, Ok(message(2)));
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn with_a_broken_bell_a_call_hangs() {
    two_programs(
        false,
        |_| Deaf,
        answer_one,
        async |client: &'static Client<Peer>| {
            assert_eq!(client.call(message(1)).await, Ok(message(2)));
        },
    );
}

/// A server that closes at any moment: the call ends, one way or the other.
#[test]
fn a_call_that_meets_a_close_ends() {
    two_programs(
        false,
        Peer,
        async |server: &'static Server<Peer>| server.close(),
        async |client: &'static Client<Peer>| {
            assert_eq!(client.call(message(1)).await, Err(CallError::Closed));
        },
    );
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_close_without_bell_strands_a_call() {
    two_programs(
        false,
        |_| Deaf,
        async |server: &'static Server<Deaf>| server.close(),
        async |client: &'static Client<Peer>| {
            assert_eq!(client.call(message(1)).await, Err(CallError::Closed));
        },
    );
}

/// What was answered before the close arrives.
#[test]
fn an_answer_before_the_close_is_not_lost() {
    two_programs(
        false,
        Peer,
        async |server: &'static Server<Peer>| {
            answer_one(server).await;
            server.close();
        },
        async |client: &'static Client<Peer>| {
            assert_eq!(client.call(message(1)).await, Ok(message(2)));
        },
    );
}

/// A call given up: the server is told wherever it waits, and the next call gets its own reply.
fn a_call_given_up(give_up: fn(libipc::Call<'static, Peer>)) {
    two_programs_within(
        (1, 4),
        false,
        Peer,
        async |server: &'static Server<Peer>| {
            let request = server.recv().await;
            request.cancelled().await;
            request.reply(message(0));
            answer_one(server).await;
        },
        async move |client: &'static Client<Peer>| {
            give_up(client.call(message(10)));
            assert_eq!(client.call(message(20)).await, Ok(message(21)));
        },
    );
}

#[test]
fn a_cancellation_reaches_the_server() {
    a_call_given_up(drop);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_call_forgotten_instead_of_given_up_strands_the_server() {
    a_call_given_up(std::mem::forget);
}

/// A clock that another thread moves.
struct ModelClock(Arc<AtomicU64>);

impl libipc::executor::Clock for ModelClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn hz(&self) -> u64 {
        1
    }
    fn alarm(&self, _: u64) {}
}

/// Time passes at any moment: before, while or after the server answers. `rings` says whether the alarm is heard; `answers` whether there is
/// an answer in time.
fn a_deadline_races(rings: bool, answers: bool) {
    model(1, move || {
        let memory = Memory::leak(2, 0).unwrap();
        let doorbells = [Arc::new(Doorbell::default()), Arc::new(Doorbell::default())];
        let server_thread = {
            let (ring, doorbell) = (Peer(doorbells[0].clone()), doorbells[1].clone());
            thread::spawn(move || {
                let server: &Server<Peer> = Box::leak(Box::new(Server::new([(memory, ring)])));
                let executor = Box::leak(Box::new(Executor::new(1)));
                executor.attach(server);
                let _ = executor.spawn(async move {
                    let request = server.recv().await;
                    if !answers {
                        request.cancelled().await;
                    }
                    request.reply(message(1));
                });
                executor.run(&ModelPort { doorbell, can_arm: false });
            })
        };
        let time = Arc::new(AtomicU64::new(0));
        let clock: &ModelClock = Box::leak(Box::new(ModelClock(time.clone())));
        let time_thread = {
            let doorbell = doorbells[0].clone();
            thread::spawn(move || {
                time.store(1, Ordering::Relaxed);
                if rings {
                    doorbell.signal();
                }
            })
        };
        let client: &Client<Peer> = Box::leak(Box::new(Client::new(&memory, Peer(doorbells[1].clone()))));
        let timers: &libipc::executor::Timers = Box::leak(Box::new(libipc::executor::Timers::new(clock)));
        let executor = Box::leak(Box::new(Executor::new(1)));
        executor.attach(client);
        executor.attach(timers);
        let _ = executor.spawn(async move {
            let result = client.call(message(10)).by(timers.at(1)).await;
            assert!(result == Err(CallError::Deadline) || answers && result == Ok(message(1)), "{result:?}");
        });
        executor.run(&ModelPort { doorbell: doorbells[0].clone(), can_arm: false });
        server_thread.join().unwrap();
        time_thread.join().unwrap();
    });
}

#[test]
fn a_deadline_ends_a_call_that_nobody_answers() {
    a_deadline_races(true, false);
}

#[test]
fn a_deadline_and_a_reply_end_a_call_once() {
    a_deadline_races(true, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_an_alarm_a_deadline_is_slept_through() {
    a_deadline_races(false, false);
}

/// The server closes and serves again; the client connects again. `to_client` is how it is told.
fn closed_and_opened<R: Ring + Send + 'static>(to_client: impl Fn(Arc<Doorbell>) -> R + Send + Sync + 'static) {
    two_programs_within(
        (1, 2),
        false,
        to_client,
        async |server: &'static Server<R>| {
            server.close();
            answer_one(server).await;
        },
        async |client: &'static Client<Peer>| {
            while client.call(message(1)).await.is_err() {
                client.reconnect().await;
            }
        },
    );
}

#[test]
fn a_channel_that_was_closed_opens_again() {
    closed_and_opened(Peer);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_opening_that_nobody_is_told_of_strands_the_client() {
    closed_and_opened(|_| Deaf);
}

/// More one-way messages than the ring holds; no reply tells the client that there is room.
fn one_way_beyond_the_ring<R: Ring + Send + 'static>(to_client: impl Fn(Arc<Doorbell>) -> R + Send + Sync + 'static) {
    two_programs_within(
        (2, 2),
        false,
        to_client,
        async |server: &'static Server<R>| {
            for value in 0..3 {
                assert_eq!(*server.recv().await.message(), message(value));
            }
        },
        async |client: &'static Client<Peer>| {
            for value in 0..3 {
                client.credit().await;
                assert_eq!(client.send(message(value)), Ok(()));
            }
        },
    );
}

#[test]
fn room_behind_one_way_messages_is_found() {
    one_way_beyond_the_ring(Peer);
}

#[test]
#[should_panic(expected = "deadlock")]
fn room_that_is_not_told_of_is_waited_for_in_vain() {
    one_way_beyond_the_ring(|_| Deaf);
}

/// An abandoned call keeps its slot; the next call gets its own reply, never the abandoned one's.
#[test]
fn a_reply_never_reaches_another_call() {
    two_programs_within(
        (2, 2),
        false,
        Peer,
        async |server: &'static Server<Peer>| {
            answer_one(server).await;
            answer_one(server).await;
        },
        async |client: &'static Client<Peer>| {
            drop(client.call(message(10)));
            assert_eq!(client.call(message(20)).await, Ok(message(21)));
        },
    );
}

// Peers of one hart ------------------------------------------------------------------------------------------------------

/// A bell that is owed until the port parks.
#[derive(Clone, Default)]
struct Owed(std::rc::Rc<RefCell<Option<Arc<Doorbell>>>>);

impl Owed {
    fn settle(&self) {
        if let Some(doorbell) = self.0.take() {
            doorbell.signal();
        }
    }
}

struct PeerHere {
    doorbell: Arc<Doorbell>,
    owed: Owed,
}

impl Ring for PeerHere {
    fn interrupt(&self) {
        self.doorbell.interrupt();
    }
    fn signal(&self) {
        self.doorbell.signal();
    }
    fn signal_at_park(&self) {
        *self.owed.0.borrow_mut() = Some(self.doorbell.clone());
    }
}

struct PortHere {
    doorbell: Arc<Doorbell>,
    owed: Owed,
    signals_before_it_waits: bool,
}

impl Port for PortHere {
    fn take(&self) -> u64 {
        0
    }
    fn can_arm(&self) -> bool {
        false
    }
    fn park(&self) -> u64 {
        if self.signals_before_it_waits {
            self.owed.settle();
        }
        self.doorbell.wait();
        self.owed.settle();
        0
    }
    fn flush(&self) {
        self.owed.settle();
    }
    fn owes(&self) -> bool {
        self.owed.0.borrow().is_some()
    }
    fn patience(&self) -> Patience {
        Patience::NONE
    }
}

/// A call between programs that ring each other when they park, preempted anywhere.
fn bells_at_the_park(signals_before_it_waits: bool) {
    model(3, move || {
        let memory = Memory::leak(2, 0).unwrap();
        let doorbells = [Arc::new(Doorbell::default()), Arc::new(Doorbell::default())];
        let ends = move |own: &Arc<Doorbell>, other: &Arc<Doorbell>| {
            let owed = Owed::default();
            let port = PortHere { doorbell: own.clone(), owed: owed.clone(), signals_before_it_waits };
            (port, PeerHere { doorbell: other.clone(), owed })
        };
        let server_thread = {
            let [client, server] = doorbells.clone();
            thread::spawn(move || {
                let (port, peer) = ends(&server, &client);
                let server: &Server<PeerHere> = Box::leak(Box::new(Server::new([(memory, peer)])));
                let executor = Box::leak(Box::new(Executor::new(1)));
                executor.attach(server);
                let _ = executor.spawn(answer_one(server));
                executor.run(&port);
            })
        };
        let (port, peer) = ends(&doorbells[0], &doorbells[1]);
        let client: &Client<PeerHere> = Box::leak(Box::new(Client::new(&memory, peer)));
        let executor = Box::leak(Box::new(Executor::new(1)));
        executor.attach(client);
        let _ = executor.spawn(async { assert_eq!(client.call(message(1)).await, Ok(message(2))) });
        executor.run(&port);
        server_thread.join().unwrap();
    });
}

#[test]
fn a_bell_that_waits_for_the_park_is_not_lost() {
    bells_at_the_park(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_bell_that_waits_for_the_end_of_the_park_is_lost() {
    bells_at_the_park(false);
}

// The ready set --------------------------------------------------------------------------------------------------------

/// A task woken from another thread: `wake` after the data, or before it (broken).
fn woken_from_elsewhere(wake_first: bool) {
    model(3, move || {
        let data = Arc::new(AtomicBool::new(false));
        let doorbell = Arc::new(Doorbell::default());
        let place = Arc::new(Mutex::new(None::<std::task::Waker>));
        let polls = RefCell::new(0);
        let executor = Executor::new(1);
        let _ = executor.spawn(std::future::poll_fn(|context| {
            *polls.borrow_mut() += 1;
            let mut place = place.lock().unwrap();
            if data.load(Ordering::Relaxed) {
                return std::task::Poll::Ready(());
            }
            *place = Some(context.waker().clone());
            std::task::Poll::Pending
        }));
        let waker = {
            let (data, doorbell, place) = (data.clone(), doorbell.clone(), place.clone());
            thread::spawn(move || {
                let wake = || {
                    if let Some(waker) = place.lock().unwrap().take() {
                        waker.wake();
                    }
                };
                if wake_first {
                    wake();
                }
                data.store(true, Ordering::Relaxed);
                if !wake_first {
                    wake();
                }
                doorbell.signal();
            })
        };
        executor.run(&ModelPort { doorbell, can_arm: false });
        assert!(*polls.borrow() <= 2, "woken once, polled again once");
        waker.join().unwrap();
    });
}

#[test]
fn a_wake_is_not_lost() {
    woken_from_elsewhere(false);
}

#[test]
#[should_panic]
fn a_wake_before_its_reason_is_lost() {
    woken_from_elsewhere(true);
}
