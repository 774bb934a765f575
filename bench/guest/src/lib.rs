#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod alarm;
pub mod fairness;
pub mod kernel;
pub mod matrix;
pub mod null_call;
pub mod patience;
