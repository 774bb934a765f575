//! The asking side of a channel.
//!
//! Credits: a client never has more calls in flight, abandoned ones included, than the ring has entries; so the reply ring
//! cannot be overrun. And it never pushes a request over one that the server has not taken: a reply shows that its request
//! and all before it were taken (requests are taken in order), and for one-way messages the server publishes a count.
//!
//! What a plain call does not need is done once per round, and only while there is something to do (`attention`): control entries to be
//! sent, tasks that wait for a credit, things of calls given up.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};

use crate::arena::{Arena, Buffer};
use crate::bell::{Doze, Ring, full_fence};
use crate::call::{Call, Lent};
use crate::channel::{Bells, End, Memory, NativePeer, Role};
use crate::custody::{Custody, Held};
use crate::entry::{Arrival, Kind, Packet};
use crate::error::{CallError, PeerMisbehaviour, SendError};
use crate::executor::{Link, Wait};
use crate::message::Message;
use crate::pending::Pending;
use crate::stream::{Completions, Stream};
use crate::waiter::Waiting;

/// The client end of a channel.
///
/// A client belongs to one thread. Attach it to the executor whose tasks use it.
pub struct Client<R: Ring = NativePeer> {
    transport: Transport<R>,
    pub(crate) pending: Pending,
    arena: Arena,
    /// Something below is not empty.
    attention: Cell<bool>,
    /// Control entries to be sent.
    owed: RefCell<VecDeque<Packet>>,
    for_credit: Waiting,
    for_server: Waiting,
    custody: Custody,
    streams: RefCell<Vec<Rc<Completions>>>,
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
    /// Entries pushed that were no calls.
    one_way: Cell<u64>,
    /// Calls of the generations before this one.
    earlier: Cell<u64>,
    /// Whether the server was told that room is wanted.
    wants_room: Cell<bool>,
}

/// What a client holds at the moment: all zero when nothing is in flight. For tests of leaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// Credits in use: calls in flight, results nobody has taken, credits of multishot calls.
    pub credits: usize,
    /// Buffers lent.
    pub buffers: usize,
    /// Buffers and windows of calls given up, kept until the server ends these calls.
    pub in_custody: usize,
    /// Multishot calls.
    pub streams: usize,
    /// Control entries that wait for room.
    pub owed: usize,
}

impl<R: Ring> Client<R> {
    /// The client end of a channel over rings; `ring` reaches the server.
    ///
    /// If another client end was made of this memory before, it was a client that is gone: then the channel is closed until
    /// [`Client::reconnect`].
    pub fn new(memory: &Memory, ring: R) -> Self {
        let end = End::new(memory, Role::Client, ring);
        let entries = end.output.capacity() as usize;
        let open = !end.is_closed();
        let rings = Rings {
            limit: Cell::new(if open { entries as u64 } else { 0 }),
            failed: Cell::new((!open).then_some(CallError::Closed)),
            end,
            one_way: Cell::new(0),
            earlier: Cell::new(0),
            wants_room: Cell::new(false),
        };
        Self::over(Transport::Rings(Box::new(rings)), entries, Arena::new(memory.arena(), entries))
    }

    fn over(transport: Transport<R>, entries: usize, arena: Arena) -> Self {
        Self {
            transport,
            pending: Pending::new(entries),
            arena,
            attention: Cell::new(false),
            owed: RefCell::default(),
            for_credit: Waiting::new(),
            for_server: Waiting::new(),
            custody: Custody::default(),
            streams: RefCell::default(),
        }
    }

