#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod drive;
pub mod nic;
pub mod serve;
pub mod slots;
pub mod socket;
pub mod stack;

pub use config::Config;
pub use nic::Nic;
pub use stack::Stack;
