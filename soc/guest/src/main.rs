//! Bare-metal conformance programs for the virtual SoC.
fn main() {}
