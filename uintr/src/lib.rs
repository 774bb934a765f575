#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]

pub mod csr;
pub mod entry;
pub mod format;
pub mod insn;
pub mod uintc;
