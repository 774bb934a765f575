//! Root task.
fn main() {}
