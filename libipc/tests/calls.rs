//! Kinds of calls: batched, linked, with many completions, with a deadline, with a buffer; and that nothing is left of them.
#![cfg(not(loom))]

mod world;

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures::{FutureExt, StreamExt, join, select};
use libipc::client::Holdings;
use libipc::executor::{Link, Timers};
use libipc::{CallError, Client, Message, PeerMisbehaviour, SendError, Server};
use world::{Here, World, ask, pair, run, yield_once};

/// Nothing is held for any call.
fn assert_clean(client: &Client<Here>, server: &Server<Here>) {
    assert_eq!(client.holdings(), Holdings::default());
    assert_eq!(server.holdings(), libipc::serve::Holdings::default());
}

/// Serves requests one after the other: op 1 doubles, op 2 refuses, op 3 drops, op 4 stops.
async fn serve(server: &Server<Here>, seen: &RefCell<Vec<u64>>) {
    loop {
        let request = server.recv().await;
        let message = *request.message();
        seen.borrow_mut().push(message.words[0]);
        match message.op {
            1 => request.reply(ask(message.words[0] * 2)),
            2 => request.refuse(ask(99)),
            3 => drop(request),
            _ => return request.reply(ask(0)),
        }
    }
}

fn stop() -> Message {
    Message::new(4, [0])
}

/// Runs `task` beside [`serve`], stops it, and checks that nothing is left; returns what was served.
fn beside_server<'a>(
    world: &'a World,
    timers: &'a Timers<'a>,
    client: &'a Client<Here>,
    server: &'a Server<Here>,
    task: impl Future<Output = ()> + 'a,
) -> Vec<u64> {
    let seen = RefCell::new(Vec::new());
    let asking = async {
        task.await;
        client.credit().await;
        client.call(stop()).await.unwrap();
    };
    // The tasks borrow `seen`, which lives shorter than the world.
    let executor = libipc::Executor::new(2);
    executor.attach(client);
    executor.attach(server);
    executor.attach(timers);
    executor.spawn(serve(server, &seen)).unwrap();
    executor.spawn(asking).unwrap();
    executor.run(world);
    drop(executor);
    assert_clean(client, server);
    seen.take()
}

#[test]
fn a_batch_is_made_whole_or_not_at_all() {
    let (world, (_, client, server)) = (World::default(), pair(4));
    let timers = Timers::new(&world);
    let seen = beside_server(&world, &timers, &client, &server, async {
        let one = client.call(ask(1));
        assert!(matches!(client.batch([ask(2); 4]), Err(SendError::Full(back)) if back == [ask(2); 4]));
        let [two, three] = client.batch([ask(2), ask(3)]).ok().unwrap();
        let replies = join!(one, two, three);
        assert_eq!(replies, (Ok(ask(2)), Ok(ask(4)), Ok(ask(6))));
        client.close();
        assert!(matches!(client.batch([ask(9)]), Err(SendError::Closed([message])) if message == ask(9)));
        client.reconnect().await;
    });
    assert_eq!(seen, [1, 2, 3, 0]);
}

#[test]
fn full_gives_the_message_back_and_credit_waits_for_room() {
    let (world, (_, client, server)) = (World::default(), pair(2));
    let timers = Timers::new(&world);
    beside_server(&world, &timers, &client, &server, async {
        let calls = [client.call(ask(1)), client.call(ask(2))];
        assert_eq!(client.try_call(ask(7)).err(), Some(SendError::Full(ask(7))));
        let waiting = async {
            client.credit().await;
            client.try_call(ask(7)).ok().unwrap().await
        };
        let [first, second] = calls;
        assert_eq!(join!(first, second, waiting), (Ok(ask(2)), Ok(ask(4)), Ok(ask(14))));
    });
}

#[test]
fn credit_is_found_behind_one_way_messages_that_nobody_answers() {
    let (world, (_, client, server)) = (World::default(), pair(2));
    let timers = Timers::new(&world);
    let seen = beside_server(&world, &timers, &client, &server, async {
        for value in 0..20 {
            client.credit().await;
            assert_eq!(client.send(ask(value)), Ok(()));
        }
    });
    assert_eq!(seen, (0..20).chain([0]).collect::<Vec<_>>());
}

