//! One direction of a channel: a ring of entries, one producer, one consumer.
//!
//! Both ends count entries with a private, free-running 64-bit index; neither index is ever shared, and the capacity is the
//! end's own. What makes an entry valid is its mark ([`crate::entry`]).
//!
//! There is no "full" in the ring itself: back-pressure is by credits. The client never has more requests outstanding than
//! entries ([`crate::call`]), so neither ring can be overrun by a correct peer; an incorrect one overwrites only what it was
//! itself about to lose.
//!
//! Pushing is not publishing: a pushed entry is visible to a consumer that looks, but one that dozes is told only when the
//! batch is published ([`crate::bell`]).

use core::cell::Cell;

use crate::entry::{Arrival, Entry, Packet};
use crate::error::PeerMisbehaviour;

/// A place in a ring: which entry is next, and the mark that makes it valid.
struct Position {
    entries: &'static [Entry],
    next: Cell<u64>,
}

impl Position {
    fn new(entries: &'static [Entry]) -> Self {
        assert!(entries.len().is_power_of_two(), "a ring has a power of two of entries");
        Self { entries, next: Cell::new(0) }
    }

    #[inline] // one load
    fn mask(&self) -> u64 {
        self.entries.len() as u64 - 1
    }

    #[inline] // two instructions
    fn mark(&self) -> u32 {
        self.mark_of(self.next.get())
    }

    #[inline] // two instructions
    fn mark_of(&self, index: u64) -> u32 {
        ((index | self.mask()) as u32).wrapping_add(1)
    }

    #[inline] // three instructions
    fn entry(&self) -> &'static Entry {
        self.entry_of(self.next.get())
    }

    #[inline] // three instructions
    fn entry_of(&self, index: u64) -> &'static Entry {
        &self.entries[(index & self.mask()) as usize]
    }

    #[inline] // two instructions
    fn advance(&self) {
        self.next.set(self.next.get() + 1);
    }
}

/// The end that writes.
pub struct Producer(Position);

impl Producer {
    /// The producer of a ring that nobody has written.
    ///
    /// # Panics
    /// If the number of entries is not a power of two; [`crate::channel::Memory`] checks it before.
    pub fn new(entries: &'static [Entry]) -> Self {
        Self(Position::new(entries))
    }

    /// Entries pushed so far.
    #[inline] // one load
    pub fn pushed(&self) -> u64 {
        self.0.next.get()
    }

    /// Entries of the ring.
    #[inline] // one load
    pub fn capacity(&self) -> u64 {
        self.0.entries.len() as u64
    }

    /// Writes the next entry. The caller holds a credit for it: an entry that the consumer has not taken is overwritten.
    #[inline(always)] // hot path: the packet is never made, only stored
    pub fn push(&self, packet: &Packet) {
        self.0.entry().store(self.0.mark(), packet);
        self.0.advance();
    }
}

impl Producer {
    /// Writes entries that belong together, the last one first: a consumer that sees the first sees them all. The caller holds a
    /// credit for each.
    pub fn push_together(&self, packets: &[Packet]) {
        let first = self.0.next.get();
        for (offset, packet) in packets.iter().enumerate().rev() {
            let index = first + offset as u64;
            self.0.entry_of(index).store(self.0.mark_of(index), packet);
        }
        self.0.next.set(first + packets.len() as u64);
    }

    /// Starts over with a ring that nobody has written.
    pub(crate) fn restart(&self) {
        self.0.next.set(0);
    }
}

/// The end that reads.
pub struct Consumer(Position);

impl Consumer {
    /// The consumer of a ring that nobody has read.
    ///
    /// # Panics
    /// If the number of entries is not a power of two; [`crate::channel::Memory`] checks it before.
    pub fn new(entries: &'static [Entry]) -> Self {
        Self(Position::new(entries))
    }

    /// Entries taken so far.
    #[inline] // one load
    pub fn taken(&self) -> u64 {
        self.0.next.get()
    }

    /// Whether [`Consumer::peek`] would give anything: an arrival, or an error.
    #[inline] // polled
    pub fn is_ready(&self) -> bool {
        self.0.entry().is_ready(self.0.mark(), self.0.entries.len() as u32)
    }

    /// What the next entry holds, if it is there. It stays next until [`Consumer::advance`].
    ///
    /// # Errors
    /// If the producer wrote what a correct producer never writes.
    #[inline] // hot path
    pub fn peek(&self) -> Result<Option<Arrival<'static>>, PeerMisbehaviour> {
        self.0.entry().load(self.0.mark(), self.0.entries.len() as u32)
    }

    /// Takes the entry that was last peeked at.
    #[inline] // two instructions
    pub fn advance(&self) {
        self.0.advance();
    }

    /// As [`Consumer::is_ready`], of the entry `index`, which is not more than a lap ahead.
    pub(crate) fn is_ready_at(&self, index: u64) -> bool {
        self.0.entry_of(index).is_ready(self.0.mark_of(index), self.0.entries.len() as u32)
    }

    /// As [`Consumer::peek`], of the entry `index`, which is not more than a lap ahead.
    ///
    /// # Errors
    /// As [`Consumer::peek`].
    pub(crate) fn peek_at(&self, index: u64) -> Result<Option<Arrival<'static>>, PeerMisbehaviour> {
        self.0.entry_of(index).load(self.0.mark_of(index), self.0.entries.len() as u32)
    }

    /// Starts over with a ring that nobody has written.
    pub(crate) fn restart(&self) {
        self.0.next.set(0);
    }
}
