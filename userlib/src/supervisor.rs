//! What a program says to the root task over its fault-and-exit endpoint (slot 7).
//!
//! The kernel sends fault messages there (labels 1 to 5, `abi::fault`). These labels stand behind them:
//!
//! | label | words | meaning | answer |
//! |---|---|---|---|
//! | [`PRINT`] | MR0 = bytes, MR1.. = the bytes, little endian | one line, or a piece of at most [`PRINT_MAX`] bytes, for the console | none (`Send`) |
//! | [`EXIT`] | MR0 = exit code | the program leaves | never: the caller stays blocked |
//! | [`PARK`] | - | this thread is done, the program goes on | never |
//! | [`ACCUSE`] | MR0 = number of a channel of this program | the other end has broken the protocol | none (`Send`) |
//!
//! Lines go through the root task, not through `DebugPutChar`, so that two harts cannot mix theirs.
//!
//! The root task also answers calls to servers that have died, with label [`SERVER_GONE`]; a thread whose index it has given the bit
//! [`LAST_RITES`] starts only to say so to the caller that its former life has not answered.

/// A piece of console output.
pub const PRINT: u64 = 0x20;
/// The program leaves.
pub const EXIT: u64 = 0x21;
/// This thread is done.
pub const PARK: u64 = 0x22;

/// The other end of a channel has broken the protocol.
pub const ACCUSE: u64 = 0x23;

/// Label of the answer to a call whose server has died. Labels of libipc's answers are 16 bits, or its own from 2^16 up.
pub const SERVER_GONE: u64 = 3 << 16;
/// Bit in the index of a thread that starts for the last time.
pub const LAST_RITES: usize = 1 << 32;

/// Most bytes in one [`PRINT`].
pub const PRINT_MAX: usize = (abi::message::MAX_LENGTH - 1) * 8;
