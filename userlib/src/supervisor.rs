//! What a program says to the root task over its fault-and-exit endpoint (slot 7).
//!
//! The kernel sends fault messages there (labels 1 to 5, `abi::fault`). These labels stand behind them:
//!
//! | label | words | meaning | answer |
//! |---|---|---|---|
//! | [`PRINT`] | MR0 = bytes, MR1.. = the bytes, little endian | one line, or a piece of at most [`PRINT_MAX`] bytes, for the console | none (`Send`) |
//! | [`EXIT`] | MR0 = exit code | the program leaves | never: the caller stays blocked |
//! | [`PARK`] | - | this thread is done, the program goes on | never |
//!
//! Lines go through the root task, not through `DebugPutChar`, so that two harts cannot mix theirs.

/// A piece of console output.
pub const PRINT: u64 = 0x20;
/// The program leaves.
pub const EXIT: u64 = 0x21;
/// This thread is done.
pub const PARK: u64 = 0x22;

/// Most bytes in one [`PRINT`].
pub const PRINT_MAX: usize = (abi::message::MAX_LENGTH - 1) * 8;
