//! Traps into M-mode: relayed interrupts, SBI calls, and the emulation of `time` on harts that lack it.
//!
//! Everything else is delegated. A trap that is neither is a bug or a broken machine: it is printed and ends the machine.

use firmware::instruction;

use super::csr::{self, status};
use super::{clint, mailbox, panic, sbi, timer};

/// Registers of the interrupted mode: x1 to x31 at their number; x0's place is unused.
#[repr(C)]
pub struct Frame {
    /// By register number.
    pub register: [usize; 32],
}
const _: () = assert!(size_of::<Frame>() == 256); // entry.S

const INTERRUPT: usize = 1 << 63;
const MACHINE_SOFTWARE: usize = INTERRUPT | 3;
const MACHINE_TIMER: usize = INTERRUPT | 7;
const ILLEGAL_INSTRUCTION: usize = 2;
const SUPERVISOR_CALL: usize = 9;

unsafe extern "C" {
    fn guarded_read_half(address: usize, mode: usize) -> Guarded;
    fn guarded_read_word(address: usize, mode: usize) -> Guarded;
}

#[repr(C)]
struct Guarded {
    value: usize,
    trapped: usize,
}

impl Guarded {
    fn ok(self) -> Option<usize> {
        (self.trapped == 0).then_some(self.value)
    }
}

/// Reads 8 bytes at a virtual address with the rights of the interrupted mode; `mode` is `MPRV`, with or without `MXR`.
pub fn read_word(address: usize, mode: usize) -> Option<usize> {
    // SAFETY: the routine recovers from any trap of the load; PMP and page tables decide as for the interrupted mode.
    unsafe { guarded_read_word(address, mode) }.ok()
}

/// The 4-byte instruction at `pc` of the interrupted mode, in two halves because it may be 2-byte aligned.
fn fetch(pc: usize) -> Option<u32> {
    let mode = status::MPRV | status::MXR;
    // SAFETY: as in `read_word`.
    let low = unsafe { guarded_read_half(pc, mode) }.ok()?;
    // SAFETY: as in `read_word`.
    let high = unsafe { guarded_read_half(pc + 2, mode) }.ok()?;
    Some((high << 16 | low) as u32)
}

/// Called by entry.S with the interrupted registers.
pub extern "C" fn trap(frame: &mut Frame) {
    let cause = csr::read!("mcause");
    if csr::read!("mstatus") & status::MPP == status::MPP {
        panic::unexpected_trap(frame);
    }
    match cause {
        MACHINE_SOFTWARE => mailbox::serve(csr::read!("mhartid")),
        MACHINE_TIMER => timer::relay(),
        SUPERVISOR_CALL => {
            let pc = csr::read!("mepc");
            csr::write!("mepc", pc + 4);
            sbi::call(frame);
        }
        ILLEGAL_INSTRUCTION => illegal_instruction(frame),
        _ => panic::unexpected_trap(frame),
    }
}

/// Reached only where `time` is missing and the exception therefore is not delegated.
fn illegal_instruction(frame: &mut Frame) {
    let pc = csr::read!("mepc");
    let value = csr::read!("mtval");
    match fetch(pc).and_then(instruction::reads_time) {
        Some(destination) => {
            if destination != 0 {
                frame.register[destination] = clint::time() as usize;
            }
            csr::write!("mepc", pc + 4);
        }
        None => hand_down(pc, value),
    }
}

/// Delivers an illegal instruction to S-mode as the hardware would have done by delegation.
fn hand_down(pc: usize, value: usize) {
    let old = csr::read!("mstatus");
    let from_supervisor = old & status::MPP == status::MPP_SUPERVISOR;
    let mut new = old & !(status::MPP | status::SPP | status::SPIE | status::SIE);
    new |= status::MPP_SUPERVISOR;
    if from_supervisor {
        new |= status::SPP;
    }
    if old & status::SIE != 0 {
        new |= status::SPIE;
    }
    csr::write!("sepc", pc);
    csr::write!("scause", ILLEGAL_INSTRUCTION);
    csr::write!("stval", value);
    csr::write!("mstatus", new);
    csr::write!("mepc", csr::read!("stvec") & !3);
}
