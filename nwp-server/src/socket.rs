//! The socket table: who owns which socket, listeners with their backlog, and the operations on connections.
//!
//! ```text
//!   free ──listen──▶ listening ──SYN──▶ opening ──ACK──▶ ready ──accept──▶ owned ──close──▶ closing ──TCP done──▶ free
//!                    └────── of a listener: at most `backlog` in all ─────┘                 (FIN, TIME-WAIT)
//! ```
//!
//! smoltcp has no listening socket apart from the connection it becomes. So a listener keeps exactly one socket in state LISTEN as long as
//! its backlog has room, and replaces it as soon as a SYN has taken it; a SYN that finds none is answered with RST by smoltcp. After
//! everything that can change a socket's TCP state, [`Sockets::follow`] moves it along this picture.
//!
//! Operations are futures by hand: `poll_*` does the work or leaves the caller's waker. A client's words are checked here, each time: the
//! socket must exist and be the client's. At most one reader and one writer wait on a connection, because smoltcp wakes one of each; a
//! second one is told [`Error::Busy`]. Socket ids are never used twice, so a stale id finds nothing.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use hashbrown::HashMap;
use libipc::arena::Loan;
use nwp_api::proto::{Error, Peer, SocketId};
use smoltcp::iface::SocketSet;
use smoltcp::socket::tcp::State;
use smoltcp::wire::IpAddress;

use crate::config::{Config, MAX_BACKLOG, SOCKET_BUFFER};
use crate::slots::{Flow, SlotId, Slots};

/// Names a client: the index of its channel.
pub type ClientId = usize;

struct Listener {
    port: u16,
    backlog: usize,
    /// In state LISTEN.
    listening: Option<SlotId>,
    /// In the handshake.
    opening: Vec<SlotId>,
    /// Established, oldest first.
    ready: VecDeque<SlotId>,
    /// Who waits in accept, longest first.
    acceptors: VecDeque<Waker>,
}

struct Connection {
    slot: SlotId,
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

/// What a slot is used for.
#[derive(Clone, Copy)]
enum Role {
    /// By this listener, for a connection that nobody has accepted.
    Pending(SocketId),
    /// By the client that has accepted it.
    Owned,
    /// Only TCP still needs it.
    Closing,
}

/// All sockets of all clients.
pub struct Sockets {
    slots: Slots<Role>,
    table: HashMap<SocketId, Entry>,
    /// The listeners of `table`, oldest first.
    listeners: Vec<SocketId>,
    /// Slots in closing, oldest first.
    closing: Vec<SlotId>,
    per_client: usize,
    last_id: u32,
}

/// The side of the stack.
impl Sockets {
    /// An empty table with the limits of `config`.
    pub fn new(config: &Config) -> Self {
        Self {
            slots: Slots::new(config.sockets),
            table: HashMap::new(),
            listeners: Vec::new(),
            closing: Vec::new(),
            per_client: config.per_client,
            last_id: 0,
        }
    }

    /// Whose a received frame is: that of its connection, else that of its port's listener, else nobody's.
    pub fn addressee(&self, frame: &[u8]) -> Option<SlotId> {
        let flow = Flow::of(frame)?;
        self.slots.find(&flow).or_else(|| {
            let mut listeners = self.listeners.iter().filter_map(|id| self.listener(*id));
            listeners.find(|listener| listener.port == flow.local_port)?.listening
        })
    }

    /// The sockets that a frame for `slot` is offered to, or that are let send.
    pub fn set(&mut self, slot: Option<SlotId>) -> &mut SocketSet<'static> {
        self.slots.set(slot)
    }

