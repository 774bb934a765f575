#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(target_os = "none")]
pub mod csr;
#[cfg(target_os = "none")]
pub mod entry;
#[cfg(target_os = "none")]
pub mod handler;
#[cfg(target_os = "none")]
pub mod measure;
#[cfg(target_os = "none")]
pub mod mmio;
#[cfg(target_os = "none")]
pub mod together;
#[cfg(target_os = "none")]
pub mod uart;
