//! What a client cannot do: everything wrong is answered with the error that names it, and disturbs nobody.

use crate::world::{World, both, limits};
use libipc::{Client, Message};
use nwp_api::proto::{BadReply, Error, Reply, Request, SocketId, Span};
use nwp_api::{Failure, Network};
use smoltcp::time::Duration;

/// Sends any message; a server that answers nonsense fails the test.
async fn ask(client: &Client, message: Message) -> Result<(), Error> {
    let reply = client.call(message).await.unwrap();
    // For an error it does not matter what was asked; a success is only looked at as such.
    let any = Request::Close { socket: SocketId(0) };
    match Reply::parse(&any, &reply) {
        Ok(outcome) => outcome.map(drop),
        Err(BadReply) => Ok(()),
    }
}

const WHOLE: Span = Span { offset: 0, length: 64 };

#[test]
fn malformed_messages_are_named() {
    World::run(1, limits(8, 8), async |world| {
        let client = &world.clients[0];
        assert_eq!(ask(client, Message::new(0, [])).await, Err(Error::UnknownOperation));
        assert_eq!(ask(client, Message::new(u16::MAX, [1, 2, 3, 4, 5, 6])).await, Err(Error::UnknownOperation));
        assert_eq!(ask(client, Message::new(3, [1])).await, Err(Error::Malformed));
        assert_eq!(ask(client, Message::new(1, [0, 1])).await, Err(Error::BadArgument));
    });
}

#[test]
fn sockets_that_are_not_there_are_refused() {
    World::run(1, limits(8, 8), async |world| {
        let client = &world.clients[0];
        for id in [0, 1, 2, 77, u32::MAX] {
            let id = SocketId(id);
            assert_eq!(ask(client, Request::Accept { listener: id }.emit()).await, Err(Error::BadSocket));
            assert_eq!(ask(client, Request::Read { connection: id, into: WHOLE }.emit()).await, Err(Error::BadSocket));
            assert_eq!(ask(client, Request::Close { socket: id }.emit()).await, Err(Error::BadSocket));
        }
    });
}

#[test]
fn sockets_of_another_client_are_out_of_reach() {
    World::run(2, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let mut conn = conn.unwrap();
        let thief = &world.clients[1];
        // Ids are small numbers and easy to guess.
        for id in (0..20).map(SocketId) {
            assert_eq!(ask(thief, Request::Accept { listener: id }.emit()).await, Err(Error::BadSocket));
            assert_eq!(ask(thief, Request::Read { connection: id, into: WHOLE }.emit()).await, Err(Error::BadSocket));
            assert_eq!(ask(thief, Request::Write { connection: id, from: WHOLE }.emit()).await, Err(Error::BadSocket));
            assert_eq!(ask(thief, Request::Close { socket: id }.emit()).await, Err(Error::BadSocket));
        }
        world.send(handle.unwrap(), b"mine").await;
        assert_eq!(conn.read(&mut [0; 8]).await, Ok(4));
    });
}

#[test]
fn spans_outside_the_arena_are_refused_before_anything_is_sent() {
    World::run(1, limits(8, 8), async |world| {
        let client = &world.clients[0];
        let listener = Network::new(client).listen(7, 4).await.unwrap();
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let connection = conn.as_ref().unwrap().id();
        let arena = 64 * 1024;
        let outside = [
            Span { offset: 0, length: arena + 1 },
            Span { offset: arena - 63, length: 64 },
            Span { offset: arena, length: 1 },
            Span { offset: u32::MAX, length: u32::MAX },
        ];
        for span in outside {
            assert_eq!(ask(client, Request::Read { connection, into: span }.emit()).await, Err(Error::BadSpan));
            assert_eq!(ask(client, Request::Write { connection, from: span }.emit()).await, Err(Error::BadSpan));
            let call = Request::Call { connection, from: WHOLE, into: span };
            assert_eq!(ask(client, call.emit()).await, Err(Error::BadSpan));
        }
        world.pass(Duration::from_millis(10)).await;
        assert!(!world.peer.borrow_mut().socket(handle.unwrap()).can_recv(), "a refused call has sent its data");
        drop(conn);
    });
}

#[test]
fn a_listener_is_no_connection_and_the_other_way_round() {
    World::run(1, limits(8, 8), async |world| {
        let client = &world.clients[0];
        let listener = Network::new(client).listen(7, 4).await.unwrap();
        let id = listener.id();
        assert_eq!(ask(client, Request::Read { connection: id, into: WHOLE }.emit()).await, Err(Error::WrongKind));
        assert_eq!(ask(client, Request::Write { connection: id, from: WHOLE }.emit()).await, Err(Error::WrongKind));
    });
}

#[test]
fn a_second_reader_is_turned_away_and_a_closed_socket_wakes_the_first() {
    World::run(1, limits(8, 8), async |world| {
        let client = &world.clients[0];
        let listener = Network::new(client).listen(7, 4).await.unwrap();
        let (_, conn) = both(world.connect(7), listener.accept()).await;
        let conn = conn.unwrap();
        let connection = conn.id();
        let read = Request::Read { connection, into: WHOLE }.emit();
        let (first, second) = both(ask(client, read), async {
            world.pass(Duration::from_millis(1)).await;
            let second = ask(client, read).await;
            conn.close().await.unwrap();
            second
        })
        .await;
        assert_eq!(second, Err(Error::Busy));
        assert_eq!(first, Err(Error::Closed));
    });
}

#[test]
fn a_client_gets_no_more_than_its_share() {
    World::run(2, limits(16, 2), async |world| {
        let greedy = Network::new(&world.clients[0]);
        let listener = greedy.listen(7, 8).await.unwrap();
        for _ in 0..4 {
            assert!(world.connect(7).await.is_some());
        }
        let _first = listener.accept().await.unwrap();
        let _second = listener.accept().await.unwrap();
        assert_eq!(listener.accept().await.err(), Some(Failure::Server(Error::NoSocket)));

        let modest = Network::new(&world.clients[1]).listen(8, 1).await.unwrap();
        let (handle, conn) = both(world.connect(8), modest.accept()).await;
        assert!(handle.is_some() && conn.is_ok());
    });
}

#[test]
fn a_server_without_sockets_says_so() {
    World::run(1, limits(1, 8), async |world| {
        let network = Network::new(&world.clients[0]);
        let _listener = network.listen(7, 1).await.unwrap();
        assert_eq!(network.listen(8, 1).await.err(), Some(Failure::Server(Error::NoSocket)));
    });
}
