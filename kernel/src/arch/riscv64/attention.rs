//! What an idle core waits for, in one word: a call into the kernel, or a thread that it is handed.
//!
//! ```text
//!            idles                   for some time nothing
//!   BUSY ───────────────▶ LOOKING ───────────────▶ ASLEEP          the core itself, as it stands
//!    ▲ ▲                   │   │                    │   │
//!    │ └── acknowledge ── CALLED ◀───── call ───────┘   │          another core, under the big lock
//!    └──────── take ───── a thread ◀── hand over ───────┘
//! ```
//!
//! A call tells the core to come into the kernel and look at its ready queues; it also reaches a core that is BUSY. A thread that
//! is handed over passes by the ready queues: its new core runs it at once. Until that core has taken it, another one can take it
//! back. Whoever changes the word of a core that does not look must interrupt that core.
//!
//! The core leaves LOOKING and ASLEEP without the lock, so every step out of those two is one atomic operation, of which one side wins.
//! The states are numbered so that handing over is a maximum: a thread is more than a core that waits, and less than one that does
//! not. An exchange under a condition would be two instructions, and a core that looks comes in between.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::mem::{Kva, Ref};
use crate::object::tcb::Tcb;

const LOOKING: u64 = 1;
const ASLEEP: u64 = 2;
// In between: the addresses of threads.
const CALLED: u64 = u64::MAX - 1;
const BUSY: u64 = u64::MAX;

/// How often an idle core looks before it sleeps: some 6,000 cycles, more than the other side of a conversation between two cores needs.
/// Waking a sleeping core takes two passes through the firmware, one here and one there, which is more than half of that.
#[cfg(not(loom))]
const LOOKS: usize = 512;
#[cfg(loom)]
const LOOKS: usize = 1;

/// How a core that was asked for something learns of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Notice {
    /// It looks, or comes anyway.
    Seen,
    /// It must be interrupted.
    Interrupt,
}

/// The word of a core, on a line of its own: who asks for something writes it once.
#[repr(align(64))]
pub struct Attention(AtomicU64);

fn thread_in(word: u64) -> Option<Ref<Tcb>> {
    // SAFETY: written from the name of a thread, which is taken back before it is deleted.
    (word > ASLEEP && word < CALLED).then(|| unsafe { Ref::assume(Kva(word)) })
}

impl Attention {
    /// Of a core that is busy.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(BUSY))
    }

    /// Of a core that is busy.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(BUSY))
    }

    /// Whether the word was `from`, and is `to` now.
    fn change(&self, from: u64, to: u64) -> bool {
        // Acquire: partner is whoever has called or handed over, if that is why this fails. Release: the same, the other way.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    // --- By the core itself, without the lock ---

    /// Waits, once, for a call, a thread, or what `pending` tells; after some time by `sleep`, which ends by an interrupt.
    pub fn wait(&self, pending: impl Fn() -> bool, sleep: impl FnOnce()) {
        if !self.change(BUSY, LOOKING) {
            return;
        }
        // A maximum that changes nothing: it brings the line for writing, as `take` needs it; a load would bring it to read, and
        // `take` once more. Acquire: partner is the maximum in `hand_over`, or the exchange in `call`.
        let found = (0..LOOKS).any(|_| self.0.fetch_max(LOOKING, Ordering::Acquire) != LOOKING || pending());
        if !found && self.change(LOOKING, ASLEEP) {
            sleep();
            self.change(ASLEEP, BUSY);
        } else {
            self.change(LOOKING, BUSY);
        }
    }

    // --- Under the lock: by the core itself ---

    /// Whether the core was called.
    pub fn is_called(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CALLED
    }

    /// The core has come.
    pub fn acknowledge(&self) {
        self.0.store(BUSY, Ordering::Relaxed);
    }

    /// The thread that the core was handed is the core's now.
    #[inline(always)]
    pub fn take(&self) -> Option<Ref<Tcb>> {
        let thread = self.handed()?;
        self.acknowledge();
        Some(thread)
    }

    // --- Under the lock: by any core ---

    /// The thread that the core was handed and has not taken.
    #[inline(always)]
    pub fn handed(&self) -> Option<Ref<Tcb>> {
        thread_in(self.0.load(Ordering::Relaxed))
    }

    /// Calls the core into the kernel.
    pub fn call(&self) -> Notice {
        match self.0.swap(CALLED, Ordering::AcqRel) {
            BUSY | ASLEEP => Notice::Interrupt,
            LOOKING | CALLED => Notice::Seen,
            thread => {
                // It comes anyway, and must find the thread.
                self.0.store(thread, Ordering::Release);
                Notice::Seen
            }
        }
    }

    /// Hands the core a thread, if it idles.
    #[inline(always)]
    pub fn hand_over(&self, thread: Ref<Tcb>) -> Option<Notice> {
        debug_assert!(thread_in(thread.word()).is_some());
        // Release: partner is the maximum in `wait`.
        match self.0.fetch_max(thread.word(), Ordering::AcqRel) {
            LOOKING => Some(Notice::Seen),
            ASLEEP => Some(Notice::Interrupt),
            CALLED | BUSY => None,
            other => {
                self.0.store(other, Ordering::Release);
                None
            }
        }
    }

    /// Takes a thread back that the core has not taken. The core comes all the same, as if it had been called.
    pub fn take_back(&self) -> Option<Ref<Tcb>> {
        let thread = self.handed()?;
        self.0.store(CALLED, Ordering::Relaxed);
        Some(thread)
    }
}

impl Default for Attention {
    fn default() -> Self {
        Self::new()
    }
}
