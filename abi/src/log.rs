//! Records of the log of kernel entries: `benchmark_track_kernel_entry_t` of `libsel4/include/sel4/benchmark_track_types.h` as a C compiler
//! lays it out for RV64. Byte 0: `start_time`, 8 bytes; 8: `duration`, 4 bytes; 12: `path`, one byte; 13: details, 8 bytes; 3 bytes unused.
//!
//! Details of a system call: bits 3:0 minus its number, 8:4 type of the capability, 9 fast path, 28:10 label. Of anything else: bits 2:0
//! core, 28:3 number of the interrupt or cause of the trap.

/// Bytes of a record.
pub const RECORD_BYTES: u64 = 24;
/// Records that fit (`seL4_LogBufferSize` is 1 MiB).
pub const RECORDS: u64 = (1 << 20) / RECORD_BYTES;

/// Path: `Entry_Interrupt`.
pub const INTERRUPT: u8 = 0;
/// Path: `Entry_UnknownSyscall`.
pub const UNKNOWN_SYSCALL: u8 = 1;
/// Path: `Entry_UserLevelFault`.
pub const USER_LEVEL_FAULT: u8 = 2;
/// Path: `Entry_VMFault`.
pub const VM_FAULT: u8 = 4;
/// Path: `Entry_Syscall`.
pub const SYSCALL: u8 = 5;
