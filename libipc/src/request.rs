//! A request to be answered: exactly once, by a reply, a refusal, or by being dropped.

use core::future::{Future, poll_fn};
use core::task::Poll;

use crate::arena::Loan;
use crate::bell::Ring;
use crate::channel::NativePeer;
use crate::entry::Kind;
use crate::error::{PeerMisbehaviour, SendError};
use crate::message::Message;
use crate::serve::{Channel, Server};

/// A request to be answered. Dropped unanswered, its call fails.
pub struct Request<'s, R: Ring = NativePeer> {
    pub(crate) server: &'s Server<R>,
    pub(crate) channel: &'s Channel<R>,
    pub(crate) index: usize,
    pub(crate) cookie: u64,
    /// `OneWay` once it was answered.
    pub(crate) kind: Kind,
    /// The opening of the channel that it came in: an answer to an older one goes nowhere.
    pub(crate) opening: u64,
    pub(crate) message: Message,
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

    /// Whether anybody wants an answer.
    pub fn wants_reply(&self) -> bool {
        self.kind != Kind::OneWay
    }

    /// Whether it may be answered by [`Request::more`] before the last answer.
    pub fn is_multishot(&self) -> bool {
        self.kind == Kind::Multishot
    }

    /// The client's buffer of `size` bytes at `offset` of its arena.
    ///
    /// # Errors
    /// If it is not inside the arena.
    pub fn loan(&self, offset: u64, size: u64) -> Result<Loan, PeerMisbehaviour> {
        self.channel.loan(offset, size)
    }

    /// The request costs as much as `extra` more requests: the client's next turns are shorter ([`Server::set_weight`]).
    pub fn charge(&self, extra: u32) {
        self.channel.charge(extra);
    }

    /// Answers the request. To a one-way message this does nothing.
    #[inline(always)] // hot path: the message is built in the ring
    pub fn reply(mut self, message: Message) {
        match core::mem::replace(&mut self.kind, Kind::OneWay) {
            Kind::Call => self.origin().answer(Kind::Reply, message),
            kind => self.origin().end_unusual(kind, Kind::Reply, message.afresh()),
        }
    }

    /// Answers the request and says that it failed: calls linked behind it do not run. The client gets the message as with
    /// [`Request::reply`].
    pub fn refuse(mut self, message: Message) {
        let kind = core::mem::replace(&mut self.kind, Kind::OneWay);
        self.origin().end_unusual(kind, Kind::Refused, message);
    }

    /// Sends a completion that is not the last, of a multishot call.
    ///
    /// # Errors
    /// `Full` if the client has not granted it yet ([`Request::window`] waits), `Closed` if it is gone or has given the
    /// call up, `Unsupported` if the call has one
    /// completion only.
    pub fn more(&self, message: Message) -> Result<(), SendError> {
        if !self.is_multishot() {
            return Err(SendError::Unsupported(message));
        }
        self.channel.more(self.opening, self.cookie, message)
    }

    /// Resolves when [`Request::more`] has leave to send, or the call is cancelled. At once if the request is not multishot.
    pub fn window(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            let ready = !self.is_multishot() || self.channel.poll_window(self.opening, self.cookie, context.waker());
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Whether the client has given the call up, or is gone. A hint to do less: an answer is owed nevertheless.
    pub fn is_cancelled(&self) -> bool {
        self.channel.is_cancelled(self.opening, self.cookie)
    }

    /// Resolves when [`Request::is_cancelled`]: to be raced against the work. Never over an endpoint.
    pub fn cancelled(&self) -> impl Future<Output = ()> + '_ {
        let wait = CancelWait(self);
        poll_fn(move |context| {
            // The whole of it, not the reference inside: it is dropped with this closure.
            let CancelWait(request) = &wait;
            if request.is_cancelled() {
                return Poll::Ready(());
            }
            request.channel.add_cancel_waiter(request.cookie, context.waker());
            Poll::Pending
        })
    }

    #[inline(always)] // moves of registers
    fn origin(&self) -> Origin<'_, R> {
        let Self { server, channel, index, cookie, opening, .. } = *self;
        Origin { server, channel, index, cookie, opening }
    }
}

/// Where a request came from, as a value: a request whose address is taken must be in memory, with all words of its message, before anybody
/// knows which of them are wanted.
struct Origin<'s, R: Ring> {
    server: &'s Server<R>,
    channel: &'s Channel<R>,
    index: usize,
    cookie: u64,
    opening: u64,
}

impl<R: Ring> Origin<'_, R> {
    /// Delivers what ends an ordinary call.
    #[inline(always)] // as `Request::reply`
    fn answer(&self, kind: Kind, message: Message) {
        match &self.server.mailbox {
            Some(mailbox) => mailbox.answer(self.cookie, (kind != Kind::Dropped).then_some(message.afresh())),
            None => self.channel.answer(self.opening, kind, self.cookie, message),
        }
    }

    /// Ends a request of `asked` that is not plain, or in a way that is not.
    #[cold]
    fn end_unusual(self, asked: Kind, kind: Kind, message: Message) {
        if asked == Kind::OneWay {
            return;
        }
        if asked == Kind::Multishot {
            self.channel.end_multishot(self.cookie);
        }
        self.answer(kind, message);
        if asked == Kind::Linked {
            self.server.end_link(self.index, self.opening, self.cookie, kind == Kind::Reply);
        }
    }
}

/// A wait for the cancellation of a request; it ends when it is dropped.
struct CancelWait<'r, 's, R: Ring>(&'r Request<'s, R>);

impl<R: Ring> Drop for CancelWait<'_, '_, R> {
    fn drop(&mut self) {
        self.0.channel.remove_cancel_waiter(self.0.cookie);
    }
}

impl<R: Ring> Drop for Request<'_, R> {
    #[inline(always)] // hot path: a branch when it was answered
    fn drop(&mut self) {
        if self.kind != Kind::OneWay {
            self.origin().end_unusual(self.kind, Kind::Dropped, Message::default());
        }
    }
}
