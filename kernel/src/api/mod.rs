//! What user programs see: system calls, messages, errors, faults.

pub mod debug;
pub mod error;
pub mod fault;
pub mod invocation;
pub mod message;
pub mod snapshot;
pub mod syscall;
