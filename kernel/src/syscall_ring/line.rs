//! A line of a system-call ring: taken by one copy, answered in place.
//!
//! The page is user memory. Nothing is read from it twice: another thread, on another core, may change it at any time.

use abi::message::{MAX_EXTRA_CAPS, MessageInfo};
use abi::syscall_ring::{
    ANSWER, ANSWER_INFO, ARGUMENTS, CPTR, DONE, INFO, LINE_WORDS, LINES, LINK, LONG, QUEUED, SHORT, STATE_BITS,
    TAIL_ARGUMENTS, WIDE,
};

use crate::mem::RingPage;
use crate::state::Kernel;

/// Room for the arguments of an entry.
pub type Arguments = [u64; LONG];

/// A queued entry, copied.
pub struct Entry<'a> {
    /// Number of its line.
    pub position: usize,
    /// Lines that it takes.
    pub lines: usize,
    /// Whether its failure keeps the next one from being carried out.
    pub linked: bool,
    /// The invoked capability.
    pub cptr: u64,
    /// Label as the program numbers it.
    pub label: u64,
    /// Message words.
    pub words: &'a [u64],
    /// Addresses of extra capabilities.
    pub caps: &'a [u64],
}

impl<'a> Entry<'a> {
    /// Copies the entry at line `position`; `None`: nothing is queued there. Words and capabilities that its lines have no room
    /// for were not sent.
    pub fn take(k: &Kernel, page: RingPage, position: usize, arguments: &'a mut Arguments) -> Option<Self> {
        let first = position * LINE_WORDS;
        let head = k.ring_state(page, first);
        if head & STATE_BITS != QUEUED {
            return None;
        }
        let (cptr, info) = (k.ring_word(page, first + CPTR), MessageInfo(k.ring_word(page, first + INFO)));
        let (short, long) = arguments.split_at_mut(SHORT);
        copy(k, page, first + ARGUMENTS, short);
        let (lines, room) = if head & WIDE == 0 {
            (1, SHORT)
        } else {
            copy(k, page, (position + 1) % LINES * LINE_WORDS + TAIL_ARGUMENTS, long);
            (2, LONG)
        };
        let length = info.length().min(room);
        let caps = info.extra_caps().min(MAX_EXTRA_CAPS).min(room - length);
        let (words, rest) = arguments.split_at(length);
        let linked = head & LINK != 0;
        Some(Self { position, lines, linked, cptr, label: info.label(), words, caps: &rest[..caps] })
    }

    /// Writes the answer; the line is the program's then.
    pub fn answer(&self, k: &mut Kernel, page: RingPage, label: u64, words: &[u64]) {
        let first = self.position * LINE_WORDS;
        k.set_ring_word(page, first + ANSWER_INFO, MessageInfo::new(label, 0, 0, words.len()).0);
        for (index, &word) in words.iter().enumerate() {
            k.set_ring_word(page, first + ANSWER + index, word);
        }
        k.set_ring_state(page, first, DONE);
    }
}

fn copy(k: &Kernel, page: RingPage, from: usize, to: &mut [u64]) {
    for (index, word) in to.iter_mut().enumerate() {
        *word = k.ring_word(page, from + index);
    }
}
