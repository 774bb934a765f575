//! The answering side: one server, many channels, requests in fair turn.
//!
//! [`Server::recv`] gives the next [`Request`], from whichever channel and transport it came; [`Request::reply`] answers it, now
//! or later, in any order. A request that is dropped unanswered is answered as dropped: every call ends exactly once.
//!
//! # Turns
//!
//! Channels are served by deficit round robin (Shreedhar and Varghese, 1995). When its turn comes a channel's deficit grows by its weight;
//! each request costs 1, and more if the work said so ([`Request::charge`]); the turn ends when the deficit is used up or no request is
//! there, and what is not used is not kept. So between clients that always ask, work is divided by weight, whatever else they send.
//! A channel with as many requests in flight as its limit is passed over until one is answered.
//!
//! # Waking
//!
//! Several tasks may wait in `recv`. A round wakes one: mostly that one takes all there is. If at the next round nobody had found the
//! rings empty, the tasks woken were not enough, because they wait for something else in between: then twice as many are woken.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::arena::{ArenaMemory, Loan};
use crate::bell::{Doze, Ring, full_fence};
use crate::cancel::Cancellations;
use crate::chain::Chains;
use crate::channel::{Bells, End, Memory, NativePeer, Role};
use crate::entry::{Arrival, Kind, Packet};
use crate::error::{PeerMisbehaviour, SendError};
use crate::executor::{Link, Wait};
use crate::grant::Grants;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::request::Request;
use crate::waiter::Waiting;

/// What is done with a client that broke the protocol, besides closing its channel: channel and how.
pub type Report = fn(usize, PeerMisbehaviour);

/// The server end of one channel.
pub(crate) struct Channel<R> {
    index: usize,
    /// Absent for a channel over the endpoint.
    end: Option<End<R>>,
    arena: ArenaMemory,
    /// Calls taken and not answered.
    in_flight: Cell<u64>,
    /// As many calls may be in flight.
    limit: Cell<u64>,
    /// What is left of the channel's turn; negative after requests that cost more.
    deficit: Cell<i64>,
    weight: Cell<u32>,
    /// Entries before this one have been looked at for what is for the server itself.
    ahead: Cell<u64>,
    /// Something was taken that gets no reply, since the last round.
    unanswered: Cell<bool>,
    misbehaviour: Cell<Option<PeerMisbehaviour>>,
    report: Cell<Option<Report>>,
    chains: Chains,
    cancellations: Cancellations,
    grants: Grants,
}

/// The server ends of all channels of a program.
///
/// A server belongs to one thread. Attach it to the executor whose tasks use it.
pub struct Server<R: Ring = NativePeer> {
    /// Boxed one by one: a channel is found by a load instead of a multiplication.
    channels: Box<[Box<Channel<R>>]>,
    pub(crate) mailbox: Option<Rc<Mailbox>>,
    /// Linked calls whose turn has come.
    linked: RefCell<VecDeque<(usize, Packet)>>,
    /// A request on its way from where it was found to the task that gets it.
    found: Cell<(usize, Packet)>,
    /// There is something to take besides rings: a mailbox, a linked call.
    beside: Cell<bool>,
    turn: Cell<usize>,
    /// Requests that may still be handed out in this round.
    budget: Cell<u32>,
    /// Requests that may be handed out in a round.
    batch: Cell<u32>,
    waiting: Waiting,
    /// How many tasks a round wakes.
    wakes: Cell<u32>,
    /// Somebody found nothing to take since the last round.
    found_empty: Cell<bool>,
    requests: Cell<u64>,
}

/// What a server holds for its clients at the moment: all zero when nothing is in flight. For tests of leaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// Calls taken and not answered.
    pub in_flight: u64,
    /// Chains of linked calls that have not ended.
    pub chains: usize,
    /// Multishot calls.
    pub multishot: usize,
    /// Tasks that wait for a cancellation.
    pub cancel_waiters: usize,
}

