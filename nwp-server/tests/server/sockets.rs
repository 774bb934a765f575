//! What clients may rely on, over real channels and a real TCP peer (`world`).

use crate::world::{World, both, limits};
use nwp_api::{Conn, Error, Failure, Network};
use smoltcp::socket::tcp::State;
use smoltcp::time::Duration;

/// Answers on `conn` until the peer ends its side.
async fn echo(mut conn: Conn<'_>) {
    let mut data = [0; 256];
    let mut length = conn.read(&mut data).await.unwrap();
    while length > 0 {
        let reply = data.map(|byte| byte ^ 0x5A);
        length = conn.call(&reply[..length], &mut data).await.unwrap();
    }
    conn.close().await.unwrap();
}

/// Bytes that differ from those of any other `number`.
fn pattern(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + number * 7 + (index >> 8)) as u8).collect()
}

async fn all<F: Future>(futures: impl IntoIterator<Item = F>) {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(|cx| {
        for slot in &mut futures {
            if slot.as_mut().is_some_and(|future| future.as_mut().poll(cx).is_ready()) {
                *slot = None;
            }
        }
        if futures.iter().all(Option::is_none) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn echoes_on_1_to_32_connections_in_phases_without_leaking_sockets() {
    // The largest phase and one to listen; phases together open 63.
    World::run(1, limits(34, 32), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 32).await.unwrap();
        for connections in [1, 2, 4, 8, 16, 32] {
            let serve = all((0..connections).map(async |_| echo(listener.accept().await.unwrap()).await));
            let load = all((0..connections).map(async |number| {
                let handle = world.connect(7).await.expect("the backlog holds all connections");
                for turn in 0..5 {
                    let request = pattern(number * 100 + turn, 64);
                    world.send(handle, &request).await;
                    let expected: Vec<u8> = request.iter().map(|byte| byte ^ 0x5A).collect();
                    assert_eq!(world.receive(handle, 64).await, expected);
                }
                world.peer.borrow_mut().socket(handle).close();
                world.wait_for(|peer| (peer.socket(handle).state() == State::TimeWait).then_some(())).await;
            }));
            both(serve, load).await;
        }
    });
}

#[test]
fn bulk_data_passes_both_ways_unchanged_through_small_windows() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(9, 1).await.unwrap();
        let (handle, conn) = both(world.connect(9), listener.accept()).await;
        let (handle, mut conn) = (handle.unwrap(), conn.unwrap());
        let data = pattern(1, 100_000);
        let ((), received) =
            both(async { conn.write(&data).await.unwrap() }, async { world.receive(handle, data.len()).await }).await;
        assert!(received == data, "data changed on the way out");
        let (received, ()) = both(
            async {
                let mut received = vec![];
                let mut piece = [0; 700];
                while received.len() < data.len() {
                    let length = conn.read(&mut piece).await.unwrap();
                    received.extend_from_slice(&piece[..length]);
                }
                received
            },
            world.send(handle, &data),
        )
        .await;
        assert!(received == data, "data changed on the way in");
    });
}

#[test]
fn a_connection_beyond_the_backlog_is_refused_and_the_next_is_welcome_after_an_accept() {
    World::run(1, limits(16, 16), async |world| {
        let listener = Network::new(&world.clients[0]).listen(80, 2).await.unwrap();
        assert!(world.connect(80).await.is_some());
        assert!(world.connect(80).await.is_some());
        assert!(world.connect(80).await.is_none(), "the backlog is two");
        let first = listener.accept().await.unwrap();
        assert_eq!(first.peer().address, [10, 0, 2, 2]);
        assert_eq!(first.peer().port, 40_001, "the oldest comes first");
        assert!(world.connect(80).await.is_some());
    });
}

#[test]
fn the_peers_end_and_the_peers_reset_are_told_apart() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        let mut data = [0; 64];

        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let (handle, mut conn) = (handle.unwrap(), conn.unwrap());
        world.send(handle, b"last words").await;
        world.peer.borrow_mut().socket(handle).close();
        assert_eq!(conn.read(&mut data).await, Ok(10));
        assert_eq!(conn.read(&mut data).await, Ok(0));
        // The other direction is still open.
        conn.write(b"answer").await.unwrap();
        assert_eq!(world.receive(handle, 6).await, b"answer");
        conn.close().await.unwrap();

        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let (handle, mut conn) = (handle.unwrap(), conn.unwrap());
        let (read, ()) = both(conn.read(&mut data), async {
            world.pass(Duration::from_millis(1)).await;
            world.peer.borrow_mut().socket(handle).abort();
        })
        .await;
        assert_eq!(read, Err(Failure::Server(Error::Reset)));
        assert_eq!(conn.write(b"x").await, Err(Failure::Server(Error::Reset)));
    });
}

