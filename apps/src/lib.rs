//! What programs of one system agree on.

#![no_std]

pub mod memory;
pub mod random;
