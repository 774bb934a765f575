//! Characters to the firmware's console: debug system calls and the kernel's last words.

use core::fmt;

use super::sbi;

/// Prints one byte.
pub fn put_char(byte: u8) {
    sbi::put_char(byte);
}

/// `core::fmt` on the console.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(sbi::put_char);
        Ok(())
    }
}
