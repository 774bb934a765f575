//! The asking side of a channel: calls that are awaited, and one-way messages.
//!
//! Credits: a client never has more calls in flight, abandoned ones included, than the ring has entries; so the reply ring
//! cannot be overrun. And it never pushes a request over one that the server has not taken: a reply shows that its request
//! and all before it were taken (requests are taken in order), and for one-way messages the server publishes a count.

use alloc::boxed::Box;
use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::arena::Arena;
use crate::bell::{Doze, Ring};
use crate::channel::{Bells, End, Memory, NativePeer, Role};
use crate::entry::{Kind, Packet};
use crate::error::{CallError, PeerMisbehaviour, SendError};
use crate::executor::Link;
use crate::message::Message;
use crate::pending::Pending;

/// The client end of a channel.
///
/// A client belongs to one thread. Attach it to the executor whose tasks use it.
pub struct Client<R: Ring = NativePeer> {
    transport: Transport<R>,
    pending: Pending,
    arena: Arena,
}

/// How a client reaches its server.
enum Transport<R> {
    /// Shared rings. Boxed: ends of a channel stay where they are.
    Rings(Box<Rings<R>>),
    /// The server's endpoint; each call waits in the kernel.
    #[cfg(target_os = "none")]
    Endpoint(crate::port::endpoint::SyncClient),
}

struct Rings<R> {
    end: End<R>,
    /// Index of the first request that must not be pushed yet; 0 once the channel has failed.
    limit: Cell<u64>,
    /// Why no call can be made any more.
    failed: Cell<Option<CallError>>,
    /// Requests pushed that were no calls.
    one_way: Cell<u64>,
}

impl<R: Ring> Client<R> {
    /// The client end of a channel over rings; `ring` reaches the server.
    pub fn new(memory: &Memory, ring: R) -> Self {
        let end = End::new(memory, Role::Client, ring);
        let entries = end.output.capacity() as usize;
        let limit = Cell::new(end.output.capacity());
        let rings = Rings { end, limit, failed: Cell::new(None), one_way: Cell::new(0) };
        Self::over(Transport::Rings(Box::new(rings)), entries, Arena::new(memory.arena(), entries))
    }

    fn over(transport: Transport<R>, entries: usize, arena: Arena) -> Self {
        Self { transport, pending: Pending::new(entries), arena }
    }

