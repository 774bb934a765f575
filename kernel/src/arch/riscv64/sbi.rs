//! Calls into the machine-mode firmware. Version 2.0 extensions where the kernel needs them, and the legacy character
//! output, which every firmware has.

use core::arch::asm;

const BASE: usize = 0x10;
const TIME: usize = 0x5449_4d45;
const IPI: usize = 0x73_5049;
const RFENCE: usize = 0x5246_4e43;
const HSM: usize = 0x48_534d;
const SRST: usize = 0x5352_5354;
const LEGACY_PUTCHAR: usize = 1;

/// The error half of an SBI answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub isize);

fn call(extension: usize, function: usize, a: [usize; 4]) -> Result<usize, Error> {
    let (error, value): (isize, usize);
    // SAFETY: an SBI call preserves every register but a0 and a1; the firmware keeps to its own memory.
    unsafe {
        asm!(
            "ecall",
            inlateout("a0") a[0] => error,
            inlateout("a1") a[1] => value,
            in("a2") a[2], in("a3") a[3], in("a6") function, in("a7") extension,
            options(nostack)
        );
    }
    if error == 0 { Ok(value) } else { Err(Error(error)) }
}

/// Next timer interrupt of this hart, in ticks of the time base; takes a pending one back.
pub fn set_timer(time: u64) {
    let _ = call(TIME, 0, [time as usize, 0, 0, 0]);
}

/// Software interrupt to the harts of `mask` (bit = hart id).
pub fn send_ipi(mask: usize) {
    let _ = call(IPI, 0, [mask, 0, 0, 0]);
}

/// `fence.i` on the harts of `mask`.
pub fn remote_fence_i(mask: usize) {
    let _ = call(RFENCE, 0, [mask, 0, 0, 0]);
}

/// `sfence.vma` for `size` bytes from `start` on the harts of `mask`; size `usize::MAX` is everything.
pub fn remote_sfence_vma(mask: usize, start: usize, size: usize) {
    let _ = call(RFENCE, 1, [mask, 0, start, size]);
}

/// Starts `hart` in S-mode at the physical address `entry` with a1 = `argument`.
pub fn hart_start(hart: usize, entry: usize, argument: usize) -> Result<(), Error> {
    call(HSM, 0, [hart, entry, argument, 0]).map(|_| ())
}

/// Whether the firmware has hart state management.
pub fn has_hart_start() -> bool {
    matches!(call(BASE, 3, [HSM, 0, 0, 0]), Ok(available) if available != 0)
}

/// One character on the firmware's console.
pub fn put_char(byte: u8) {
    let _ = call(LEGACY_PUTCHAR, 0, [usize::from(byte), 0, 0, 0]);
}

/// Exit code of the machine after a kernel panic: that of a Rust program that panics.
pub const PANIC_CODE: usize = 101;

/// Why the machine ends (SBI 2.0, "System Reset Extension").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was asked to.
    None,
    /// The kernel has panicked.
    Panic,
}

/// Reasons from here on are the vendor's. Our firmware takes the low 16 bits as exit code; others refuse them.
const VENDOR: usize = 0xF000_0000;
const SYSTEM_FAILURE: usize = 1;

/// Ends the machine.
pub fn shut_down(reason: Reason) -> ! {
    match reason {
        Reason::None => {
            let _ = call(SRST, 0, [0, 0, 0, 0]);
        }
        Reason::Panic => {
            let _ = call(SRST, 0, [0, VENDOR | PANIC_CODE, 0, 0]);
            let _ = call(SRST, 0, [0, SYSTEM_FAILURE, 0, 0]);
        }
    }
    loop {
        core::hint::spin_loop();
    }
}