#[test]
fn linked_calls_run_in_order_each_after_the_one_before_has_succeeded() {
    let (world, (_, client, server)) = (World::default(), pair(8));
    let timers = Timers::new(&world);
    let seen = beside_server(&world, &timers, &client, &server, async {
        let [a, b, c] = client.link([ask(1), ask(2), ask(3)]).ok().unwrap();
        let other = client.call(ask(10));
        assert_eq!(join!(a, b, c, other), (Ok(ask(2)), Ok(ask(4)), Ok(ask(6)), Ok(ask(20))));
    });
    let chain: Vec<u64> = seen.iter().copied().filter(|value| (1..4).contains(value)).collect();
    assert_eq!(chain, [1, 2, 3]);
}

#[test]
fn a_broken_link_cancels_what_is_behind_it() {
    for (failing, expected) in [(Message::new(2, [5]), Ok(ask(99))), (Message::new(3, [5]), Err(CallError::Dropped))] {
        let (world, (_, client, server)) = (World::default(), pair(8));
        let timers = Timers::new(&world);
        let seen = beside_server(&world, &timers, &client, &server, async {
            let [a, b, c, d] = client.link([ask(1), failing, ask(2), ask(3)]).ok().unwrap();
            assert_eq!(join!(a, b, c, d), (Ok(ask(2)), expected, Err(CallError::Cancelled), Err(CallError::Cancelled)));
        });
        assert_eq!(seen, [1, 5, 0], "what is behind the failure did not run");
    }
}

/// A linked call that is given up before its turn does not run, nor does what is behind it.
#[test]
fn a_linked_call_given_up_cuts_the_chain() {
    let (world, (_, client, server)) = (World::default(), pair(8));
    let timers = Timers::new(&world);
    let seen = RefCell::new(Vec::new());
    let serving = async {
        let first = server.recv().await;
        assert_eq!(timers.deadline(10, first.cancelled()).await, None, "it is another that is given up");
        first.reply(ask(0));
        serve(&server, &seen).await;
    };
    let asking = async {
        let [a, b, c] = client.link([ask(1), ask(2), ask(3)]).ok().unwrap();
        drop(b);
        assert_eq!(join!(a, c), (Ok(ask(0)), Err(CallError::Cancelled)));
        client.call(stop()).await.unwrap();
    };
    let executor = libipc::Executor::new(2);
    executor.attach(&client);
    executor.attach(&server);
    executor.attach(&timers);
    executor.spawn(serving).unwrap();
    executor.spawn(asking).unwrap();
    executor.run(&world);
    assert_eq!(*seen.borrow(), [0], "only the stop");
    assert_clean(&client, &server);
}

/// A chain of which the last entry is missing was not written by a correct client.
#[test]
fn a_chain_without_end_is_misbehaviour() {
    use libipc::entry::{Kind, Packet};
    let (_world, (memory, _client, server)) = (World::default(), pair(4));
    memory.request_entries()[0].store(4, &Packet { kind: Kind::Linked, cookie: 0x1_0000, message: ask(1) });
    assert!(server.recv().now_or_never().is_none());
    assert_eq!(server.misbehaviour(0), Some(PeerMisbehaviour::Chain));
}

/// The server counts to what it is asked; the client's window is smaller than that.
async fn count(server: &Server<Here>) {
    let request = server.recv().await;
    assert!(request.is_multishot());
    for value in 0..request.message().words[0] {
        request.window().await;
        if request.is_cancelled() {
            return;
        }
        request.more(ask(value)).unwrap();
    }
    request.reply(ask(1000));
}

#[test]
fn a_multishot_call_gives_all_completions_in_order_and_then_ends() {
    for (window, entries) in [(1, 2), (3, 8), (7, 8)] {
        let (world, (_, client, server)) = (World::default(), pair(entries));
        let timers = Timers::new(&world);
        run(
            &world,
            &timers,
            &client,
            &server,
            [
                Box::pin(count(&server)) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
                Box::pin(async {
                    let stream = client.subscribe(ask(50), window).unwrap();
                    let all: Vec<_> = stream.collect().await;
                    let expected: Vec<_> = (0..50).chain([1000]).map(|value| Ok(ask(value))).collect();
                    assert_eq!(all, expected);
                }),
            ],
        );
        assert_clean(&client, &server);
    }
}

