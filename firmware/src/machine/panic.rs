//! Last words: what happened, where, and the frames above, as symboliser markup that the console turns into names.

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use super::console::Writer;
use super::start::{FIRMWARE_BASE, FIRMWARE_BYTES};
use super::trap::Frame;
use super::{csr, finisher};

const FP: usize = 8;
const MAX_FRAMES: usize = 32;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let frame_pointer: usize;
    // SAFETY: copies a register.
    unsafe { core::arch::asm!("mv {}, s0", out(reg) frame_pointer, options(nomem, nostack)) }
    let _ = writeln!(Writer, "firmware: hart {} {}", csr::read!("mhartid"), info);
    let _ = backtrace(0, frame_pointer);
    finisher::exit(1)
}

/// Ends the machine on a trap that the firmware cannot explain.
pub fn unexpected_trap(frame: &Frame) -> ! {
    let (pc, from_machine) = (csr::read!("mepc"), csr::read!("mstatus") >> 11 & 3 == 3);
    let _ = print_trap(frame, pc);
    if from_machine {
        let _ = bt(0, pc).and_then(|()| backtrace(1, frame.register[FP]));
    }
    finisher::exit(1)
}

fn print_trap(frame: &Frame, pc: usize) -> fmt::Result {
    writeln!(
        Writer,
        "firmware: hart {} unexpected trap: mcause {:#x} mepc {pc:#x} mtval {:#x} mstatus {:#x}",
        csr::read!("mhartid"),
        csr::read!("mcause"),
        csr::read!("mtval"),
        csr::read!("mstatus"),
    )?;
    for (number, value) in frame.register.iter().enumerate().skip(1) {
        let end = if number % 4 == 0 || number == 31 { '\n' } else { ' ' };
        write!(Writer, "x{number:<2} {value:016x}{end}")?;
    }
    Ok(())
}

fn bt(number: usize, pc: usize) -> fmt::Result {
    writeln!(Writer, "{{{{{{bt:{number}:{pc:#x}:firmware}}}}}}")
}

/// Walks the frame pointers: the return address lies 8, the caller's frame pointer 16 bytes below.
fn backtrace(first: usize, mut frame_pointer: usize) -> fmt::Result {
    for number in first..MAX_FRAMES {
        let inside = (FIRMWARE_BASE + 16..=FIRMWARE_BASE + FIRMWARE_BYTES).contains(&frame_pointer);
        if !inside || !frame_pointer.is_multiple_of(8) {
            break;
        }
        let words = frame_pointer as *const usize;
        // SAFETY: aligned and inside the firmware's own memory, checked above.
        let (caller, return_address) = unsafe { (words.sub(2).read_volatile(), words.sub(1).read_volatile()) };
        if return_address == 0 {
            break;
        }
        bt(number, return_address.wrapping_sub(1))?;
        if caller <= frame_pointer {
            break;
        }
        frame_pointer = caller;
    }
    Ok(())
}
