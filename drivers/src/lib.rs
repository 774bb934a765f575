#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod axinic;
pub mod dma;
pub mod mmio;
pub mod nic;
pub mod virtio_net;

pub use axinic::AxiNic;
pub use dma::{DmaBuffer, DmaRegion};
pub use mmio::{Mmio, Registers};
pub use nic::NicDriver;
pub use virtio_net::VirtioNet;
