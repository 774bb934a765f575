//! What the executor asks of its environment, and the environments there are.
//!
//! | file | environment |
//! |---|---|
//! | `guest.rs` | a guest: its doorbell notification, by user interrupt where the machine has them |
//! | `clock.rs` | a guest's time, and the alarm that ends its waits |
//! | `endpoint.rs` | a guest that serves synchronous channels: the endpoint, and the doorbell bound to the same thread |
//! | `threads.rs` | threads of a host program, for tests |
//!
//! A doorbell delivers *bits*: bit n is vector n. Whether it came by user interrupt or by signal is the port's affair; the
//! bits mean the same. They are hints: a bit may come late, twice, or made up by the program itself.

#[cfg(target_os = "none")]
pub mod clock;
#[cfg(target_os = "none")]
pub mod endpoint;
#[cfg(target_os = "none")]
pub mod guest;
#[cfg(not(target_os = "none"))]
pub mod threads;

#[cfg(target_os = "none")]
pub use clock::GuestClock;
#[cfg(target_os = "none")]
pub use guest::{GuestPort, Peer};
#[cfg(not(target_os = "none"))]
pub use threads::{Peer, ThreadPort};

/// How long an idle executor keeps looking before it sleeps deeper. All counts are upper bounds: the executor adapts between
/// 0 and them to how often the next stage was avoided ([`crate::executor::idle`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Looks at the rings while Running.
    pub polls: u32,
    /// Looks at the doorbell's word while Armed. Where a running thread cannot be reached there is no Armed and this is not used.
    pub watches: u32,
}

impl Patience {
    /// Sleeps in the kernel at once.
    pub const NONE: Self = Self { polls: 0, watches: 0 };
}

/// The environment of an executor.
pub trait Port {
    /// Bits that came since the last call, without waiting.
    fn take(&self) -> u64;

    /// Whether a peer can reach this thread while it runs: whether Armed is worth anything.
    fn can_arm(&self) -> bool;

    /// Waits until bits come, and returns them. Bits that came before the call end it at once. May return early, with 0. Whatever
    /// the port held back for it goes out first.
    fn park(&self) -> u64;

    /// The executor finished a round and will not park now: whatever the port held back for [`Port::park`] goes out.
    fn flush(&self) {}

    /// Whether a peer of this hart is to be woken by the next [`Port::park`] ([`crate::bell::Ring::signal_at_park`]). While this
    /// thread looks for work of its own that peer cannot run, so the executor parks at once.
    fn owes(&self) -> bool {
        false
    }

    /// How patient an executor on this port is by default.
    fn patience(&self) -> Patience;

    /// User interrupts taken so far.
    fn user_interrupts(&self) -> u64 {
        0
    }
}
