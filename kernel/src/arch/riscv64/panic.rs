//! The kernel's last words: what happened, the frames above as symboliser markup, which the console turns into function names, and
//! what every core was doing. Then the machine ends with code [`sbi::PANIC_CODE`].
//!
//! Nothing here may rely on the kernel's state being whole. The other cores are asked to stop (stall.rs) and waited for a while only;
//! a panic within a panic ends the machine at once.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::console::Console;
use super::{core_number, csr, sbi, smp, stall, trap};
use crate::api::debug::Name;

/// Register number of the frame pointer.
const FP: usize = 8;
const MAX_FRAMES: usize = 32;

const NOBODY: usize = usize::MAX;
/// The first core that panics prints; the others keep still.
static PANICKED: AtomicUsize = AtomicUsize::new(NOBODY);

fn claim_console() {
    match PANICKED.compare_exchange(NOBODY, core_number(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {}
        Err(first) if first == core_number() => end(),
        Err(_) => stall::park_here(),
    }
}

fn end() -> ! {
    sbi::shut_down(sbi::Reason::Panic)
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let frame_pointer: usize;
    // SAFETY: copies a register.
    unsafe { core::arch::asm!("mv {}, s0", out(reg) frame_pointer, options(nomem, nostack)) }
    claim_console();
    let _ = writeln!(Console, "kernel: core {} {info}", core_number());
    let _ = backtrace(0, frame_pointer);
    let _ = all_cores();
    end()
}

/// Called by entry.S when the kernel itself trapped: `x[0]` is the program counter, the rest the registers.
pub extern "C" fn kernel_trap(x: &[usize; 32]) -> ! {
    claim_console();
    let _ = print_trap(x);
    let _ = frame(0, x[0]).and_then(|()| backtrace(1, x[FP]));
    let _ = all_cores();
    end()
}

fn print_trap(x: &[usize; 32]) -> fmt::Result {
    writeln!(
        Console,
        "kernel: core {} trap in the kernel: scause {:#x} sepc {:#x} stval {:#x}",
        core_number(),
        csr::read!("scause"),
        x[0],
        csr::read!("stval"),
    )?;
    registers(x.iter().map(|&value| value as u64))
}

/// x1 to x31, four in a line; word 0 is not one of them.
fn registers(x: impl Iterator<Item = u64>) -> fmt::Result {
    for (number, value) in x.enumerate().skip(1) {
        let end = if number % 4 == 0 || number == 31 { '\n' } else { ' ' };
        write!(Console, "x{number:<2} {value:016x}{end}")?;
    }
    Ok(())
}

/// What each core was doing: the thread that it runs, with the registers that it entered the kernel with.
fn all_cores() -> fmt::Result {
    (0..smp::cores()).try_for_each(|core| {
        let state = if core == core_number() { "panicked" } else { stall::park(core) };
        // SAFETY: the other cores stand still, or do not answer; this one does not return.
        let kernel = unsafe { trap::look() };
        let current = kernel.cores[core].current;
        write!(Console, "core {core}, hart {}, {state}: ", smp::hart(core))?;
        let Some(thread) = current.filter(|_| current != kernel.cores[core].idle) else {
            return writeln!(Console, "no thread");
        };
        let tcb = kernel.get(thread);
        let (name, context) = (Name(tcb.name), &tcb.context);
        writeln!(Console, "thread {thread:?} '{name}' priority {} {:?}", tcb.priority, tcb.state)?;
        writeln!(Console, "pc  {:016x} next {:016x} fault {:?}", context.x[0], context.next_pc, tcb.fault)?;
        registers(context.x.iter().copied())
    })
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
