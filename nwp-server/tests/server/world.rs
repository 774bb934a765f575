//! The server without kernel and hardware, in one thread and in simulated time: clients and server are the two ends of real `libipc` channels, the
//! server's device is one end of a cable, and at the other end sits a second smoltcp as the rest of the world.
//!
//! All of it is tasks of one executor. The `wire` task moves frames and time on with every round, so a test that waits makes the world turn; a test that
//! waits for something that never comes fails when its simulated time is up. The server is driven by interrupts and its timer, as on the machine: an
//! interrupt comes once and then not before the driver has let the next one through.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use libipc::bell::Ring;
use libipc::channel::Memory;
use libipc::executor::{self, Events, Link, Timers, Wait};
use libipc::port::threads::ThreadPort;
use libipc::{Client, Executor, Server};
use nwp_server::drive::{Clock, Interrupts, drive};
use nwp_server::serve::worker;
use nwp_server::stack::Wire;
use nwp_server::{Config, Stack};
use smoltcp::iface::{Config as InterfaceConfig, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address, Ipv4Cidr};

const ENTRIES: usize = 64;
const ARENA: usize = 64 * 1024;
const DEVICE_BIT: u32 = 63;
/// Time of one round, unless time flies ([`World::fly`]).
const ROUND: Duration = Duration::from_micros(50);
const LONG_ROUND: Duration = Duration::from_millis(50);
const TIME_LIMIT: Instant = Instant::from_micros_const(3_600_000_000);

thread_local! {
    /// Simulated time in microseconds; of the thread, so that the clock of all tests is one static.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn now() -> Instant {
    Instant::from_micros(NOW.get() as i64)
}

type Frames = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// One end of the cable.
pub struct End {
    incoming: Frames,
    outgoing: Frames,
}

/// The two ends of a new cable.
fn cable() -> (End, End) {
    let (left, right) = (Frames::default(), Frames::default());
    (End { incoming: left.clone(), outgoing: right.clone() }, End { incoming: right, outgoing: left })
}

pub struct Incoming(Vec<u8>);
pub struct Outgoing<'a>(&'a Frames);

impl RxToken for Incoming {
    fn consume<T, F: FnOnce(&[u8]) -> T>(self, f: F) -> T {
        f(&self.0)
    }
}

impl TxToken for Outgoing<'_> {
    fn consume<T, F: FnOnce(&mut [u8]) -> T>(self, length: usize, f: F) -> T {
        let mut frame = vec![0; length];
        let result = f(&mut frame);
        self.0.borrow_mut().push_back(frame);
        result
    }
}

impl Device for End {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;
    fn receive(&mut self, _: Instant) -> Option<(Incoming, Outgoing<'_>)> {
        let frame = self.incoming.borrow_mut().pop_front()?;
        Some((Incoming(frame), Outgoing(&self.outgoing)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(&self.outgoing))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

impl Wire for End {
    type Error = core::convert::Infallible;

    fn acknowledge(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    fn peek<T>(&mut self, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.incoming.borrow().front().map(|frame| look(frame))
    }
    fn is_starved(&self) -> bool {
        false
    }
    fn publish(&mut self) {}
}

/// Simulated time as the server's clock. The world turns all the time, so that nobody sleeps until an alarm.
struct SimulatedTime;
static CLOCK: SimulatedTime = SimulatedTime;

impl executor::Clock for SimulatedTime {
    fn now(&self) -> u64 {
        NOW.get()
    }
    fn hz(&self) -> u64 {
        1_000_000
    }
    fn alarm(&self, _: u64) {}
}

/// The rest of the world: a host at 10.0.2.2.
pub struct Peer {
    interface: Interface,
    sockets: SocketSet<'static>,
    device: End,
    next_port: u16,
}

impl Peer {
    fn new(mut device: End) -> Self {
        let settings = InterfaceConfig::new(EthernetAddress([2, 0, 0, 0, 0, 2]).into());
        let mut interface = Interface::new(settings, &mut device, Instant::ZERO);
        let own = IpCidr::Ipv4(Ipv4Cidr::new(Ipv4Address::new(10, 0, 2, 2), 24));
        interface.update_ip_addrs(|addresses| addresses.push(own).unwrap());
        Self { interface, sockets: SocketSet::new(vec![]), device, next_port: 40_000 }
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }

    /// Starts a connection to the server's port.
    pub fn connect(&mut self, port: u16) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; 4096]);
        let mut socket = Socket::new(buffer(), buffer());
        self.next_port += 1;
        let server = (Ipv4Address::new(10, 0, 2, 15), port);
        socket.connect(self.interface.context(), server, self.next_port).unwrap();
        self.sockets.add(socket)
    }

    pub fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }
}

