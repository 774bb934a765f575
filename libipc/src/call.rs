//! Calls in flight as futures: a call, one with a deadline, one that lends a buffer.
//!
//! Each resolves once. Whatever comes first decides: the reply, the deadline, the end of the channel, or the future being
//! dropped; what comes later finds the call ended ([`crate::pending`]) and reaches nobody.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::FusedFuture;

use crate::arena::Buffer;
use crate::bell::Ring;
use crate::channel::NativePeer;
use crate::client::Client;
use crate::custody::Held;
use crate::error::CallError;
use crate::message::Message;

#[derive(Clone, Copy)]
enum State {
    Waiting(u16),
    Refused(CallError),
    Done,
}

/// A call in flight. Dropping it cancels the call.
#[must_use = "the call is under way, but without awaiting it nobody gets the reply"]
pub struct Call<'c, R: Ring = NativePeer> {
    client: &'c Client<R>,
    state: State,
}

impl<'c, R: Ring> Call<'c, R> {
    #[inline(always)] // hot path: two words in the caller's frame
    pub(crate) fn waiting(client: &'c Client<R>, slot: u16) -> Self {
        Self { client, state: State::Waiting(slot) }
    }

    #[inline(always)] // as above
    pub(crate) fn refused(client: &'c Client<R>, error: CallError) -> Self {
        Self { client, state: State::Refused(error) }
    }

    pub(crate) fn client(&self) -> &'c Client<R> {
        self.client
    }

    /// The call, or [`CallError::Deadline`] if `timer` resolves first ([`crate::executor::Timers::at`]). The call is cancelled then.
    pub fn by<T: Future<Output = ()> + Unpin>(self, timer: T) -> CallBy<'c, T, R> {
        CallBy { call: self, timer }
    }

    /// Gives the call up, with what was lent to it.
    #[cold]
    pub(crate) fn give_up(&mut self, held: Option<Held>) {
        if let State::Waiting(slot) = core::mem::replace(&mut self.state, State::Done) {
            self.client.give_up(slot, held);
        }
    }
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

impl<R: Ring> FusedFuture for Call<'_, R> {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Done)
    }
}

impl<R: Ring> Drop for Call<'_, R> {
    #[inline] // hot path: a compare when the call has resolved
    fn drop(&mut self) {
        if let State::Waiting(_) = self.state {
            self.give_up(None);
        }
    }
}

/// A call with a deadline.
#[must_use = "the call is under way, but without awaiting it nobody gets the reply"]
pub struct CallBy<'c, T, R: Ring = NativePeer> {
    call: Call<'c, R>,
    timer: T,
}

impl<T: Future<Output = ()> + Unpin, R: Ring> Future for CallBy<'_, T, R> {
    type Output = Result<Message, CallError>;

    /// # Panics
    /// If polled again after it resolved.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The reply first: one that is here is not thrown away for a deadline that has passed meanwhile.
        if let Poll::Ready(result) = Pin::new(&mut self.call).poll(context) {
            return Poll::Ready(result);
        }
        if Pin::new(&mut self.timer).poll(context).is_ready() {
            self.call.give_up(None);
            return Poll::Ready(Err(CallError::Deadline));
        }
        Poll::Pending
    }
}

impl<T: Future<Output = ()> + Unpin, R: Ring> FusedFuture for CallBy<'_, T, R> {
    fn is_terminated(&self) -> bool {
        self.call.is_terminated()
    }
}

/// A call that lends a buffer.
#[must_use = "the call is under way, but without awaiting it nobody gets the reply"]
pub struct Lent<'c, R: Ring = NativePeer> {
    call: Call<'c, R>,
    /// Until the call has resolved.
    buffer: Option<Buffer>,
}

impl<'c, R: Ring> Lent<'c, R> {
    pub(crate) fn new(call: Call<'c, R>, buffer: Buffer) -> Self {
        Self { call, buffer: Some(buffer) }
    }
}

impl<R: Ring> Future for Lent<'_, R> {
    type Output = (Result<Message, CallError>, Buffer);

    /// # Panics
    /// If polled again after it resolved.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.call).poll(context).map(|result| {
            (result, self.buffer.take().expect("the call resolves once, and the buffer is here until then"))
        })
    }
}

impl<R: Ring> FusedFuture for Lent<'_, R> {
    fn is_terminated(&self) -> bool {
        self.call.is_terminated()
    }
}

impl<R: Ring> Drop for Lent<'_, R> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.call.give_up(Some(Held::Buffer(buffer)));
        }
    }
}
