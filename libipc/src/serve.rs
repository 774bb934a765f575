//! The answering side: one server, many channels, requests in fair turn.
//!
//! [`Server::recv`] gives the next [`Request`], from whichever channel and transport it came; [`Request::reply`] answers it, now
//! or later, in any order. A request that is dropped unanswered is answered as dropped: every call ends exactly once.
//!
//! Channels are served round robin, one request each. Several tasks may wait in `recv`: each request wakes one of them.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::arena::{ArenaMemory, Loan};
use crate::bell::{Doze, Ring};
use crate::channel::{Bells, End, Memory, NativePeer, Role};
use crate::entry::{Arrival, Kind, Packet};
use crate::error::PeerMisbehaviour;
use crate::executor::Link;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::waiter::Waiting;

/// The server end of one channel.
struct Channel<R> {
    /// Absent for a channel over the endpoint.
    end: Option<End<R>>,
    arena: ArenaMemory,
    /// Calls taken and not answered.
    in_flight: Cell<u64>,
    misbehaviour: Cell<Option<PeerMisbehaviour>>,
}

/// The server ends of all channels of a program.
///
/// A server belongs to one thread. Attach it to the executor whose tasks use it.
pub struct Server<R: Ring = NativePeer> {
    /// Boxed one by one: a channel is found by a load instead of a multiplication.
    channels: Box<[Box<Channel<R>>]>,
    mailbox: Option<Rc<Mailbox>>,
    turn: Cell<usize>,
    /// Requests that may still be handed out in this round.
    budget: Cell<u32>,
    waiting: Waiting,
    requests: Cell<u64>,
}

/// Requests handed out in one round of the executor: then other tasks run, and what was answered is published.
const BUDGET: u32 = 64;

impl<R: Ring> Channel<R> {
    fn over_rings(memory: &Memory, ring: R) -> Self {
        Self {
            end: Some(End::new(memory, Role::Server, ring)),
            arena: memory.arena(),
            in_flight: Cell::new(0),
            misbehaviour: Cell::new(None),
        }
    }

    #[cfg(any(target_os = "none", test))]
    fn over_endpoint(arena: ArenaMemory) -> Self {
        Self { end: None, arena, in_flight: Cell::new(0), misbehaviour: Cell::new(None) }
    }

    /// The next request: its kind, cookie and message.
    #[inline(always)] // as `Receive::poll`
    fn take(&self) -> Option<Packet> {
        let end = self.end.as_ref()?;
        if end.is_closed() {
            return None;
        }
        match end.peek() {
            Ok(None) => None,
            Ok(Some(arrival)) => match self.admit(&arrival, end.output.capacity()) {
                Ok(kind) => {
                    let packet = Packet { kind, cookie: arrival.cookie(), message: arrival.message() };
                    end.input.advance();
                    // After the entry was read, before the answer: see `Taken`.
                    end.taken.publish(end.input.taken());
                    Some(packet)
                }
                Err(misbehaviour) => self.fail(end, misbehaviour),
            },
            Err(misbehaviour) => self.fail(end, misbehaviour),
        }
    }

    #[inline] // hot path
    fn admit(&self, arrival: &Arrival<'_>, entries: u64) -> Result<Kind, PeerMisbehaviour> {
        if arrival.is(Kind::Call) {
            let in_flight = self.in_flight.get();
            if in_flight == entries {
                return Err(PeerMisbehaviour::Credit);
            }
            self.in_flight.set(in_flight + 1);
            Ok(Kind::Call)
        } else if arrival.is(Kind::OneWay) {
            Ok(Kind::OneWay)
        } else {
            Err(arrival.fault())
        }
    }

    #[cold]
    fn fail(&self, end: &End<R>, misbehaviour: PeerMisbehaviour) -> Option<Packet> {
        self.misbehaviour.set(Some(misbehaviour));
        end.close();
        None
    }

    /// Whether there is a request to take. A client that has closed is let go here.
    fn look(&self) -> bool {
        let Some(end) = &self.end else {
            return false;
        };
        if end.is_closed() {
            return false;
        }
        // The state first: what the client pushed before it closed is then seen.
        let closed = end.peer_closed();
        let ready = end.input.is_ready();
        if closed && !ready {
            end.close();
        }
        ready
    }

