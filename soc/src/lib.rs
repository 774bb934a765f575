#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod board;
pub mod boot;
pub mod cli;
pub mod config;
pub mod device;
pub mod devices;
pub mod disk;
pub mod elf;
pub mod error;
pub mod gdb;
pub mod image;
pub mod machine;
pub mod outcome;
pub mod pair;
pub mod snapshot;
pub mod symbols;
pub mod terminal;
pub mod testing;
pub mod time;
mod timing;
pub mod wire;

mod bus;
mod console;
mod debug;
mod event;
mod hart;
mod memory;
mod moment;
mod order;
mod profile;
mod trace;
mod trouble;

pub use config::{AccessedDirty, Config, Isa, Misaligned, Mode, UserInterrupts, parse_bytes};
pub use error::SocError;
pub use machine::Machine;
pub use outcome::{End, HartReport, HartStatistics, Outcome, Privilege};