/// Requests handed out in one round of the executor, and most tasks that one wakes, if the program does not say otherwise
/// ([`Server::set_batch`]): then other tasks run, and what was answered is published.
const BUDGET: u32 = 64;
/// Deepest debt of a channel, in turns: so long it is passed over after a request that cost much.
const MOST_DEBT: i64 = 64;

impl<R: Ring> Channel<R> {
    fn new(index: usize, end: Option<End<R>>, arena: ArenaMemory) -> Self {
        Self {
            index,
            limit: Cell::new(end.as_ref().map_or(u64::MAX, |end| end.output.capacity())),
            end,
            arena,
            in_flight: Cell::new(0),
            deficit: Cell::new(0),
            weight: Cell::new(1),
            ahead: Cell::new(0),
            unanswered: Cell::new(false),
            misbehaviour: Cell::new(None),
            report: Cell::new(None),
            chains: Chains::default(),
            cancellations: Cancellations::default(),
            grants: Grants::default(),
        }
    }

    fn over_rings(index: usize, memory: &Memory, ring: R) -> Self {
        Self::new(index, Some(End::new(memory, Role::Server, ring)), memory.arena())
    }

    /// The next request, if it is a plain call within the limit.
    #[inline(always)] // as `Receive::poll`
    fn take(&self) -> Result<Packet, NoCall> {
        let Some(end) = &self.end else { return Err(NoCall::Nothing) };
        if end.is_closed() {
            return Err(NoCall::Nothing);
        }
        match end.peek() {
            Ok(None) => Err(NoCall::Nothing),
            Ok(Some(arrival)) if arrival.is(Kind::Call) && self.in_flight.get() < self.limit.get() => {
                self.in_flight.set(self.in_flight.get() + 1);
                let packet = Packet { kind: Kind::Call, cookie: arrival.cookie(), message: arrival.message() };
                end.input.advance();
                // After the entry was read, before the answer: see `Taken`.
                end.taken.publish(end.input.taken());
                Ok(packet)
            }
            Ok(Some(_)) | Err(_) => Err(NoCall::Other),
        }
    }

    /// The next request of any kind.
    #[cold]
    fn take_any(&self) -> Option<Packet> {
        let end = self.end.as_ref()?;
        loop {
            let taken = match end.peek() {
                Ok(None) => return None,
                Ok(Some(arrival)) => self.take_unusual(end, &arrival),
                Err(misbehaviour) => Err(misbehaviour),
            };
            match taken {
                Ok(Taken::Request(packet)) => return Some(packet),
                Ok(Taken::Later) => return None,
                Ok(Taken::Control) => {}
                Err(misbehaviour) => {
                    self.fail(end, misbehaviour);
                    return None;
                }
            }
        }
    }

    /// Whatever is not a plain call within the limit.
    #[cold]
    fn take_unusual(&self, end: &End<R>, arrival: &Arrival<'_>) -> Result<Taken, PeerMisbehaviour> {
        let (cookie, message, entries) = (arrival.cookie(), arrival.message(), end.output.capacity());
        let taken = if arrival.is(Kind::OneWay) {
            Taken::Request(Packet { kind: Kind::OneWay, cookie, message })
        } else if end.input.taken() < self.ahead.get() && is_control(arrival) || self.control(end, arrival)? {
            // Done just now, or when it was looked at ahead.
            Taken::Control
        } else if let Some(kind) =
            [Kind::Call, Kind::Linked, Kind::Multishot].into_iter().find(|kind| arrival.is(*kind))
        {
            if self.in_flight.get() >= entries {
                return Err(PeerMisbehaviour::Credit);
            }
            if self.in_flight.get() >= self.limit.get() {
                return Ok(Taken::Later);
            }
            self.in_flight.set(self.in_flight.get() + 1);
            match kind {
                Kind::Linked => {
                    end.input.advance();
                    let rest = self.take_rest(end)?;
                    self.chains.begin(cookie, rest);
                    end.taken.publish(end.input.taken());
                    return Ok(Taken::Request(Packet { kind, cookie, message }));
                }
                Kind::Multishot => self.grants.begin(cookie),
                _ => {}
            }
            Taken::Request(Packet { kind, cookie, message })
        } else {
            return Err(arrival.fault());
        };
        self.unanswered.set(true);
        end.input.advance();
        end.taken.publish(end.input.taken());
        Ok(taken)
    }

