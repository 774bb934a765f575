#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;
#[cfg(all(not(target_os = "none"), not(any(test, loom))))]
extern crate std;

pub mod arena;
pub mod bell;
pub mod call;
pub mod channel;
pub mod entry;
pub mod error;
pub mod executor;
mod mailbox;
pub mod message;
mod pending;
pub mod port;
pub mod ring;
pub mod serve;
mod sync;
mod waiter;

pub use call::{Call, Client};
pub use error::{CallError, OpenError, PeerMisbehaviour, SendError};
pub use executor::Executor;
pub use message::Message;
pub use serve::{Request, Server};
