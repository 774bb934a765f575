//! Telling a consumer that dozes, and never telling one that does not.
//!
//! Each end of a channel owns one doze word, alone on its line. The owner writes what it is about to do; the peer reads it
//! once per published batch.
//!
//! ```text
//!              doze(Armed)                 doze(Blocked)
//!   Running ───────────────> Armed ───────────────────────> Blocked
//!      ^  ^                    |                               |
//!      |  '── claim: peer ─────'── rings by user interrupt     |
//!      '───── claim: peer ─────────── rings by Signal ─────────'
//!   any state ── doze(Closed): owner, last ──> Closed
//! ```
//!
//! * Running: the owner looks at its rings by itself.
//! * Armed: the owner runs, but looks only when a user interrupt says so.
//! * Blocked: the owner waits in the kernel, or is about to; hardware cannot wake it, a signal can.
//! * Closed: the owner is gone.
//!
//! The peer *claims* a doze by moving the word back to Running, so that one doze is answered by one bell however many
//! batches follow.
//!
//! ```text
//!   producer: push; full_fence; claim -> ring?      consumer: doze(s); full_fence; ring ready? -> run, else park
//! ```
//!
//! This is the store-buffering litmus test. Each side writes one word and reads the other's; without a full fence on both
//! sides each may read the old value, and the wake-up is lost. With both, at least one side sees the other: either the producer
//! finds the doze, or the consumer finds the entry. `tests/loom.rs` shows that each half is needed.
//! On RISC-V the fence is `fence rw,rw`, paid once per batch.

use crate::sync::{AtomicU32, Ordering, fence};

/// What the owner of a doze word is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Doze {
    /// It looks at its rings.
    Running = 0,
    /// It waits for a user interrupt.
    Armed = 1,
    /// It waits in the kernel.
    Blocked = 2,
    /// It is gone.
    Closed = 3,
}

impl Doze {
    /// A word of another value was not written by a correct peer: it is as good as gone.
    fn from_word(word: u32) -> Self {
        match word {
            0 => Self::Running,
            1 => Self::Armed,
            2 => Self::Blocked,
            _ => Self::Closed,
        }
    }
}

/// The doze word of one end of a channel, alone on its line. Zeroed memory is Running: who has not started needs no bell.
#[repr(C, align(64))]
pub struct DozeWord(AtomicU32);

#[cfg(not(loom))] // loom's atomics are handles
const _: () = assert!(size_of::<DozeWord>() == 64);

impl DozeWord {
    /// The word of an end that has not started.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The owner's announcement. Follow it with [`full_fence`] and another look at the rings before acting on it.
    #[inline] // one store
    pub fn doze(&self, doze: Doze) {
        // Release: a claim that reads it acquires what the owner did before, the last push before a close above all.
        self.0.store(doze as u32, Ordering::Release);
    }

    /// What the owner says.
    #[inline] // one load
    pub fn state(&self) -> Doze {
        Doze::from_word(self.0.load(Ordering::Acquire))
    }

    /// The peer's half, after [`full_fence`]: what the owner was about to do. If it dozes, the claimer must now ring.
    #[inline] // the usual answer costs one load; the rest is out of line
    pub fn claim(&self) -> Doze {
        match self.state() {
            Doze::Running => Doze::Running,
            Doze::Closed => Doze::Closed,
            doze => self.claim_doze(doze),
        }
    }

    #[cold]
    fn claim_doze(&self, mut doze: Doze) -> Doze {
        // A failed exchange means that the owner moved on: at most through Armed, Blocked, Running, then this ends.
        while matches!(doze, Doze::Armed | Doze::Blocked) {
            match self.0.compare_exchange(doze as u32, Doze::Running as u32, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return doze,
                Err(now) => doze = Doze::from_word(now),
            }
        }
        doze
    }
}

impl Default for DozeWord {
    fn default() -> Self {
        Self::new()
    }
}

/// Orders everything before it against everything after it, stores before loads included.
#[inline] // one instruction
pub fn full_fence() {
    fence(Ordering::SeqCst);
}

/// How one end of a channel reaches the other.
pub trait Ring {
    /// Reaches a peer that runs (it is Armed). Where the machine cannot, this signals.
    fn interrupt(&self);
    /// Reaches a peer that waits in the kernel (it is Blocked).
    fn signal(&self);
    /// As [`Ring::signal`], at the latest when the executor of this thread next parks or flushes its port: a peer that shares the
    /// hart cannot run before that anyway, and is then switched to directly ([`crate::port::Port::park`]).
    fn signal_at_park(&self) {
        self.signal();
    }
    /// The other end has broken the protocol and was cut off: tells whoever may do more about it.
    fn accuse(&self) {}
}
