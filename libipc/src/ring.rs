//! One direction of a channel: a ring of entries, one producer, one consumer.
//!
//! Both ends count entries with a private, free-running 64-bit index; neither index is ever shared, and the capacity is the
//! end's own. Entry `index % capacity` is valid in lap `index / capacity + 1`.
//!
//! There is no "full" in the ring itself: back-pressure is by credits. The client never has more requests outstanding than
//! entries ([`crate::call`]), so neither ring can be overrun by a correct peer; an incorrect one overwrites only what it was
//! itself about to lose.
//!
//! Pushing is not publishing: a pushed entry is visible to a consumer that looks, but one that dozes is told only when the
//! batch is published ([`crate::bell`]).

use core::cell::Cell;

use crate::entry::{Entry, Packet};
use crate::error::PeerMisbehaviour;

/// The index of an entry, and what it means for a ring of `1 << shift` entries.
struct Position {
    next: Cell<u64>,
    shift: u32,
}

impl Position {
    fn new(entries: &[Entry]) -> Self {
        assert!(entries.len().is_power_of_two(), "a ring has a power of two of entries");
        Self { next: Cell::new(0), shift: entries.len().ilog2() }
    }

    #[inline] // two instructions
    fn lap(&self) -> u32 {
        ((self.next.get() >> self.shift) as u32).wrapping_add(1)
    }

    #[inline] // two instructions
    fn entry<'e>(&self, entries: &'e [Entry]) -> &'e Entry {
        &entries[self.next.get() as usize & (entries.len() - 1)]
    }

    #[inline] // two instructions
    fn advance(&self) {
        self.next.set(self.next.get() + 1);
    }
}

/// The end that writes.
pub struct Producer {
    entries: &'static [Entry],
    position: Position,
}

impl Producer {
    /// The producer of a ring that nobody has written.
    ///
    /// # Panics
    /// If the number of entries is not a power of two; [`crate::channel::Memory`] checks it before.
    pub fn new(entries: &'static [Entry]) -> Self {
        Self { entries, position: Position::new(entries) }
    }

    /// Entries pushed so far.
    #[inline] // one load
    pub fn pushed(&self) -> u64 {
        self.position.next.get()
    }

    /// Entries of the ring.
    #[inline] // one load
    pub fn capacity(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Writes the next entry. The caller holds a credit for it: an entry that the consumer has not taken is overwritten.
    #[inline] // hot path
    pub fn push(&self, packet: &Packet) {
        self.position.entry(self.entries).store(self.position.lap(), packet);
        self.position.advance();
    }
}

/// The end that reads.
pub struct Consumer {
    entries: &'static [Entry],
    position: Position,
}

impl Consumer {
    /// The consumer of a ring that nobody has read.
    ///
    /// # Panics
    /// If the number of entries is not a power of two; [`crate::channel::Memory`] checks it before.
    pub fn new(entries: &'static [Entry]) -> Self {
        Self { entries, position: Position::new(entries) }
    }

    /// Entries taken so far.
    #[inline] // one load
    pub fn taken(&self) -> u64 {
        self.position.next.get()
    }

    /// Whether [`Consumer::pop`] would give anything: a packet, or an error.
    #[inline] // polled
    pub fn is_ready(&self) -> bool {
        self.position.entry(self.entries).is_ready(self.position.lap())
    }

    /// Takes the next packet, if there is one.
    ///
    /// # Errors
    /// If the producer wrote what a correct producer never writes; the consumer does not advance.
    #[inline] // hot path
    pub fn pop(&self) -> Result<Option<Packet>, PeerMisbehaviour> {
        let packet = self.position.entry(self.entries).load(self.position.lap())?;
        if packet.is_some() {
            self.position.advance();
        }
        Ok(packet)
    }
}
