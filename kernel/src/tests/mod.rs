//! Scenario tests of the portable kernel, each a short script over a [`world::World`]. After every system call the world checks the
//! kernel's invariants (`invariants.rs`).

mod errors;
mod faults;
mod invariants;
mod ipc;
mod world;
