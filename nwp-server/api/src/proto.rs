//! What client and server say to each other: the view ([`Message`]) and what it may mean ([`Request`], [`Reply`]).
//!
//! | operation | words | reply words |
//! |---|---|---|
//! | `LISTEN` | port, backlog | listener |
//! | `ACCEPT` | listener | connection, peer |
//! | `READ` | connection, span to fill | bytes read |
//! | `WRITE` | connection, span to send | bytes written |
//! | `CALL` | connection, span to send, span to fill | bytes read |
//! | `CLOSE` | listener or connection | - |
//!
//! A reply's operation code is 0 for success, else an [`Error`] without words: like seL4's labels, so that both transports carry it in
//! the message header. No message is longer than four words: over an endpoint that is the fast path, in registers.
//! Data never travels in a message. A [`Span`] names bytes of the channel's arena by offset; there is no pointer and no address.
//!
//! **Contract.** `parse` accepts exactly what `emit` can make, looks at every bit of every word that counts and never panics. What it
//! cannot know it leaves to the receiver: whether the socket exists and is the sender's, whether a span lies in the arena.

use libipc::Message;

/// Names a listener or a connection of one client. Chosen by the server, never used twice; of no use to another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// Bytes of the channel's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte, from the start of the arena.
    pub offset: u32,
    /// Number of bytes.
    pub length: u32,
}

/// The far end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// IPv4 address, first byte on the wire first.
    pub address: [u8; 4],
    /// TCP port.
    pub port: u16,
}

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Open a TCP port. For one that the client has open already the answer is the same listener, its backlog unchanged.
    Listen {
        /// The port; not 0.
        port: u16,
        /// Connections that may wait to be accepted; not 0. The server may grant fewer.
        backlog: u16,
    },
    /// Wait for a connection.
    Accept {
        /// From [`Request::Listen`].
        listener: SocketId,
    },
    /// Wait for data; 0 bytes means that the peer sends no more.
    Read {
        /// From [`Request::Accept`].
        connection: SocketId,
        /// Where the data goes; not empty.
        into: Span,
    },
    /// Queue data; done when all of it is queued, which waits for room. Delivery is TCP's affair.
    Write {
        /// From [`Request::Accept`].
        connection: SocketId,
        /// What to send.
        from: Span,
    },
    /// [`Request::Write`], then [`Request::Read`], in one message.
    Call {
        /// From [`Request::Accept`].
        connection: SocketId,
        /// What to send.
        from: Span,
        /// Where the data goes; not empty. May overlap `from`.
        into: Span,
    },
    /// Give the socket up. Queued data is still sent; operations that wait on it end with [`Error::Closed`].
    Close {
        /// Listener or connection.
        socket: SocketId,
    },
}

/// What the server answers when it did what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Request::Listen`].
    Listening(SocketId),
    /// To [`Request::Accept`].
    Accepted {
        /// The new connection.
        connection: SocketId,
        /// Who it is from.
        peer: Peer,
    },
    /// To [`Request::Read`], [`Request::Write`] and [`Request::Call`]: bytes read or written.
    Moved(u32),
    /// To [`Request::Close`].
    Closed,
}

/// Why the server did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Error {
    /// The caller's message: no such operation.
    UnknownOperation = 1,
    /// The caller's message: too few or too many words, or bits set where none belong.
    Malformed = 2,
    /// The caller's message: port 0, backlog 0 or an empty span to read into.
    BadArgument = 3,
    /// The caller's message: a span that is not inside the channel's arena.
    BadSpan = 4,
    /// The caller's message: not a socket of the caller's.
    BadSocket = 5,
    /// The caller's message: a listener where a connection is needed, or the other way round.
    WrongKind = 6,
    /// The caller's behaviour: the same operation already waits on this socket.
    Busy = 7,
    /// Another client listens on the port.
    PortInUse = 8,
    /// The server has no socket left, or the caller has used its share.
    NoSocket = 9,
    /// The peer reset the connection, or it timed out.
    Reset = 10,
    /// The socket was closed while the operation waited.
    Closed = 11,
}