    /// Moves a slot on after its TCP state may have changed, in either direction of the head picture's arrows.
    pub fn follow(&mut self, slot: SlotId) {
        let state = self.slots.socket(slot).state();
        if state == State::Established && matches!(self.slots.role(slot), Some(Role::Owned)) {
            // Nearly always; it keeps its peer.
            return;
        }
        let has_peer = self.slots.refile(slot);
        match self.slots.role(slot) {
            Some(Role::Pending(listener)) => self.follow_pending(slot, listener, state),
            Some(Role::Closing) if state == State::Closed && !has_peer => {
                self.closing.retain(|other| *other != slot);
                self.slots.give_back(slot);
                // Somebody may have waited for a slot.
                (0..self.listeners.len()).for_each(|index| self.refill(self.listeners[index]));
            }
            _ => {}
        }
    }

    fn follow_pending(&mut self, slot: SlotId, id: SocketId, state: State) {
        let Some(listener) = listener_mut(&mut self.table, id) else { return };
        match state {
            State::Listen if listener.listening == Some(slot) => {}
            // The handshake was reset, and smoltcp listens again; but another does already.
            State::Listen => {
                listener.opening.retain(|other| *other != slot);
                self.give_up(slot);
            }
            State::SynReceived if listener.listening == Some(slot) => {
                listener.listening = None;
                listener.opening.push(slot);
            }
            State::SynReceived => {}
            // One that was ready stays in the queue: who accepts it will see.
            _ => {
                let Some(index) = listener.opening.iter().position(|other| *other == slot) else { return };
                listener.opening.remove(index);
                if state == State::Closed {
                    self.give_up(slot);
                } else {
                    listener.ready.push_back(slot);
                    // One acceptor for each connection; who finds none, because another was faster, queues up again.
                    listener.acceptors.pop_front().into_iter().for_each(Waker::wake);
                }
            }
        }
        self.refill(id);
    }

    /// Lets a listener that has room and no socket in state LISTEN have one, if there is one to be had.
    fn refill(&mut self, id: SocketId) {
        let Some(listener) = self.listener(id) else { return };
        let (port, pending) = (listener.port, listener.opening.len() + listener.ready.len());
        if listener.listening.is_some() || pending >= listener.backlog {
            return;
        }
        let Some(slot) = self.listen_on(port, id) else { return };
        if let Some(listener) = listener_mut(&mut self.table, id) {
            listener.listening = Some(slot);
        }
    }

    /// A slot in state LISTEN. `None` if all are taken and none is in TIME-WAIT.
    fn listen_on(&mut self, port: u16, id: SocketId) -> Option<SlotId> {
        let slot = self.slots.take(Role::Pending(id)).or_else(|| self.end_time_wait(id))?;
        // Cannot fail: the port is not 0 (`Request::parse`), the socket closed or in TIME-WAIT.
        self.slots.socket(slot).listen(port).ok()?;
        self.slots.refile(slot);
        Some(slot)
    }

    /// Takes the oldest slot in TIME-WAIT for a listener: late segments of its connection will be answered with RST, which is better than
    /// refusing a new connection.
    fn end_time_wait(&mut self, id: SocketId) -> Option<SlotId> {
        let slots = &mut self.slots;
        let oldest = self.closing.iter().position(|slot| slots.socket(*slot).state() == State::TimeWait)?;
        let slot = self.closing.remove(oldest);
        self.slots.set_role(slot, Role::Pending(id));
        Some(slot)
    }

    /// Ends the connection with RST, if there is one.
    fn give_up(&mut self, slot: SlotId) {
        self.slots.socket(slot).abort();
        self.retire(slot);
    }

    /// Leaves the slot to TCP until the connection is over.
    fn retire(&mut self, slot: SlotId) {
        self.slots.set_role(slot, Role::Closing);
        self.slots.mark_due(slot);
        self.closing.push(slot);
        self.follow(slot);
    }

    /// Every socket may have something to send: a deadline may have passed.
    pub fn mark_all_due(&mut self) {
        self.slots.mark_all_due();
    }

    /// The slot may have something to send.
    pub fn mark_due(&mut self, slot: SlotId) {
        self.slots.mark_due(slot);
    }

    /// The next slot that may have something to send.
    pub fn next_due(&mut self) -> Option<SlotId> {
        self.slots.next_due()
    }

