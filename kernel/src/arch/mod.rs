//! What each architecture supplies.
pub mod riscv64;
