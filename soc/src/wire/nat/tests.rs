//! The gateway against a guest that is a stack of its own, frame by frame, and real sockets of the host's loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp, udp};

use super::*;

const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// Longer than anything here takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Gateway and guest, joined by a wire without delay.
struct World {
    nat: Nat,
    guest: Stack,
    now: SimTime,
}

impl World {
    fn new(forwards: &[&str]) -> Self {
        let forwards = forwards.iter().map(|text| text.parse().unwrap()).collect();
        Self {
            nat: Nat::new(&NatConfig { guest: GUEST, forwards }).unwrap(),
            guest: Stack::new([2, 0, 0, 0, 0, 1], GUEST, PREFIX, 2),
            now: SimTime::ZERO,
        }
    }

    /// Moves frames both ways once, and time by 100 us.
    fn step(&mut self) {
        self.guest.poll(self.now);
        while let Some(frame) = self.guest.pop() {
            self.nat.deliver(self.now, &frame);
        }
        while let Next::Frame(frame) = self.nat.next(self.now) {
            self.guest.push(&frame);
        }
        self.now += SimTime::from_us(100);
    }

    /// Goes on until `done` gives something.
    fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Stack) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            self.step();
            if let Some(result) = done(&mut self.guest) {
                return result;
            }
            assert!(start.elapsed() < PATIENCE, "{what} does not happen");
        }
    }

    fn tcp(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; 8192]);
        self.guest.sockets.add(tcp::Socket::new(buffer(), buffer()))
    }

    fn connect(&mut self, port: u16) -> SocketHandle {
        let handle = self.tcp();
        let socket = self.guest.sockets.get_mut::<tcp::Socket>(handle);
        socket.connect(self.guest.interface.context(), (GATEWAY, port), (GUEST, 40_000)).unwrap();
        handle
    }

    fn udp(&mut self, port: u16) -> SocketHandle {
        let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 8192]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(port).unwrap();
        self.guest.sockets.add(socket)
    }
}

fn host_port(address: std::net::SocketAddr) -> u16 {
    address.port()
}

#[test]
fn the_guest_reaches_a_server_of_the_host() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host_port(server.local_addr().unwrap());
    // Sends back all it gets, then closes.
    let serving = std::thread::spawn(move || {
        let mut stream = server.accept().unwrap().0;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let mut world = World::new(&[]);
    let handle = world.connect(port);
    let sent: Vec<u8> = (0..100_000).map(|index| (index % 251) as u8).collect();
    let (mut offset, mut received) = (0, Vec::new());
    world.until("the echo", |guest| {
        let socket = guest.sockets.get_mut::<tcp::Socket>(handle);
        if socket.can_send() && offset < sent.len() {
            offset += socket.send_slice(&sent[offset..]).unwrap();
            if offset == sent.len() {
                socket.close();
            }
        }
        while socket.can_recv() {
            socket.recv(|bytes| (bytes.len(), received.extend_from_slice(bytes))).unwrap();
        }
        (received.len() == sent.len()).then_some(())
    });
    assert!(received == sent);
    serving.join().unwrap();
    world.until("the end", |guest| {
        let state = guest.sockets.get_mut::<tcp::Socket>(handle).state();
        matches!(state, tcp::State::TimeWait | tcp::State::Closed).then_some(())
    });
}

#[test]
fn a_port_of_the_host_without_server_refuses() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut world = World::new(&[]);
    let handle = world.connect(host_port(free));
    world.until("the refusal", |guest| {
        (guest.sockets.get_mut::<tcp::Socket>(handle).state() == tcp::State::Closed).then_some(())
    });
}

#[test]
fn a_forwarded_port_reaches_the_guest() {
    let mut world = World::new(&["tcp:0:80"]);
    let address = world.nat.tcp.forwarded()[0];
    let handle = world.tcp();
    world.guest.sockets.get_mut::<tcp::Socket>(handle).listen(80).unwrap();
    let asking = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"who are you?").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    world.until("the question", |guest| {
        let socket = guest.sockets.get_mut::<tcp::Socket>(handle);
        let asked = socket.can_recv() && socket.recv(|bytes| (bytes.len(), bytes == b"who are you?")).unwrap();
        asked.then(|| {
            socket.send_slice(b"a guest").unwrap();
            socket.close();
        })
    });
    world.until("the answer's way", |_| asking.is_finished().then_some(()));
    assert_eq!(asking.join().unwrap(), "a guest");
}

#[test]
fn a_forwarded_port_that_the_guest_refuses_is_closed() {
    let mut world = World::new(&["tcp:0:80"]);
    let mut stream = TcpStream::connect(world.nat.tcp.forwarded()[0]).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut buffer = [0; 8];
    world.until("the end of the stream", |_| match stream.read(&mut buffer) {
        Ok(0) => Some(()),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Some(()),
        other => {
            assert_eq!(other.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
            None
        }
    });
}

#[test]
fn datagrams_go_both_ways() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = host_port(server.local_addr().unwrap());
    let mut world = World::new(&["udp:0:53"]);
    let forwarded = world.nat.udp.forwarded()[0];
    let (asking, serving) = (world.udp(1000), world.udp(53));

    let ask = world.guest.sockets.get_mut::<udp::Socket>(asking);
    ask.send_slice(b"ping", (GATEWAY, port)).unwrap();
    let mut buffer = [0; 64];
    let (length, from) = world.until("the guest's datagram", |_| server.recv_from(&mut buffer).ok());
    assert_eq!(&buffer[..length], b"ping");
    server.send_to(b"pong", from).unwrap();
    let (bytes, from) = world.until("the answer", |guest| {
        let (bytes, meta) = guest.sockets.get_mut::<udp::Socket>(asking).recv().ok()?;
        Some((bytes.to_vec(), meta.endpoint))
    });
    assert_eq!((bytes.as_slice(), from), (&b"pong"[..], (GATEWAY, port).into()));

    server.send_to(b"query", forwarded).unwrap();
    let from = world.until("the host's datagram", |guest| {
        let (bytes, meta) = guest.sockets.get_mut::<udp::Socket>(serving).recv().ok()?;
        assert_eq!(bytes, b"query");
        Some(meta.endpoint)
    });
    world.guest.sockets.get_mut::<udp::Socket>(serving).send_slice(b"reply", from).unwrap();
    let (length, from) = world.until("the reply", |_| server.recv_from(&mut buffer).ok());
    assert_eq!((&buffer[..length], from), (&b"reply"[..], forwarded));
}

#[test]
fn frames_of_no_sense_are_dropped() {
    let mut nat = Nat::new(&NatConfig::default()).unwrap();
    let mut random = crate::wire::random::Random::new(3);
    for length in (0..200).chain([1514]) {
        let mut frame = vec![0; length];
        random.fill(&mut frame);
        // Half of them look like IPv4, and of these a half like UDP, a half like TCP.
        if length > 24 && length % 2 == 0 {
            frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
            frame[23] = if length % 4 == 0 { 6 } else { 17 };
        }
        nat.deliver(SimTime::ZERO, &frame);
        nat.next(SimTime::ZERO);
    }
}