/// All errors, in the order of their numbers.
const ERRORS: [Error; 11] = [
    Error::UnknownOperation,
    Error::Malformed,
    Error::BadArgument,
    Error::BadSpan,
    Error::BadSocket,
    Error::WrongKind,
    Error::Busy,
    Error::PortInUse,
    Error::NoSocket,
    Error::Reset,
    Error::Closed,
];
const _: () = {
    let mut index = 0;
    while index < ERRORS.len() {
        assert!(ERRORS[index] as usize == index + 1, "error numbers have a gap");
        index += 1;
    }
};

/// Operation codes.
mod op {
    pub const OK: u16 = 0;
    pub const LISTEN: u16 = 1;
    pub const ACCEPT: u16 = 2;
    pub const READ: u16 = 3;
    pub const WRITE: u16 = 4;
    pub const CALL: u16 = 5;
    pub const CLOSE: u16 = 6;
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::UnknownOperation => "unknown operation",
            Self::Malformed => "malformed message",
            Self::BadArgument => "bad argument",
            Self::BadSpan => "buffer outside the arena",
            Self::BadSocket => "no such socket",
            Self::WrongKind => "wrong kind of socket",
            Self::Busy => "the same operation already waits on the socket",
            Self::PortInUse => "port in use",
            Self::NoSocket => "no socket left",
            Self::Reset => "connection reset",
            Self::Closed => "socket closed",
        })
    }
}

impl core::error::Error for Error {}

impl Span {
    fn word(self) -> u64 {
        u64::from(self.length) << 32 | u64::from(self.offset)
    }

    fn parse(word: u64) -> Self {
        Self { offset: word as u32, length: (word >> 32) as u32 }
    }
}

impl Peer {
    fn word(self) -> u64 {
        u64::from(u32::from_be_bytes(self.address)) << 16 | u64::from(self.port)
    }

    fn parse(word: u64) -> Result<Self, Error> {
        let address = u32::try_from(word >> 16).map_err(|_| Error::Malformed)?;
        Ok(Self { address: address.to_be_bytes(), port: word as u16 })
    }
}

fn id(word: u64) -> Result<SocketId, Error> {
    u32::try_from(word).map(SocketId).map_err(|_| Error::Malformed)
}

fn nonzero_u16(word: u64) -> Result<u16, Error> {
    match u16::try_from(word) {
        Ok(0) => Err(Error::BadArgument),
        Ok(value) => Ok(value),
        Err(_) => Err(Error::Malformed),
    }
}

fn target(word: u64) -> Result<Span, Error> {
    let span = Span::parse(word);
    if span.length == 0 { Err(Error::BadArgument) } else { Ok(span) }
}

/// The message's words if there are exactly `N`.
fn words<const N: usize>(message: &Message) -> Result<[u64; N], Error> {
    if usize::from(message.len) != N {
        return Err(Error::Malformed);
    }
    message.payload().try_into().map_err(|_| Error::Malformed)
}

impl Request {
    /// The message that says this.
    pub fn emit(&self) -> Message {
        match *self {
            Self::Listen { port, backlog } => Message::new(op::LISTEN, [port.into(), backlog.into()]),
            Self::Accept { listener } => Message::new(op::ACCEPT, [listener.0.into()]),
            Self::Read { connection, into } => Message::new(op::READ, [connection.0.into(), into.word()]),
            Self::Write { connection, from } => Message::new(op::WRITE, [connection.0.into(), from.word()]),
            Self::Call { connection, from, into } => {
                Message::new(op::CALL, [connection.0.into(), from.word(), into.word()])
            }
            Self::Close { socket } => Message::new(op::CLOSE, [socket.0.into()]),
        }
    }

