//! What a caller says and what a server answers: an operation code and up to six words.
//!
//! The same for both transports. In a ring it is the inside of one entry; over an endpoint the label is `op` and the message
//! words are `words[..len]`, of which the first four travel in registers.

/// Payload words of a message.
pub const WORDS: usize = 6;

/// An operation and its words. Words from `len` on mean nothing: they do not travel, and in a message received are what an
/// earlier one left there. Two messages are equal if what counts of them is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    /// What is asked, or how it went: the protocol's choice.
    pub op: u16,
    /// How many of the words count; at most [`WORDS`].
    pub len: u8,
    /// The words.
    pub words: [u64; WORDS],
}

impl Message {
    /// A message of `op` with `N` words.
    #[inline] // becomes a few stores into the caller's frame
    pub const fn new<const N: usize>(op: u16, words: [u64; N]) -> Self {
        const { assert!(N <= WORDS, "a message has at most six words") };
        let mut all = [0; WORDS];
        let mut index = 0;
        while index < N {
            all[index] = words[index];
            index += 1;
        }
        Self { op, len: N as u8, words: all }
    }

    /// The same message, made where this is called. On a path that is rarely taken and wants the message in memory: without it, it would
    /// be made in memory before it is known which path is taken.
    #[inline(always)] // moves of registers
    pub(crate) fn afresh(self) -> Self {
        let Self { op, len, words: [a, b, c, d, e, f] } = self;
        Self { op, len, words: [a, b, c, d, e, f] }
    }

    /// The words that count.
    #[inline] // bounds check folds into the caller
    pub fn payload(&self) -> &[u64] {
        &self.words[..usize::from(self.len).min(WORDS)]
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op && self.payload() == other.payload()
    }
}

impl Eq for Message {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_the_words_that_count() {
        let message = Message::new(7, [1, 2, 3]);
        assert_eq!((message.op, message.len, message.payload()), (7, 3, &[1, 2, 3][..]));
        assert_eq!(Message::new(1, []).payload(), &[]);
        assert_eq!(Message { len: 200, ..Message::default() }.payload().len(), WORDS);
        assert_eq!(message, Message { words: [1, 2, 3, 9, 9, 9], ..message });
        assert_ne!(message, Message { len: 4, ..message });
    }
}
