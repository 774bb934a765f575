//! Fault messages: labels, lengths and word positions.

/// Label of a capability fault. Words: 0 pc of the `ecall`, 1 CPtr, 2 = 1 in a receive phase, 3.. lookup failure.
pub const CAP_FAULT: u64 = 1;
/// Label of an unknown system call; words as [`UNKNOWN_SYSCALL_LENGTH`] says.
pub const UNKNOWN_SYSCALL: u64 = 2;
/// Label of a user exception. Words: 0 pc, 1 sp, 2 `scause`, 3 code (0).
pub const USER_EXCEPTION: u64 = 3;
/// Label of a virtual-memory fault. Words: 0 pc, 1 address, 2 = 1 for a fetch, 3 status (1 fetch, 5 load, 7 store).
pub const VM_FAULT: u64 = 5;

/// Words: FaultIP, sp, ra, a0..a6, number.
pub const UNKNOWN_SYSCALL_LENGTH: usize = 11;
/// Words that a reply to an unknown system call may write: FaultIP, sp, ra, a0..a6.
pub const UNKNOWN_SYSCALL_REPLY_LENGTH: usize = 10;
/// Words of a user exception.
pub const USER_EXCEPTION_LENGTH: usize = 4;
/// Words that a reply to a user exception may write: FaultIP, sp.
pub const USER_EXCEPTION_REPLY_LENGTH: usize = 2;
/// Words of a virtual-memory fault.
pub const VM_FAULT_LENGTH: usize = 4;
/// Words of a capability fault before the lookup failure.
pub const CAP_FAULT_LOOKUP: usize = 3;

/// Fault status of a fetch.
pub const FSR_FETCH: u64 = 1;
/// Fault status of a load.
pub const FSR_LOAD: u64 = 5;
/// Fault status of a store or atomic.
pub const FSR_STORE: u64 = 7;
