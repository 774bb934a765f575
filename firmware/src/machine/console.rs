//! The 16550 console, polled: SBI debug console calls, legacy characters, and the firmware's own last words.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use rustsbi::{Console, Physical, SbiRet};

use super::start::{board, outside_firmware};

const DATA: usize = 0;
const LINE_STATUS: usize = 5;
const DATA_READY: u8 = 1 << 0;
const TRANSMIT_EMPTY: u8 = 1 << 5;

/// One writer at a time, so that lines of two harts do not mix.
static BUSY: AtomicBool = AtomicBool::new(false);

fn register(index: usize) -> Option<*mut u8> {
    let uart = board().uart?;
    Some((uart.registers.base + (index << uart.shift)) as *mut u8)
}

fn read(index: usize) -> Option<u8> {
    let register = register(index)?;
    // SAFETY: `board` checked that the eight registers lie inside the range that the device tree gives the UART.
    Some(unsafe { register.read_volatile() })
}

/// Sends one byte, waiting for room; without a UART it goes nowhere.
pub fn put(byte: u8) {
    while read(LINE_STATUS).is_some_and(|status| status & TRANSMIT_EMPTY == 0) {}
    if let Some(data) = register(DATA) {
        // SAFETY: as in `read`.
        unsafe { data.write_volatile(byte) }
    }
}

/// The next received byte, if there is one.
pub fn get() -> Option<u8> {
    (read(LINE_STATUS)? & DATA_READY != 0).then(|| read(DATA))?
}

/// Runs `print` while no other hart prints.
pub fn exclusive<R>(print: impl FnOnce(&mut Writer) -> R) -> R {
    while BUSY.swap(true, Ordering::Acquire) {}
    let result = print(&mut Writer);
    BUSY.store(false, Ordering::Release);
    result
}

/// `core::fmt` on the console.
pub struct Writer;

impl fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(put);
        Ok(())
    }
}

/// SBI debug console extension.
pub struct DebugConsole;

/// The range named by S-mode, if it lies in RAM and not in the firmware.
fn buffer<P>(bytes: &Physical<P>) -> Option<(*mut u8, usize)> {
    let (base, len) = (bytes.phys_addr_lo(), bytes.num_bytes());
    let allowed = bytes.phys_addr_hi() == 0
        && board().memory.is_some_and(|memory| memory.holds(base, len))
        && outside_firmware(base, len);
    allowed.then_some((base as *mut u8, len))
}

impl Console for DebugConsole {
    fn write(&self, bytes: Physical<&[u8]>) -> SbiRet {
        let Some((base, len)) = buffer(&bytes) else {
            return SbiRet::invalid_param();
        };
        exclusive(|_| {
            for offset in 0..len {
                // SAFETY: `buffer` found the range inside RAM and outside the firmware; M-mode addresses are physical.
                put(unsafe { base.add(offset).read_volatile() });
            }
        });
        SbiRet::success(len)
    }

    fn read(&self, bytes: Physical<&mut [u8]>) -> SbiRet {
        let Some((base, len)) = buffer(&bytes) else {
            return SbiRet::invalid_param();
        };
        let mut count = 0;
        while count < len
            && let Some(byte) = get()
        {
            // SAFETY: as in `write`; S-mode offered this memory for writing.
            unsafe { base.add(count).write_volatile(byte) }
            count += 1;
        }
        SbiRet::success(count)
    }

    fn write_byte(&self, byte: u8) -> SbiRet {
        exclusive(|_| put(byte));
        SbiRet::success(0)
    }
}
