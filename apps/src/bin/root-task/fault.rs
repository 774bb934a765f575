//! What is printed about a fault: who, what, all registers, a backtrace.
//!
//! The backtrace follows the frame pointers on the thread's stack. Nothing there is believed: a frame must lie on the stack of that
//! thread and above the one before it, and each word is read out of the stack's frames, not through the program's address space.
//! The program is stopped, so nothing changes under the reader.

use crate::memory::Memory;
use crate::process::{Process, Thread};
use abi::fault as label;
use abi::register;
use userlib::ipc_buffer;
use userlib::println;
use userlib::syscall::Received;

/// Most frames of a backtrace.
const MAX_FRAMES: usize = 32;

/// Prints all about the fault that `message` tells.
pub fn report(memory: &mut Memory, process: &Process, thread: usize, message: &Received) {
    let word = |index: usize| message.words.get(index).copied().unwrap_or_else(|| ipc_buffer::message_word(index));
    let name = process.name;
    let pc = word(0);
    let lost = message.info.label() == label::VM_FAULT && word(3) == label::FSR_FETCH;
    match message.info.label() {
        label::VM_FAULT => {
            let access = match word(3) {
                label::FSR_FETCH => "executed",
                label::FSR_LOAD => "read",
                label::FSR_STORE => "wrote",
                _ => "touched",
            };
            println!("fault: {name} thread {thread} {access} address {:#x}, which it must not (pc {pc:#x})", word(1));
        }
        label::CAP_FAULT => {
            let phase = if word(2) == 1 { "received from" } else { "sent to" };
            let why = match word(label::CAP_FAULT_LOOKUP) {
                1 => "its CSpace has no root",
                2 => "there is none or it lacks the right",
                3 => "the address is too long or too short",
                4 => "the guard differs",
                _ => "the lookup failed",
            };
            println!("fault: {name} thread {thread} {phase} capability {:#x}: {why} (pc {pc:#x})", word(1));
        }
        label::UNKNOWN_SYSCALL => {
            println!("fault: {name} thread {thread} made unknown system call {} (pc {pc:#x})", word(10) as i64);
        }
        label::USER_EXCEPTION => {
            let cause = word(2);
            println!("fault: {name} thread {thread} raised exception {cause}, {} (pc {pc:#x})", exception(cause));
        }
        other => {
            println!("fault: {name} thread {thread} sent its supervisor a message of unknown label {other:#x}");
        }
    }
    let Some(thread) = process.threads.get(thread) else { return };
    match thread.tcb.read_registers(false) {
        Ok(context) => {
            registers(&context.0);
            backtrace(memory, process, thread, &context.0, lost);
        }
        Err(error) => println!("  its registers cannot be read: {error}"),
    }
}

fn registers(context: &[u64; register::COUNT]) {
    for (names, values) in register::NAMES.chunks(4).zip(context.chunks(4)) {
        let [a, b, c, d] = core::array::from_fn(|index| values[index]);
        let [an, bn, cn, dn] = core::array::from_fn(|index| names[index]);
        println!("  {an:>3} {a:016x}  {bn:>3} {b:016x}  {cn:>3} {c:016x}  {dn:>3} {d:016x}");
    }
}

/// After a jump to nowhere (`lost`) there is no frame of the function that jumped yet, but the return address is still in its register.
/// RISC-V frames: the return address is 8 bytes, the caller's frame pointer 16 bytes below the frame pointer (psABI, "Frame pointer").
fn backtrace(memory: &mut Memory, process: &Process, thread: &Thread, context: &[u64; register::COUNT], lost: bool) {
    let print = |number: usize, address: u64| println!("{{{{{{bt:{number}:{address:#x}:{}}}}}}}", process.name);
    print(0, context[register::PC]);
    if lost {
        print(1, context[register::RA]);
    }
    let mut frame = context[register::S0];
    for number in 1 + usize::from(lost)..MAX_FRAMES {
        let Some([caller, address]) = stack_words(memory, thread, frame.wrapping_sub(16)) else { break };
        if address == 0 {
            break;
        }
        print(number, address);
        if caller <= frame {
            break;
        }
        frame = caller;
    }
}

/// Two words on a thread's stack, if `address` is on it.
fn stack_words(memory: &mut Memory, thread: &Thread, address: u64) -> Option<[u64; 2]> {
    let offset = address.checked_sub(thread.stack)?;
    if !offset.is_multiple_of(16) || offset >= thread.stack_size {
        return None;
    }
    let bytes = thread.area.read(memory, address)?;
    let [low, high] = [0, 8].map(|at| core::array::from_fn(|index| bytes[at + index]));
    Some([u64::from_le_bytes(low), u64::from_le_bytes(high)])
}

/// `scause` in words (RISC-V privileged specification, table of `mcause`).
fn exception(cause: u64) -> &'static str {
    match cause {
        0 => "misaligned instruction",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "misaligned load",
        6 => "misaligned store",
        _ => "of a kind it should not meet",
    }
}
