#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]

pub mod kernel;
pub mod null_call;
