#![doc = include_str!("../README.md")]
#![no_std]

pub mod number;
pub mod row;
#[cfg(target_os = "none")]
pub mod server;
pub mod table;

pub use number::Invocation;
pub use row::{Answer, Outcome, Row, System};
