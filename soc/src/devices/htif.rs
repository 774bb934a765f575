//! The host-target interface of the RISC-V test programs: the words `tohost` and `fromhost` in the program's own memory.
//!
//! `tohost` holds a device (bits 63:56), a command (55:48) and a payload. Device 1, command 1 prints a byte; command 0 asks for one, which comes
//! in `fromhost` as soon as one has been typed (riscv-isa-sim, `bcd_t`: device 1, command 0, payload 0x100 | byte). Device 0, command 0 ends
//! the run with payload / 2 if the payload is odd; an even one is the address of a system call of the proxy kernel: eight words, number
//! first. Of those there are `write` and `exit`; others give -38 (ENOSYS). Answers to system calls are announced in `fromhost`.
//!
//! A program may store the word at once or as two halves, in either order, so it counts when both have been stored since the
//! last time. A lower half alone counts a microsecond later: some programs leave the upper half, which is 0, out.

use super::timer::Timer;
use crate::device::state_is_all;
use crate::device::{BusError, Context, Device, Exit};
use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Token of the event that says that `tohost` was stored to.
pub const STORED: u64 = u64::MAX;
/// Tokens of typed bytes: this and the byte.
pub const TYPED: u64 = 1 << 8;
const HALF_ALONE: SimTime = SimTime::from_us(1);

const CALL_WRITE: u64 = 64;
const CALL_EXIT: u64 = 93;
/// -ENOSYS.
const NO_SUCH_CALL: u64 = -38i64 as u64;
/// Longest text of one system call.
const WRITE_LIMIT: u64 = 1 << 20;

/// The interface of a loaded program.
#[derive(Serialize, Deserialize)]
pub struct Htif {
    to_host: u64,
    from_host: Option<u64>,
    low: bool,
    high: bool,
    alone: Timer,
    typed: VecDeque<u8>,
    /// The program waits for a byte.
    asked: bool,
}

impl Htif {
    /// The interface with its words at these physical addresses.
    pub fn new(to_host: u64, from_host: Option<u64>) -> Self {
        Self { to_host, from_host, low: false, high: false, alone: Timer::new(0), typed: VecDeque::new(), asked: false }
    }

    /// Address of `tohost`.
    pub fn to_host(&self) -> u64 {
        self.to_host
    }

    /// `bytes` bytes at `at` were stored. True if that concerns `tohost`, and the event [`STORED`] is due.
    pub fn note(&mut self, at: u64, bytes: u8) -> bool {
        let (start, end) = (at, at + u64::from(bytes));
        let touches = |half: u64| start < half + 4 && end > half;
        let (low, high) = (touches(self.to_host), touches(self.to_host + 4));
        self.low |= low;
        self.high |= high;
        low || high
    }

    fn act(&mut self, cx: &mut dyn Context) {
        (self.low, self.high) = (false, false);
        self.alone.disarm();
        let word = read(cx, self.to_host);
        match (word >> 48, word & ((1 << 48) - 1)) {
            (0, 0) => {}
            (0, payload) if payload & 1 != 0 => cx.stop(Exit::Code((payload >> 1) as u32)),
            (0, address) => {
                self.call(cx, address);
                self.clear(cx);
                if let Some(from_host) = self.from_host {
                    // A bad symbol is the program's own fault.
                    let _ = cx.dma_write(from_host, &1u64.to_le_bytes());
                }
            }
            (0x0100, _) => {
                self.asked = true;
                self.clear(cx);
                self.give(cx);
            }
            (0x0101, payload) => {
                cx.console(payload as u8);
                self.clear(cx);
            }
            _ => self.clear(cx),
        }
    }

    /// Gives the program the byte that it waits for, if there is one.
    fn give(&mut self, cx: &mut dyn Context) {
        if self.asked
            && let Some(from_host) = self.from_host
            && let Some(byte) = self.typed.pop_front()
        {
            self.asked = false;
            // A bad symbol is the program's own fault.
            let _ = cx.dma_write(from_host, &(1 << 56 | 0x100 | u64::from(byte)).to_le_bytes());
        }
    }

    /// A system call whose words lie at `address`; the result replaces the number.
    fn call(&self, cx: &mut dyn Context, address: u64) {
        let word = |cx: &mut dyn Context, index: u64| read(cx, address.wrapping_add(8 * index));
        let result = match word(cx, 0) {
            CALL_WRITE => {
                let (text, length) = (word(cx, 2), word(cx, 3).min(WRITE_LIMIT));
                let mut bytes = vec![0; length as usize];
                match cx.dma_read(text, &mut bytes) {
                    Ok(()) => {
                        bytes.iter().for_each(|&byte| cx.console(byte));
                        length
                    }
                    // -EFAULT.
                    Err(_) => -14i64 as u64,
                }
            }
            CALL_EXIT => {
                let code = word(cx, 1);
                return cx.stop(Exit::Code(code as u32));
            }
            _ => NO_SUCH_CALL,
        };
        // An address outside RAM was read as zeros, which is no call that has an effect.
        let _ = cx.dma_write(address, &result.to_le_bytes());
    }

    fn clear(&self, cx: &mut dyn Context) {
        // The word lies in RAM: it was looked at when the program was loaded.
        let _ = cx.dma_write(self.to_host, &[0; 8]);
    }
}