    /// Sends `message` and resolves to the reply.
    ///
    /// The message is pushed at once, not at the first poll: calls made before awaiting any of them travel as one batch.
    /// Dropping the future cancels the call: the server is told, and may do less; its answer reaches nobody.
    ///
    /// # Errors
    /// The future resolves to [`CallError`]: at once if too many calls are in flight or the channel is closed, later if the
    /// server drops the request, closes the channel, dies or breaks the protocol.
    #[inline(always)] // hot path: the message is built where it is needed; out of line it is copied twice
    pub fn call(&self, message: Message) -> Call<'_, R> {
        match self.begin(message) {
            Ok(slot) => Call::waiting(self, slot),
            Err(error) => Call::refused(self, error),
        }
    }

    /// As [`Client::call`], but a message that cannot be sent comes back at once.
    ///
    /// # Errors
    /// If too many calls are in flight, or the channel is closed.
    pub fn try_call(&self, message: Message) -> Result<Call<'_, R>, SendError> {
        match self.begin(message) {
            Ok(slot) => Ok(Call::waiting(self, slot)),
            Err(error) => Err(refusal(error, message)),
        }
    }

    /// As [`Client::call`], with a buffer of the arena that the message names: it comes back with the reply, or with the error. If the
    /// future is dropped, the buffer goes back to the arena when the server has ended the call, not before.
    ///
    /// # Errors
    /// If too many calls are in flight, or the channel is closed.
    pub fn lend(&self, message: Message, buffer: Buffer) -> Result<Lent<'_, R>, SendError<(Message, Buffer)>> {
        match self.begin(message) {
            Ok(slot) => Ok(Lent::new(Call::waiting(self, slot), buffer)),
            Err(error) => Err(refusal(error, (message, buffer))),
        }
    }

    /// Makes all calls or none.
    ///
    /// # Errors
    /// If there are not credits for all of them, or the channel is closed.
    pub fn batch<const N: usize>(&self, messages: [Message; N]) -> Result<[Call<'_, R>; N], SendError<[Message; N]>> {
        if let Err(error) = self.has_credits(N) {
            return Err(refusal(error, messages));
        }
        Ok(messages.map(|message| self.call(message)))
    }

    /// Makes calls each of which is executed only if the one before it succeeded: was answered by
    /// [`Request::reply`](crate::Request::reply). The calls behind one that was refused, dropped or cancelled end with [`CallError::Cancelled`].
    ///
    /// # Errors
    /// If there are not credits for all of them, the channel is closed, or it goes over an endpoint.
    pub fn link<const N: usize>(&self, messages: [Message; N]) -> Result<[Call<'_, R>; N], SendError<[Message; N]>> {
        let Some(rings) = self.rings() else { return Err(SendError::Unsupported(messages)) };
        if let Err(error) = self.has_credits(N) {
            return Err(refusal(error, messages));
        }
        let begun = messages.map(|_| self.pending.begin().expect("there are as many free slots: it was checked above"));
        let packets = begun.iter().zip(messages).enumerate().map(|(index, ((_, cookie), message))| {
            let kind = if index + 1 == N { Kind::Call } else { Kind::Linked };
            Packet { kind, cookie: *cookie, message }
        });
        rings.end.output.push_together(&packets.collect::<Vec<_>>());
        Ok(begun.map(|(slot, _)| Call::waiting(self, slot)))
    }

    /// Makes a call with many completions. Up to `window` of them (at least 1) may be under way at a time; each takes a credit for as
    /// long as the call lasts.
    ///
    /// # Errors
    /// If there are not `window + 1` credits, the channel is closed, or it goes over an endpoint.
    pub fn subscribe(&self, message: Message, window: usize) -> Result<Stream<'_, R>, SendError> {
        let Some(rings) = self.rings() else { return Err(SendError::Unsupported(message)) };
        let window = window.max(1);
        if let Err(error) = self.has_credits(window + 1) {
            return Err(refusal(error, message));
        }
        let checked = "there are as many free slots: it was checked above";
        let (slot, cookie) = self.pending.begin().expect(checked);
        let credits = (0..window).map(|_| self.pending.reserve().expect(checked)).collect();
        let completions = Rc::new(Completions::new(cookie, window as u64));
        self.streams.borrow_mut().push(completions.clone());
        rings.end.output.push(&Packet { kind: Kind::Multishot, cookie, message });
        self.control(Kind::Grant, cookie, window as u64);
        Ok(Stream::new(Call::waiting(self, slot), completions, credits))
    }

    /// Sends `message` without wanting a reply.
    ///
    /// # Errors
    /// If the ring is full or the channel closed: the message comes back.
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        match &self.transport {
            Transport::Rings(rings) => {
                if !rings.has_room() {
                    return Err(refusal(rings.failed.get().unwrap_or(CallError::Full), message));
                }
                rings.push_control(Kind::OneWay, 0, message);
            }
            #[cfg(target_os = "none")]
            Transport::Endpoint(endpoint) => endpoint.send(message),
        }
        Ok(())
    }

    /// Resolves when a call or a one-way message can be sent, or the channel is closed. What is then free goes to whoever takes it
    /// first.
    pub fn credit(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            if self.has_credits(1) == Err(CallError::Full) {
                self.for_credit.add(context.waker());
                self.attention.set(true);
                return Poll::Pending;
            }
            Poll::Ready(())
        })
    }

    /// Opens the channel again after it was closed by either side or the server died: resolves when a new server, or the old one,
    /// has answered. At once if the channel is open. The server must run an executor with its [`Server`](crate::Server) attached.
    pub fn reconnect(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            let Some(rings) = self.rings() else { return Poll::Ready(()) };
            let was_closed = rings.failed.get().is_some();
            if !rings.reopen() {
                self.for_server.add(context.waker());
                self.attention.set(true);
                return Poll::Pending;
            }
            // Whoever opens it opens it for all who wait: nothing comes any more that would wake them.
            while was_closed && self.for_server.any() {
                self.for_server.wake_one();
            }
            Poll::Ready(())
        })
    }

    /// The data buffers of the channel.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Calls made so far over rings.
    pub fn calls(&self) -> u64 {
        self.rings().map_or(0, |rings| rings.earlier.get() + rings.calls())
    }

    /// How the server was reached so far; all zero over an endpoint.
    pub fn bells(&self) -> Bells {
        self.rings().map(|rings| rings.end.bells()).unwrap_or_default()
    }

    /// What is in use at the moment.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            credits: self.pending.used(),
            buffers: self.arena.lent(),
            in_custody: self.custody.len(),
            streams: self.streams.borrow().len(),
            owed: self.owed.borrow().len(),
        }
    }

    /// Closes the channel: calls in flight and later ones end with [`CallError::Closed`], and the server is told.
    pub fn close(&self) {
        if let Some(rings) = self.rings() {
            self.fail(rings, CallError::Closed);
        }
    }

    /// Starts a call; gives its slot.
    #[inline(always)] // as `call`
    fn begin(&self, message: Message) -> Result<u16, CallError> {
        match &self.transport {
            Transport::Rings(rings) => self.begin_over(rings, message),
            #[cfg(target_os = "none")]
            Transport::Endpoint(endpoint) => self.call_endpoint(endpoint, message.afresh()),
        }
    }

    #[inline(always)] // as `call`
    fn begin_over(&self, rings: &Rings<R>, message: Message) -> Result<u16, CallError> {
        if !rings.has_room() {
            return Err(rings.failed.get().unwrap_or(CallError::Full));
        }
        let Some((slot, cookie)) = self.pending.begin() else { return Err(CallError::Full) };
        rings.end.output.push(&Packet { kind: Kind::Call, cookie, message });
        Ok(slot)
    }

    /// Kept out of line: its register saves would burden every call over rings.
    #[cfg(target_os = "none")]
    #[inline(never)]
    fn call_endpoint(&self, endpoint: &crate::port::endpoint::SyncClient, message: Message) -> Result<u16, CallError> {
        let (slot, _) = self.pending.begin().ok_or(CallError::Full)?;
        self.pending.settle(slot, endpoint.call(message));
        Ok(slot)
    }

    /// Whether `count` calls could be made at once.
    #[cold]
    fn has_credits(&self, count: usize) -> Result<(), CallError> {
        if let Some(rings) = self.rings()
            && !rings.has_room_for(count as u64)
        {
            return Err(rings.failed.get().unwrap_or(CallError::Full));
        }
        if self.pending.free(count) < count { Err(CallError::Full) } else { Ok(()) }
    }

    /// The future of the call in `slot` is gone: the server is told, if it has not ended the call. What it may still use, `held`, is kept.
    #[cold]
    pub(crate) fn give_up(&self, slot: u16, held: Option<Held>) {
        match (self.pending.abandon(slot), held) {
            (Some(cookie), held) => {
                if let Some(held) = held {
                    self.custody.keep(cookie, held);
                    self.attention.set(true);
                }
                self.control(Kind::Cancel, cookie, 0);
            }
            (None, Some(Held::Credits(slots))) => slots.iter().for_each(|slot| self.pending.release(*slot)),
            (None, Some(Held::Buffer(_)) | None) => {}
        }
    }

    /// Sends a control entry about the call with `cookie`, at the end of the round: it has what room the calls have left.
    #[cold]
    pub(crate) fn control(&self, kind: Kind, cookie: u64, word: u64) {
        if self.rings().is_some_and(|rings| rings.failed.get().is_none()) {
            self.owed.borrow_mut().push_back(Packet { kind, cookie, message: Message::new(0, [word]) });
            self.attention.set(true);
        }
    }

    /// The multishot call with `completions` is over.
    pub(crate) fn end_stream(&self, completions: &Rc<Completions>) {
        self.streams.borrow_mut().retain(|known| !Rc::ptr_eq(known, completions));
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
            self.owed.borrow_mut().clear();
            self.attend(rings);
        }
    }

    /// Takes every reply. Returns whether there was any.
    fn drain(&self, rings: &Rings<R>) -> Result<bool, PeerMisbehaviour> {
        let mut any = false;
        while let Some(arrival) = rings.end.peek()? {
            any = true;
            if arrival.is(Kind::Reply) {
                self.pending.answer(&arrival)?;
            } else {
                self.take_unusual(&arrival)?;
            }
            rings.end.input.advance();
        }
        Ok(any)
    }

    #[cold]
    fn take_unusual(&self, arrival: &Arrival<'_>) -> Result<(), PeerMisbehaviour> {
        if arrival.is(Kind::Dropped) {
            self.pending.fail(arrival.cookie(), CallError::Dropped)
        } else if arrival.is(Kind::Cancelled) {
            self.pending.fail(arrival.cookie(), CallError::Cancelled)
        } else if arrival.is(Kind::Refused) {
            self.pending.answer(arrival)
        } else if arrival.is(Kind::More) {
            self.take_more(arrival)
        } else {
            Err(arrival.fault())
        }
    }

    fn take_more(&self, arrival: &Arrival<'_>) -> Result<(), PeerMisbehaviour> {
        let cookie = arrival.cookie();
        if !self.pending.nudge(cookie)? {
            return Ok(()); // on its way when the call was given up
        }
        let streams = self.streams.borrow();
        let stream = streams.iter().find(|stream| stream.cookie == cookie).ok_or(PeerMisbehaviour::Kind)?;
        stream.arrive(arrival.message())
    }

    fn poll_rings(&self, rings: &Rings<R>) -> bool {
        if rings.failed.get().is_some() {
            (0..self.for_server.len()).for_each(|_| self.for_server.wake_one());
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
                rings.end.cut_off();
                self.fail(rings, CallError::Peer(misbehaviour));
                true
            }
        }
    }

    /// What waits for room, credits or the end of a call.
    #[cold]
    fn attend(&self, rings: &Rings<R>) {
        self.custody.reap(&self.pending);
        self.send_owed(rings);
        // Tasks that wait for credits, as many as there are. With the ring full of one-way messages nothing tells the client when the
        // server takes them, unless it asks: it says so, and looks again.
        let waiting = self.for_credit.len();
        let closed = rings.failed.get().is_some();
        let wake = || {
            let free = if closed { waiting } else { self.pending.free(waiting).min(rings.room() as usize) };
            (0..free.min(waiting)).for_each(|_| self.for_credit.wake_one());
        };
        wake();
        let wants = !closed && (self.for_credit.len() > 0 || !self.owed.borrow().is_empty());
        if rings.wants_room.replace(wants) != wants {
            rings.end.wanted.set(wants);
        }
        if wants {
            full_fence();
            if rings.look_for_room() {
                self.send_owed(rings);
                wake();
            }
        }
        let waits = self.for_credit.len() + self.for_server.len() > 0;
        self.attention.set(wants || waits || self.custody.len() > 0);
    }

    fn send_owed(&self, rings: &Rings<R>) {
        while rings.has_room() {
            let Some(packet) = self.owed.borrow_mut().pop_front() else { return };
            // A call that has ended meanwhile needs no word.
            if self.pending.is_owed(packet.cookie) {
                rings.push_control(packet.kind, packet.cookie, packet.message);
            }
        }
    }

    /// Whether [`Client::attend`] would get anywhere: the look before a doze.
    #[cold]
    fn could_attend(&self, rings: &Rings<R>) -> bool {
        if rings.failed.get().is_some() {
            return self.for_server.len() > 0 && rings.end.could_connect();
        }
        let waits = self.for_credit.len() > 0 && self.pending.free(1) > 0;
        (waits || !self.owed.borrow().is_empty()) && rings.has_room()
    }
}

