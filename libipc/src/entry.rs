//! One entry of a ring: one 64-byte line that carries its own validity.
//!
//! ```text
//!  byte 0     2     3      4      8        16                                             64
//!       | op  | len | kind | mark | cookie | words[0] .. words[5]                          |
//!       '------- head, one word --'
//! ```
//!
//! The producer writes cookie and words, then the head with release; the consumer reads the head with acquire and looks at
//! the rest only if `mark` is the one it expects. So a message is one line, and nobody polls an index. On Rocket's broadcast
//! hub a line that is dirty in the other hart costs more than all the instructions of a call; a second line would double that.
//!
//! Kinds 0, 1, 4, 5, 9 and 10 travel from client to server, the others back.
//!
//! The mark names the lap of the ring: it is the index of the first entry of the next lap, low 32 bits. So zeroed memory is a
//! ring nobody has written, and mark and position come from an index in two instructions each.
//! Every field is atomic: a peer that writes at the wrong moment gives wrong values, never undefined behaviour.

use crate::error::PeerMisbehaviour;
use crate::message::{Message, WORDS};
use crate::sync::{AtomicU64, Ordering, fence};

/// Bytes of an entry: one cache line.
pub const ENTRY_BYTES: usize = 64;

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A request that wants exactly one reply.
    Call = 0,
    /// A request without reply.
    OneWay = 1,
    /// The reply to the call with the same cookie.
    Reply = 2,
    /// The server gave the call with this cookie up.
    Dropped = 3,
    /// A call, and the next entry is one too, to be executed only if this one succeeds.
    Linked = 4,
    /// A call with many completions: any number of `More`, then one of the kinds that end a call.
    Multishot = 5,
    /// A completion of a multishot call that is not its last.
    More = 6,
    /// A reply that says the call failed: what is linked behind it does not run.
    Refused = 7,
    /// The call was not executed: one that it was linked to failed, or it was cancelled before its turn.
    Cancelled = 8,
    /// From the client: nobody waits for the call with this cookie any more.
    Cancel = 9,
    /// From the client: the multishot call with this cookie may send `words[0]` more completions.
    Grant = 10,
}

/// The content of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// What it is.
    pub kind: Kind,
    /// The caller's name for the call, returned unchanged in the reply.
    pub cookie: u64,
    /// The message.
    pub message: Message,
}

/// An entry in shared memory.
#[repr(C, align(64))]
pub struct Entry {
    head: AtomicU64,
    cookie: AtomicU64,
    words: [AtomicU64; WORDS],
}

#[cfg(not(loom))] // loom's atomics are handles
const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES && align_of::<Entry>() == ENTRY_BYTES);

const LEN_SHIFT: u32 = 16;
const KIND_SHIFT: u32 = 24;
const MARK_SHIFT: u32 = 32;

impl Entry {
    /// An entry never written.
    pub fn new() -> Self {
        Self { head: AtomicU64::new(0), cookie: AtomicU64::new(0), words: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Writes `packet` and makes it valid with `mark`. Only the ring's producer calls this.
    ///
    /// Only the words that count are written: a consumer on another hart that polls the line meanwhile takes it away, and the
    /// fewer stores, the less often it does.
    #[inline(always)] // hot path: with a length known to the compiler, two stores and one for each word
    pub fn store(&self, mark: u32, packet: &Packet) {
        self.cookie.store(packet.cookie, Ordering::Relaxed);
        for (index, (word, value)) in self.words.iter().zip(packet.message.words).enumerate() {
            if index < usize::from(packet.message.len) {
                word.store(value, Ordering::Relaxed);
            }
        }
        let head = u64::from(packet.message.op)
            | u64::from(packet.message.len) << LEN_SHIFT
            | (packet.kind as u64) << KIND_SHIFT
            | u64::from(mark) << MARK_SHIFT;
        // Release: pairs with the acquire fence in `load`; whoever sees the mark sees cookie and words.
        self.head.store(head, Ordering::Release);
    }

    /// Whether [`Entry::load`] would give anything: an arrival, or an error. False is the one state of an entry that waits for
    /// `mark` in a ring of `entries`.
    #[inline] // polled
    pub fn is_ready(&self, mark: u32, entries: u32) -> bool {
        (self.head.load(Ordering::Relaxed) >> MARK_SHIFT) as u32 != mark.wrapping_sub(entries)
    }

    /// As nobody has written it. Only while neither end of the ring is in use.
    pub fn clear(&self) {
        self.head.store(0, Ordering::Relaxed);
    }

    /// What arrived, if the entry has `mark`, in a ring of `entries`.
    ///
    /// # Errors
    /// If the mark is neither this lap's nor the last one's.
    #[inline] // hot path
    pub fn load(&self, mark: u32, entries: u32) -> Result<Option<Arrival<'_>>, PeerMisbehaviour> {
        let head = self.head.load(Ordering::Relaxed);
        let found = (head >> MARK_SHIFT) as u32;
        if found == mark {
            // Pairs with the release in `store`: who has seen the mark sees cookie and words.
            fence(Ordering::Acquire);
            return Ok(Some(Arrival { entry: self, meta: head as u32 }));
        }
        if found == mark.wrapping_sub(entries) { Ok(None) } else { Err(PeerMisbehaviour::Sequence) }
    }
}

/// A valid entry, not yet taken: its fields are read where they are needed, straight from the line.
#[derive(Clone, Copy)]
pub struct Arrival<'e> {
    entry: &'e Entry,
    meta: u32,
}