#[test]
fn a_multishot_call_takes_the_credits_of_its_window() {
    let (_world, (_, client, _server)) = (World::default(), pair(8));
    let stream = client.subscribe(ask(1), 5).unwrap();
    assert_eq!(client.holdings().credits, 6);
    assert!(matches!(client.subscribe(ask(1), 2), Err(SendError::Full(_))));
    let _calls = client.batch([ask(1), ask(2)]).ok().unwrap();
    assert_eq!(client.try_call(ask(7)).err(), Some(SendError::Full(ask(7))));
    drop(stream);
    assert_eq!(client.holdings().in_custody, 1, "the server may still send what was granted");
}

#[test]
fn a_stream_given_up_gets_its_window_back_when_the_server_ends_it() {
    let (world, (_, client, server)) = (World::default(), pair(8));
    let timers = Timers::new(&world);
    run(
        &world,
        &timers,
        &client,
        &server,
        [
            Box::pin(count(&server)) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(async {
                {
                    let stream = client.subscribe(ask(1_000_000), 4).unwrap();
                    let first: Vec<_> = stream.take(10).collect().await;
                    assert_eq!(first.len(), 10);
                }
                assert_ne!(client.holdings(), Holdings::default());
                while client.holdings() != Holdings::default() {
                    yield_once().await;
                }
            }),
        ],
    );
    assert_clean(&client, &server);
}

/// A server that sends more than it was granted is found out.
#[test]
fn completions_beyond_the_window_are_misbehaviour() {
    use libipc::entry::{Kind, Packet};
    let (world, (memory, client, server)) = (World::default(), pair(8));
    let timers = Timers::new(&world);
    run(
        &world,
        &timers,
        &client,
        &server,
        [
            Box::pin(async { std::mem::forget(server.recv().await) }) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(async {
                let mut stream = client.subscribe(ask(1), 2).unwrap();
                yield_once().await;
                for entry in 0..3 {
                    memory.reply_entries()[entry]
                        .store(8, &Packet { kind: Kind::More, cookie: 0x1_0000, message: ask(0) });
                }
                let got: Vec<_> = stream.by_ref().take(3).collect().await;
                assert_eq!(got.last(), Some(&Err(CallError::Peer(PeerMisbehaviour::Window))));
            }),
        ],
    );
}

#[test]
fn a_deadline_ends_the_call_and_tells_the_server() {
    let (world, (_, client, server)) = (World::default(), pair(2));
    let timers = Timers::new(&world);
    let told = Cell::new(None);
    run(
        &world,
        &timers,
        &client,
        &server,
        [
            Box::pin(async {
                let request = server.recv().await;
                request.cancelled().await;
                told.set(Some(timers.now()));
                timers.sleep(100).await;
                request.reply(ask(1)); // to nobody
                server.recv().await.reply(ask(2));
            }) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(async {
                let reply = client.call(ask(1)).by(timers.sleep(50)).await;
                assert_eq!((reply, timers.now()), (Err(CallError::Deadline), 50));
                assert_eq!(client.holdings().credits, 1, "the credit is the server's until it answers");
                assert_eq!(client.call(ask(2)).by(timers.sleep(500)).await, Ok(ask(2)));
                assert_eq!(timers.now(), 150);
            }),
        ],
    );
    assert_eq!(told.get(), Some(50));
    assert_eq!(timers.set(), 0, "a deadline that was not needed is taken back");
    assert_clean(&client, &server);
}

/// Whatever a call waits for, `futures::select!` and `join!` take it as it is.
#[test]
fn calls_are_selected_and_joined() {
    let (world, (_, client, server)) = (World::default(), pair(4));
    let timers = Timers::new(&world);
    run(
        &world,
        &timers,
        &client,
        &server,
        [
            Box::pin(async {
                let slow = server.recv().await;
                server.recv().await.reply(ask(2));
                slow.cancelled().await;
            }) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(async {
                let mut slow = client.call(ask(1));
                let mut quick = client.call(ask(2));
                let first = select! { reply = slow => reply, reply = quick => reply };
                assert_eq!(first, Ok(ask(2)));
                let nothing = timers.deadline(40, slow).await;
                assert_eq!((nothing, timers.now()), (None, 40));
                while client.holdings() != Holdings::default() {
                    yield_once().await;
                }
            }),
        ],
    );
    assert_clean(&client, &server);
}

