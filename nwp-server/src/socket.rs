//! The socket table: who owns which socket, listeners with their backlog, and the operations on connections.
//!
//! ```text
//!   spare ──listen──▶ opening ──handshake──▶ ready ──accept──▶ owned ──close──▶ closing ──TCP done──▶ spare
//!                     (of a listener: at most `backlog` in both)                (FIN, TIME-WAIT)
//! ```
//!
//! smoltcp has no listening socket apart from the connection it becomes. So a listener keeps exactly one socket in state LISTEN as long as
//! its backlog has room, and replaces it as soon as a SYN has taken it; a SYN that finds none is answered with RST by smoltcp.
//! Spare sockets are outside smoltcp's set, whose every member costs time on every segment.
//!
//! Operations are futures by hand: `poll_*` does the work or leaves the caller's waker. A client's
//! words are checked here, each time: the socket must exist and be the client's. At most one reader and one writer wait on a connection, because
//! smoltcp wakes one of each; a second one is told [`Error::Busy`]. Socket ids are never used twice, so a stale id finds nothing.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use hashbrown::HashMap;
use libipc::arena::Loan;
use nwp_api::proto::{Error, Peer, SocketId};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::Socket as AnySocket;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Duration;
use smoltcp::wire::IpAddress;

use crate::config::{Config, KEEP_ALIVE_SECONDS, MAX_BACKLOG, PEER_TIMEOUT_SECONDS, SOCKET_BUFFER};

/// Names a client: the index of its channel.
pub type ClientId = usize;

/// A waker that only leaves a note: some socket without a future changed its state.
#[derive(Default)]
struct Note(AtomicBool);

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Listener {
    port: u16,
    backlog: usize,
    /// In state LISTEN (at most one) or in the handshake.
    opening: Vec<SocketHandle>,
    /// Established, oldest first.
    ready: VecDeque<SocketHandle>,
    /// Who waits in accept, longest first.
    acceptors: VecDeque<Waker>,
}

struct Connection {
    handle: SocketHandle,
    /// An operation waits for data.
    reading: bool,
    /// An operation waits for room.
    writing: bool,
}

enum Kind {
    Listener(Listener),
    Connection(Connection),
}

struct Entry {
    owner: ClientId,
    kind: Kind,
}

/// All sockets of all clients.
pub struct Sockets {
    set: SocketSet<'static>,
    table: HashMap<SocketId, Entry>,
    /// The listeners of `table`, oldest first.
    listeners: Vec<SocketId>,
    /// Given up by their owners, while TCP ends the connection; oldest first.
    closing: Vec<SocketHandle>,
    spare: Vec<Socket<'static>>,
    made: usize,
    limit: usize,
    per_client: usize,
    last_id: u32,
    /// Something was queued to send since the last look.
    to_send: bool,
    note: Arc<Note>,
    note_waker: Waker,
}

impl Sockets {
    /// An empty table with the limits of `config`.
    pub fn new(config: &Config) -> Self {
        let note = Arc::new(Note::default());
        Self {
            set: SocketSet::new(Vec::new()),
            table: HashMap::new(),
            listeners: Vec::new(),
            closing: Vec::new(),
            spare: Vec::new(),
            made: 0,
            limit: config.sockets,
            per_client: config.per_client,
            last_id: 0,
            to_send: false,
            note_waker: Waker::from(note.clone()),
            note,
        }
    }