    /// Whether any slot may have something to send.
    pub fn any_due(&self) -> bool {
        self.slots.any_due()
    }

    /// The sets of all slots in use, to ask for their deadlines.
    pub fn sets_in_use(&self) -> impl Iterator<Item = &SocketSet<'static>> {
        self.slots.sets_in_use()
    }

    fn listener(&self, id: SocketId) -> Option<&Listener> {
        match &self.table.get(&id)?.kind {
            Kind::Listener(listener) => Some(listener),
            Kind::Connection(_) => None,
        }
    }
}

/// The side of the clients.
impl Sockets {
    /// Opens `port` for `owner`, or finds the listener that `owner` has there. Errors: [`Error::PortInUse`], [`Error::NoSocket`].
    pub fn listen(&mut self, owner: ClientId, port: u16, backlog: u16) -> Result<SocketId, Error> {
        if let Some(id) = self.listeners.iter().find(|id| self.listener(**id).is_some_and(|other| other.port == port)) {
            return if self.table[id].owner == owner { Ok(*id) } else { Err(Error::PortInUse) };
        }
        let id = self.new_id()?;
        let slot = self.listen_on(port, id).ok_or(Error::NoSocket)?;
        let listener = Listener {
            port,
            backlog: usize::from(backlog).min(MAX_BACKLOG),
            listening: Some(slot),
            opening: Vec::new(),
            ready: VecDeque::new(),
            acceptors: VecDeque::new(),
        };
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
        let share_used_up = self.connections_of(owner) >= self.per_client;
        let queue = match find(&mut self.table, owner, listener, *waiting)? {
            Kind::Listener(queue) => queue,
            Kind::Connection(_) => return Poll::Ready(Err(Error::WrongKind)),
        };
        if share_used_up {
            return Poll::Ready(Err(Error::NoSocket));
        }
        let Some(slot) = queue.ready.pop_front() else {
            queue.acceptors.push_back(cx.waker().clone());
            *waiting = true;
            return Poll::Pending;
        };
        let Some(peer) = self.slots.socket(slot).remote_endpoint() else {
            // Reset by the peer before anybody accepted it.
            self.retire(slot);
            self.refill(listener);
            return self.poll_accept(owner, listener, waiting, cx);
        };
        let Ok(id) = self.new_id() else {
            self.give_up(slot);
            return Poll::Ready(Err(Error::NoSocket));
        };
        self.slots.set_role(slot, Role::Owned);
        let connection = Connection { slot, reading: false, writing: false };
        self.table.insert(id, Entry { owner, kind: Kind::Connection(connection) });
        self.refill(listener);
        let IpAddress::Ipv4(address) = peer.addr;
        Poll::Ready(Ok((id, Peer { address: address.octets(), port: peer.port })))
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
        let socket = self.slots.socket(connection.slot);
        let was_full = socket.recv_queue() > SOCKET_BUFFER / 2;
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
        if was_full {
            // The peer may have stopped at a full buffer and must hear that there is room again.
            self.slots.mark_due(connection.slot);
        }
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
        self.slots.mark_due(connection.slot);
        let socket = self.slots.socket(connection.slot);
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
                let pending = listener.listening.into_iter().chain(listener.opening).chain(listener.ready);
                pending.for_each(|slot| self.give_up(slot));
                listener.acceptors.into_iter().for_each(Waker::wake);
            }
            Some(Kind::Connection(connection)) => {
                // The change of state wakes who waits on it; they find the entry gone.
                self.slots.socket(connection.slot).close();
                self.retire(connection.slot);
            }
            None => {}
        }
        Ok(())
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

fn listener_mut(table: &mut HashMap<SocketId, Entry>, id: SocketId) -> Option<&mut Listener> {
    match &mut table.get_mut(&id)?.kind {
        Kind::Listener(listener) => Some(listener),
        Kind::Connection(_) => None,
    }
}
