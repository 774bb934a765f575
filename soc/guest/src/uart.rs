//! Console output through the 16550; M-mode only, one hart at a time.

use core::fmt;

const UART: usize = 0x1000_0000;

/// The console.
pub struct Uart;

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the UART's transmit register; the model always accepts a byte.
            unsafe { (UART as *mut u8).write_volatile(byte) };
        }
        Ok(())
    }
}

/// Prints a line.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => {{
        use core::fmt::Write;
        // Writing to the UART cannot fail.
        let _ = writeln!($crate::uart::Uart, $($argument)*);
    }};
}