    /// What a client's message asks. Errors: [`Error::UnknownOperation`], [`Error::Malformed`], [`Error::BadArgument`].
    pub fn parse(message: &Message) -> Result<Self, Error> {
        match message.op {
            op::LISTEN => {
                let [port, backlog] = words(message)?;
                Ok(Self::Listen { port: nonzero_u16(port)?, backlog: nonzero_u16(backlog)? })
            }
            op::ACCEPT => {
                let [listener] = words(message)?;
                Ok(Self::Accept { listener: id(listener)? })
            }
            op::READ => {
                let [connection, into] = words(message)?;
                Ok(Self::Read { connection: id(connection)?, into: target(into)? })
            }
            op::WRITE => {
                let [connection, from] = words(message)?;
                Ok(Self::Write { connection: id(connection)?, from: Span::parse(from) })
            }
            op::CALL => {
                let [connection, from, into] = words(message)?;
                Ok(Self::Call { connection: id(connection)?, from: Span::parse(from), into: target(into)? })
            }
            op::CLOSE => {
                let [socket] = words(message)?;
                Ok(Self::Close { socket: id(socket)? })
            }
            _ => Err(Error::UnknownOperation),
        }
    }
}

impl Reply {
    /// The message that carries a request's outcome.
    pub fn emit(outcome: Result<Self, Error>) -> Message {
        match outcome {
            Ok(Self::Listening(listener)) => Message::new(op::OK, [listener.0.into()]),
            Ok(Self::Accepted { connection, peer }) => Message::new(op::OK, [connection.0.into(), peer.word()]),
            Ok(Self::Moved(length)) => Message::new(op::OK, [length.into()]),
            Ok(Self::Closed) => Message::new(op::OK, []),
            Err(error) => Message::new(error as u16, []),
        }
    }

    /// What the server's `message` says to `request`. The outer error: it is no answer to this request, so the server is not to
    /// be trusted. A read is never longer, and a write never other, than was asked.
    pub fn parse(request: &Request, message: &Message) -> Result<Result<Self, Error>, BadReply> {
        if message.op != op::OK {
            let error = ERRORS.get(usize::from(message.op) - 1).ok_or(BadReply)?;
            return if message.len == 0 { Ok(Err(*error)) } else { Err(BadReply) };
        }
        let reply = match *request {
            Request::Listen { .. } => {
                let [listener] = words(message)?;
                Self::Listening(id(listener)?)
            }
            Request::Accept { .. } => {
                let [connection, peer] = words(message)?;
                Self::Accepted { connection: id(connection)?, peer: Peer::parse(peer)? }
            }
            Request::Read { into, .. } | Request::Call { into, .. } => {
                let [length] = words(message)?;
                let length = u32::try_from(length).ok().filter(|&length| length <= into.length);
                Self::Moved(length.ok_or(BadReply)?)
            }
            Request::Write { from, .. } => {
                let [length] = words(message)?;
                if length != u64::from(from.length) {
                    return Err(BadReply);
                }
                Self::Moved(from.length)
            }
            Request::Close { .. } => {
                let [] = words(message)?;
                Self::Closed
            }
        };
        Ok(Ok(reply))
    }
}

/// The server's message is no answer to the request it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadReply;

impl From<Error> for BadReply {
    fn from(_: Error) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words of the longest message that the endpoint fast path takes.
    const FAST_PATH_WORDS: u8 = 4;

    fn span() -> impl Strategy<Value = Span> {
        (any::<u32>(), any::<u32>()).prop_map(|(offset, length)| Span { offset, length })
    }

    fn filled() -> impl Strategy<Value = Span> {
        (any::<u32>(), 1..=u32::MAX).prop_map(|(offset, length)| Span { offset, length })
    }

