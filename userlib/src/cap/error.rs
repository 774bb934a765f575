//! Why an invocation was refused.

use crate::syscall::Registers;
use core::fmt;

pub use abi::error::Error as Code;

/// Result of an invocation.
pub type Result<T> = core::result::Result<T, Error>;

/// The kernel's answer to a failing invocation: a code, and words that say which argument, capability, bound or lookup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub code: Code,
    /// MR0..MR3 of the reply; their meaning depends on the code (`abi::error`).
    pub words: Registers,
}

impl Error {
    /// Splits an answer of the kernel into success (its words) and error.
    #[inline]
    pub fn check(label: u64, words: Registers) -> Result<Registers> {
        match Code::from_label(label) {
            None => Ok(words),
            Some(code) => Err(Self { code, words }),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, third, fourth] = self.words;
        match self.code {
            Code::InvalidArgument => write!(f, "argument {first} is invalid"),
            Code::InvalidCapability if first == 0 => write!(f, "the invoked capability is invalid"),
            Code::InvalidCapability => write!(f, "capability argument {first} is invalid"),
            Code::IllegalOperation => write!(f, "illegal operation"),
            Code::RangeError => write!(f, "argument outside {first}..={second}"),
            Code::AlignmentError => write!(f, "address is not aligned"),
            Code::FailedLookup => {
                let side = if first == 1 { "source" } else { "target" };
                match second {
                    1 => write!(f, "lookup of the {side} failed: invalid root"),
                    2 => write!(f, "lookup of the {side} failed: nothing there, {third} bits left"),
                    3 => write!(f, "lookup of the {side} failed: depth mismatch, {third} bits left, {fourth} found"),
                    _ => write!(f, "lookup of the {side} failed: guard mismatch, {third} bits left"),
                }
            }
            Code::TruncatedMessage => write!(f, "message is too short"),
            Code::DeleteFirst => write!(f, "destination is in use"),
            Code::RevokeFirst => write!(f, "object has children"),
            Code::NotEnoughMemory => write!(f, "not enough memory, {first} bytes left"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({self})", self.code)
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_success_or_a_coded_error() {
        assert_eq!(Error::check(0, [7, 0, 0, 0]), Ok([7, 0, 0, 0]));
        let error = Error::check(10, [4096, 0, 0, 0]).unwrap_err();
        assert_eq!(error.code, Code::NotEnoughMemory);
        assert_eq!(format!("{error}"), "not enough memory, 4096 bytes left");
        let error = Error::check(6, [0, 2, 21, 0]).unwrap_err();
        assert_eq!(format!("{error:?}"), "FailedLookup (lookup of the target failed: nothing there, 21 bits left)");
    }
}