    /// The calls linked behind one that was taken. They count as in flight, but not for the limit.
    fn take_rest(&self, end: &End<R>) -> Result<VecDeque<Packet>, PeerMisbehaviour> {
        let mut rest = VecDeque::new();
        loop {
            let arrival = end.peek()?.ok_or(PeerMisbehaviour::Chain)?;
            let linked = arrival.is(Kind::Linked);
            if !linked && !arrival.is(Kind::Call) {
                return Err(PeerMisbehaviour::Chain);
            }
            if self.in_flight.get() >= end.output.capacity() {
                return Err(PeerMisbehaviour::Credit);
            }
            self.in_flight.set(self.in_flight.get() + 1);
            let kind = if linked { Kind::Linked } else { Kind::Call };
            rest.push_back(Packet { kind, cookie: arrival.cookie(), message: arrival.message() });
            end.input.advance();
            if !linked {
                return Ok(rest);
            }
        }
    }

    #[cold]
    fn fail(&self, end: &End<R>, misbehaviour: PeerMisbehaviour) {
        self.misbehaviour.set(Some(misbehaviour));
        end.cut_off();
        self.close(end);
        if let Some(report) = self.report.get() {
            report(self.index, misbehaviour);
        }
    }

    /// Lets the client go, and everything that was held for it.
    #[cold]
    fn close(&self, end: &End<R>) {
        end.close();
        self.in_flight.set(0);
        self.deficit.set(0);
        self.chains.clear();
        self.cancellations.note_all();
        self.grants.close();
    }

    /// Whether there is a request to take, for a task that waits if `wanted`.
    #[inline] // once per round: mostly the first or the second line decides
    fn look(&self, wanted: bool) -> bool {
        let Some(end) = &self.end else {
            return false;
        };
        if end.is_closed() {
            return self.look_closely(wanted);
        }
        match end.input.is_ready() {
            true if wanted && self.in_flight.get() < self.limit.get() => true,
            false if !end.peer_closed() => false,
            _ => self.look_closely(wanted),
        }
    }

    /// As [`Channel::look`]. A client that has closed is let go here, and one that comes back is let in.
    #[cold]
    fn look_closely(&self, wanted: bool) -> bool {
        let Some(end) = &self.end else {
            return false;
        };
        if end.is_closed() && !self.admit_again(end) {
            return false;
        }
        // The state first: what the client pushed before it closed is then seen.
        let closed = end.peer_closed();
        let ready = end.input.is_ready();
        let takes = wanted && self.in_flight.get() < self.limit.get();
        if ready && !takes {
            self.look_ahead(end);
        }
        if closed {
            // What it has asked before is still served, but it waits for nothing any more.
            self.cancellations.note_all();
            if !ready {
                self.close(end);
            }
        }
        ready && takes
    }

    /// Does what is for the server itself among what nobody takes at the moment: a cancellation or a grant may be what the tasks
    /// that could take it wait for.
    #[cold]
    fn look_ahead(&self, end: &End<R>) {
        while let Some(index) = self.next_control(end) {
            let done = match end.input.peek_at(index) {
                // Done already, and now the next: it only holds room.
                Ok(Some(arrival)) if index < self.ahead.get() => Ok(is_control(&arrival)),
                Ok(Some(arrival)) => self.control(end, &arrival),
                Ok(None) => return,
                Err(misbehaviour) => Err(misbehaviour),
            };
            self.ahead.set(self.ahead.get().max(index + 1));
            match done {
                Ok(true) if index == end.input.taken() => {
                    end.input.advance();
                    end.taken.publish(end.input.taken());
                    self.unanswered.set(true);
                }
                Ok(_) => {}
                Err(misbehaviour) => return self.fail(end, misbehaviour),
            }
        }
    }

