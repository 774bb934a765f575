//! Messages between programs: which system call of a sender made which receiver go on.
//!
//! The machine sees registers only, so a message is recognised by them (seL4's RISC-V ABI: a1 message info, a2 to a5 the first words, a7
//! the number of the call). A thread that receives is remembered by address space, stack and return address; when it is back behind its
//! system call with the info and words that somebody has sent since, that was the message. Of equal ones the oldest counts. Signals carry
//! no words and leave no arrow; neither do messages whose receiver was there before the trace.

use std::collections::HashMap;

use crate::hart::Hart;

/// A sending system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Where: hart and core cycle.
    pub hart: usize,
    pub cycle: u64,
    sender: Thread,
    info: u64,
    words: [u64; 4],
}

/// A thread: its address space and its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Thread {
    satp: u64,
    stack: u64,
}

/// What is on its way.
#[derive(Default)]
pub(super) struct Messages {
    sent: Vec<Sent>,
    /// Threads in a receiving system call, and where they go on.
    receiving: HashMap<Thread, u64>,
}

/// Most messages that are remembered: of senders that nobody answers.
const REMEMBERED: usize = 256;
/// Label and length of a message info; capabilities in between do not arrive as they were sent.
const LABEL_AND_LENGTH: u64 = !0xFFF | 0x7F;
const ECALL_BYTES: u64 = 4;

/// System calls by number (seL4, non-MCS; SignalRecv is this system's own).
const CALL: u64 = -1i64 as u64;
const REPLY_RECV: u64 = -2i64 as u64;
const SEND: u64 = -3i64 as u64;
const NB_SEND: u64 = -4i64 as u64;
const RECV: u64 = -5i64 as u64;
const REPLY: u64 = -6i64 as u64;
const NB_RECV: u64 = -8i64 as u64;
const SIGNAL_RECV: u64 = -0x100i64 as u64;

impl Messages {
    /// `hart` has entered the kernel by a system call, its registers still the program's.
    pub fn called(&mut self, hart: &Hart) {
        let sender = thread(hart);
        let number = hart.x[17];
        if matches!(number, CALL | REPLY_RECV | SEND | NB_SEND | REPLY) {
            if self.sent.len() == REMEMBERED {
                self.sent.remove(0);
            }
            self.sent.push(Sent { hart: hart.id, cycle: hart.clock, sender, info: info(hart), words: words(hart) });
        }
        if matches!(number, CALL | REPLY_RECV | RECV | NB_RECV | SIGNAL_RECV) {
            self.receiving.insert(sender, hart.csrs.sepc.wrapping_add(ECALL_BYTES));
        }
    }

    /// `hart` is back in a program: the message that let it go on.
    pub fn resumed(&mut self, hart: &Hart) -> Option<Sent> {
        let receiver = thread(hart);
        if self.receiving.get(&receiver) != Some(&hart.pc) {
            return None;
        }
        self.receiving.remove(&receiver);
        let (info, words) = (info(hart), words(hart));
        let carried = (info & 0x7F).min(words.len() as u64) as usize;
        let same =
            |sent: &Sent| sent.sender != receiver && sent.info == info && sent.words[..carried] == words[..carried];
        let found = self.sent.iter().position(same)?;
        Some(self.sent.remove(found))
    }
}

fn thread(hart: &Hart) -> Thread {
    Thread { satp: hart.csrs.satp, stack: hart.x[2] }
}

fn info(hart: &Hart) -> u64 {
    hart.x[11] & LABEL_AND_LENGTH
}

fn words(hart: &Hart) -> [u64; 4] {
    [hart.x[12], hart.x[13], hart.x[14], hart.x[15]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::hart::Build;

    fn program(id: usize, satp: u64, call: u64, info: u64, word: u64) -> Hart {
        let mut hart = Hart::new(id, 0x1_0000, 0, Build::of(&Config::default()));
        hart.csrs.satp = satp;
        hart.csrs.sepc = 0x1_0000;
        (hart.x[17], hart.x[11], hart.x[12]) = (call, info, word);
        hart
    }

    fn back(hart: Hart, info: u64, word: u64) -> Hart {
        let mut hart = hart;
        hart.pc = 0x1_0004;
        (hart.x[11], hart.x[12]) = (info, word);
        hart
    }

    #[test]
    fn a_call_and_its_reply_find_their_receivers_across_harts() {
        let mut messages = Messages::default();
        let (client, server) = (program(0, 1, CALL, 7 << 12 | 1, 5), program(1, 2, RECV, 0, 0));
        messages.called(&server);
        messages.called(&client);
        // Another word, another message; and a thread that does not receive gets none.
        assert_eq!(messages.resumed(&program(1, 3, RECV, 7 << 12 | 1, 5)), None);
        let sent = messages.resumed(&back(program(1, 2, RECV, 0, 0), 7 << 12 | 1, 5)).unwrap();
        assert_eq!((sent.hart, sent.sender.satp), (0, 1));
        messages.called(&program(1, 2, REPLY_RECV, 1, 6));
        assert_eq!(messages.resumed(&back(client, 1, 6)).map(|sent| sent.hart), Some(1));
        assert!(messages.sent.is_empty());
    }

    #[test]
    fn what_nobody_receives_is_forgotten() {
        let mut messages = Messages::default();
        (0..1000).for_each(|word| messages.called(&program(0, 1, NB_SEND, 1, word)));
        assert_eq!(messages.sent.len(), REMEMBERED);
    }
}
