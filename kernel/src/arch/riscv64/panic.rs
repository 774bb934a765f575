//! The kernel's last words: what happened, the registers, and the frames above as symboliser markup, which the console turns
//! into function names. Then the machine ends with code 1.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use super::console::Console;
use super::{csr, sbi};

/// Register number of the frame pointer.
const FP: usize = 8;
const MAX_FRAMES: usize = 32;

/// The first hart that panics prints; the others keep still.
static PANICKED: AtomicBool = AtomicBool::new(false);

fn claim_console() {
    if PANICKED.swap(true, Ordering::Relaxed) {
        loop {
            core::hint::spin_loop();
        }
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let frame_pointer: usize;
    // SAFETY: copies a register.
    unsafe { core::arch::asm!("mv {}, s0", out(reg) frame_pointer, options(nomem, nostack)) }
    claim_console();
    let _ = writeln!(Console, "kernel: core {} {info}", super::core_number());
    let _ = backtrace(0, frame_pointer);
    sbi::shut_down(true)
}

/// Called by entry.S when the kernel itself trapped: `x[0]` is the program counter, the rest the registers.
pub extern "C" fn kernel_trap(x: &[usize; 32]) -> ! {
    claim_console();
    let _ = print_trap(x);
    let _ = frame(0, x[0]).and_then(|()| backtrace(1, x[FP]));
    sbi::shut_down(true)
}

fn print_trap(x: &[usize; 32]) -> fmt::Result {
    writeln!(
        Console,
        "kernel: core {} trap in the kernel: scause {:#x} sepc {:#x} stval {:#x}",
        super::core_number(),
        csr::read!("scause"),
        x[0],
        csr::read!("stval"),
    )?;
    for (number, value) in x.iter().enumerate().skip(1) {
        let end = if number % 4 == 0 || number == 31 { '\n' } else { ' ' };
        write!(Console, "x{number:<2} {value:016x}{end}")?;
    }
    Ok(())
}

fn frame(number: usize, pc: usize) -> fmt::Result {
    writeln!(Console, "{{{{{{bt:{number}:{pc:#x}:kernel}}}}}}")
}

/// Walks the frame pointers: the return address lies 8, the caller's frame pointer 16 bytes below.
fn backtrace(first: usize, mut frame_pointer: usize) -> fmt::Result {
    let stacks = super::stack_range();
    for number in first..MAX_FRAMES {
        if !stacks.contains(&frame_pointer.wrapping_sub(16)) || !frame_pointer.is_multiple_of(8) {
            break;
        }
        let words = frame_pointer as *const usize;
        // SAFETY: aligned and inside the kernel's stacks, checked above.
        let (caller, return_address) = unsafe { (words.sub(2).read_volatile(), words.sub(1).read_volatile()) };
        if return_address == 0 {
            break;
        }
        frame(number, return_address.wrapping_sub(1))?;
        if caller <= frame_pointer {
            break;
        }
        frame_pointer = caller;
    }
    Ok(())
}
