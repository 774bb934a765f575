#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;
#[cfg(all(not(target_os = "none"), not(any(test, loom))))]
extern crate std;

pub mod arena;
pub mod bell;
pub mod call;
mod cancel;
mod chain;
pub mod channel;
pub mod client;
mod custody;
pub mod entry;
pub mod error;
pub mod executor;
mod grant;
mod mailbox;
pub mod message;
mod pending;
pub mod port;
pub mod request;
pub mod ring;
pub mod serve;
pub mod stream;
mod sync;
#[cfg(not(loom))]
pub mod syscall_ring;
mod waiter;

pub use call::Call;
pub use client::Client;
pub use error::{CallError, OpenError, PeerMisbehaviour, SendError};
pub use executor::Executor;
pub use message::Message;
pub use request::Request;
pub use serve::Server;
pub use stream::Stream;
