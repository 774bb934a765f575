#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
extern crate alloc;

pub mod cap;
pub mod env;
pub mod ipc_buffer;
pub mod rt;
pub mod supervisor;
pub mod syscall;
pub mod time;
pub mod tree;

pub use abi::bootinfo::BootInfo;
pub use abi::message::MessageInfo;
pub use env::Env;
pub use rt::exit;
