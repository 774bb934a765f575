//! The system-call ring: a page of lines, each an invocation that the kernel carries out later (docs/architecture.md, section 5).
//!
//! ```text
//! a line, queued by the program                        the same line, done by the kernel
//! 0  state QUEUED | LINK | WIDE                        0  state DONE
//! 1  CPtr of the invoked capability                    1  MessageInfo of the answer: label = error, length
//! 2  MessageInfo: label, extra capabilities, length    2  its words
//! 3  message words, then CPtrs of extra capabilities
//!
//! the line behind a WIDE one: 0 state TAIL, 1 more of those
//! ```
//!
//! The state is stored last, with release, by either side: a line belongs to the kernel while it is QUEUED, else to the program. The
//! kernel takes lines in turn, from line 0 when the ring is set, around. All zero is a ring with nothing to do.

/// Bytes of the ring: the first page of its frame.
pub const BYTES: usize = LINES * LINE_WORDS * 8;
/// Lines.
pub const LINES: usize = 64;
/// Words of a line.
pub const LINE_WORDS: usize = 8;

/// Bits of word 0 that are the state.
pub const STATE_BITS: u64 = 0xFF;
/// State: the program's; nothing is asked for.
pub const FREE: u64 = 0;
/// State: the kernel's.
pub const QUEUED: u64 = 1;
/// State: the program's, with an answer.
pub const DONE: u64 = 2;
/// State: more of the line before.
pub const TAIL: u64 = 3;
/// Word 0 of a queued line: if it fails, the next entry is not carried out.
pub const LINK: u64 = 1 << 8;
/// Word 0 of a queued line: the next line is its tail.
pub const WIDE: u64 = 1 << 9;

/// Word of the invoked capability's CPtr.
pub const CPTR: usize = 1;
/// Word of the MessageInfo of a queued line.
pub const INFO: usize = 2;
/// First word of a queued line that is an argument.
pub const ARGUMENTS: usize = 3;
/// Arguments of a line.
pub const SHORT: usize = LINE_WORDS - ARGUMENTS;
/// First argument word of a tail.
pub const TAIL_ARGUMENTS: usize = 1;
/// Arguments of a line and its tail: message words and extra capabilities together.
pub const LONG: usize = SHORT + LINE_WORDS - TAIL_ARGUMENTS;
/// Word of the MessageInfo of a line that is done.
pub const ANSWER_INFO: usize = 1;
/// First word of an answer.
pub const ANSWER: usize = 2;
/// Most words of an answer.
pub const ANSWER_WORDS: usize = 5;

/// Label of the answer of an entry that was not carried out, because the one before it failed or was not carried out either.
pub const SKIPPED: u64 = 0x100;

/// RingEnter, argument: another core may do the work.
pub const HAND_OVER: u64 = 1;
/// RingEnter, result: nothing is queued any more.
pub const DRAINED: u64 = 0;
/// RingEnter, result: another core does the work, and signals the notification of the ring when it is through.
pub const HANDED_OVER: u64 = 1;
/// RingEnter, result: the thread has no ring (any more).
pub const NO_RING: u64 = 2;

const _: () = assert!(BYTES == 4096 && ANSWER + ANSWER_WORDS <= LINE_WORDS);
