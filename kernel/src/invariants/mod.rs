//! What is true of the kernel's state between any two kernel entries.
//!
//! Host tests check it after every step; a kernel built with debug assertions checks it on the machine whenever it gives the big lock
//! back (`arch/riscv64/trap.rs`). So nothing here allocates or recurses: what a check has seen is in a [`Survey`].
//!
//! Everything that exists is found from the list of threads, the interrupts' slots, the CNodes that these lead to, and the
//! relatives of all slots so found. A broken invariant is a panic that names it.
//!
//! | file | what |
//! |---|---|
//! | `survey.rs` | finding everything, once |
//! | `tree.rs` | derivation tree: links, order, who is last, free index of untyped memory |
//! | `threads.rs` | threads, queues, cores, bindings |
//! | `alarms.rs` | waits until a time |
//! | `mappings.rs` | page tables against the capabilities of what they map, ASIDs |
//! | `senders.rs` | user interrupts: receivers, sender tables, their capabilities |

mod alarms;
mod mappings;
mod senders;
mod survey;
mod threads;
mod tree;

pub use survey::Survey;

use crate::state::Kernel;

/// How much a check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Threads, queues, cores.
    Threads,
    /// And the derivation tree, with all capabilities.
    Tree,
    /// And page tables, ASID pools, receivers.
    Full,
}

/// Checks the kernel's state.
///
/// # Panics
/// If an invariant does not hold, or if there is more than `survey` has room for.
pub fn check(k: &Kernel, survey: &mut Survey, depth: Depth) {
    survey.find_threads(k);
    if depth >= Depth::Tree {
        survey.find_slots(k);
        tree::check(k, survey);
    }
    threads::check(k, survey, depth);
    alarms::check(k, survey);
    if depth == Depth::Full {
        mappings::check(k, survey);
        senders::check(k, survey);
    }
}
