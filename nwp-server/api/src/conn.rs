//! The network for coroutines: [`Network`] opens a port, its [`Listener`] accepts connections, a [`Conn`] reads and writes.
//!
//! Each operation is one message to the server and one back; data travels through a buffer of the channel's arena that the connection
//! keeps as long as it lives. So a coroutine that waits holds one call and one buffer, and nothing is allocated on the way.
//!
//! **Do not drop a future of this module before it resolves**: the server goes on with the operation, and what it reads is lost. To end a wait,
//! close the connection from another coroutine.

use core::fmt;

use libipc::arena::Buffer;
use libipc::{CallError, Client};

use crate::proto::{BadReply, Error, Peer, Reply, Request, SocketId, Span};

/// Why an operation failed, by who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server refused, or the connection failed.
    Server(Error),
    /// The channel to the server failed.
    Channel(CallError),
    /// The server's answer makes no sense.
    BadReply,
    /// All buffers of the channel's arena are lent: as many connections as the channel has entries.
    NoBuffer,
    /// A blocking call over an asynchronous channel ([`crate::sync`]).
    WouldBlock,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Channel(error) => error.fmt(f),
            Self::BadReply => f.write_str("the server's answer makes no sense"),
            Self::NoBuffer => f.write_str("no buffer left in the channel's arena"),
            Self::WouldBlock => f.write_str("a blocking call needs a synchronous channel"),
        }
    }
}

impl core::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Server(error)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Channel(error)
    }
}

impl From<BadReply> for Failure {
    fn from(_: BadReply) -> Self {
        Self::BadReply
    }
}

/// The network server behind a channel.
#[derive(Clone, Copy)]
pub struct Network<'c> {
    client: &'c Client,
}

impl<'c> Network<'c> {
    /// The network server at the other end of `client`.
    pub fn new(client: &'c Client) -> Self {
        Self { client }
    }

    /// Opens TCP port `port`; up to `backlog` connections wait there to be accepted. If this program has opened the port before, this is the same
    /// listener, with its first backlog: so threads that share a channel share a port.
    pub async fn listen(&self, port: u16, backlog: u16) -> Result<Listener<'c>, Failure> {
        match self.ask(Request::Listen { port, backlog }).await? {
            Reply::Listening(id) => Ok(Listener { network: *self, id }),
            _ => Err(Failure::BadReply),
        }
    }

    /// One request and its reply.
    async fn ask(&self, request: Request) -> Result<Reply, Failure> {
        let message = self.client.call(request.emit()).await?;
        Ok(Reply::parse(&request, &message)??)
    }
}

/// An open port.
pub struct Listener<'c> {
    network: Network<'c>,
    id: SocketId,
}

impl<'c> Listener<'c> {
    /// Waits for a connection. Several coroutines may wait at a time.
    pub async fn accept(&self) -> Result<Conn<'c>, Failure> {
        // Before the connection is taken from the backlog: without a buffer it would be of no use.
        let buffer = self.network.client.arena().take().ok_or(Failure::NoBuffer)?;
        match self.network.ask(Request::Accept { listener: self.id }).await? {
            Reply::Accepted { connection, peer } => {
                Ok(Conn { network: self.network, id: connection, peer, buffer, open: true })
            }
            _ => Err(Failure::BadReply),
        }
    }

    /// Names the listener in the server's protocol.
    pub fn id(&self) -> SocketId {
        self.id
    }

    /// Closes the port, for all who share it; connections that nobody has accepted are reset.
    pub async fn close(self) -> Result<(), Failure> {
        self.network.ask(Request::Close { socket: self.id }).await.map(drop)
    }
}

/// A TCP connection. Dropping it closes it too, without waiting for the server's answer.
pub struct Conn<'c> {
    network: Network<'c>,
    id: SocketId,
    peer: Peer,
    buffer: Buffer,
    open: bool,
}

impl Conn<'_> {
    /// Names the connection in the server's protocol.
    pub fn id(&self) -> SocketId {
        self.id
    }

    /// The far end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Waits for data and copies it to `data`; returns how much, 0 when the peer sends no more (or `data` is empty).
    pub async fn read(&mut self, data: &mut [u8]) -> Result<usize, Failure> {
        if data.is_empty() {
            return Ok(0);
        }
        let into = self.span(data.len());
        let reply = self.network.ask(Request::Read { connection: self.id, into }).await?;
        self.fetch(reply, data)
    }

    /// Queues all of `data` for sending; waits while the connection's buffer is full.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        for piece in data.chunks(self.buffer.size()) {
            let from = self.store(piece);
            self.network.ask(Request::Write { connection: self.id, from }).await?;
        }
        Ok(())
    }

    /// [`Conn::write`] of `send`, then [`Conn::read`] into `receive`, with one message where two would be needed.
    pub async fn call(&mut self, send: &[u8], receive: &mut [u8]) -> Result<usize, Failure> {
        if receive.is_empty() {
            return self.write(send).await.map(|()| 0);
        }
        // All but the last piece go ahead.
        let last = send.len().saturating_sub(1) / self.buffer.size() * self.buffer.size();
        self.write(&send[..last]).await?;
        let (from, into) = (self.store(&send[last..]), self.span(receive.len()));
        let reply = self.network.ask(Request::Call { connection: self.id, from, into }).await?;
        self.fetch(reply, receive)
    }

    /// Closes the connection. What was written is still sent.
    pub async fn close(mut self) -> Result<(), Failure> {
        self.open = false;
        self.network.ask(Request::Close { socket: self.id }).await.map(drop)
    }

    /// The first `length` bytes of the buffer, or all of it.
    fn span(&self, length: usize) -> Span {
        // Neither can overflow: libipc's arenas are below 4 GiB.
        Span { offset: self.buffer.offset() as u32, length: length.min(self.buffer.size()) as u32 }
    }

    /// Copies `data`, which fits, to the start of the buffer.
    fn store(&mut self, data: &[u8]) -> Span {
        self.buffer.write(0, data);
        self.span(data.len())
    }

    /// Copies what was read, which `Reply::parse` has checked to be no more than asked, out of the buffer.
    fn fetch(&self, reply: Reply, data: &mut [u8]) -> Result<usize, Failure> {
        let Reply::Moved(length) = reply else { return Err(Failure::BadReply) };
        let length = length as usize;
        self.buffer.read(0, &mut data[..length]);
        Ok(length)
    }
}

impl Drop for Conn<'_> {
    fn drop(&mut self) {
        if self.open {
            // If the ring is full or the channel closed, the server keeps the connection until the channel's end.
            let _ = self.network.client.send(Request::Close { socket: self.id }.emit());
        }
    }
}
