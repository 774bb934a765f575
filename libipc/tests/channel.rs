//! Client and server on one thread: what a call becomes, and how calls end.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::future::{join_all, select};
use futures::pin_mut;
use libipc::bell::Ring;
use libipc::channel::Memory;
use libipc::entry::{Kind, Packet};
use libipc::port::{Patience, Port};
use libipc::{CallError, Client, Executor, Message, PeerMisbehaviour, SendError, Server};

/// Both ends are on this thread, so nobody ever has to be reached.
#[derive(Clone, Copy)]
struct Here;

impl Ring for Here {
    fn interrupt(&self) {}
    fn signal(&self) {}
}

/// A port whose executor must never run out of work before its tasks are done.
struct NeverPark;

impl Port for NeverPark {
    fn take(&self) -> u64 {
        0
    }
    fn can_arm(&self) -> bool {
        false
    }
    fn park(&self) -> u64 {
        panic!("nothing to do, but tasks are left: a wake-up was lost")
    }
    fn patience(&self) -> Patience {
        Patience::NONE
    }
}

fn pair(entries: usize) -> (Memory, Client<Here>, Server<Here>) {
    let memory = Memory::leak(entries, 4096).unwrap();
    (memory, Client::new(&memory, Here), Server::new([(memory, Here)]))
}

fn ask(value: u64) -> Message {
    Message::new(1, [value])
}

/// Runs `client` beside a server that answers `calls` requests with the double.
fn run<'a>(client: &'a Client<Here>, server: &'a Server<Here>, calls: usize, task: impl Future<Output = ()> + 'a) {
    let executor = Executor::new(4);
    executor.attach(client);
    executor.attach(server);
    executor
        .spawn(async move {
            for _ in 0..calls {
                let request = server.recv().await;
                let value = request.message().words[0];
                request.reply(ask(value * 2));
            }
        })
        .unwrap();
    executor.spawn(task).unwrap();
    executor.run(&NeverPark);
}

#[test]
fn a_call_is_answered() {
    let (_, client, server) = pair(2);
    run(&client, &server, 1, async {
        assert_eq!(client.call(ask(21)).await, Ok(ask(42)));
    });
    assert_eq!((client.calls(), server.requests()), (1, 1));
}

#[test]
fn many_laps_with_all_entries_in_flight() {
    let (_, client, server) = pair(8);
    run(&client, &server, 800, async {
        for lap in 0..100 {
            let replies = join_all((0..8).map(|index| client.call(ask(lap * 8 + index)))).await;
            for (index, reply) in replies.into_iter().enumerate() {
                assert_eq!(reply, Ok(ask((lap * 8 + index as u64) * 2)));
            }
        }
    });
}

#[test]
fn one_call_too_many_is_refused_and_later_accepted() {
    let (_, client, server) = pair(4);
    run(&client, &server, 5, async {
        let calls: Vec<_> = (0..4).map(|value| client.call(ask(value))).collect();
        assert_eq!(client.call(ask(9)).await, Err(CallError::Full));
        for (value, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await, Ok(ask(value as u64 * 2)));
        }
        assert_eq!(client.call(ask(9)).await, Ok(ask(18)));
    });
}

#[test]
fn replies_may_come_in_any_order() {
    let (_, client, server) = pair(4);
    let executor = Executor::new(2);
    executor.attach(&client);
    executor.attach(&server);
    executor
        .spawn(async {
            for _ in 0..10 {
                let first = server.recv().await;
                let second = server.recv().await;
                let (one, two) = (*first.message(), *second.message());
                second.reply(two);
                first.reply(one);
            }
        })
        .unwrap();
    executor
        .spawn(async {
            for value in 0..10 {
                let (first, second) = (client.call(ask(value)), client.call(ask(value + 100)));
                assert_eq!(second.await, Ok(ask(value + 100)));
                assert_eq!(first.await, Ok(ask(value)));
            }
        })
        .unwrap();
    executor.run(&NeverPark);
}