    /// The entry that [`Channel::look_ahead`] has to look at, if there is one: the first it has not seen, or the next to be taken if that is
    /// done.
    fn next_control(&self, end: &End<R>) -> Option<u64> {
        let (taken, ahead) = (end.input.taken(), self.ahead.get());
        let done = || matches!(end.input.peek_at(taken), Ok(Some(arrival)) if is_control(&arrival));
        if taken < ahead && done() {
            return Some(taken);
        }
        let first = ahead.max(taken);
        end.input.is_ready_at(first).then_some(first)
    }

    /// Does what the entry asks of the server itself. False if it is not such an entry.
    fn control(&self, end: &End<R>, arrival: &Arrival<'_>) -> Result<bool, PeerMisbehaviour> {
        let entries = end.output.capacity();
        if arrival.is(Kind::Cancel) {
            self.cancellations.note(arrival.cookie(), entries as usize)?;
            self.grants.nudge(arrival.cookie());
            for cookie in self.chains.cut(arrival.cookie()) {
                self.answer(end.opening(), Kind::Cancelled, cookie, Message::default());
            }
        } else if arrival.is(Kind::Grant) {
            let [more] = *arrival.message().payload() else { return Err(PeerMisbehaviour::Length) };
            self.grants.add(arrival.cookie(), more, entries)?;
        } else {
            if arrival.is(Kind::Multishot) {
                // Its grants may be seen before it is taken.
                self.grants.begin(arrival.cookie());
            }
            return Ok(false);
        }
        Ok(true)
    }

    #[cold]
    fn admit_again(&self, end: &End<R>) -> bool {
        // A client that broke the protocol stays out.
        let open = self.misbehaviour.get().is_none() && end.accept_again();
        if open {
            self.ahead.set(0);
            self.cancellations.clear();
        }
        open
    }

    /// Whether there is something to do: the look before a doze. A request that no task waits for, and one beyond the limit, is
    /// nothing to do.
    #[inline] // polled
    fn is_ready(&self, wanted: bool) -> bool {
        let Some(end) = &self.end else {
            return false;
        };
        if end.is_closed() {
            return self.misbehaviour.get().is_none() && end.could_accept();
        }
        if end.input.is_ready() {
            let takes = wanted && self.in_flight.get() < self.limit.get();
            return takes || self.next_control(end).is_some();
        }
        end.peer_closed()
    }

    /// The end of a round, behind the announcement of a doze and a full fence: publishes, and looks as [`Channel::is_ready`].
    #[inline] // once per round
    fn settle(&self, wanted: bool) -> bool {
        let Some(end) = &self.end else { return false };
        let arrived = end.settle();
        if self.unanswered.replace(false) {
            end.offer_room();
        }
        (arrived || end.is_closed()) && self.is_still_ready(wanted)
    }

    /// Kept out of line: between two rounds there is mostly nothing.
    #[cold]
    fn is_still_ready(&self, wanted: bool) -> bool {
        self.is_ready(wanted)
    }

    #[inline(always)] // as `Request::reply`
    pub(crate) fn answer(&self, opening: u64, kind: Kind, cookie: u64, message: Message) {
        if let Some(end) = &self.end
            && end.opening() == opening
        {
            self.in_flight.set(self.in_flight.get() - 1);
            end.output.push(&Packet { kind, cookie, message });
        }
    }

    #[cold]
    pub(crate) fn more(&self, opening: u64, cookie: u64, message: Message) -> Result<(), SendError> {
        let Some(end) = self.end.as_ref().filter(|end| end.opening() == opening) else {
            return Err(SendError::Closed(message));
        };
        if self.cancellations.contains(cookie) {
            return Err(SendError::Closed(message));
        }
        if !self.grants.take(cookie) {
            return Err(SendError::Full(message));
        }
        end.output.push(&Packet { kind: Kind::More, cookie, message });
        Ok(())
    }

    fn is_open_as(&self, opening: u64) -> bool {
        self.end.as_ref().is_none_or(|end| end.opening() == opening)
    }