#[test]
fn a_buffer_comes_back_with_the_reply_and_with_each_failure() {
    let (world, (_, client, server)) = (World::default(), pair(2));
    let timers = Timers::new(&world);
    beside_server(&world, &timers, &client, &server, async {
        let buffer = client.arena().take().unwrap();
        let offset = buffer.offset();
        let (reply, buffer) = client.lend(ask(4), buffer).ok().unwrap().await;
        assert_eq!((reply, buffer.offset()), (Ok(ask(8)), offset));
        let (reply, buffer) = client.lend(Message::new(3, [4]), buffer).ok().unwrap().await;
        assert_eq!((reply, buffer.offset()), (Err(CallError::Dropped), offset));
        let calls = client.batch([ask(1), ask(2)]).ok().unwrap();
        let Err(SendError::Full((message, buffer))) = client.lend(ask(9), buffer) else { panic!("there is no credit") };
        assert_eq!((message, buffer.offset()), (ask(9), offset));
        futures::future::join_all(calls).await;
        let lent = client.lend(ask(4), buffer).ok().unwrap();
        client.close();
        let (reply, _) = lent.await;
        assert_eq!(reply, Err(CallError::Closed));
        client.reconnect().await;
    });
}

/// The server may write to a buffer until it has answered, even if nobody waits: until then it is not lent again.
#[test]
fn a_buffer_given_up_is_kept_until_the_server_has_answered() {
    let (world, (_, client, server)) = (World::default(), pair(2));
    let timers = Timers::new(&world);
    run(
        &world,
        &timers,
        &client,
        &server,
        [
            Box::pin(async {
                let request = server.recv().await;
                timers.sleep(100).await;
                request.reply(ask(0));
            }) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(async {
                let buffer = client.arena().take().unwrap();
                let lent = client.lend(ask(1), buffer).ok().unwrap();
                assert!(timers.deadline(10, lent).await.is_none());
                assert_eq!((client.holdings().buffers, client.holdings().in_custody), (1, 1));
                timers.sleep(50).await;
                assert_eq!(client.holdings().buffers, 1);
                timers.sleep(50).await;
                assert_eq!(client.holdings().buffers, 0);
            }),
        ],
    );
    assert_clean(&client, &server);
}

#[test]
fn both_ends_open_again_after_either_has_closed() {
    let (world, (_, client, server)) = (World::default(), pair(2));
    let timers = Timers::new(&world);
    run(
        &world,
        &timers,
        &client,
        &server,
        [
            Box::pin(async {
                let old = server.recv().await;
                server.recv().await.reply(ask(5)); // of the next opening
                old.reply(ask(6)); // of the one before: goes nowhere
                server.recv().await.reply(ask(7));
                server.close();
                server.recv().await.reply(ask(8));
            }) as std::pin::Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(async {
                let call = client.call(ask(1));
                yield_once().await;
                client.close();
                assert_eq!(call.await, Err(CallError::Closed));
                client.reconnect().await;
                assert_eq!(client.call(ask(2)).await, Ok(ask(5)));
                assert_eq!(client.call(ask(3)).await, Ok(ask(7)));
                assert_eq!(client.call(ask(4)).await, Err(CallError::Closed));
                client.reconnect().await;
                assert_eq!(client.call(ask(4)).await, Ok(ask(8)));
            }),
        ],
    );
    assert_eq!(client.calls(), 5, "over all openings");
    assert_clean(&client, &server);
}

/// Whether a task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The server says so once that the channel is open again, and the first to look may be somebody who has only just lost a call.
#[test]
fn who_opens_the_channel_wakes_those_who_wait_for_it() {
    let (_, client, server) = pair(2);
    client.close();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut waits = pin!(client.reconnect());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let opened = (0..8).any(|_| {
        server.poll(0);
        client.reconnect().now_or_never().is_some()
    });
    assert!(opened && woken.0.load(Ordering::Relaxed));
    assert!(waits.poll(&mut Context::from_waker(&waker)).is_ready());
}