/// Everything a test can reach.
pub struct World {
    pub clients: Vec<Client>,
    pub stack: RefCell<Stack<End>>,
    pub peer: RefCell<Peer>,
    /// The cable is cut: all frames are lost.
    pub cut: Cell<bool>,
    round: Cell<Duration>,
    to_server: Frames,
    to_peer: Frames,
    /// The device's interrupt has come and the driver has not yet let the next through.
    masked: Cell<bool>,
    timers: Timers<'static>,
    port: ThreadPort,
    finished: Cell<bool>,
    sleepers: RefCell<Vec<Waker>>,
}

impl World {
    /// Runs `test` with `clients` clients of a server with these limits.
    ///
    /// # Panics
    /// If the test does, or if it has not ended after `TIME_LIMIT`.
    pub fn run(clients: usize, config: Config, test: impl AsyncFnOnce(&World)) {
        let (server_end, peer_end) = cable();
        NOW.set(0);
        let (to_server, to_peer) = (server_end.incoming.clone(), server_end.outgoing.clone());
        let port = ThreadPort::new();
        let memories: Vec<Memory> = (0..clients).map(|_| Memory::leak(ENTRIES, ARENA).unwrap()).collect();
        let server = Server::new(memories.iter().map(|memory| (*memory, port.peer(0))));
        let world = World {
            clients: memories.iter().map(|memory| Client::new(memory, port.peer(1))).collect(),
            stack: RefCell::new(Stack::new(server_end, &config, 1, Instant::ZERO)),
            peer: RefCell::new(Peer::new(peer_end)),
            cut: Cell::new(false),
            round: Cell::new(ROUND),
            to_server,
            to_peer,
            masked: Cell::new(false),
            timers: Timers::new(&CLOCK),
            port: port.clone(),
            finished: Cell::new(false),
            sleepers: RefCell::default(),
        };
        let workers = clients * ENTRIES;
        let events = Events::new();
        let pass_next = |_| world.masked.set(false);
        let bits = [DEVICE_BIT];
        let clock = Clock::new(&CLOCK);
        let executor = Executor::new(workers + 3);
        executor.attach(&server);
        executor.attach(&events);
        executor.attach(&world.timers);
        world.clients.iter().for_each(|client| executor.attach(client));
        executor.spawn(world.wire()).unwrap();
        let interrupts = Interrupts { events: &events, bits: &bits, pass_next: &pass_next };
        let driver = drive(&world.stack, interrupts, &world.timers, &clock);
        executor.spawn(world.until_finished(async { driver.await.map(drop).unwrap() })).unwrap();
        executor
            .spawn(async {
                test(&world).await;
                world.finish();
            })
            .unwrap();
        for _ in 0..workers {
            executor.spawn(world.until_finished(worker(&server, &world.stack))).unwrap();
        }
        executor.run(&port);
    }

    /// Moves frames and time until the test has ended.
    async fn wire(&self) {
        while !self.finished.get() {
            assert!(now() < TIME_LIMIT, "the test waits for something that does not come");
            NOW.set(NOW.get() + self.round.get().total_micros());
            self.lose_frames(&self.to_peer);
            self.peer.borrow_mut().poll(now());
            self.lose_frames(&self.to_server);
            if !self.to_server.borrow().is_empty() && !self.masked.replace(true) {
                self.port.peer(DEVICE_BIT).interrupt();
            }
            self.pause().await;
        }
    }