    pub(crate) fn poll_window(&self, opening: u64, cookie: u64, waker: &Waker) -> bool {
        self.is_cancelled(opening, cookie) || self.grants.poll(cookie, waker)
    }

    pub(crate) fn end_multishot(&self, cookie: u64) {
        self.grants.end(cookie);
    }

    pub(crate) fn is_cancelled(&self, opening: u64, cookie: u64) -> bool {
        !self.is_open_as(opening) || self.cancellations.contains(cookie)
    }

    pub(crate) fn add_cancel_waiter(&self, cookie: u64, waker: &Waker) {
        self.cancellations.add(cookie, waker);
    }

    pub(crate) fn remove_cancel_waiter(&self, cookie: u64) {
        self.cancellations.remove(cookie);
    }

    pub(crate) fn loan(&self, offset: u64, size: u64) -> Result<Loan, PeerMisbehaviour> {
        Loan::new(self.arena, offset, size)
    }

    pub(crate) fn charge(&self, extra: u32) {
        let most = MOST_DEBT * i64::from(self.weight.get());
        self.deficit.set((self.deficit.get() - i64::from(extra)).max(-most));
    }
}

/// Whether the entry is for the server itself.
fn is_control(arrival: &Arrival<'_>) -> bool {
    arrival.is(Kind::Cancel) || arrival.is(Kind::Grant)
}

/// Why [`Channel::take`] gives no call.
enum NoCall {
    Nothing,
    /// There is something else, for [`Channel::take_any`].
    Other,
}

/// What an entry that is not a plain call was.
enum Taken {
    Request(Packet),
    /// One for the server itself.
    Control,
    /// A call beyond the channel's limit: it stays in the ring.
    Later,
}

impl<R: Ring> Server<R> {
    /// The server ends of channels over rings; each `R` reaches the client of its channel.
    pub fn new(channels: impl IntoIterator<Item = (Memory, R)>) -> Self {
        let channel = |(index, (memory, ring))| Channel::over_rings(index, &memory, ring);
        Self::over(channels.into_iter().enumerate().map(channel).collect(), None)
    }

