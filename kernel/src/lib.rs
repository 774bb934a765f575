//! The Wakeline microkernel: seL4's ABI with user-interrupt objects.
#![cfg_attr(not(test), no_std)]
pub mod arch;
pub mod boot;
