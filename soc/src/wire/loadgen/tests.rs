//! The generator against an echo server that is another smoltcp stack, at the other end of a link.

use std::collections::VecDeque;
use std::io::Write;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr};

use super::*;
use crate::wire::{Link, LinkConfig};

/// What the server in the test does with what it receives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// The defined transformation.
    Honest,
    /// The request unchanged, as a reflecting wire would.
    Parrot,
    /// One wrong byte in the 100th byte of each connection.
    OneWrongByte,
    /// Each reply followed by a byte too many.
    Chatty,
    /// Silence after the 200th byte.
    Silent,
    /// Closes after the 200th byte.
    Quitter,
    /// Reads and says nothing.
    Reader,
    /// Writes the defined stream.
    Writer,
    /// Writes a stream with one wrong byte.
    BadWriter,
}

#[derive(Default)]
struct Queues {
    incoming: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
}
struct In(Vec<u8>);
struct Out<'a>(&'a mut VecDeque<Vec<u8>>);
impl RxToken for In {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}
impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        // The MAC's work.
        frame.resize(length.max(60), 0);
        self.0.push_back(frame);
        result
    }
}
impl Device for Queues {
    type RxToken<'a> = In;
    type TxToken<'a> = Out<'a>;
    fn receive(&mut self, _: Instant) -> Option<(In, Out<'_>)> {
        Some((In(self.incoming.pop_front()?), Out(&mut self.outgoing)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Out<'_>> {
        Some(Out(&mut self.outgoing))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// The guest of these tests: `backlog` listening sockets, and per frame a service time.
struct Server {
    queues: Queues,
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: Vec<(SocketHandle, u64)>,
    /// The UDP side, and the datagrams it has answered.
    datagrams: (SocketHandle, u64),
    manner: Manner,
    /// Starts to listen then.
    listens_at: SimTime,
    /// The last connection is not served before.
    shy: SimTime,
    pending: VecDeque<u8>,
}

fn socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; 4096]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket
}

impl Server {
    fn new(manner: Manner, backlog: usize, listens_at: SimTime) -> Self {
        let mut queues = Queues::default();
        let config = Config::new(HardwareAddress::Ethernet(EthernetAddress([2, 0, 0, 0, 0, 0x15])));
        let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
        interface
            .update_ip_addrs(|list| list.push(IpCidr::new(std::net::Ipv4Addr::new(10, 0, 2, 15).into(), 24)).unwrap());
        let mut sockets = SocketSet::new(Vec::new());
        let connections = (0..backlog).map(|_| (sockets.add(socket()), 0)).collect();
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], vec![0; 64 << 10]);
        let datagrams = (sockets.add(udp::Socket::new(buffer(), buffer())), 0);
        Self {
            queues,
            interface,
            sockets,
            connections,
            datagrams,
            manner,
            listens_at,
            shy: SimTime::ZERO,
            pending: VecDeque::new(),
        }
    }

    fn run(&mut self, now: SimTime) {
        let present = Instant::from_micros(now.as_us() as i64);
        loop {
            self.interface.poll(present, &mut self.queues, &mut self.sockets);
            let mut again = self.serve_datagrams(now);
            for index in 0..self.connections.len() {
                again |= self.serve(index, now);
            }
            if !again {
                break;
            }
        }
    }

    fn serve_datagrams(&mut self, now: SimTime) -> bool {
        let (handle, count) = &mut self.datagrams;
        let socket = self.sockets.get_mut::<udp::Socket>(*handle);
        if !socket.is_open() {
            return now >= self.listens_at && socket.bind(7).is_ok();
        }
        let Ok((bytes, from)) = socket.recv() else { return false };
        *count += 1;
        let mut answer = bytes.to_vec();
        match self.manner {
            Manner::Parrot => {}
            Manner::Silent if count.is_multiple_of(10) => return true,
            _ => answer.iter_mut().for_each(|byte| *byte ^= REPLY_XOR),
        }
        socket.send_slice(&answer, from).unwrap();
        true
    }

