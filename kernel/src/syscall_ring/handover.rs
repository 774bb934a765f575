//! A ring that another core works off: one that idles, or runs a thread of less priority than the ring's owner.
//!
//! ```text
//!                    offer: a core is free
//!   nobody's ────────────────────────────────▶ a core's (Core::ring, RingState::helper)
//!      ▲                                          │ the core's interrupt: help
//!      └── drained, or the core has better to do: signal ◀┘ paused: interrupts itself, helps again
//! ```
//!
//! A core has one ring at most, so a look for one is bounded, and there is no queue of rings. What was promised to the owner is the
//! signal: it means "look, nobody works on your ring now". An owner that has run out of other things to do need not wait
//! for it: its next RingEnter works on the ring too, entry by entry under the big lock.

use super::{Outcome, comes_first, execute, page};
use crate::arch::Arch;
use crate::mem::Ref;
use crate::object::notification;
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::state::Kernel;
use crate::syscall_ring::line::{Arguments, Entry};

/// Finds a core for the ring of the current thread; gives whether one works on it. Without a notification to signal, or with nothing
/// queued, none does.
pub fn offer(k: &mut Kernel, owner: Ref<Tcb>) -> bool {
    if k.get(owner).ring.helper != 0 {
        return true;
    }
    let Some(core) = free_core(k, k.get(owner).priority) else { return false };
    if notification::signallable(k.get(owner).cap(Slot::RingNotification)).is_none() || !has_entry(k, owner) {
        return false;
    }
    k.cores[core].ring = Some(owner);
    k.get_mut(owner).ring.helper = core as u8 + 1;
    k.this_mut().reschedule |= 1 << core;
    true
}

fn has_entry(k: &Kernel, owner: Ref<Tcb>) -> bool {
    let position = usize::from(k.get(owner).ring.position);
    page(k, owner).is_some_and(|page| Entry::take(k, page, position, &mut Arguments::default()).is_some())
}

/// Another core that idles, else one whose thread has less priority; without a ring so far.
fn free_core(k: &Kernel, priority: u8) -> Option<usize> {
    let others = || (0..k.arch.cores()).filter(|&core| core != k.core() && k.cores[core].ring.is_none());
    let idles = |core: usize| k.cores[core].current == k.cores[core].idle;
    let is_worse = |core: usize| k.cores[core].current.is_some_and(|thread| k.get(thread).priority < priority);
    others().find(|&core| idles(core)).or_else(|| others().find(|&core| is_worse(core)))
}

/// This core was interrupted: works on its ring, if it has one and nothing better to do.
pub fn help(k: &mut Kernel) {
    let Some(owner) = k.this().ring else { return };
    let outcome = if k.get(owner).state != ThreadState::Inactive && comes_first(k, owner) {
        execute(k, owner)
    } else {
        Outcome::Drained
    };
    // The ring may have been taken away, with its owner or without.
    if k.this().ring != Some(owner) {
        return;
    }
    if outcome == Outcome::Paused {
        let own = k.core();
        k.this_mut().reschedule |= 1 << own;
        return;
    }
    forget(k, owner);
    let cap = k.get(owner).cap(Slot::RingNotification);
    if let Some(object) = notification::signallable(cap) {
        notification::signal(k, object, cap.badge());
    }
}

/// No core works on the ring of `owner` any more.
pub fn forget(k: &mut Kernel, owner: Ref<Tcb>) {
    if let Some(core) = k.get(owner).ring.helper() {
        k.cores[core].ring = None;
        k.get_mut(owner).ring.helper = 0;
    }
}
