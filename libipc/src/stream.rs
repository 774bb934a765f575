//! A multishot call on the client's side: one request, completions until the last.
//!
//! ```text
//!   client                                                        server
//!   subscribe(msg, window) ── Multishot, Grant(window) ─────────> more(msg) .. as often as was granted
//!   next().await <──────────── More .. More ─────────────────────
//!        half the window taken ── Grant(taken) ─────────────────> window().await goes on
//!   None  <──────────────────── Reply (the last) ──────────────── reply(msg)
//! ```
//!
//! Completions have no credits of their own in the reply ring. So the call reserves as many as its window has, and the server never
//! has more under way than it was granted: the ring cannot be overrun.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::{FusedFuture, FusedStream};

use crate::bell::Ring;
use crate::call::Call;
use crate::channel::NativePeer;
use crate::custody::Held;
use crate::entry::Kind;
use crate::error::{CallError, PeerMisbehaviour};
use crate::message::Message;

/// What has come of a multishot call.
pub(crate) struct Completions {
    pub(crate) cookie: u64,
    window: u64,
    /// Completions that the server may still send.
    granted: Cell<u64>,
    /// Taken since the last grant.
    taken: Cell<u64>,
    queue: RefCell<VecDeque<Message>>,
}

impl Completions {
    pub(crate) fn new(cookie: u64, window: u64) -> Self {
        let queue = RefCell::new(VecDeque::with_capacity(window as usize));
        Self { cookie, window, granted: Cell::new(window), taken: Cell::new(0), queue }
    }

    /// A completion that is not the last.
    ///
    /// # Errors
    /// If the server was not granted it.
    pub(crate) fn arrive(&self, message: Message) -> Result<(), PeerMisbehaviour> {
        let left = self.granted.get().checked_sub(1).ok_or(PeerMisbehaviour::Window)?;
        self.granted.set(left);
        self.queue.borrow_mut().push_back(message);
        Ok(())
    }

    /// The next completion, and what to grant the server for it, if it is time.
    fn take(&self) -> Option<(Message, Option<u64>)> {
        let message = self.queue.borrow_mut().pop_front()?;
        let taken = self.taken.get() + 1;
        if taken < self.window.div_ceil(2) {
            self.taken.set(taken);
            return Some((message, None));
        }
        self.taken.set(0);
        self.granted.set(self.granted.get() + taken);
        Some((message, Some(taken)))
    }
}

/// The completions of a multishot call; the last is the reply that ends it, or the error. Dropping it cancels the call.
#[must_use = "the call is under way, but without it nobody gets the completions"]
pub struct Stream<'c, R: Ring = NativePeer> {
    call: Call<'c, R>,
    completions: Rc<Completions>,
    credits: Box<[u16]>,
}

impl<'c, R: Ring> Stream<'c, R> {
    pub(crate) fn new(call: Call<'c, R>, completions: Rc<Completions>, credits: Box<[u16]>) -> Self {
        Self { call, completions, credits }
    }
}

impl<R: Ring> futures_core::Stream for Stream<'_, R> {
    type Item = Result<Message, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some((message, grant)) = self.completions.take() {
            if let Some(count) = grant {
                self.call.client().control(Kind::Grant, self.completions.cookie, count);
            }
            return Poll::Ready(Some(Ok(message)));
        }
        if self.call.is_terminated() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.call).poll(context).map(Some)
    }
}

impl<R: Ring> FusedStream for Stream<'_, R> {
    fn is_terminated(&self) -> bool {
        self.call.is_terminated()
    }
}

impl<R: Ring> Drop for Stream<'_, R> {
    fn drop(&mut self) {
        let client = self.call.client();
        client.end_stream(&self.completions);
        let credits = core::mem::take(&mut self.credits);
        if self.call.is_terminated() {
            credits.iter().for_each(|slot| client.pending.release(*slot));
        } else {
            self.call.give_up(Some(Held::Credits(credits)));
        }
    }
}