    fn over(channels: Vec<Channel<R>>, mailbox: Option<Rc<Mailbox>>) -> Self {
        Self {
            channels: channels.into_iter().map(Box::new).collect(),
            beside: Cell::new(mailbox.is_some()),
            mailbox,
            linked: RefCell::default(),
            found: Cell::new((0, Packet { kind: Kind::OneWay, cookie: 0, message: Message::default() })),
            turn: Cell::new(0),
            budget: Cell::new(BUDGET),
            batch: Cell::new(BUDGET),
            waiting: Waiting::new(),
            wakes: Cell::new(1),
            found_empty: Cell::new(true),
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

    /// Gives the channel `weight` times the share of one with weight 1, which is what channels start with.
    ///
    /// # Panics
    /// If there is no such channel, or the weight is 0.
    pub fn set_weight(&self, channel: usize, weight: u32) {
        assert!(weight > 0, "a channel without weight is never served");
        self.channels[channel].weight.set(weight);
    }

    /// Hands out `requests` in one round of the executor at most, which is 64 if nothing else is said. What was answered is announced at the end
    /// of the round: a client that dozes learns of its reply that much later. So a server whose requests are much work wants few in a round,
    /// one whose requests are little many, since a round has a cost of its own.
    ///
    /// # Panics
    /// If `requests` is 0.
    pub fn set_batch(&self, requests: u32) {
        assert!(requests > 0, "a round without requests serves nobody");
        self.batch.set(requests);
        self.budget.set(self.budget.get().min(requests));
    }

    /// Takes no more calls of the channel while `calls` of it are not answered: the client's credits with this server. At most the
    /// ring's entries, which is what channels start with.
    ///
    /// # Panics
    /// If there is no such channel, or the limit is 0.
    pub fn set_limit(&self, channel: usize, calls: u64) {
        assert!(calls > 0, "a channel without credits is never served");
        let channel = &self.channels[channel];
        channel.limit.set(channel.end.as_ref().map_or(calls, |end| calls.min(end.output.capacity())));
    }

    /// From now on `report` is called with each client that breaks the protocol, after its channel was closed.
    pub fn report_to(&self, report: Report) {
        self.channels.iter().for_each(|channel| channel.report.set(Some(report)));
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

    /// Forgives the client of this channel: it may connect again.
    ///
    /// # Panics
    /// If there is no such channel.
    pub fn forgive(&self, channel: usize) {
        self.channels[channel].misbehaviour.set(None);
    }

    /// Requests taken so far.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// What is held for clients at the moment.
    pub fn holdings(&self) -> Holdings {
        self.channels.iter().fold(Holdings::default(), |sum, channel| Holdings {
            in_flight: sum.in_flight + channel.in_flight.get(),
            chains: sum.chains + channel.chains.len(),
            multishot: sum.multishot + channel.grants.len(),
            cancel_waiters: sum.cancel_waiters + channel.cancellations.len(),
        })
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
        for channel in &self.channels {
            if let Some(end) = &channel.end {
                channel.close(end);
            }
        }
    }

    /// The next request, if there is one.
    #[inline(always)] // as `Receive::poll`
    fn take(&self) -> Option<Request<'_, R>> {
        if self.beside.get() && self.find_beside() {
            return Some(self.found());
        }
        let mut index = self.turn.get();
        let mut in_debt = true;
        // A second time round only for channels whose turns were too short: each time they get longer.
        while core::mem::take(&mut in_debt) {
            for _ in 0..self.channels.len() {
                let channel = &self.channels[index];
                let next = if index + 1 == self.channels.len() { 0 } else { index + 1 };
                let mut deficit = channel.deficit.get();
                if deficit <= 0 {
                    deficit += i64::from(channel.weight.get());
                }
                if deficit > 0 {
                    let left = deficit - 1;
                    let turn = if left == 0 { next } else { index };
                    match channel.take() {
                        Ok(packet) => {
                            channel.deficit.set(left);
                            self.turn.set(turn);
                            return Some(self.request(index, packet));
                        }
                        Err(NoCall::Nothing) => {}
                        Err(NoCall::Other) => {
                            if self.find_other(index) {
                                channel.deficit.set(left);
                                self.turn.set(turn);
                                return Some(self.found());
                            }
                        }
                    }
                    channel.deficit.set(0);
                } else {
                    channel.deficit.set(deficit);
                    in_debt |= channel.is_ready(true);
                }
                index = next;
            }
        }
        self.found_empty.set(true);
        None
    }

    /// Looks for a request that is not a plain call, for [`Server::found`].
    #[cold]
    #[inline(never)]
    fn find_other(&self, index: usize) -> bool {
        match self.channels[index].take_any() {
            Some(packet) => {
                self.found.set((index, packet));
                true
            }
            None => false,
        }
    }

    /// Looks for a request that does not come from a ring, for [`Server::found`].
    #[inline(never)]
    fn find_beside(&self) -> bool {
        if let Some(mailbox) = &self.mailbox {
            let Some(arrived) = mailbox.take() else { return false };
            let packet = Packet { kind: Kind::Call, cookie: arrived.ticket, message: arrived.message };
            self.found.set((arrived.channel, packet));
            return true;
        }
        let mut linked = self.linked.borrow_mut();
        let Some((index, packet)) = linked.pop_front() else { return false };
        self.beside.set(!linked.is_empty());
        self.channels[index].charge(1);
        self.found.set((index, packet));
        true
    }

    /// The request that was found beside the usual way. It comes through a place of the server's: as the result of a function it would
    /// be a second maker of requests, and both would make them elsewhere and copy them.
    #[inline] // loads, as with a plain call
    fn found(&self) -> Request<'_, R> {
        // Field by field: otherwise the gaps between them are copied too, byte by byte.
        let (index, Packet { kind, cookie, message: Message { op, len, words } }) = self.found.get();
        self.request(index, Packet { kind, cookie, message: Message { op, len, words } })
    }

    #[inline] // hot path
    fn request(&self, index: usize, packet: Packet) -> Request<'_, R> {
        self.requests.set(self.requests.get() + 1);
        let channel = &*self.channels[index];
        Request {
            server: self,
            channel,
            index,
            cookie: packet.cookie,
            kind: packet.kind,
            opening: channel.end.as_ref().map_or(0, End::opening),
            message: packet.message,
        }
    }