    /// Sends `message` and resolves to the reply.
    ///
    /// The message is pushed at once, not at the first poll: calls made before awaiting any of them travel as one batch.
    /// Dropping the future abandons the call; the server still executes it.
    ///
    /// # Errors
    /// The future resolves to [`CallError`]: at once if too many calls are in flight or the channel is closed, later if the
    /// server drops the request, closes the channel or breaks the protocol.
    #[inline(always)] // hot path: the message is built where it is needed; out of line it is copied twice
    pub fn call(&self, message: Message) -> Call<'_, R> {
        let state = match &self.transport {
            Transport::Rings(rings) => self.call_over(rings, message),
            #[cfg(target_os = "none")]
            Transport::Endpoint(endpoint) => self.call_endpoint(endpoint, message),
        };
        Call { client: self, state }
    }

    #[inline(always)] // as `call`
    fn call_over(&self, rings: &Rings<R>, message: Message) -> State {
        if !rings.has_room() {
            return State::Refused(rings.failed.get().unwrap_or(CallError::Full));
        }
        match self.pending.begin() {
            None => State::Refused(CallError::Full),
            Some((slot, cookie)) => {
                rings.end.output.push(&Packet { kind: Kind::Call, cookie, message });
                State::Waiting(slot)
            }
        }
    }

    /// Kept out of line: its register saves would burden every call over rings.
    #[cfg(target_os = "none")]
    #[inline(never)]
    fn call_endpoint(&self, endpoint: &crate::port::endpoint::SyncClient, message: Message) -> State {
        match self.pending.begin() {
            None => State::Refused(CallError::Full),
            Some((slot, _)) => {
                self.pending.settle(slot, endpoint.call(message));
                State::Waiting(slot)
            }
        }
    }

    /// Sends `message` without wanting a reply.
    ///
    /// # Errors
    /// If the ring is full or the channel closed: the message comes back.
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        match &self.transport {
            Transport::Rings(rings) => {
                if !rings.has_room() {
                    let closed = rings.failed.get().is_some();
                    return Err(if closed { SendError::Closed(message) } else { SendError::Full(message) });
                }
                rings.one_way.set(rings.one_way.get() + 1);
                rings.end.output.push(&Packet { kind: Kind::OneWay, cookie: 0, message });
            }
            #[cfg(target_os = "none")]
            Transport::Endpoint(endpoint) => endpoint.send(message),
        }
        Ok(())
    }

    /// The data buffers of the channel.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Calls made so far over rings.
    pub fn calls(&self) -> u64 {
        self.rings().map_or(0, |rings| rings.end.output.pushed() - rings.one_way.get())
    }

    /// How the server was reached so far; all zero over an endpoint.
    pub fn bells(&self) -> Bells {
        self.rings().map(|rings| rings.end.bells()).unwrap_or_default()
    }

    /// Closes the channel: calls in flight and later ones end with [`CallError::Closed`], and the server is told.
    pub fn close(&self) {
        if let Some(rings) = self.rings() {
            self.fail(rings, CallError::Closed);
        }
    }

    /// The rings, unless the channel goes over an endpoint.
    #[inline] // a branch, on a host not even that
    fn rings(&self) -> Option<&Rings<R>> {
        match &self.transport {
            Transport::Rings(rings) => Some(rings),
            #[cfg(target_os = "none")]
            Transport::Endpoint(_) => None,
        }
    }

    #[cold]
    fn fail(&self, rings: &Rings<R>, error: CallError) {
        if rings.failed.get().is_none() {
            rings.failed.set(Some(error));
            rings.limit.set(0);
            rings.end.close();
            self.pending.fail_all(error);
        }
    }

    /// Takes every reply. Returns whether there was any.
    fn drain(&self, rings: &Rings<R>) -> Result<bool, PeerMisbehaviour> {
        let mut any = false;
        while let Some(arrival) = rings.end.peek()? {
            any = true;
            if arrival.is(Kind::Reply) {
                self.pending.answer(&arrival)?;
            } else if arrival.is(Kind::Dropped) {
                self.pending.fail(arrival.cookie(), CallError::Dropped)?;
            } else {
                return Err(arrival.fault());
            }
            rings.end.input.advance();
        }
        Ok(any)
    }

    fn poll_rings(&self, rings: &Rings<R>) -> bool {
        if rings.failed.get().is_some() {
            return false;
        }
        // The state first: what the server pushed before it closed is then seen by `drain`.
        let closed = rings.end.peer_closed();
        match self.drain(rings) {
            Ok(false) if closed => {
                self.fail(rings, CallError::Closed);
                true
            }
            Ok(any) => any,
            Err(misbehaviour) => {
                self.fail(rings, CallError::Peer(misbehaviour));
                true
            }
        }
    }
}

impl<R: Ring> Rings<R> {
    /// Whether the next request would not overwrite one that the server has not taken.
    #[inline] // hot path: two loads and a compare
    fn has_room(&self) -> bool {
        self.end.output.pushed() < self.limit.get() || self.look_for_room()
    }

    /// Asks the server's count. A count beyond what was pushed, or one that went back, is not believed.
    #[cold]
    fn look_for_room(&self) -> bool {
        if self.failed.get().is_some() {
            return false;
        }
        let (taken, pushed) = (self.end.taken.read(), self.end.output.pushed());
        if taken <= pushed {
            self.limit.set(self.limit.get().max(taken + self.end.output.capacity()));
        }
        pushed < self.limit.get()
    }
}