#[test]
fn what_a_cut_cable_swallows_is_sent_again_both_ways() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let (handle, mut conn) = (handle.unwrap(), conn.unwrap());
        world.cut.set(true);
        conn.write(b"from inside").await.unwrap();
        world.send(handle, b"from outside").await;
        world.pass(Duration::from_millis(100)).await;
        assert!(!world.peer.borrow_mut().socket(handle).can_recv());
        world.cut.set(false);
        assert_eq!(world.receive(handle, 11).await, b"from inside");
        let mut data = [0; 64];
        assert_eq!(conn.read(&mut data).await, Ok(12));
    });
}

#[test]
fn only_the_alarm_makes_a_lost_answer_be_sent_again() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let mut conn = conn.unwrap();
        world.cut.set(true);
        conn.write(b"once more").await.unwrap();
        world.pass(Duration::from_millis(1)).await;
        world.cut.set(false);
        // The peer has nothing to send and the client asks for nothing.
        assert_eq!(world.receive(handle.unwrap(), 9).await, b"once more");
    });
}

#[test]
fn a_quiet_server_sleeps_long() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        world.pass(Duration::from_millis(100)).await;
        assert_eq!(world.time_to_timer(), None, "nobody is connected");
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let mut conn = conn.unwrap();
        world.send(handle.unwrap(), b"to be acknowledged").await;
        assert_eq!(conn.read(&mut [0; 64]).await, Ok(18));
        assert!(world.time_to_timer().unwrap() < Duration::from_millis(100));
        world.pass(Duration::from_millis(500)).await;
        assert!(world.time_to_timer().unwrap() > Duration::from_secs(30), "only the peer's health is to be asked for");
    });
}

#[test]
fn a_quiet_connection_lives_and_one_whose_peer_is_gone_dies() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        let (handle, mut conn) = (handle.unwrap(), conn.unwrap());
        world.fly(Duration::from_secs(900)).await;
        world.send(handle, b"still here").await;
        assert_eq!(conn.read(&mut [0; 64]).await, Ok(10));
        world.cut.set(true);
        let mut data = [0; 64];
        let (read, ()) = both(conn.read(&mut data), world.fly(Duration::from_secs(300))).await;
        assert_eq!(read, Err(Failure::Server(Error::Reset)));
    });
}

#[test]
fn a_dropped_connection_is_closed() {
    World::run(1, limits(8, 8), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 4).await.unwrap();
        let (handle, conn) = both(world.connect(7), listener.accept()).await;
        drop(conn.unwrap());
        world.wait_for(|peer| (peer.socket(handle.unwrap()).state() == State::CloseWait).then_some(())).await;
    });
}

#[test]
fn a_client_shares_a_port_with_itself_and_with_nobody_else() {
    World::run(2, limits(8, 8), async |world| {
        let own = Network::new(&world.clients[0]);
        let first = own.listen(7, 4).await.unwrap();
        let second = own.listen(7, 1).await.unwrap();
        assert_eq!(first.id(), second.id());
        let other = Network::new(&world.clients[1]);
        assert_eq!(other.listen(7, 4).await.err(), Some(Failure::Server(Error::PortInUse)));
        // Two wait, as two threads would; each gets one connection.
        let (accepted, _) = both(both(first.accept(), second.accept()), async {
            world.connect(7).await.unwrap();
            world.connect(7).await.unwrap();
        })
        .await;
        let (one, two) = (accepted.0.unwrap(), accepted.1.unwrap());
        assert_ne!(one.peer().port, two.peer().port);
    });
}

#[test]
fn closing_a_listener_frees_the_port_and_resets_who_waits() {
    World::run(1, limits(8, 8), async |world| {
        let network = Network::new(&world.clients[0]);
        let listener = network.listen(7, 4).await.unwrap();
        let waiting = world.connect(7).await.unwrap();
        listener.close().await.unwrap();
        world.wait_for(|peer| (peer.socket(waiting).state() == State::Closed).then_some(())).await;
        assert!(world.connect(7).await.is_none());
        network.listen(7, 4).await.unwrap();
        assert!(world.connect(7).await.is_some());
    });
}

#[test]
fn time_wait_does_not_use_up_the_sockets() {
    // Two sockets: one connection and one to listen. We close first, so that each connection ends in TIME-WAIT here.
    World::run(1, limits(2, 2), async |world| {
        let listener = Network::new(&world.clients[0]).listen(7, 1).await.unwrap();
        for _ in 0..4 {
            let (handle, conn) = both(
                async {
                    loop {
                        // Refused until the last connection is far enough.
                        if let Some(handle) = world.connect(7).await {
                            break handle;
                        }
                    }
                },
                listener.accept(),
            )
            .await;
            conn.unwrap().close().await.unwrap();
            world.wait_for(|peer| (peer.socket(handle).state() == State::CloseWait).then_some(())).await;
            world.peer.borrow_mut().socket(handle).close();
            world.wait_for(|peer| (peer.socket(handle).state() == State::Closed).then_some(())).await;
        }
    });
}
