//! A line of a system-call ring: taken by one copy, answered in place.
//!
//! The page is user memory. Nothing is read from it twice: another thread, on another core, may change it at any time.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::message::MessageInfo;
use abi::syscall_ring::{
    ANSWER, ANSWER_INFO, ANSWER_WORDS, ARGUMENTS, CPTR, DONE, INFO, LINK, LONG, QUEUED, SHORT, STATE_BITS,
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
    #[inline]
    pub fn take(k: &Kernel, page: RingPage, position: usize, arguments: &'a mut Arguments) -> Option<Self> {
        let line = k.ring_line(page, position);
        // Acquire: partner is the program's release store of QUEUED, behind the rest of the line.
        let head = line[0].load(Ordering::Acquire);
        if head & STATE_BITS != QUEUED {
            return None;
        }
        let word = |index: usize| line[index].load(Ordering::Relaxed);
        copy(&line[ARGUMENTS..], &mut arguments[..SHORT]);
        let (lines, room) = if head & WIDE == 0 {
            (1, SHORT)
        } else {
            copy(&k.ring_line(page, position + 1)[TAIL_ARGUMENTS..], &mut arguments[SHORT..]);
            (2, LONG)
        };
        let (cptr, info) = (word(CPTR), MessageInfo(word(INFO)));
        let length = info.length().min(room);
        let caps = info.extra_caps().min(room - length);
        let (words, rest) = arguments.split_at(length);
        let linked = head & LINK != 0;
        Some(Self { position, lines, linked, cptr, label: info.label(), words, caps: &rest[..caps] })
    }

    /// Writes the answer. The line stays the kernel's until [`hand_back`].
    #[inline]
    pub fn answer(&self, k: &mut Kernel, page: RingPage, label: u64, words: &[u64]) {
        let line = k.ring_line(page, self.position);
        line[ANSWER_INFO].store(MessageInfo::new(label, 0, 0, words.len()).0, Ordering::Relaxed);
        for (place, &word) in line[ANSWER..ANSWER + ANSWER_WORDS].iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
    }
}

#[inline]
fn copy(from: &[AtomicU64], to: &mut [u64]) {
    for (word, place) in from.iter().zip(to) {
        *place = word.load(Ordering::Relaxed);
    }
}

/// Line `position`, which has its answer, is the program's.
#[inline]
pub fn hand_back(k: &mut Kernel, page: RingPage, position: usize) {
    // Release: partner is the program's acquire load, before it reads the answer.
    k.ring_line(page, position)[0].store(DONE, Ordering::Release);
}
