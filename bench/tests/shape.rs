//! The shapes of the published figures, on short runs: which costs less, what falls, what crosses. Exact cycles are in
//! `exact.rs`.

use std::sync::LazyLock;

use bench::fairness;
use bench::ipc::{self, Transport};
use bench::socket;
use bench::syscall::{self, Form};
use bench::tour::{self, Measured};

/// All transports at both ends and in the middle of the axis.
static IPC: LazyLock<Measured> = LazyLock::new(|| {
    let sweep = ipc::Sweep { concurrencies: vec![1, 4, 32], ..ipc::Sweep::new(true) };
    tour::measure(&[], Some(&sweep), None, false).unwrap_or_else(|error| panic!("{error}"))
});

/// All variants at a low and a high number of connections.
static SOCKET: LazyLock<Measured> = LazyLock::new(|| {
    let sweep = socket::Sweep { connections: vec![1, 8], ..socket::Sweep::new(true) };
    tour::measure(&[], None, Some(&sweep), false).unwrap_or_else(|error| panic!("{error}"))
});

fn point(transport: Transport, concurrency: u32) -> &'static ipc::Point {
    let found = IPC.ipc.iter().find(|point| (point.transport, point.totals.concurrency) == (transport, concurrency));
    found.expect("the sweep has this point")
}

fn cycles(transport: Transport, concurrency: u32) -> f64 {
    point(transport, concurrency).cycles()
}

#[test]
fn fast_path_is_below_slow_path_is_below_another_hart() {
    for concurrency in [1, 4, 32] {
        let [fast, slow, other] = [Transport::SyncFastpath, Transport::SyncSlowpath, Transport::SyncSmp]
            .map(|path| cycles(path, concurrency));
        assert!(fast < slow, "{concurrency} in flight: fast path {fast}, slow path {slow}");
        assert!(slow < other, "{concurrency} in flight: slow path {slow}, other hart {other}");
    }
}

#[test]
fn a_synchronous_call_does_not_get_cheaper_by_waiting_together() {
    for path in [Transport::SyncFastpath, Transport::SyncSlowpath] {
        let (alone, together) = (cycles(path, 1), cycles(path, 32));
        // 32 threads have 32 stacks and message buffers, and in a short run each makes few calls with a cold cache.
        assert!((1.0..2.0).contains(&(together / alone)), "{path:?}: {alone} alone, {together} together");
    }
}

#[test]
fn an_asynchronous_call_gets_cheaper_with_more_in_flight() {
    for path in [Transport::AsyncUp, Transport::AsyncSmp] {
        let costs = [1, 4, 32].map(|concurrency| cycles(path, concurrency));
        assert!(costs.is_sorted_by(|more, less| more > less), "{path:?}: {costs:?}");
    }
}

#[test]
fn many_asynchronous_calls_cross_below_the_fast_path() {
    let fast = cycles(Transport::SyncFastpath, 32);
    for path in [Transport::AsyncUp, Transport::AsyncSmp] {
        assert!(cycles(path, 32) < fast, "{path:?}: {} against {fast}", cycles(path, 32));
    }
    assert!(
        cycles(Transport::AsyncSmp, 1) < cycles(Transport::SyncSmp, 1),
        "user interrupts beat the kernel's across harts"
    );
}

#[test]
fn user_interrupts_per_call_fall_with_more_in_flight() {
    for path in [Transport::AsyncUp, Transport::AsyncSmp] {
        let [few, many] = [1, 32].map(|concurrency| point(path, concurrency).user_interrupts());
        // One for each side; a little more for the question how many there were.
        assert!(few <= 2.1, "{path:?}: each side is woken once per call at most, not {few}");
        assert!(many < 0.5 && many <= few, "{path:?}: {few} per call with one in flight, {many} with 32");
    }
}

