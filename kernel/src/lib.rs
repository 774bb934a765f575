#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]

pub mod alarm;
pub mod api;
pub mod arch;
pub mod boot;
pub mod cspace;
pub mod fastpath;
pub mod fpu;
pub mod handoff;
#[cfg(debug_assertions)]
pub mod invariants;
pub mod log;
pub mod mem;
pub mod object;
pub mod sched;
pub mod special;
pub mod state;
pub mod syscall_ring;
pub mod thread;
pub mod utilisation;

#[cfg(test)]
mod tests;
