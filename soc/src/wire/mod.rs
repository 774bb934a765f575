//! The wire and what is at its far end.
//!
//! ```text
//!   NIC model  ── Link::send ──▶  lane to the peer  ── Peer::deliver ──▶  Peer
//!   (device)   ◀─ Link::receive ─ lane to the NIC   ◀─ Peer::next ──────  (load generator, echo, sink, nat, ...)
//! ```
//!
//! A frame is its bytes from the destination address to the end of the payload, **without** the frame check sequence. The lanes add
//! preamble, check sequence and inter-frame gap as time ([`link`]). A [`Peer`] is a program of the host that lives in simulated
//! time: it is told the time, never reads a clock, and so gives the same frames at the same times on every run. The exceptions
//! are the peers that reach out of the simulation: [`Dgram`], [`Tap`] and [`Nat`].

pub(crate) mod cable;
pub mod dgram;
pub mod echo;
pub mod link;
pub mod loadgen;
pub mod nat;
pub(crate) mod pace;
pub mod pcap;
pub mod random;
pub mod sink;
pub mod spec;
mod stack;
pub mod tap;

pub use dgram::{Dgram, DgramConfig};
pub use echo::{Echo, Loopback};
pub use link::{Arrival, Link, LinkConfig};
pub use loadgen::LoadGen;
pub use nat::{Nat, NatConfig};
pub use pcap::Tee;
pub use sink::Sink;
pub use spec::{NetSpec, Network, Nic};
pub use tap::Tap;

use crate::time::SimTime;

/// Smallest frame without check sequence; a MAC pads what is shorter (IEEE 802.3, clause 4.2.3.3).
pub const MIN_FRAME_BYTES: usize = 60;
/// Length of the frame check sequence.
pub const FCS_BYTES: usize = 4;

/// The answer of [`Peer::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This frame goes on the wire now. The peer is asked again when the wire is free.
    Frame(Vec<u8>),
    /// Nothing now; ask again at this time, or after the next delivery if that is earlier.
    At(SimTime),
    /// Nothing until something is delivered.
    Idle,
}

/// The far end of a wire. Calls come with times that never go back.
pub trait Peer: Send {
    /// The last bit of `frame` has arrived. Damaged frames are not delivered: a real MAC drops them.
    fn deliver(&mut self, now: SimTime, frame: &[u8]);
    /// What to send at `now`; the wire towards the NIC is free. Asked at time zero and after each delivery and each sent frame.
    fn next(&mut self, now: SimTime) -> Next;
    /// True once the peer has done all it came for; the machine stops then. A peer without an aim never finishes.
    fn finished(&self) -> bool {
        false
    }
    /// True if the peer does the same again when it is told and asked the same again. False for one that reaches out of the simulation.
    fn repeatable(&self) -> bool {
        true
    }
}

/// A peer with a peer inside, so that wrappers compose.
impl<P: Peer + ?Sized> Peer for Box<P> {
    fn deliver(&mut self, now: SimTime, frame: &[u8]) {
        (**self).deliver(now, frame);
    }
    fn next(&mut self, now: SimTime) -> Next {
        (**self).next(now)
    }
    fn finished(&self) -> bool {
        (**self).finished()
    }
    fn repeatable(&self) -> bool {
        (**self).repeatable()
    }
}