    /// The linked call with `cookie` was answered: what is behind it comes next, or ends with it.
    #[cold]
    pub(crate) fn end_link(&self, index: usize, opening: u64, cookie: u64, succeeded: bool) {
        let channel = &self.channels[index];
        if !channel.is_open_as(opening) {
            return;
        }
        if succeeded {
            if let Some(next) = channel.chains.next(cookie) {
                self.linked.borrow_mut().push_back((index, next));
                self.beside.set(true);
                self.waiting.wake_one();
            }
            return;
        }
        for cookie in channel.chains.break_at(cookie) {
            channel.answer(opening, Kind::Cancelled, cookie, Message::default());
        }
    }

    /// Whether any channel has a request.
    fn look(&self) -> bool {
        // Every channel is looked at: closed ones are let go on the way.
        let wanted = self.waiting.any();
        self.channels.iter().fold(self.has_beside(), |any, channel| channel.look(wanted) || any)
    }

    fn has_beside(&self) -> bool {
        self.beside.get() && self.mailbox.as_ref().is_none_or(|mailbox| mailbox.is_ready())
    }

    /// How many tasks to wake for what was found.
    fn wakes(&self) -> u32 {
        let wakes = self.wakes.get();
        // With the budget used up, nobody could have found the rings empty.
        let next = match (self.found_empty.replace(false), self.budget.get()) {
            (true, _) => (wakes / 2).max(1),
            (false, 0) => wakes,
            (false, _) => (wakes * 2).min(BUDGET),
        };
        self.wakes.set(next);
        next
    }
}

impl<R: Ring> Link for Server<R> {
    fn poll(&self, _: u64) -> bool {
        let found = self.look();
        if found {
            (0..self.wakes()).for_each(|_| self.waiting.wake_one());
        }
        self.budget.set(self.batch.get());
        found
    }

    fn publish(&self) {
        for channel in &self.channels {
            if let Some(end) = &channel.end {
                end.publish();
                if channel.unanswered.replace(false) {
                    end.offer_room();
                }
            }
        }
    }

    fn doze(&self, doze: Doze) {
        for end in self.channels.iter().filter_map(|channel| channel.end.as_ref()) {
            end.doze(doze);
        }
    }

    fn settle(&self, doze: Doze) -> bool {
        Link::doze(self, doze);
        full_fence();
        let wanted = self.waiting.any();
        let beside = (wanted || self.mailbox.is_some()) && self.has_beside();
        self.channels.iter().fold(beside, |any, channel| channel.settle(wanted) || any)
    }

    fn is_ready(&self) -> bool {
        let wanted = self.waiting.any();
        (wanted || self.mailbox.is_some()) && self.has_beside()
            || self.channels.iter().any(|channel| channel.is_ready(wanted))
    }

    fn waits(&self, visit: &mut dyn FnMut(Wait, &Waker)) {
        self.waiting.show(&mut |waker| visit(Wait::Request, waker));
        for channel in &self.channels {
            let index = channel.index;
            channel.cancellations.show(&mut |waker| visit(Wait::Cancellation { channel: index }, waker));
            channel.grants.show(&mut |waker| visit(Wait::Window { channel: index }, waker));
        }
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
                Transport::Async { peer, peer_hart, .. } => Channel::over_rings(
                    channels.len(),
                    &Memory::from_env(&channel)?,
                    Peer::new(env, peer, peer_hart, channel.index),
                ),
                Transport::Sync { .. } => {
                    badges.push(channel.index as u64 + 1);
                    Channel::new(channels.len(), None, ArenaMemory::from_env(&channel)?)
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
        let channel = |index| Channel::new(index, None, ArenaMemory::leak(0));
        Self::over((0..channels).map(channel).collect(), Some(mailbox))
    }
}