fn refusal<T>(error: CallError, back: T) -> SendError<T> {
    if error == CallError::Full { SendError::Full(back) } else { SendError::Closed(back) }
}

impl<R: Ring> Rings<R> {
    /// Whether the next request would not overwrite one that the server has not taken.
    #[inline] // hot path: two loads and a compare
    fn has_room(&self) -> bool {
        self.end.output.pushed() < self.limit.get() || self.look_for_room()
    }

    fn has_room_for(&self, count: u64) -> bool {
        self.room() >= count || (self.look_for_room() && self.room() >= count)
    }

    fn room(&self) -> u64 {
        self.limit.get().saturating_sub(self.end.output.pushed())
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

    fn push_control(&self, kind: Kind, cookie: u64, message: Message) {
        self.one_way.set(self.one_way.get() + 1);
        self.end.output.push(&Packet { kind, cookie, message });
    }

    fn calls(&self) -> u64 {
        self.end.output.pushed() - self.one_way.get()
    }

    /// Opens the channel again, if the server is ready for it. Returns whether it is open.
    #[cold]
    fn reopen(&self) -> bool {
        if self.failed.get().is_none() {
            return true;
        }
        // Indices start anew with the first step: what they counted is kept.
        self.earlier.set(self.earlier.get() + self.calls());
        self.one_way.set(self.end.output.pushed());
        let open = self.end.connect_again();
        self.one_way.set(self.end.output.pushed());
        if open {
            self.failed.set(None);
            self.limit.set(self.end.output.capacity());
            self.wants_room.set(false);
        }
        open
    }
}

impl<R: Ring> Link for Client<R> {
    fn poll(&self, _: u64) -> bool {
        self.rings().is_some_and(|rings| self.poll_rings(rings))
    }

