//! The network for threads: the operations of [`crate::conn`], blocking.
//!
//! Over an endpoint a call returns with its reply, so the futures of `conn` are complete at their first poll, and this is all there is to
//! blocking: the two differ in transport only, not in a line of protocol code. Over an asynchronous channel nobody would ever wake the
//! thread; there every operation fails with [`Failure::WouldBlock`].

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use libipc::Client;

use crate::conn::{self, Failure};
use crate::proto::Peer;

/// The result of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Failure::WouldBlock),
    }
}

/// As [`conn::Network`].
#[derive(Clone, Copy)]
pub struct Network<'c>(conn::Network<'c>);

impl<'c> Network<'c> {
    /// The network server at the other end of `client`.
    pub fn new(client: &'c Client) -> Self {
        Self(conn::Network::new(client))
    }

    /// As [`conn::Network::listen`].
    pub fn listen(&self, port: u16, backlog: u16) -> Result<Listener<'c>, Failure> {
        at_once(self.0.listen(port, backlog)).map(Listener)
    }
}

/// As [`conn::Listener`].
pub struct Listener<'c>(conn::Listener<'c>);

impl<'c> Listener<'c> {
    /// As [`conn::Listener::accept`].
    pub fn accept(&self) -> Result<Conn<'c>, Failure> {
        at_once(self.0.accept()).map(Conn)
    }

    /// As [`conn::Listener::close`].
    pub fn close(self) -> Result<(), Failure> {
        at_once(self.0.close())
    }
}

/// As [`conn::Conn`].
pub struct Conn<'c>(conn::Conn<'c>);

impl Conn<'_> {
    /// As [`conn::Conn::peer`].
    pub fn peer(&self) -> Peer {
        self.0.peer()
    }

    /// As [`conn::Conn::read`].
    pub fn read(&mut self, data: &mut [u8]) -> Result<usize, Failure> {
        at_once(self.0.read(data))
    }

    /// As [`conn::Conn::write`].
    pub fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        at_once(self.0.write(data))
    }

    /// As [`conn::Conn::call`].
    pub fn call(&mut self, send: &[u8], receive: &mut [u8]) -> Result<usize, Failure> {
        at_once(self.0.call(send, receive))
    }

    /// As [`conn::Conn::close`].
    pub fn close(self) -> Result<(), Failure> {
        at_once(self.0.close())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_that_waits_is_an_error_and_not_a_hang() {
        assert_eq!(at_once(core::future::ready(Ok(7))), Ok(7));
        assert_eq!(at_once(core::future::pending::<Result<(), _>>()), Err(Failure::WouldBlock));
    }
}
