//! The deterministic virtual SoC.
pub mod device;
pub mod time;