    /// smoltcp's own set, for the interface.
    pub fn tcp(&mut self) -> &mut SocketSet<'static> {
        &mut self.set
    }

    /// Whether anything was done since the last call that makes a socket send.
    pub fn take_to_send(&mut self) -> bool {
        core::mem::take(&mut self.to_send)
    }

    /// Opens `port` for `owner`. Errors: [`Error::PortInUse`], [`Error::NoSocket`].
    pub fn listen(&mut self, owner: ClientId, port: u16, backlog: u16) -> Result<SocketId, Error> {
        if self.listeners.iter().any(|id| matches!(&self.table[id].kind, Kind::Listener(other) if other.port == port)) {
            return Err(Error::PortInUse);
        }
        let id = self.new_id()?;
        let first = self.start_listening(port).ok_or(Error::NoSocket)?;
        let backlog = usize::from(backlog).min(MAX_BACKLOG);
        let listener =
            Listener { port, backlog, opening: vec![first], ready: VecDeque::new(), acceptors: VecDeque::new() };
        self.table.insert(id, Entry { owner, kind: Kind::Listener(listener) });
        self.listeners.push(id);
        Ok(id)
    }

    /// Takes the oldest connection that waits on `listener`, or leaves the caller's waker. `waiting` is the caller's own flag, false at
    /// first. Errors: [`Error::BadSocket`], [`Error::WrongKind`], [`Error::NoSocket`] (the caller's share is used up), [`Error::Closed`].
    pub fn poll_accept(
        &mut self,
        owner: ClientId,
        listener: SocketId,
        waiting: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SocketId, Peer), Error>> {
        if self.connections_of(owner) >= self.per_client {
            return Poll::Ready(Err(Error::NoSocket));
        }
        let id = self.new_id()?;
        let queue = match find(&mut self.table, owner, listener, *waiting)? {
            Kind::Listener(queue) => queue,
            Kind::Connection(_) => return Poll::Ready(Err(Error::WrongKind)),
        };
        while let Some(handle) = queue.ready.pop_front() {
            let socket = self.set.get_mut::<Socket>(handle);
            let Some(peer) = socket.remote_endpoint() else {
                // Reset by the peer before anybody accepted it.
                self.closing.push(handle);
                continue;
            };
            let IpAddress::Ipv4(address) = peer.addr;
            let peer = Peer { address: address.octets(), port: peer.port };
            let kind = Kind::Connection(Connection { handle, reading: false, writing: false });
            self.table.insert(id, Entry { owner, kind });
            // The backlog has room again.
            self.note.wake_by_ref();
            self.tidy();
            return Poll::Ready(Ok((id, peer)));
        }
        queue.acceptors.push_back(cx.waker().clone());
        *waiting = true;
        Poll::Pending
    }

    /// Copies received data into `into` and returns how much; 0 when the peer has ended its side. Waits as [`Self::poll_accept`] does.
    /// Errors: [`Error::BadSocket`], [`Error::WrongKind`], [`Error::Busy`], [`Error::Reset`], [`Error::Closed`].
    pub fn poll_read(
        &mut self,
        owner: ClientId,
        connection: SocketId,
        into: &Loan,
        waiting: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Error>> {
        let connection = connected(&mut self.table, owner, connection, *waiting)?;
        if !*waiting && connection.reading {
            return Poll::Ready(Err(Error::Busy));
        }
        let socket = self.set.get_mut::<Socket>(connection.handle);
        // The peer may have stopped at a full buffer and must hear that there is room again.
        self.to_send |= socket.recv_queue() > SOCKET_BUFFER / 2;
        let mut done = 0;
        // Twice at most: the receive buffer is a ring, and each turn takes one contiguous piece.
        while done < into.size() && socket.can_recv() {
            let taken = socket.recv(|data| {
                let length = data.len().min(into.size() - done);
                into.write(done, &data[..length]);
                (length, length)
            });
            match taken {
                Ok(length) if length > 0 => done += length,
                _ => break,
            }
        }
        if done == 0 && socket.may_recv() {
            socket.register_recv_waker(cx.waker());
            connection.reading = true;
            *waiting = true;
            return Poll::Pending;
        }
        connection.reading = false;
        // We have not closed it, so it ended by RST or by timeout.
        let reset = done == 0 && socket.state() == State::Closed;
        Poll::Ready(if reset { Err(Error::Reset) } else { Ok(done) })
    }

    /// Queues the bytes of `from` beyond the first `done`, which is counted up; ready when all are queued. Waits as
    /// [`Self::poll_accept`] does. Errors: as [`Self::poll_read`].
    pub fn poll_write(
        &mut self,
        owner: ClientId,
        connection: SocketId,
        from: &Loan,
        done: &mut usize,
        waiting: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        let connection = connected(&mut self.table, owner, connection, *waiting)?;
        if !*waiting && connection.writing {
            return Poll::Ready(Err(Error::Busy));
        }
        connection.writing = false;
        self.to_send = true;
        let socket = self.set.get_mut::<Socket>(connection.handle);
        while *done < from.size() {
            let queued = socket.send(|room| {
                let length = room.len().min(from.size() - *done);
                from.read(*done, &mut room[..length]);
                (length, length)
            });
            match queued {
                // The sending side is open as long as the owner has not closed it, so it ended by RST or by timeout.
                Err(_) => return Poll::Ready(Err(Error::Reset)),
                Ok(0) => {
                    socket.register_send_waker(cx.waker());
                    connection.writing = true;
                    *waiting = true;
                    return Poll::Pending;
                }
                Ok(length) => *done += length,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gives the socket up; operations that wait on it end with [`Error::Closed`]. Errors: [`Error::BadSocket`].
    pub fn close(&mut self, owner: ClientId, socket: SocketId) -> Result<(), Error> {
        find(&mut self.table, owner, socket, false)?;
        match self.table.remove(&socket).map(|entry| entry.kind) {
            Some(Kind::Listener(listener)) => {
                self.listeners.retain(|other| *other != socket);
                for handle in listener.opening.into_iter().chain(listener.ready) {
                    self.set.get_mut::<Socket>(handle).abort();
                    self.closing.push(handle);
                }
                listener.acceptors.into_iter().for_each(Waker::wake);
            }
            Some(Kind::Connection(connection)) => {
                // The change of state wakes who waits on it; they find the entry gone.
                self.set.get_mut::<Socket>(connection.handle).close();
                self.closing.push(connection.handle);
            }
            None => {}
        }
        self.to_send = true;
        self.note.wake_by_ref();
        Ok(())
    }

    /// Does what a change of state without a waiting future asks for: moves finished handshakes to the accept queue, gives each listener a
    /// socket in state LISTEN, takes back sockets whose TCP connection is over. Costs one load if nothing changed.
    pub fn tidy(&mut self) {
        if !self.note.0.swap(false, Ordering::Relaxed) {
            return;
        }
        self.take_back_closed();
        for index in 0..self.listeners.len() {
            self.tidy_listener(self.listeners[index]);
        }
    }

    fn tidy_listener(&mut self, id: SocketId) {
        let Some(Entry { kind: Kind::Listener(listener), .. }) = self.table.get_mut(&id) else { return };
        let mut listening = false;
        let (set, note_waker) = (&mut self.set, &self.note_waker);
        let (ready, closing) = (&mut listener.ready, &mut self.closing);
        listener.opening.retain(|&handle| {
            let socket = set.get_mut::<Socket>(handle);
            match socket.state() {
                State::Listen | State::SynReceived => {
                    listening |= socket.state() == State::Listen;
                    note(socket, note_waker);
                    true
                }
                State::Closed => {
                    closing.push(handle);
                    false
                }
                _ => {
                    ready.push_back(handle);
                    false
                }
            }
        });
        // One acceptor for each connection; who finds none, because another was faster, queues up again.
        let acceptors = listener.acceptors.len().min(listener.ready.len());
        listener.acceptors.drain(..acceptors).for_each(Waker::wake);
        let (port, room) = (listener.port, listener.opening.len() + listener.ready.len() < listener.backlog);
        if room
            && !listening
            && let Some(handle) = self.start_listening(port)
            && let Some(Entry { kind: Kind::Listener(listener), .. }) = self.table.get_mut(&id)
        {
            listener.opening.push(handle);
        }
    }

    /// Moves closed sockets whose last segment has left from the set to the spares.
    fn take_back_closed(&mut self) {
        let (set, spare, note_waker) = (&mut self.set, &mut self.spare, &self.note_waker);
        self.closing.retain(|&handle| {
            let socket = set.get_mut::<Socket>(handle);
            if socket.state() == State::Closed && socket.remote_endpoint().is_none() {
                let AnySocket::Tcp(socket) = set.remove(handle);
                spare.push(socket);
                return false;
            }
            note(socket, note_waker);
            true
        });
    }

    /// A socket in state LISTEN on `port`, in the set. `None` if the limit is reached and no connection is in TIME-WAIT.
    fn start_listening(&mut self, port: u16) -> Option<SocketHandle> {
        let mut socket = self.spare.pop().or_else(|| self.make()).or_else(|| self.end_time_wait())?;
        // Neither can fail: the port is not 0 (`Request::parse`) and the socket is closed.
        socket.listen(port).ok()?;
        note(&mut socket, &self.note_waker);
        Some(self.set.add(socket))
    }

    fn make(&mut self) -> Option<Socket<'static>> {
        if self.made >= self.limit {
            return None;
        }
        self.made += 1;
        let buffer = || SocketBuffer::new(vec![0; SOCKET_BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_keep_alive(Some(Duration::from_secs(KEEP_ALIVE_SECONDS)));
        socket.set_timeout(Some(Duration::from_secs(PEER_TIMEOUT_SECONDS)));
        // Our clients send whole requests and replies; to hold back the last segment only delays them.
        socket.set_nagle_enabled(false);
        Some(socket)
    }

    /// Takes the oldest socket out of TIME-WAIT: late segments of its connection will be answered with RST, which is better than refusing
    /// a new connection.
    fn end_time_wait(&mut self) -> Option<Socket<'static>> {
        let waits = |handle: &SocketHandle| self.set.get::<Socket>(*handle).state() == State::TimeWait;
        let oldest = self.closing.iter().position(waits)?;
        let AnySocket::Tcp(mut socket) = self.set.remove(self.closing.remove(oldest));
        socket.abort();
        Some(socket)
    }

    fn connections_of(&self, client: ClientId) -> usize {
        let connection = |entry: &&Entry| entry.owner == client && matches!(entry.kind, Kind::Connection(_));
        self.table.values().filter(connection).count()
    }

    fn new_id(&mut self) -> Result<SocketId, Error> {
        self.last_id = self.last_id.checked_add(1).ok_or(Error::NoSocket)?;
        Ok(SocketId(self.last_id))
    }
}

/// The client's socket. One that is gone was closed under the operation if it `waited`, and never was the caller's otherwise.
fn find(table: &mut HashMap<SocketId, Entry>, owner: ClientId, id: SocketId, waited: bool) -> Result<&mut Kind, Error> {
    match table.get_mut(&id) {
        Some(entry) if entry.owner == owner => Ok(&mut entry.kind),
        _ if waited => Err(Error::Closed),
        _ => Err(Error::BadSocket),
    }
}

fn connected(
    table: &mut HashMap<SocketId, Entry>,
    owner: ClientId,
    id: SocketId,
    waited: bool,
) -> Result<&mut Connection, Error> {
    match find(table, owner, id, waited)? {
        Kind::Connection(connection) => Ok(connection),
        Kind::Listener(_) => Err(Error::WrongKind),
    }
}

/// Leaves the note's waker with a socket that no future looks after.
fn note(socket: &mut Socket<'_>, waker: &Waker) {
    socket.register_recv_waker(waker);
    socket.register_send_waker(waker);
}
