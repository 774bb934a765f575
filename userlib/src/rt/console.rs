//! Lines for the console.
//!
//! A program collects a line and sends it to the root task as one message ([`crate::supervisor`]), so lines of two programs or two
//! harts do not mix. The root task itself writes through the kernel. A line without its end is kept until the next piece or `exit`.

use super::lock::Lock;
use crate::cap::slot::SUPERVISOR;
use crate::supervisor::{PRINT, PRINT_MAX};
use crate::{ipc_buffer, syscall};
use abi::message::{MessageInfo, REGISTERS};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

/// Set by the root task: write through the kernel.
static DIRECT: AtomicBool = AtomicBool::new(false);

static LINE: Lock<Line> = Lock::new(Line::new());

struct Line {
    bytes: [u8; PRINT_MAX],
    length: usize,
}

impl Line {
    const fn new() -> Self {
        Self { bytes: [0; PRINT_MAX], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
        if byte == b'\n' || self.length == self.bytes.len() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let bytes = &self.bytes[..core::mem::take(&mut self.length)];
        if bytes.is_empty() {
        } else if is_kernel() {
            bytes.iter().for_each(|&byte| syscall::debug_put_char(byte));
        } else {
            send(bytes);
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.push(byte));
        Ok(())
    }
}

fn send(bytes: &[u8]) {
    let mut registers = [bytes.len() as u64, 0, 0, 0];
    let mut length = 1;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        if length < REGISTERS {
            registers[length] = word;
        } else {
            ipc_buffer::set_message_word(length, word);
        }
        length += 1;
    }
    SUPERVISOR.send(MessageInfo::new(PRINT, 0, 0, length), registers);
}

/// Writes through the kernel from now on: for the root task, which has nobody above it.
pub fn use_kernel() {
    DIRECT.store(true, Ordering::Relaxed);
}

/// Whether this is the root task.
pub(crate) fn is_kernel() -> bool {
    DIRECT.load(Ordering::Relaxed)
}

/// Writes formatted text; what [`crate::print!`] calls.
pub fn print(arguments: fmt::Arguments) {
    // A line only fails to take text if a `Display` implementation says so; there is nobody to tell.
    let _ = LINE.lock().write_fmt(arguments);
}

/// Writes formatted text and a line end; what [`crate::println!`] calls.
pub fn print_line(arguments: fmt::Arguments) {
    let mut line = LINE.lock();
    let _ = line.write_fmt(arguments);
    line.push(b'\n');
}

/// Writes a line while the program panics, perhaps in the middle of another line: without waiting for whoever holds that.
pub fn print_last(arguments: fmt::Arguments) {
    if let Some(mut line) = LINE.try_lock() {
        line.flush();
    }
    let mut line = Line::new();
    let _ = line.write_fmt(arguments);
    line.push(b'\n');
}

/// Writes one byte of a line.
pub fn write_byte(byte: u8) {
    LINE.lock().push(byte);
}

/// Writes out a line that has no end yet.
pub fn flush() {
    LINE.lock().flush();
}

/// Prints to the console.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::rt::console::print(format_args!($($argument)*)) };
}

/// Prints a line to the console.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => { $crate::rt::console::print_line(format_args!($($argument)*)) };
}