    fn lose_frames(&self, frames: &Frames) {
        if self.cut.get() {
            frames.borrow_mut().clear();
        }
    }

    /// Runs `task` until it or the test ends.
    async fn until_finished(&self, task: impl Future<Output = ()>) {
        let mut task = pin!(task);
        poll_fn(|cx| {
            if self.finished.get() {
                return Poll::Ready(());
            }
            self.sleepers.borrow_mut().push(cx.waker().clone());
            task.as_mut().poll(cx)
        })
        .await;
    }

    /// Time until the server's timer, if it is set.
    pub fn time_to_timer(&self) -> Option<Duration> {
        let mut first = None;
        self.timers.waits(&mut |wait, _| {
            if let Wait::Time { at } = wait {
                first = Some(first.map_or(at, |first: u64| first.min(at)));
            }
        });
        first.map(|at| Duration::from_micros(at - NOW.get()))
    }

    fn finish(&self) {
        self.finished.set(true);
        self.sleepers.borrow_mut().drain(..).for_each(Waker::wake);
    }

    /// Lets the world turn once.
    pub async fn pause(&self) {
        let mut paused = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut paused, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Lets the world turn for `time`.
    pub async fn pass(&self, time: Duration) {
        let end = now() + time;
        while now() < end {
            self.pause().await;
        }
    }

    /// Lets the world turn for a long `time`, in longer steps.
    pub async fn fly(&self, time: Duration) {
        self.round.set(LONG_ROUND);
        self.pass(time).await;
        self.round.set(ROUND);
    }

    /// Waits until `condition` gives something.
    pub async fn wait_for<T>(&self, mut condition: impl FnMut(&mut Peer) -> Option<T>) -> T {
        loop {
            if let Some(result) = condition(&mut self.peer.borrow_mut()) {
                return result;
            }
            self.pause().await;
        }
    }

    /// Connects from the outside and waits until that is established, or refused: `None`.
    pub async fn connect(&self, port: u16) -> Option<SocketHandle> {
        let handle = self.peer.borrow_mut().connect(port);
        self.wait_for(|peer| match peer.socket(handle).state() {
            State::Established => Some(Some(handle)),
            State::Closed => Some(None),
            _ => None,
        })
        .await
    }

    /// Sends all of `data` from the outside.
    pub async fn send(&self, handle: SocketHandle, data: &[u8]) {
        let mut sent = 0;
        self.wait_for(|peer| {
            sent += peer.socket(handle).send_slice(&data[sent..]).unwrap();
            (sent == data.len()).then_some(())
        })
        .await;
    }

    /// Receives `length` bytes outside.
    pub async fn receive(&self, handle: SocketHandle, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        let mut received = 0;
        self.wait_for(|peer| {
            received += peer.socket(handle).recv_slice(&mut data[received..]).unwrap();
            (received == length).then_some(())
        })
        .await;
        data
    }
}

/// The default configuration with these limits.
pub fn limits(sockets: usize, per_client: usize) -> Config {
    let config = Config::from_args(None, |_| None).unwrap();
    Config { sockets, per_client, ..config }
}

/// Runs both to their end, each whenever the other waits.
pub async fn both<A, B>(left: impl Future<Output = A>, right: impl Future<Output = B>) -> (A, B) {
    let (mut left, mut right) = (pin!(left), pin!(right));
    let (mut a, mut b) = (None, None);
    poll_fn(|cx| {
        if a.is_none()
            && let Poll::Ready(result) = left.as_mut().poll(cx)
        {
            a = Some(result);
        }
        if b.is_none()
            && let Poll::Ready(result) = right.as_mut().poll(cx)
        {
            b = Some(result);
        }
        match (a.is_some(), b.is_some()) {
            (true, true) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
    (a.unwrap(), b.unwrap())
}