    fn publish(&self) {
        if let Some(rings) = self.rings() {
            if self.attention.get() {
                self.attend(rings);
            }
            // If the server has closed, the next poll sees it.
            rings.end.publish();
        }
    }

    fn doze(&self, doze: Doze) {
        if let Some(rings) = self.rings() {
            rings.end.doze(doze);
        }
    }

    fn settle(&self, doze: Doze) -> bool {
        let Some(rings) = self.rings() else { return false };
        if self.attention.get() {
            self.attend(rings);
        }
        rings.end.doze(doze);
        full_fence();
        rings.end.settle() || self.attention.get() && self.could_attend(rings)
    }

    fn is_ready(&self) -> bool {
        self.rings().is_some_and(|rings| rings.end.is_ready() || self.attention.get() && self.could_attend(rings))
    }

    fn waits(&self, visit: &mut dyn FnMut(Wait, &Waker)) {
        self.pending.waits(&mut |cookie, waker| visit(Wait::Reply { cookie }, waker));
        self.for_credit.show(&mut |waker| visit(Wait::Credit, waker));
        self.for_server.show(&mut |waker| visit(Wait::Server, waker));
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
            EnvTransport::Async { peer, peer_hart, .. } => {
                Ok(Self::new(&Memory::from_env(&channel)?, Peer::new(env, peer, peer_hart, channel.index)))
            }
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