impl<R: Ring> Link for Client<R> {
    fn poll(&self, _: u64) -> bool {
        self.rings().is_some_and(|rings| self.poll_rings(rings))
    }

    fn publish(&self) {
        if let Some(rings) = self.rings() {
            // If the server has closed, the next poll sees it.
            rings.end.publish();
        }
    }

    fn doze(&self, doze: Doze) {
        if let Some(rings) = self.rings() {
            rings.end.doze(doze);
        }
    }

    fn is_ready(&self) -> bool {
        self.rings().is_some_and(|rings| rings.end.is_ready())
    }
}

#[cfg(target_os = "none")]
impl Client {
    /// The client end of the channel `name`, over the transport that the manifest chose. For thread 0.
    ///
    /// # Errors
    /// If this program is not the client of such a channel, or its memory does not fit the layout.
    pub fn from_env(env: &userlib::Env, name: &str) -> Result<Self, crate::OpenError> {
        Self::for_thread(env, name, 0)
    }

    /// As [`Client::from_env`], for thread `thread`: over an endpoint each thread may have its own client, with its share of the
    /// arena. Rings belong to thread 0.
    ///
    /// # Errors
    /// As [`Client::from_env`]; also if the channel is asynchronous and the thread is not thread 0.
    pub fn for_thread(env: &userlib::Env, name: &str, thread: usize) -> Result<Self, crate::OpenError> {
        use crate::OpenError;
        use crate::arena::ArenaMemory;
        use crate::port::{Peer, endpoint::SyncClient};
        use userlib::env::{Role as EnvRole, Transport as EnvTransport};
        let channel =
            env.channel(name).filter(|channel| channel.role == EnvRole::Client).ok_or(OpenError::NoChannel)?;
        match channel.transport {
            EnvTransport::Async { .. } if thread != 0 => Err(OpenError::NoChannel),
            EnvTransport::Async { peer, .. } => Ok(Self::new(&Memory::from_env(&channel)?, Peer::new(env, peer))),
            EnvTransport::Sync { endpoint } => {
                let arena = Arena::share(ArenaMemory::from_env(&channel)?, thread, env.threads(), SYNC_BUFFERS);
                Ok(Self::over(Transport::Endpoint(SyncClient::new(endpoint)), SYNC_SLOTS, arena))
            }
        }
    }
}

/// Replies a client over an endpoint can hold that nobody has awaited yet.
#[cfg(target_os = "none")]
const SYNC_SLOTS: usize = 64;

/// Buffers in each thread's share of the arena: it has one call at a time, and a few connections or files open.
#[cfg(target_os = "none")]
const SYNC_BUFFERS: usize = 4;

#[derive(Clone, Copy)]
enum State {
    Waiting(u16),
    Refused(CallError),
    Done,
}

/// A call in flight.
#[must_use = "the call is under way, but without awaiting it nobody gets the reply"]
pub struct Call<'c, R: Ring = NativePeer> {
    client: &'c Client<R>,
    state: State,
}

impl<R: Ring> Future for Call<'_, R> {
    type Output = Result<Message, CallError>;

    /// # Panics
    /// If polled again after it resolved.
    #[inline(always)] // hot path: joins the caller's own poll, and the reply is read where it is needed
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.state {
            State::Waiting(slot) => match self.client.pending.finish(slot, context.waker()) {
                None => Poll::Pending,
                Some(result) => {
                    self.state = State::Done;
                    Poll::Ready(result)
                }
            },
            State::Refused(error) => {
                self.state = State::Done;
                Poll::Ready(Err(error))
            }
            State::Done => panic!("call polled after it resolved"),
        }
    }
}

impl<R: Ring> Drop for Call<'_, R> {
    #[inline] // hot path: a compare when the call has resolved
    fn drop(&mut self) {
        if let State::Waiting(slot) = self.state {
            self.client.pending.abandon(slot);
        }
    }
}