    fn serve(&mut self, index: usize, now: SimTime) -> bool {
        let (handle, count) = &mut self.connections[index];
        let socket = self.sockets.get_mut::<tcp::Socket>(*handle);
        if !socket.is_open() {
            *count = 0;
            return now >= self.listens_at && socket.listen(7).is_ok();
        }
        let mut again = false;
        if index == 3 && now < self.shy {
            return false;
        }
        let writes = matches!(self.manner, Manner::Writer | Manner::BadWriter);
        while writes && socket.can_send() && socket.may_recv() {
            let wrong = self.manner == Manner::BadWriter && *count == 1000;
            socket.send_slice(&[stream_byte(*count) ^ u8::from(wrong)]).unwrap();
            *count += 1;
            again = true;
        }
        while socket.can_recv() && socket.can_send() {
            let mut byte = [0];
            socket.recv_slice(&mut byte).unwrap();
            *count += 1;
            let answer = match self.manner {
                Manner::Parrot => byte[0],
                Manner::OneWrongByte if *count == 100 => byte[0],
                Manner::Silent if *count > 200 => continue,
                Manner::Reader | Manner::Writer | Manner::BadWriter => continue,
                _ => byte[0] ^ REPLY_XOR,
            };
            self.pending.push_back(answer);
            if self.manner == Manner::Chatty && count.is_multiple_of(64) {
                self.pending.push_back(0);
            }
            again = true;
        }
        let bytes: Vec<u8> = self.pending.drain(..).collect();
        if !bytes.is_empty() {
            assert_eq!(socket.send_slice(&bytes), Ok(bytes.len()));
        }
        let quits = self.manner == Manner::Quitter && *count > 200;
        if (!socket.may_recv() && socket.state() == tcp::State::CloseWait) || quits && socket.may_send() {
            socket.close();
            again = true;
        }
        again
    }

    fn wake(&mut self, now: SimTime) -> Option<SimTime> {
        let present = Instant::from_micros(now.as_us() as i64);
        let stack = self.interface.poll_at(present, &self.sockets)?;
        Some(SimTime::from_us(stack.total_micros().max(present.total_micros() + 1) as u64))
    }
}

/// Plays generator against server until the generator has finished; returns the report and a digest of all frames with their times.
fn play(config: LoadGenConfig, server: Server, service: SimTime, link: LinkConfig) -> (Report, u64) {
    let (generator, handle) = LoadGen::new(config).unwrap();
    let digest = drive(Link::new(link, Box::new(generator)), server, service);
    (handle.report(), digest)
}

fn drive(mut link: Link, mut server: Server, service: SimTime) -> u64 {
    let mut now = SimTime::ZERO;
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut due: VecDeque<(SimTime, Vec<u8>)> = VecDeque::new();
    while !link.finished() {
        let mut next = link.advance(now);
        while let Some(arrival) = link.receive(now) {
            for &byte in arrival.frame.iter().chain(&now.as_ps().to_le_bytes()) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
            // One server, one frame after the other.
            let start = due.back().map_or(now, |(at, _)| now.max(*at));
            if arrival.intact {
                due.push_back((start + service, arrival.frame));
            }
        }
        while due.front().is_some_and(|(at, _)| *at <= now) {
            let (_, frame) = due.pop_front().unwrap();
            server.queues.incoming.push_back(frame);
        }
        server.run(now);
        while let Some(frame) = server.queues.outgoing.pop_front() {
            link.send(now, frame, true);
        }
        next = [next, link.advance(now), due.front().map(|(at, _)| *at), server.wake(now)].into_iter().flatten().min();
        let Some(next) = next else {
            assert!(link.finished(), "nobody waits for anything");
            break;
        };
        now = next.max(now);
        assert!(now < SimTime::from_us(100_000_000), "no end in sight");
    }
    digest
}

fn quick() -> LoadGenConfig {
    LoadGenConfig {
        connections: vec![1, 4],
        requests: 50,
        warmup: 5,
        timeout: SimTime::from_us(300_000),
        ..LoadGenConfig::default()
    }
}

