//! Why a request is not carried out, and who pays: a [`Refusal`] is the caller's mistake and becomes an error reply; a preemption
//! is nobody's, and the call is made again.

use abi::error::{Error, LookupFailure};

/// An invocation that decode refuses. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Argument number.
    InvalidArgument(u64),
    /// Capability number: 0 the invoked one.
    InvalidCapability(u64),
    /// Not on this object, or not now.
    IllegalOperation,
    /// Least and greatest value allowed.
    Range(u64, u64),
    /// An address is not aligned.
    Alignment,
    /// Where a capability address led nowhere; `true` if it was the source's.
    FailedLookup(bool, LookupFailure),
    /// Too few words or capabilities.
    Truncated,
    /// The destination is in use.
    DeleteFirst,
    /// The object has children.
    RevokeFirst,
    /// Bytes left.
    NotEnoughMemory(u64),
}

impl Refusal {
    /// Label, message words and their number.
    pub const fn reply(self) -> (u64, [u64; 5], usize) {
        let (error, words, length) = match self {
            Self::InvalidArgument(number) => (Error::InvalidArgument, [number, 0, 0, 0, 0], 1),
            Self::InvalidCapability(number) => (Error::InvalidCapability, [number, 0, 0, 0, 0], 1),
            Self::IllegalOperation => (Error::IllegalOperation, [0; 5], 0),
            Self::Range(least, greatest) => (Error::RangeError, [least, greatest, 0, 0, 0], 2),
            Self::Alignment => (Error::AlignmentError, [0; 5], 0),
            Self::FailedLookup(source, failure) => {
                let (words, length) = failure.words();
                (Error::FailedLookup, [source as u64, words[0], words[1], words[2], words[3]], 1 + length)
            }
            Self::Truncated => (Error::TruncatedMessage, [0; 5], 0),
            Self::DeleteFirst => (Error::DeleteFirst, [0; 5], 0),
            Self::RevokeFirst => (Error::RevokeFirst, [0; 5], 0),
            Self::NotEnoughMemory(left) => (Error::NotEnoughMemory, [left, 0, 0, 0, 0], 1),
        };
        (error as u64, words, length)
    }
}

/// A long operation has stopped, because an interrupt is pending. What it did so far stays done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempted;

/// Why an invocation did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The caller's mistake.
    Refused(Refusal),
    /// The system call is executed again later.
    Preempted,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Preempted> for Stop {
    fn from(_: Preempted) -> Self {
        Self::Preempted
    }
}
