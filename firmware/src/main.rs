//! Machine-mode SBI firmware.
fn main() {}