const SERVICE: SimTime = SimTime::from_us(20);

fn play_quick(manner: Manner) -> Report {
    play(quick(), Server::new(manner, 8, SimTime::ZERO), SERVICE, LinkConfig::default()).0
}

#[test]
fn an_honest_server_passes_and_the_figures_follow_from_the_set_up() {
    let report = play_quick(Manner::Honest);
    assert!(report.passed(), "{report:?}");
    let [one, four] = &report.phases[..] else { panic!("{report:?}") };
    assert_eq!((one.requests, four.requests), (50, 200));
    assert_eq!(one.samples.len(), 50);
    // One connection: 64 bytes of data in 118-byte frames each way, and the service time.
    let there_and_back = SimTime::from_ns(2 * (118 + 12) * 8) + SERVICE;
    assert_eq!((one.latency.min, one.latency.max), (there_and_back, there_and_back));
    assert_eq!(one.elapsed.as_ps(), 50 * there_and_back.as_ps());
    assert_eq!(one.requests_per_second(), 50_000_000_000_000 / (50 * there_and_back.as_ps()));
    // Four connections: the server is the bottleneck, and fair.
    assert!(four.fewest >= 54 && four.most <= 56, "{} to {}", four.fewest, four.most);
    assert!(four.requests_per_second() > one.requests_per_second());
    assert!(four.latency.p50 > one.latency.p50 && four.latency.max >= four.latency.p999);
}

