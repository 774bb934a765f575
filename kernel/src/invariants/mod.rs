//! What is true of the kernel's state between any two kernel entries.
//!
//! Host tests check all of it after every step; a kernel built with debug assertions checks it on the machine whenever it gives the big
//! lock back (`arch/riscv64/trap.rs`). So nothing here allocates or recurses: what a check has seen is in a [`Survey`].
//!
//! Everything that exists is found from the list of threads, the interrupts' slots, the CNodes that these lead to, and the
//! relatives of all slots so found. A broken invariant is a panic that names it.
//!
//! Looking everywhere at every exit would take some 300,000 instructions on the machine, most of them in empty slots and page table
//! entries. [`check_changes`] comes to the same answer: it leaves out what depends only on objects that nobody has opened for change
//! since it was checked last ([`Journal`]).
//!
//! | file | what | depends on |
//! |---|---|---|
//! | `survey.rs` | finding everything, once | |
//! | `journal.rs` | what has been opened for change | |
//! | `threads.rs` `alarms.rs` | threads, queues, cores, bindings, reply capabilities; waits until a time | anything: always checked |
//! | `senders.rs` | user interrupts: receivers, sender tables, their capabilities | anything: always checked |
//! | `tree.rs` | derivation tree: links, order, who is last, free index of untyped memory | slots |
//! | `mappings.rs` | page tables against the capabilities of what they map, ASIDs | page tables, ASID pools, slots of memory |

mod alarms;
mod journal;
mod mappings;
mod senders;
mod survey;
mod threads;
mod tree;

pub use survey::Survey;

pub use journal::Journal;

use crate::state::Kernel;

/// Checks all of the kernel's state.
///
/// # Panics
/// If an invariant does not hold, or if there is more than `survey` has room for.
pub fn check(k: &Kernel, survey: &mut Survey) {
    survey.find_threads(k);
    survey.find_slots(k);
    check_found(k, survey, true, true);
}

/// As [`check`], looking only at what can have changed since the last call: the same survey, and a journal that was cleared then.
///
/// # Panics
/// As [`check`].
pub fn check_changes(k: &Kernel, survey: &mut Survey) {
    survey.find_threads(k);
    if k.journal.any_slots() {
        survey.update_slots(k, k.journal.slots());
    }
    check_found(k, survey, k.journal.any_slots(), k.journal.any_spaces(|slot| k.cap(slot).kind()));
}

fn check_found(k: &Kernel, survey: &mut Survey, slots: bool, spaces: bool) {
    threads::check(k, survey);
    alarms::check(k, survey);
    senders::check(k, survey);
    if slots {
        tree::check(k, survey);
    }
    if spaces {
        mappings::check(k, survey);
    }
}
