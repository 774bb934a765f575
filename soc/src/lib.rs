//! The deterministic virtual SoC. Library use: see README.md; `Machine` follows.
#![forbid(unsafe_code)]

pub mod config;
pub mod device;
pub mod devices;
pub mod error;
pub mod outcome;
pub mod time;
pub mod wire;

pub use config::{AccessedDirty, Config, Mode, parse_bytes};
pub use error::SocError;
pub use outcome::{End, HartReport, HartStatistics, Outcome, Privilege};
