#![doc = include_str!("../README.md")]

pub mod boot;
pub mod calibrate;
mod capture;
mod cpu_time;
pub mod error;
pub mod fairness;
pub mod figure;
pub mod host;
pub mod ipc;
pub mod jobs;
pub mod kernel;
pub mod nic;
pub mod progress;
pub mod published;
pub mod results;
pub mod rtl;
pub mod socket;
pub mod syscall;
pub mod table;
pub mod tour;
pub mod wake;
