//! From the device tree to the root task's first instruction.

pub mod machine;
pub mod regions;