/// The word at `address`; 0 outside RAM.
fn read(cx: &mut dyn Context, address: u64) -> u64 {
    let mut bytes = [0; 8];
    match cx.dma_read(address, &mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

impl Device for Htif {
    fn read(&mut self, _cx: &mut dyn Context, _offset: u64, _size: u8) -> Result<u64, BusError> {
        Err(BusError::Unmapped)
    }

    fn write(&mut self, _cx: &mut dyn Context, _offset: u64, _size: u8, _value: u64) -> Result<(), BusError> {
        Err(BusError::Unmapped)
    }

    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        if token & TYPED != 0 && token != STORED {
            self.typed.push_back(token as u8);
            self.give(cx);
        } else if token != STORED {
            if self.alone.fires(token) {
                self.act(cx);
            }
        } else if self.low && self.high {
            self.act(cx);
        } else if self.low {
            let at = cx.now() + HALF_ALONE;
            self.alone.arm(cx, at);
        }
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeContext, RAM_BASE};

    const TO_HOST: u64 = RAM_BASE + 0x100;
    const FROM_HOST: u64 = RAM_BASE + 0x108;
    const CALL: u64 = RAM_BASE + 0x200;

    struct Program(Htif, FakeContext);

    impl Program {
        fn new() -> Self {
            Self(Htif::new(TO_HOST, Some(FROM_HOST)), FakeContext::new(4096))
        }
        fn store(&mut self, at: u64, bytes: &[u8]) {
            self.1.ram_mut(at, bytes.len()).copy_from_slice(bytes);
            if self.0.note(at, bytes.len() as u8) {
                self.0.event(&mut self.1, STORED);
            }
        }
        fn low(&mut self, value: u32) {
            self.store(TO_HOST, &value.to_le_bytes());
        }
        fn high(&mut self, value: u32) {
            self.store(TO_HOST + 4, &value.to_le_bytes());
        }
        fn call(&mut self, words: [u64; 4]) -> u64 {
            for (at, word) in (CALL..).step_by(8).zip(words) {
                self.store(at, &word.to_le_bytes());
            }
            self.store(TO_HOST, &CALL.to_le_bytes());
            u64::from(self.1.word(CALL)) | u64::from(self.1.word(CALL + 4)) << 32
        }
    }

    #[test]
    fn a_typed_byte_is_given_when_it_is_asked_for_and_there() {
        let mut p = Program::new();
        let given = |p: &Program| u64::from_le_bytes(p.1.ram(FROM_HOST, 8).try_into().unwrap());
        let byte = |byte: u8| 1 << 56 | 0x100 | u64::from(byte);
        p.0.event(&mut p.1, TYPED | u64::from(b'a'));
        assert_eq!(given(&p), 0, "not asked for");
        p.store(TO_HOST, &(1u64 << 56).to_le_bytes());
        assert_eq!((given(&p), p.1.word(TO_HOST + 4)), (byte(b'a'), 0));
        p.store(FROM_HOST, &[0; 8]);
        p.store(TO_HOST, &(1u64 << 56).to_le_bytes());
        assert_eq!(given(&p), 0, "nothing there");
        p.0.event(&mut p.1, TYPED | u64::from(b'b'));
        assert_eq!(given(&p), byte(b'b'));
    }

    #[test]
    fn every_way_to_exit() {
        type Way = fn(&mut Program);
        let ways: [Way; 4] = [
            |program| program.store(TO_HOST, &15u64.to_le_bytes()),
            |program| {
                program.low(15);
                program.high(0);
            },
            |program| {
                program.high(0);
                program.low(15);
            },
            |program| {
                program.low(15);
                let Program(htif, cx) = program;
                assert_eq!(cx.stopped(), None, "the upper half may still come");
                cx.advance(htif, HALF_ALONE);
            },
        ];
        for way in ways {
            let mut program = Program::new();
            way(&mut program);
            assert_eq!(program.1.stopped(), Some(Exit::Code(7)));
        }
    }

    #[test]
    fn bytes_are_printed_once_however_they_are_stored() {
        let mut program = Program::new();
        // An odd byte looks like an exit until its upper half comes.
        program.low(b'a'.into());
        program.high(0x0101_0000);
        program.high(0x0101_0000);
        program.low(b'c'.into());
        program.store(TO_HOST, &(0x0101 << 48 | u64::from(b'e')).to_le_bytes());
        let Program(htif, cx) = &mut program;
        cx.advance(htif, SimTime::from_us(10));
        assert_eq!((cx.console_bytes(), cx.stopped(), cx.word(TO_HOST)), (&b"ace"[..], None, 0));
    }

    #[test]
    fn system_calls_of_the_proxy() {
        let mut program = Program::new();
        program.store(RAM_BASE, b"text");
        assert_eq!(program.call([CALL_WRITE, 1, RAM_BASE, 4]), 4);
        assert_eq!(
            (program.1.console_bytes(), program.1.word(FROM_HOST), program.1.word(TO_HOST)),
            (&b"text"[..], 1, 0)
        );
        assert_eq!(program.call([CALL_WRITE, 1, 0, 4]), -14i64 as u64);
        assert_eq!(program.call([57, 0, 0, 0]), NO_SUCH_CALL);
        program.store(TO_HOST, &0x10u64.to_le_bytes());
        assert_eq!(program.1.stopped(), None, "a call outside RAM is none");
        program.call([CALL_EXIT, 3, 0, 0]);
        assert_eq!(program.1.stopped(), Some(Exit::Code(3)));
    }
}