    #[inline(always)] // as `Request::reply`
    fn answer(&self, kind: Kind, cookie: u64, message: Message) {
        if let Some(end) = &self.end {
            self.in_flight.set(self.in_flight.get() - 1);
            if !end.is_closed() {
                end.output.push(&Packet { kind, cookie, message });
            }
        }
    }
}

impl<R: Ring> Server<R> {
    /// The server ends of channels over rings; each `R` reaches the client of its channel.
    pub fn new(channels: impl IntoIterator<Item = (Memory, R)>) -> Self {
        Self::over(channels.into_iter().map(|(memory, ring)| Channel::over_rings(&memory, ring)).collect(), None)
    }

    fn over(channels: Vec<Channel<R>>, mailbox: Option<Rc<Mailbox>>) -> Self {
        Self {
            channels: channels.into_iter().map(Box::new).collect(),
            mailbox,
            turn: Cell::new(0),
            budget: Cell::new(BUDGET),
            waiting: Waiting::new(),
            requests: Cell::new(0),
        }
    }

    /// Resolves to the next request of any channel.
    pub fn recv(&self) -> Receive<'_, R> {
        Receive { server: self }
    }

    /// Number of channels; requests name theirs by index, in the order of [`Server::new`] or of the manifest.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Whether the channel is closed, by the client or because it broke the protocol.
    ///
    /// # Panics
    /// If there is no such channel.
    pub fn is_closed(&self, channel: usize) -> bool {
        self.channels[channel].end.as_ref().is_some_and(End::is_closed)
    }

    /// How the client of this channel broke the protocol, if it did.
    ///
    /// # Panics
    /// If there is no such channel.
    pub fn misbehaviour(&self, channel: usize) -> Option<PeerMisbehaviour> {
        self.channels[channel].misbehaviour.get()
    }

    /// Requests taken so far.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// How clients were reached so far, all channels together.
    pub fn bells(&self) -> Bells {
        self.channels.iter().filter_map(|channel| channel.end.as_ref()).fold(Bells::default(), |sum, end| {
            let bells = end.bells();
            Bells {
                published: sum.published + bells.published,
                interrupts: sum.interrupts + bells.interrupts,
                signals: sum.signals + bells.signals,
            }
        })
    }

    /// Closes every channel: clients see their calls end as closed.
    pub fn close(&self) {
        self.channels.iter().filter_map(|channel| channel.end.as_ref()).for_each(End::close);
    }

    /// The next request, if there is one.
    #[inline(always)] // as `Receive::poll`
    fn take(&self) -> Option<Request<'_, R>> {
        if let Some(arrived) = self.mailbox.as_ref().and_then(|mailbox| mailbox.take()) {
            return Some(self.request(
                arrived.channel,
                Packet { kind: Kind::Call, cookie: arrived.ticket, message: arrived.message },
            ));
        }
        let mut index = self.turn.get();
        for _ in 0..self.channels.len() {
            let packet = self.channels[index].take();
            let next = if index + 1 == self.channels.len() { 0 } else { index + 1 };
            if let Some(packet) = packet {
                self.turn.set(next);
                return Some(self.request(index, packet));
            }
            index = next;
        }
        None
    }

    #[inline] // hot path
    fn request(&self, index: usize, packet: Packet) -> Request<'_, R> {
        self.requests.set(self.requests.get() + 1);
        Request {
            server: self,
            channel: &self.channels[index],
            index,
            cookie: packet.cookie,
            wants_reply: packet.kind == Kind::Call,
            message: packet.message,
        }
    }

    /// Whether any channel has a request.
    fn look(&self) -> bool {
        let mailbox = self.mailbox.as_ref().is_some_and(|mailbox| mailbox.is_ready());
        // Every channel is looked at: closed ones are let go on the way.
        self.channels.iter().fold(mailbox, |any, channel| channel.look() || any)
    }
}

impl<R: Ring> Link for Server<R> {
    fn poll(&self, _: u64) -> bool {
        self.budget.set(BUDGET);
        let found = self.look();
        if found {
            self.waiting.wake_one();
        }
        found
    }

    fn publish(&self) {
        for end in self.channels.iter().filter_map(|channel| channel.end.as_ref()) {
            end.publish();
        }
    }

    fn doze(&self, doze: Doze) {
        for end in self.channels.iter().filter_map(|channel| channel.end.as_ref()) {
            end.doze(doze);
        }
    }