#[test]
fn an_abandoned_call_is_executed_and_its_reply_discarded() {
    let (_, client, server) = pair(2);
    run(&client, &server, 4, async {
        drop(client.call(ask(1)));
        drop(client.call(ask(2)));
        assert_eq!(client.call(ask(3)).await, Err(CallError::Full), "abandoned calls keep their credit");
        // Waits for the credits by trying; each try lets the server run.
        let mut reply = Err(CallError::Full);
        while reply == Err(CallError::Full) {
            yield_once().await;
            reply = client.call(ask(4)).await;
        }
        assert_eq!(reply, Ok(ask(8)));
        assert_eq!(client.call(ask(5)).await, Ok(ask(10)));
    });
}

async fn yield_once() {
    let yielded = Cell::new(false);
    std::future::poll_fn(|context| {
        if yielded.replace(true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await
}

#[test]
fn a_call_may_lose_a_race_and_the_next_one_is_unharmed() {
    let (_, client, server) = pair(2);
    run(&client, &server, 20, async {
        for value in 0..10 {
            {
                let (slow, quick) = (client.call(ask(value)), std::future::ready(()));
                pin_mut!(slow, quick);
                select(quick, slow).await;
            }
            let mut reply = Err(CallError::Full);
            while reply == Err(CallError::Full) {
                yield_once().await;
                reply = client.call(ask(value + 100)).await;
            }
            assert_eq!(reply, Ok(ask((value + 100) * 2)));
        }
    });
}

#[test]
fn a_request_dropped_by_the_server_ends_its_call() {
    let (_, client, server) = pair(2);
    let executor = Executor::new(2);
    executor.attach(&client);
    executor.attach(&server);
    executor.spawn(async { drop(server.recv().await) }).unwrap();
    executor.spawn(async { assert_eq!(client.call(ask(1)).await, Err(CallError::Dropped)) }).unwrap();
    executor.run(&NeverPark);
}

#[test]
fn one_way_messages_get_their_credits_back_without_replies() {
    let (_, client, server) = pair(4);
    let seen = RefCell::new(Vec::new());
    let executor = Executor::new(2);
    executor.attach(&client);
    executor.attach(&server);
    executor
        .spawn(async {
            for _ in 0..100 {
                let request = server.recv().await;
                seen.borrow_mut().push(request.message().words[0]);
                request.reply(ask(0));
            }
        })
        .unwrap();
    executor
        .spawn(async {
            for value in 0..100 {
                while let Err(error) = client.send(ask(value)) {
                    assert_eq!(error, SendError::Full(ask(value)));
                    yield_once().await;
                }
            }
        })
        .unwrap();
    executor.run(&NeverPark);
    assert_eq!(seen.take(), (0..100).collect::<Vec<_>>());
}

#[test]
fn closing_ends_the_calls_of_both_sides_and_delivers_what_was_answered() {
    let (_, client, server) = pair(4);
    let executor = Executor::new(2);
    executor.attach(&client);
    executor.attach(&server);
    executor
        .spawn(async {
            let first = server.recv().await;
            let second = server.recv().await;
            first.reply(ask(7));
            server.close();
            second.reply(ask(8)); // too late
        })
        .unwrap();
    executor
        .spawn(async {
            let (first, second) = (client.call(ask(1)), client.call(ask(2)));
            assert_eq!(first.await, Ok(ask(7)), "answered before the close");
            assert_eq!(second.await, Err(CallError::Closed));
            assert_eq!(client.call(ask(3)).await, Err(CallError::Closed));
            assert_eq!(client.send(ask(4)), Err(SendError::Closed(ask(4))));
        })
        .unwrap();
    executor.run(&NeverPark);
}

#[test]
fn a_server_lets_a_closed_client_go_and_serves_the_others() {
    let memories = [Memory::leak(2, 0).unwrap(), Memory::leak(2, 0).unwrap()];
    let clients = memories.map(|memory| Client::new(&memory, Here));
    let server = Server::new(memories.map(|memory| (memory, Here)));
    let executor = Executor::new(2);
    clients.iter().for_each(|client| executor.attach(client));
    executor.attach(&server);
    executor
        .spawn(async {
            for _ in 0..2 {
                let request = server.recv().await;
                let message = *request.message();
                request.reply(message);
            }
        })
        .unwrap();
    executor
        .spawn(async {
            assert_eq!(clients[0].call(ask(1)).await, Ok(ask(1)));
            clients[0].close();
            yield_once().await;
            assert_eq!(clients[1].call(ask(2)).await, Ok(ask(2)));
        })
        .unwrap();
    executor.run(&NeverPark);
    assert!(server.is_closed(0) && !server.is_closed(1));
    assert_eq!(server.misbehaviour(0), None);
}

#[test]
fn channels_are_served_in_turn() {
    let memories: Vec<Memory> = (0..3).map(|_| Memory::leak(8, 0).unwrap()).collect();
    let clients: Vec<Client<Here>> = memories.iter().map(|memory| Client::new(memory, Here)).collect();
    let server = Server::new(memories.iter().map(|memory| (*memory, Here)));
    let order = RefCell::new(Vec::new());
    let executor = Executor::new(2);
    clients.iter().for_each(|client| executor.attach(client));
    executor.attach(&server);
    executor
        .spawn(async {
            // One client floods, two ask once.
            let flood = join_all((0..8).map(|value| clients[0].call(ask(value))));
            let others = join_all([clients[1].call(ask(0)), clients[2].call(ask(0))]);
            futures::join!(flood, others);
        })
        .unwrap();
    executor
        .spawn(async {
            for _ in 0..10 {
                let request = server.recv().await;
                order.borrow_mut().push(request.channel());
                request.reply(ask(0));
            }
        })
        .unwrap();
    executor.run(&NeverPark);
    let order = order.take();
    let mut first = order[..3].to_vec();
    first.sort();
    assert_eq!(first, [0, 1, 2], "each client is served once before any is served twice: {order:?}");
}

#[test]
fn several_tasks_share_one_server() {
    let (_, client, server) = pair(16);
    let served = Rc::new(RefCell::new([0; 4]));
    let executor = Executor::new(8);
    executor.attach(&client);
    executor.attach(&server);
    for worker in 0..4 {
        let (server, served) = (&server, served.clone());
        executor
            .spawn(async move {
                for _ in 0..4 {
                    let request = server.recv().await;
                    yield_once().await; // work that takes a while
                    served.borrow_mut()[worker] += 1;
                    let message = *request.message();
                    request.reply(message);
                }
            })
            .unwrap();
    }
    executor
        .spawn(async {
            let replies = join_all((0..16).map(|value| client.call(ask(value)))).await;
            assert!(replies.iter().all(Result::is_ok));
        })
        .unwrap();
    executor.run(&NeverPark);
    assert_eq!(*served.borrow(), [4; 4]);
}

#[test]
fn data_travels_in_the_arena() {
    let (_, client, server) = pair(4);
    let executor = Executor::new(2);
    executor.attach(&client);
    executor.attach(&server);
    executor
        .spawn(async {
            let request = server.recv().await;
            let [offset, size] = *request.message().payload() else { panic!("two words were sent") };
            let loan = request.loan(offset, size).unwrap();
            let mut text = vec![0; loan.size()];
            loan.read(0, &mut text);
            text.make_ascii_uppercase();
            loan.write(0, &text);
            assert_eq!(request.loan(offset, 5000).err(), Some(PeerMisbehaviour::Buffer));
            request.reply(Message::new(0, []));
        })
        .unwrap();
    executor
        .spawn(async {
            let mut buffer = client.arena().take().unwrap();
            buffer.write(0, b"user interrupts");
            client.call(Message::new(2, [buffer.offset(), 15])).await.unwrap();
            let mut text = [0; 15];
            buffer.read(0, &mut text);
            assert_eq!(&text, b"USER INTERRUPTS");
        })
        .unwrap();
    executor.run(&NeverPark);
}

/// What a lying server can put into the reply ring, and what the client makes of it.
#[test]
fn a_lying_server_is_found_out() {
    let reply = |kind, cookie| Packet { kind, cookie, message: ask(0) };
    let cases: [(u32, Packet, PeerMisbehaviour); 4] = [
        (2, reply(Kind::Reply, 0xDEAD_0000), PeerMisbehaviour::Cookie),
        (2, reply(Kind::Reply, u64::MAX), PeerMisbehaviour::Cookie),
        (2, reply(Kind::Call, 0x1_0000), PeerMisbehaviour::Kind),
        (14, reply(Kind::Reply, 0x1_0000), PeerMisbehaviour::Sequence),
    ];
    for (mark, packet, expected) in cases {
        let (memory, client, _server) = pair(2);
        let executor = Executor::new(1);
        executor.attach(&client);
        executor
            .spawn(async {
                let call = client.call(ask(1));
                memory.reply_entries()[0].store(mark, &packet);
                assert_eq!(call.await, Err(CallError::Peer(expected)));
                assert_eq!(client.call(ask(2)).await, Err(CallError::Peer(expected)));
            })
            .unwrap();
        executor.run(&NeverPark);
    }
}

#[test]
fn a_server_answering_twice_is_found_out() {
    let (memory, client, server) = pair(2);
    run(&client, &server, 1, async {
        assert_eq!(client.call(ask(1)).await, Ok(ask(2)));
        memory.reply_entries()[1].store(2, &Packet { kind: Kind::Reply, cookie: 0x1_0000, message: ask(0) });
        assert_eq!(client.call(ask(1)).await, Err(CallError::Peer(PeerMisbehaviour::Cookie)));
    });
}

#[test]
fn a_lying_client_loses_its_channel_only() {
    let request = |kind| Packet { kind, cookie: 0, message: ask(0) };
    for (mark, packet, expected) in
        [(2, request(Kind::Reply), PeerMisbehaviour::Kind), (18, request(Kind::Call), PeerMisbehaviour::Sequence)]
    {
        let memories = [Memory::leak(2, 0).unwrap(), Memory::leak(2, 0).unwrap()];
        let clients = memories.map(|memory| Client::new(&memory, Here));
        let server = Server::new(memories.map(|memory| (memory, Here)));
        memories[0].request_entries()[0].store(mark, &packet);
        run(&clients[1], &server, 1, async {
            assert_eq!(clients[1].call(ask(3)).await, Ok(ask(6)));
        });
        assert_eq!(server.misbehaviour(0), Some(expected));
        assert!(server.is_closed(0) && !server.is_closed(1));
    }
}

#[test]
fn a_client_of_another_layout_is_refused() {
    let memory = Memory::leak(2, 64).unwrap();
    let server = Server::new([(memory, Here)]);
    // Nobody wrote the client's header.
    memory.request_entries()[0].store(2, &Packet { kind: Kind::Call, cookie: 0, message: ask(0) });
    let executor = Executor::new(1);
    executor.attach(&server);
    executor
        .spawn(async {
            let receive = server.recv();
            pin_mut!(receive);
            select(receive, Box::pin(yield_once())).await;
        })
        .unwrap();
    executor.run(&NeverPark);
    assert_eq!(server.misbehaviour(0), Some(PeerMisbehaviour::Header));
}

#[test]
fn a_client_beyond_its_credits_is_refused() {
    let (memory, _client, server) = pair(2);
    let executor = Executor::new(2);
    executor.attach(&server);
    executor
        .spawn(async {
            let store = |index: usize, mark| {
                memory.request_entries()[index].store(mark, &Packet { kind: Kind::Call, cookie: 0, message: ask(0) })
            };
            store(0, 2);
            store(1, 2);
            let _first = server.recv().await;
            let _second = server.recv().await;
            store(0, 4);
            let receive = server.recv();
            pin_mut!(receive);
            select(receive, Box::pin(yield_once())).await;
        })
        .unwrap();
    executor.run(&NeverPark);
    assert_eq!(server.misbehaviour(0), Some(PeerMisbehaviour::Credit));
}

#[test]
fn impossible_sizes_are_refused() {
    use libipc::OpenError;
    for entries in [0, 1, 3, 100, 1 << 16] {
        assert_eq!(Memory::leak(entries, 0).err(), Some(OpenError::Entries), "{entries}");
    }
}