    fn socket() -> impl Strategy<Value = SocketId> {
        any::<u32>().prop_map(SocketId)
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            (1..=u16::MAX, 1..=u16::MAX).prop_map(|(port, backlog)| Request::Listen { port, backlog }),
            socket().prop_map(|listener| Request::Accept { listener }),
            (socket(), filled()).prop_map(|(connection, into)| Request::Read { connection, into }),
            (socket(), span()).prop_map(|(connection, from)| Request::Write { connection, from }),
            (socket(), span(), filled()).prop_map(|(connection, from, into)| Request::Call { connection, from, into }),
            socket().prop_map(|socket| Request::Close { socket }),
        ]
    }

    /// A reply that fits `request`.
    fn reply(request: Request) -> BoxedStrategy<Reply> {
        match request {
            Request::Listen { .. } => socket().prop_map(Reply::Listening).boxed(),
            Request::Accept { .. } => (socket(), any::<[u8; 4]>(), any::<u16>())
                .prop_map(|(connection, address, port)| Reply::Accepted { connection, peer: Peer { address, port } })
                .boxed(),
            Request::Read { into, .. } | Request::Call { into, .. } => (0..=into.length).prop_map(Reply::Moved).boxed(),
            Request::Write { from, .. } => Just(Reply::Moved(from.length)).boxed(),
            Request::Close { .. } => Just(Reply::Closed).boxed(),
        }
    }

    proptest! {
        #[test]
        fn requests_survive_the_journey_in_registers(request in request()) {
            let message = request.emit();
            prop_assert!(message.len <= FAST_PATH_WORDS);
            prop_assert_eq!(Request::parse(&message), Ok(request));
        }

        #[test]
        fn replies_survive_the_journey_in_registers((request, reply) in request().prop_flat_map(|r| (Just(r), reply(r)))) {
            let message = Reply::emit(Ok(reply));
            prop_assert!(message.len <= FAST_PATH_WORDS);
            prop_assert_eq!(Reply::parse(&request, &message), Ok(Ok(reply)));
        }

        #[test]
        fn any_message_is_refused_or_is_what_emit_makes(op in 0u16..9, len in 0u8..9, words in any::<[u64; 6]>(), small: bool) {
            let words = if small { words.map(|word| word % 0x1_0001) } else { words };
            let message = Message { op, len, words };
            if let Ok(request) = Request::parse(&message) {
                let again = request.emit();
                prop_assert_eq!((again.op, again.payload()), (op, message.payload()));
            }
        }

        #[test]
        fn any_reply_is_refused_or_fits_the_request(request in request(), op in 0u16..14, len in 0u8..9, words in any::<[u64; 6]>(), small: bool) {
            let words = if small { words.map(|word| word % 0x1_0001) } else { words };
            let message = Message { op, len, words };
            if let Ok(outcome) = Reply::parse(&request, &message) {
                let again = Reply::emit(outcome);
                prop_assert_eq!((again.op, again.payload()), (op, message.payload()));
                if let (Ok(Reply::Moved(n)), Request::Read { into, .. }) = (outcome, request) {
                    prop_assert!(n <= into.length);
                }
            }
        }
    }

    #[test]
    fn errors_keep_their_numbers() {
        for error in ERRORS {
            let request = Request::Close { socket: SocketId(1) };
            assert_eq!(Reply::parse(&request, &Reply::emit(Err(error))), Ok(Err(error)));
        }
    }

    #[test]
    fn each_defect_has_its_own_answer() {
        let cases = [
            (Message::new(0, []), Error::UnknownOperation),
            (Message::new(7, [1]), Error::UnknownOperation),
            (Message::new(op::LISTEN, [7]), Error::Malformed),
            (Message::new(op::LISTEN, [7, 1, 0]), Error::Malformed),
            (Message::new(op::LISTEN, [0x1_0000, 1]), Error::Malformed),
            (Message::new(op::LISTEN, [0, 1]), Error::BadArgument),
            (Message::new(op::LISTEN, [7, 0]), Error::BadArgument),
            (Message::new(op::READ, [1, 0]), Error::BadArgument),
            (Message::new(op::READ, [1 << 32, 1 << 32]), Error::Malformed),
            (Message { op: op::CLOSE, len: 255, words: [0; 6] }, Error::Malformed),
        ];
        for (message, error) in cases {
            assert_eq!(Request::parse(&message), Err(error), "{message:?}");
        }
    }

    #[test]
    fn a_server_cannot_claim_more_than_was_asked() {
        let into = Span { offset: 0, length: 64 };
        let request = Request::Read { connection: SocketId(1), into };
        assert_eq!(Reply::parse(&request, &Message::new(op::OK, [65])), Err(BadReply));
        let request = Request::Write { connection: SocketId(1), from: into };
        assert_eq!(Reply::parse(&request, &Message::new(op::OK, [63])), Err(BadReply));
    }
}
