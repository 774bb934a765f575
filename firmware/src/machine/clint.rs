//! The core-local interruptor: a software interrupt bit and a time compare word per hart, one time counter.

use super::start::board;

/// `msip` of hart *h* is the 32-bit word at `4 * h` (SiFive CLINT manual; also RISC-V ACLINT, MSWI).
const MTIMECMP: usize = 0x4000;
const MTIME: usize = 0xbff8;

/// Raises the software interrupt of `hart`.
pub fn raise(hart: usize) {
    write_software_bit(hart, 1);
}

/// Takes the software interrupt of `hart` back.
pub fn acknowledge(hart: usize) {
    write_software_bit(hart, 0);
}

fn write_software_bit(hart: usize, value: u32) {
    let word = (board().clint.base + 4 * hart) as *mut u32;
    // SAFETY: the device tree names this range as the CLINT, and `hart` < MAX_HARTS keeps the word inside `msip`.
    unsafe { word.write_volatile(value) }
}

/// The time at which `hart` wants its next timer interrupt; `u64::MAX` is never.
pub fn set_compare(hart: usize, time: u64) {
    let word = (board().clint.base + MTIMECMP + 8 * hart) as *mut u64;
    // SAFETY: as above, inside `mtimecmp`.
    unsafe { word.write_volatile(time) }
}

/// Now, in ticks of the time base.
pub fn time() -> u64 {
    let word = (board().clint.base + MTIME) as *const u64;
    // SAFETY: as above, `mtime` has no read side effect.
    unsafe { word.read_volatile() }
}