/// Executors that wait for user interrupts get them, one a side for each batch of calls.
#[test]
fn armed_executors_are_woken_by_user_interrupts_and_less_often_with_more_in_flight() {
    let counts = [1, 4, 32].map(|concurrency| point(Transport::AsyncSmpArmed, concurrency).user_interrupts());
    assert!((1.9..2.1).contains(&counts[0]), "{counts:?}");
    assert!(counts.is_sorted_by(|more, less| more > less) && counts[2] < 0.17, "{counts:?}");
}

/// A pair gets cheaper with more in flight, and across harts it crosses below the synchronous one.
#[test]
fn asynchronous_system_calls_get_cheaper_with_more_in_flight() {
    let form = |harts| Form::ServerAsync { harts };
    let points = [(Form::Ring, 1), (Form::Ring, 16), (form(1), 1), (form(1), 16), (form(2), 1), (form(2), 16)];
    let points = points.into_iter().chain([(Form::ServerSync { harts: 2 }, 1)]);
    let syscalls = points.map(|(form, depth)| syscall::Spec::new(form, depth, true)).collect();
    let sweep = ipc::Sweep { transports: Vec::new(), armed: Vec::new(), syscalls, ..ipc::Sweep::new(true) };
    let measured = tour::measure(&[], Some(&sweep), None, false).unwrap_or_else(|error| panic!("{error}"));
    let cycles: Vec<f64> = measured.syscalls.iter().map(syscall::Point::cycles).collect();
    let [ring, ring_deep, one, one_deep, two, two_deep, two_sync] = cycles[..] else { panic!("{cycles:?}") };
    for (alone, deep) in [(ring, ring_deep), (one, one_deep), (two, two_deep)] {
        assert!(deep < 0.7 * alone, "{alone} alone, {deep} with 16 in flight");
    }
    assert!(two_deep < two_sync, "two harts, 16 in flight: {two_deep}, synchronous {two_sync}");
}

#[test]
fn a_flooding_client_takes_nothing_from_the_others() {
    let fairness = fairness::Spec::all(true);
    let sweep = ipc::Sweep { concurrencies: Vec::new(), fairness, ..ipc::Sweep::new(true) };
    let measured = tour::measure(&[], Some(&sweep), None, false).unwrap_or_else(|error| panic!("{error}"));
    assert!(measured.ipc.is_empty());
    assert_eq!(fairness::misses(&measured.fairness), [""; 0], "{measured:?}");
}

#[test]
fn asynchronous_sockets_are_faster_once_requests_overlap() {
    for harts in [1, 2] {
        let ratio = |connections| {
            let rate = |transport| {
                let is = |point: &&socket::Point| {
                    (point.transport, point.harts, point.connections) == (transport, harts, connections)
                };
                SOCKET.socket.iter().find(is).expect("the sweep has this point").rate
            };
            let [sync, asynchronous] = socket::Transport::ALL.map(rate);
            asynchronous / sync
        };
        assert!(ratio(8) > 1.25, "{harts} harts, 8 connections: {}", ratio(8));
        assert!(ratio(8) > ratio(1), "{harts} harts: {} with 8 connections, {} with one", ratio(8), ratio(1));
    }
}

#[test]
fn a_point_measured_alone_is_the_same_to_the_byte() {
    let (transports, armed) = (vec![Transport::AsyncSmp], Vec::new());
    let ipc = ipc::Sweep { transports, armed, concurrencies: vec![4], ..ipc::Sweep::new(true) };
    let alone = tour::measure(&[], Some(&ipc), None, false).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(alone.ipc, [*point(Transport::AsyncSmp, 4)]);

    let net = socket::Sweep {
        transports: vec![socket::Transport::Async],
        harts: vec![2],
        connections: vec![1, 8],
        ..socket::Sweep::new(true)
    };
    let [first, second] =
        [(); 2].map(|()| tour::measure(&[], None, Some(&net), true).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(first, second, "points, images and packets");
    assert_eq!(tour::summary(&first).to_json(), tour::summary(&second).to_json());
    let in_sweep: Vec<_> = SOCKET.socket.iter().filter(|point| first.socket.contains(point)).collect();
    assert_eq!(in_sweep.len(), 2);
}
