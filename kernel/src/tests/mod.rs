//! Scenario tests of the portable kernel, each a short script over a [`world::World`]. After every system call the world checks the
//! kernel's invariants (`src/invariants`).

mod alarms;
mod authority;
mod boot;
mod errors;
mod fastpath_equiv;
mod faults;
mod fpu;
mod ipc;
mod journal;
mod log;
mod notifications;
mod play;
mod preemption;
mod random_worlds;
mod scheduling;
mod slots;
mod smp;
mod syscall_ring;
mod threads;
mod user_interrupts;
mod utilisation;
mod vspace;
mod world;
