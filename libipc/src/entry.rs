//! One entry of a ring: one 64-byte line that carries its own validity.
//!
//! ```text
//!  byte 0      4      6     7      8        16                                             64
//!       | lap  | op   | len | kind | cookie | words[0] .. words[5]                          |
//!       '------ head, one word ----'
//! ```
//!
//! The producer writes cookie and words, then the head with release; the consumer reads the head with acquire and looks at
//! the rest only if `lap` is the one it expects. So a message is one line, and nobody polls an index. On Rocket's broadcast
//! hub a line that is dirty in the other hart costs more than all the instructions of a call; a second line would double that.
//!
//! Lap n of the ring has `lap = n + 1`, so that zeroed memory is a ring nobody has written.
//! Every field is atomic: a peer that writes at the wrong moment gives wrong values, never undefined behaviour.

use crate::error::PeerMisbehaviour;
use crate::message::{Message, WORDS};
use crate::sync::{AtomicU64, Ordering};

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

const OP_SHIFT: u32 = 32;
const LEN_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 56;

impl Entry {
    /// An entry never written.
    pub fn new() -> Self {
        Self { head: AtomicU64::new(0), cookie: AtomicU64::new(0), words: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Writes `packet` and makes it valid in `lap`. Only the ring's producer calls this.
    #[inline] // hot path: ten stores
    pub fn store(&self, lap: u32, packet: &Packet) {
        self.cookie.store(packet.cookie, Ordering::Relaxed);
        for (word, value) in self.words.iter().zip(packet.message.words) {
            word.store(value, Ordering::Relaxed);
        }
        let head = u64::from(lap)
            | u64::from(packet.message.op) << OP_SHIFT
            | u64::from(packet.message.len) << LEN_SHIFT
            | (packet.kind as u64) << KIND_SHIFT;
        // Release: pairs with the acquire in `load`; whoever sees the lap sees cookie and words.
        self.head.store(head, Ordering::Release);
    }

    /// Whether [`Entry::load`] would give anything: a packet, or an error. False is the one state of an entry that waits for
    /// `lap`.
    #[inline] // polled
    pub fn is_ready(&self, lap: u32) -> bool {
        self.head.load(Ordering::Relaxed) as u32 != lap.wrapping_sub(1)
    }

    /// The packet, if the entry is valid in `lap`.
    ///
    /// # Errors
    /// If the entry holds what a correct producer never writes.
    #[inline] // hot path
    pub fn load(&self, lap: u32) -> Result<Option<Packet>, PeerMisbehaviour> {
        let head = self.head.load(Ordering::Acquire);
        if head as u32 != lap {
            return if head as u32 == lap.wrapping_sub(1) { Ok(None) } else { Err(PeerMisbehaviour::Sequence) };
        }
        let kind = match (head >> KIND_SHIFT) as u8 {
            0 => Kind::Call,
            1 => Kind::OneWay,
            2 => Kind::Reply,
            3 => Kind::Dropped,
            _ => return Err(PeerMisbehaviour::Kind),
        };
        let len = (head >> LEN_SHIFT) as u8;
        if usize::from(len) > WORDS {
            return Err(PeerMisbehaviour::Length);
        }
        let message = Message {
            op: (head >> OP_SHIFT) as u16,
            len,
            words: core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed)),
        };
        Ok(Some(Packet { kind, cookie: self.cookie.load(Ordering::Relaxed), message }))
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

    #[test]
    fn what_is_stored_is_loaded_in_its_lap_only() {
        let entry = Entry::new();
        assert_eq!(entry.load(1), Ok(None));
        entry.store(1, &packet());
        assert!(entry.is_ready(1) && !entry.is_ready(2) && entry.is_ready(3));
        assert_eq!(entry.load(1), Ok(Some(packet())));
        assert_eq!(entry.load(2), Ok(None));
        assert_eq!(entry.load(3), Err(PeerMisbehaviour::Sequence));
    }

    #[test]
    fn lap_wraps() {
        let entry = Entry::new();
        entry.store(u32::MAX, &packet());
        assert_eq!(entry.load(0), Ok(None));
        entry.store(0, &packet());
        assert_eq!(entry.load(0), Ok(Some(packet())));
    }

    #[test]
    fn head_word_is_laid_out_as_drawn() {
        let entry = Entry::new();
        entry.store(0x0102_0304, &packet());
        assert_eq!(entry.head.load(Ordering::Relaxed), 0x0206_BEEF_0102_0304);
    }

    #[test]
    fn a_lying_head_is_refused() {
        let entry = Entry::new();
        entry.head.store(7 << LEN_SHIFT | 1, Ordering::Relaxed);
        assert_eq!(entry.load(1), Err(PeerMisbehaviour::Length));
        entry.head.store(4 << KIND_SHIFT | 1, Ordering::Relaxed);
        assert_eq!(entry.load(1), Err(PeerMisbehaviour::Kind));
    }
}
