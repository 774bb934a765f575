#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod conn;
pub mod proto;
pub mod sync;

pub use conn::{Conn, Failure, Listener, Network};
pub use proto::{Error, Peer};
