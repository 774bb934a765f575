//! A request from message to reply: decode, become a future on the socket, answer.
//!
//! [`worker`] is one request at a time; a server runs as many workers as requests can be in flight, so that a request that waits keeps
//! nobody else waiting, and nothing is allocated or spawned for a request. Transport does not show here: `libipc` hands out the same
//! requests from a ring and from an endpoint.

use core::cell::RefCell;
use core::future::poll_fn;

use libipc::arena::Loan;
use libipc::{Message, Request, Server};
use nwp_api::proto::{self, Error, Reply, SocketId, Span};

use crate::socket::ClientId;
use crate::stack::{Stack, Wire};

/// Serves requests until the server is closed.
pub async fn worker<D: Wire>(server: &Server, stack: &RefCell<Stack<D>>) {
    loop {
        let request = server.recv().await;
        let reply = answer(stack, &request).await;
        request.reply(reply);
    }
}

/// The reply to one message of a client.
async fn answer<D: Wire>(stack: &RefCell<Stack<D>>, request: &Request<'_>) -> Message {
    let loan = |span: Span| request.loan(span.offset.into(), span.length.into()).map_err(|_| Error::BadSpan);
    let outcome = match proto::Request::parse(request.message()) {
        Ok(asked) => perform(stack, request.channel(), asked, loan).await,
        Err(error) => Err(error),
    };
    Reply::emit(outcome)
}

/// Does what `client` asked; `loan` turns the spans of the request into its memory.
async fn perform<D: Wire>(
    stack: &RefCell<Stack<D>>,
    client: ClientId,
    asked: proto::Request,
    loan: impl Fn(Span) -> Result<Loan, Error>,
) -> Result<Reply, Error> {
    match asked {
        proto::Request::Listen { port, backlog } => {
            let listener = stack.borrow_mut().with_sockets(|sockets| sockets.listen(client, port, backlog))?;
            Ok(Reply::Listening(listener))
        }
        proto::Request::Accept { listener } => {
            let mut waiting = false;
            let (connection, peer) = poll_fn(|cx| {
                stack.borrow_mut().with_sockets(|sockets| sockets.poll_accept(client, listener, &mut waiting, cx))
            })
            .await?;
            Ok(Reply::Accepted { connection, peer })
        }
        proto::Request::Read { connection, into } => read(stack, client, connection, loan(into)?).await,
        proto::Request::Write { connection, from } => write(stack, client, connection, loan(from)?).await,
        proto::Request::Call { connection, from, into } => {
            // Both are checked before anything is sent.
            let (from, into) = (loan(from)?, loan(into)?);
            write(stack, client, connection, from).await?;
            read(stack, client, connection, into).await
        }
        proto::Request::Close { socket } => {
            stack.borrow_mut().with_sockets(|sockets| sockets.close(client, socket))?;
            Ok(Reply::Closed)
        }
    }
}

async fn read<D: Wire>(
    stack: &RefCell<Stack<D>>,
    client: ClientId,
    connection: SocketId,
    into: Loan,
) -> Result<Reply, Error> {
    let mut waiting = false;
    let length = poll_fn(|cx| {
        let mut stack = stack.borrow_mut();
        stack.with_sockets(|sockets| sockets.poll_read(client, connection, &into, &mut waiting, cx))
    })
    .await?;
    moved(length)
}

async fn write<D: Wire>(
    stack: &RefCell<Stack<D>>,
    client: ClientId,
    connection: SocketId,
    from: Loan,
) -> Result<Reply, Error> {
    let (mut done, mut waiting) = (0, false);
    poll_fn(|cx| {
        let mut stack = stack.borrow_mut();
        stack.with_sockets(|sockets| sockets.poll_write(client, connection, &from, &mut done, &mut waiting, cx))
    })
    .await?;
    moved(done)
}

/// The length fits: it is bounded by that of a span.
fn moved(length: usize) -> Result<Reply, Error> {
    u32::try_from(length).map(Reply::Moved).map_err(|_| Error::BadSpan)
}
