#![doc = include_str!("../README.md")]

pub mod figure;
pub mod progress;
pub mod published;
pub mod results;
pub mod table;
