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
    /// The server closed the channel, before or after it saw the request.
    Closed,
    /// The server broke the protocol; the channel is closed.
    Peer(PeerMisbehaviour),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("too many calls in flight"),
            Self::Dropped => f.write_str("the server dropped the request"),
            Self::Closed => f.write_str("the server closed the channel"),
            Self::Peer(misbehaviour) => misbehaviour.fmt(f),
        }
    }
}

impl core::error::Error for CallError {}

/// Why a one-way message was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The ring is full; here is the message back.
    Full(Message),
    /// The channel is closed.
    Closed(Message),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the request ring is full",
            Self::Closed(_) => "the channel is closed",
        })
    }
}

impl core::error::Error for SendError {}

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