impl Arrival<'_> {
    /// Whether it is a well-formed packet of this kind.
    #[inline] // hot path: one comparison covers kind and length
    pub fn is(&self, kind: Kind) -> bool {
        (self.meta >> LEN_SHIFT).wrapping_sub((kind as u32) << (KIND_SHIFT - LEN_SHIFT)) <= WORDS as u32
    }

    /// What is wrong with an arrival that is of none of the expected kinds.
    #[cold]
    pub fn fault(&self) -> PeerMisbehaviour {
        if usize::from(self.len()) > WORDS { PeerMisbehaviour::Length } else { PeerMisbehaviour::Kind }
    }

    /// The call it belongs to.
    #[inline] // one load
    pub fn cookie(&self) -> u64 {
        self.entry.cookie.load(Ordering::Relaxed)
    }

    /// Operation code.
    #[inline] // no instruction
    pub fn op(&self) -> u16 {
        self.meta as u16
    }

    /// Words that count; above [`WORDS`] unless [`Arrival::is`] said yes.
    #[inline] // one instruction
    pub fn len(&self) -> u8 {
        (self.meta >> LEN_SHIFT) as u8
    }

    /// Whether no word counts.
    #[inline] // one instruction
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The words.
    #[inline] // six loads
    pub fn words(&self) -> [u64; WORDS] {
        core::array::from_fn(|index| self.entry.words[index].load(Ordering::Relaxed))
    }

    /// The message.
    #[inline] // hot path
    pub fn message(&self) -> Message {
        Message { op: self.op(), len: self.len(), words: self.words() }
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn packet() -> Packet {
        Packet { kind: Kind::Reply, cookie: 0x1234_5678_9ABC_DEF0, message: Message::new(0xBEEF, [1, 2, 3, 4, 5, 6]) }
    }

    fn message(entry: &Entry, mark: u32) -> Result<Option<Message>, PeerMisbehaviour> {
        Ok(entry.load(mark, 4)?.map(|arrival| arrival.message()))
    }

    #[test]
    fn what_is_stored_is_loaded_in_its_lap_only() {
        let entry = Entry::new();
        assert_eq!(message(&entry, 4), Ok(None));
        entry.store(4, &packet());
        assert!(entry.is_ready(4, 4) && !entry.is_ready(8, 4) && entry.is_ready(12, 4));
        assert_eq!(message(&entry, 4), Ok(Some(packet().message)));
        assert_eq!(entry.load(4, 4).unwrap().unwrap().cookie(), packet().cookie);
        assert_eq!(message(&entry, 8), Ok(None));
        assert_eq!(message(&entry, 12), Err(PeerMisbehaviour::Sequence));
    }

    #[test]
    fn marks_wrap() {
        let entry = Entry::new();
        entry.store(u32::MAX - 3, &packet());
        assert_eq!(message(&entry, 0), Ok(None));
        entry.store(0, &packet());
        assert_eq!(message(&entry, 0), Ok(Some(packet().message)));
    }

    #[test]
    fn head_word_is_laid_out_as_drawn() {
        let entry = Entry::new();
        entry.store(0x0102_0304, &packet());
        assert_eq!(entry.head.load(Ordering::Relaxed), 0x0102_0304_0206_BEEF);
    }

    #[test]
    fn kind_and_length_are_checked_together() {
        let entry = Entry::new();
        let arrival = |kind: u64, len: u64| {
            entry.head.store(4 << MARK_SHIFT | kind << KIND_SHIFT | len << LEN_SHIFT, Ordering::Relaxed);
            entry.load(4, 4).unwrap().unwrap()
        };
        for (number, kind) in [Kind::Call, Kind::OneWay, Kind::Reply, Kind::Dropped].into_iter().enumerate() {
            for len in 0..=255 {
                assert_eq!(arrival(number as u64, len).is(kind), len <= 6, "{kind:?} of {len} words");
                assert!(!arrival(number as u64 ^ 1, len).is(kind) && !arrival(number as u64 + 4, len).is(kind));
            }
        }
        assert_eq!(arrival(0, 7).fault(), PeerMisbehaviour::Length);
        assert_eq!(arrival(9, 6).fault(), PeerMisbehaviour::Kind);
    }
}