#[test]
fn the_same_run_twice_is_the_same_to_the_byte_and_another_seed_is_not() {
    let run = |seed| {
        play(
            LoadGenConfig { seed, ..quick() },
            Server::new(Manner::Honest, 8, SimTime::ZERO),
            SERVICE,
            LinkConfig::default(),
        )
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn a_reflection_is_not_an_answer() {
    let report = play_quick(Manner::Parrot);
    assert!(!report.passed());
    assert!(report.phases.iter().all(|phase| phase.requests == 0 && phase.errors > 0), "{report:?}");
}

#[test]
fn one_wrong_byte_is_one_error() {
    let report = play_quick(Manner::OneWrongByte);
    assert_eq!((report.phases[0].errors, report.phases[1].errors), (1, 4));
    // It falls into the warm-up.
    assert_eq!(report.phases[0].requests, 50);
}

#[test]
fn superfluous_bytes_silence_and_a_lost_connection_are_errors() {
    for manner in [Manner::Chatty, Manner::Silent, Manner::Quitter] {
        let report = play_quick(manner);
        assert!(report.finished.is_some() && !report.passed());
        assert_eq!(report.phases.len(), 2);
        assert!(report.phases.iter().all(|phase| phase.errors >= u64::from(phase.connections)), "{report:?}");
    }
}

#[test]
fn a_server_that_listens_late_is_waited_for_without_error() {
    let server = Server::new(Manner::Honest, 8, SimTime::from_us(4_500));
    let (report, _) = play(quick(), server, SERVICE, LinkConfig::default());
    assert!(report.passed(), "{report:?}");
    assert!(report.phases[0].refused >= 3, "{report:?}");
}

#[test]
fn a_lossy_wire_costs_time_but_no_byte() {
    let link = LinkConfig { loss_ppm: 20_000, damage_ppm: 10_000, ..LinkConfig::default() };
    let config = LoadGenConfig { timeout: SimTime::from_us(30_000_000), ..quick() };
    let (report, _) = play(config, Server::new(Manner::Honest, 8, SimTime::ZERO), SERVICE, link);
    assert!(report.passed(), "{report:?}");
    assert!(report.phases.iter().any(|phase| phase.latency.max > SimTime::from_us(10_000)), "{report:?}");
}

#[test]
fn think_time_separates_requests() {
    let config = LoadGenConfig { connections: vec![1], think: SimTime::from_us(100), ..quick() };
    let (report, _) = play(config, Server::new(Manner::Honest, 8, SimTime::ZERO), SERVICE, LinkConfig::default());
    assert!(report.passed(), "{report:?}");
    assert!(report.phases[0].elapsed >= SimTime::from_us(50 * 120));
}

#[test]
fn large_messages_pass_in_pieces() {
    let config = LoadGenConfig { connections: vec![2], size: 100_000, requests: 3, warmup: 1, ..quick() };
    let (report, _) =
        play(config, Server::new(Manner::Honest, 8, SimTime::ZERO), SimTime::from_us(1), LinkConfig::default());
    assert!(report.passed(), "{report:?}");
    assert_eq!(report.phases[0].requests, 6);
}

#[test]
fn read_counts_acknowledged_requests_and_write_checks_the_stream() {
    let run = |operation, manner| {
        let config = LoadGenConfig { operation, size: 1000, ..quick() };
        play(config, Server::new(manner, 8, SimTime::ZERO), SERVICE, LinkConfig::default()).0
    };
    let read = run(Operation::Read, Manner::Reader);
    assert!(read.passed(), "{read:?}");
    assert_eq!(read.phases[1].requests, 200);
    let write = run(Operation::Write, Manner::Writer);
    assert!(write.passed(), "{write:?}");
    assert_eq!(write.phases[0].requests, 50);
    let bad = run(Operation::Write, Manner::BadWriter);
    assert_eq!(bad.phases[0].errors, 1, "{bad:?}");
}

#[test]
fn a_guest_that_never_answers_ends_the_run_without_success() {
    let config = LoadGenConfig { patience: SimTime::from_us(50_500), ..quick() };
    let (mut generator, handle) = LoadGen::new(config).unwrap();
    let mut now = SimTime::ZERO;
    let mut asked = 0;
    loop {
        match generator.next(now) {
            Next::Frame(_) => asked += 1,
            Next::At(at) => now = at,
            Next::Idle => break,
        }
    }
    assert!(generator.finished() && !handle.report().passed());
    assert_eq!((asked, now), (51, SimTime::from_us(51_000)));
}

/// Runs tshark on `file`; `None`, with a loud word, if there is no tshark.
fn tshark(file: &std::path::Path, arguments: &[&str]) -> Option<String> {
    let mut command = std::process::Command::new("tshark");
    command.args(["-r".as_ref(), file.as_os_str()]).args(arguments);
    match command.output() {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => panic!("tshark: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            // Not by the print macros: the test runner hides those of a test that passes.
            let _ = writeln!(std::io::stderr(), "SKIPPED: tshark cannot be run ({error}), the capture was not checked");
            None
        }
    }
}

#[test]
fn tshark_finds_a_flawless_conversation_in_the_capture() {
    let path = std::env::temp_dir().join(format!("soc-loadgen-{}.pcap", std::process::id()));
    let config = LoadGenConfig { connections: vec![1], requests: 20, warmup: 0, ..quick() };
    let (generator, handle) = LoadGen::new(config).unwrap();
    let tee = crate::wire::Tee::new(Box::new(generator), std::fs::File::create(&path).unwrap()).unwrap();
    drive(Link::new(LinkConfig::default(), Box::new(tee)), Server::new(Manner::Honest, 8, SimTime::ZERO), SERVICE);
    assert!(handle.report().passed());
    let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y"];
    let flaws = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.flags || tcp.flags.reset == 1";
    if let Some(found) = tshark(&path, &[&checks[..], &[flaws]].concat()) {
        assert_eq!(found, "");
        let data =
            tshark(&path, &["-Y", "tcp.len == 64", "-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.srcport"])
                .unwrap();
        let lines: Vec<(u64, bool)> = data
            .lines()
            .map(|line| {
                let (time, port) = line.split_once('\t').unwrap();
                (time.replace('.', "").parse().unwrap(), port == "7")
            })
            .collect();
        assert_eq!(lines.len(), 40);
        // The capture's own times give the latencies: request out to reply in. The first pair waits for the handshake's last frame.
        let span = |pair: &[(u64, bool)]| {
            assert!(!pair[0].1 && pair[1].1);
            pair[1].0 - pair[0].0
        };
        let latency = handle.report().phases[0].latency.min.as_ns();
        assert!(lines.chunks(2).skip(1).all(|pair| span(pair) == latency));
        let fins = tshark(&path, &["-Y", "tcp.flags.fin == 1", "-T", "fields", "-e", "tcp.srcport"]).unwrap();
        assert_eq!(fins.lines().count(), 2);
    }
    std::fs::remove_file(&path).unwrap();
}

fn play_datagrams(protocol: Protocol, manner: Manner, listens_at: SimTime) -> Report {
    let config = LoadGenConfig { protocol, timeout: SimTime::from_us(10_000), ..quick() };
    play(config, Server::new(manner, 1, listens_at), SERVICE, LinkConfig::default()).0
}

#[test]
fn udp_requests_are_answered_checked_and_measured() {
    let report = play_datagrams(Protocol::Udp, Manner::Honest, SimTime::ZERO);
    assert!(report.passed(), "{report:?}");
    assert_eq!((report.phases[0].requests, report.phases[1].requests), (50, 200));
    // 64 bytes are 106-byte frames.
    let there_and_back = SimTime::from_ns(2 * (106 + 12) * 8) + SERVICE;
    assert_eq!((report.phases[0].latency.min, report.phases[0].latency.max), (there_and_back, there_and_back));
    assert!(!play_datagrams(Protocol::Udp, Manner::Parrot, SimTime::ZERO).passed());
}

#[test]
fn a_lost_datagram_is_one_error_and_the_next_request_follows() {
    let report = play_datagrams(Protocol::Udp, Manner::Silent, SimTime::ZERO);
    let [one, four] = &report.phases[..] else { panic!("{report:?}") };
    // Each tenth datagram is lost, of which a knock is repeated without error.
    assert_eq!((one.errors, one.refused, one.requests), (5, 0, 45));
    assert!((20..30).contains(&four.errors) && four.refused == 1, "{four:?}");
    // Those in the measured window are missing from its 200.
    assert!((200 - four.errors..200).contains(&four.requests), "{four:?}");
}

#[test]
fn a_late_udp_server_is_knocked_at_without_error() {
    let report = play_datagrams(Protocol::Udp, Manner::Honest, SimTime::from_us(4_500));
    assert!(report.passed() && report.phases[0].refused >= 4, "{report:?}");
}

#[test]
fn pings_are_answered_by_the_stack() {
    let report = play_datagrams(Protocol::Ping, Manner::Honest, SimTime::ZERO);
    assert!(report.passed(), "{report:?}");
    assert_eq!(report.phases[1].requests, 200);
}

#[test]
fn a_connection_that_never_opens_is_an_error_though_the_others_could_do_the_work() {
    let config = LoadGenConfig { connections: vec![4], ..quick() };
    let (report, _) = play(config, Server::new(Manner::Honest, 3, SimTime::ZERO), SERVICE, LinkConfig::default());
    assert_eq!((report.phases[0].requests, report.phases[0].errors), (200, 1), "{report:?}");
    assert_eq!((report.phases[0].fewest, report.phases[0].most > 0), (0, true));
}

#[test]
fn nothing_is_measured_before_every_connection_is_warm() {
    // The server serves its last connection only after 5 ms.
    let config = LoadGenConfig { connections: vec![4], warmup: 3, ..quick() };
    let mut server = Server::new(Manner::Honest, 4, SimTime::ZERO);
    server.shy = SimTime::from_us(5_000);
    let (report, _) = play(config, server, SERVICE, LinkConfig::default());
    assert!(report.passed(), "{report:?}");
    let phase = &report.phases[0];
    assert!(phase.latency.max < SimTime::from_us(1_000), "{:?}", phase.latency);
    assert!(phase.most > phase.fewest + 50, "the others went on meanwhile: {} to {}", phase.fewest, phase.most);
}