    fn is_ready(&self) -> bool {
        self.mailbox.as_ref().is_some_and(|mailbox| mailbox.is_ready())
            || self.channels.iter().any(|channel| channel.end.as_ref().is_some_and(End::is_ready))
    }
}

/// The next request to come.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receive<'s, R: Ring = NativePeer> {
    server: &'s Server<R>,
}

impl<'s, R: Ring> Future for Receive<'s, R> {
    type Output = Request<'s, R>;

    #[inline(always)] // hot path: joins the server task's own poll, and the request is read where it is needed
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let server = self.server;
        if server.budget.get() > 0
            && let Some(request) = server.take()
        {
            server.budget.set(server.budget.get() - 1);
            return Poll::Ready(request);
        }
        server.waiting.add(context.waker());
        Poll::Pending
    }
}

/// A request to be answered.
pub struct Request<'s, R: Ring = NativePeer> {
    server: &'s Server<R>,
    channel: &'s Channel<R>,
    index: usize,
    cookie: u64,
    wants_reply: bool,
    message: Message,
}

impl<R: Ring> Request<'_, R> {
    /// Which channel it came from: who asks.
    #[inline] // one load
    pub fn channel(&self) -> usize {
        self.index
    }

    /// What is asked. Nothing in it is checked but its length.
    #[inline] // one address
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The client's buffer of `size` bytes at `offset` of its arena.
    ///
    /// # Errors
    /// If it is not inside the arena.
    pub fn loan(&self, offset: u64, size: u64) -> Result<Loan, PeerMisbehaviour> {
        Loan::new(self.channel.arena, offset, size)
    }

    /// Answers the request. To a one-way message this does nothing.
    #[inline(always)] // hot path: the message is built in the ring
    pub fn reply(mut self, message: Message) {
        if core::mem::take(&mut self.wants_reply) {
            self.answer(Kind::Reply, message);
        }
    }

    /// Delivers what answers the request; `kind` is Reply or Dropped.
    #[inline(always)] // as `reply`
    fn answer(&self, kind: Kind, message: Message) {
        match &self.server.mailbox {
            Some(mailbox) => mailbox.answer(self.cookie, (kind == Kind::Reply).then_some(message)),
            None => self.channel.answer(kind, self.cookie, message),
        }
    }
}

impl<R: Ring> Drop for Request<'_, R> {
    #[inline] // hot path: a branch when it was answered
    fn drop(&mut self) {
        if self.wants_reply {
            self.answer(Kind::Dropped, Message::default());
        }
    }
}

#[cfg(target_os = "none")]
impl Server {
    /// The server ends of all channels that this program serves. Over an endpoint they share the mailbox of `port`.
    ///
    /// # Errors
    /// If the program serves channels of both transports, or memory does not fit the layout.
    pub fn from_env(env: &userlib::Env, port: &crate::port::GuestPort) -> Result<Self, crate::OpenError> {
        use crate::OpenError;
        use crate::port::Peer;
        use userlib::env::{Role as EnvRole, Transport};
        let mut channels = Vec::new();
        let mut badges = Vec::new();
        for channel in env.channels().filter(|channel| channel.role == EnvRole::Server) {
            channels.push(match channel.transport {
                Transport::Async { peer, .. } => {
                    Channel::over_rings(&Memory::from_env(&channel)?, Peer::new(env, peer))
                }
                Transport::Sync { .. } => {
                    badges.push(channel.index as u64 + 1);
                    Channel::over_endpoint(ArenaMemory::from_env(&channel)?)
                }
            });
        }
        match badges.len() {
            0 => Ok(Self::over(channels, None)),
            count if count == channels.len() => {
                let mailbox = port.mailbox().ok_or(OpenError::MixedTransports)?;
                mailbox.serve(badges);
                Ok(Self::over(channels, Some(mailbox)))
            }
            _ => Err(OpenError::MixedTransports),
        }
    }
}

#[cfg(test)]
impl Server {
    /// A server of `channels` channels over an endpoint, whose requests come through `mailbox`.
    pub(crate) fn over_mailbox(channels: usize, mailbox: Rc<Mailbox>) -> Self {
        let channel = |_| Channel::over_endpoint(ArenaMemory::leak(0));
        Self::over((0..channels).map(channel).collect(), Some(mailbox))
    }
}
