#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod bootinfo;
pub mod config;
pub mod error;
pub mod extension;
pub mod fault;
pub mod image;
pub mod ipc_buffer;
pub mod label;
pub mod log;
pub mod message;
pub mod object;
pub mod register;
pub mod rights;
pub mod syscall;
pub mod syscall_ring;
