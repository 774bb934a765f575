//! What can go wrong, by who learns it.

use core::fmt;

use crate::message::Message;

/// The peer wrote something into shared memory that no correct peer writes. The channel is closed for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerMisbehaviour {
    /// The peer's header names another version, capacity or arena size.
    Header,
    /// An entry's mark is neither that of this lap nor of the one before.
    Sequence,
    /// A message claims more than six words.
    Length,
    /// An entry of unknown kind, or one that this direction does not carry.
    Kind,
    /// A reply to no call in flight: never made, already answered, or made up.
    Cookie,
    /// More requests in flight than the ring has entries.
    Credit,
    /// A buffer outside the arena.
    Buffer,
    /// A chain of linked calls that does not end, or holds something that is not a call.
    Chain,
    /// More completions of a multishot call than were granted, or a grant beyond the ring.
    Window,
}

impl fmt::Display for PeerMisbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "the peer's channel header does not match",
            Self::Sequence => "ring entry out of sequence",
            Self::Length => "message longer than an entry",
            Self::Kind => "ring entry of a kind that does not belong here",
            Self::Cookie => "reply to no call in flight",
            Self::Credit => "more requests in flight than ring entries",
            Self::Buffer => "buffer outside the arena",
            Self::Chain => "chain of linked calls that is none",
            Self::Window => "more completions than were granted",
        })
    }
}

impl core::error::Error for PeerMisbehaviour {}

/// Why a call has no reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallError {
    /// As many calls are in flight as the ring has entries; the message was not sent.
    Full,
    /// The server dropped the request without a reply.
    Dropped,
    /// Not executed: a call that this one was linked to failed, or it was cancelled before its turn.
    Cancelled,
    /// Its deadline came first. The server was told; what it does nevertheless reaches nobody.
    Deadline,
    /// The server closed the channel or died, before or after it saw the request.
    Closed,
    /// The server broke the protocol; the channel is closed.
    Peer(PeerMisbehaviour),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("too many calls in flight"),
            Self::Dropped => f.write_str("the server dropped the request"),
            Self::Cancelled => f.write_str("the call was cancelled before its turn"),
            Self::Deadline => f.write_str("no reply before the deadline"),
            Self::Closed => f.write_str("the server closed the channel"),
            Self::Peer(misbehaviour) => misbehaviour.fmt(f),
        }
    }
}

impl core::error::Error for CallError {}

/// Why something was not sent; here it is back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError<T = Message> {
    /// There is no credit: as much is in flight as the ring has entries. [`crate::Client::credit`] waits for one.
    Full(T),
    /// The channel is closed.
    Closed(T),
    /// The channel goes over an endpoint, which has no such calls.
    Unsupported(T),
}

impl<T> SendError<T> {
    /// What was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(inner) | Self::Closed(inner) | Self::Unsupported(inner) => inner,
        }
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "too much is in flight",
            Self::Closed(_) => "the channel is closed",
            Self::Unsupported(_) => "an endpoint cannot carry it",
        })
    }
}

impl<T: fmt::Debug> core::error::Error for SendError<T> {}

/// Why a channel cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The environment has no such channel, or not in this role.
    NoChannel,
    /// The number of entries is not a power of two from 2 to 32768.
    Entries,
    /// The shared memory is too small for the rings, or not aligned to a line.
    Memory,
    /// A server cannot mix channels of both transports.
    MixedTransports,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoChannel => "no such channel",
            Self::Entries => "ring entries must be a power of two from 2 to 32768",
            Self::Memory => "shared memory too small or not aligned for the rings",
            Self::MixedTransports => "a server cannot mix synchronous and asynchronous channels",
        })
    }
}

impl core::error::Error for OpenError {}
