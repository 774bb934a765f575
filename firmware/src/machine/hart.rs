//! What each hart gets before it runs S-mode code: delegation, counters, memory protection.

use super::csr::{self, interrupt, status};
use super::start::{FIRMWARE_BASE, FIRMWARE_BYTES};

/// Exceptions that S-mode handles itself: misaligned, access and page faults, illegal instruction, breakpoint, `ecall` from U.
/// (`ecall` from S is the SBI.)
const DELEGATED_EXCEPTIONS: usize = 0xb1ff;
const ILLEGAL_INSTRUCTION: usize = 1 << 2;
/// CY, TM, IR: `rdcycle`, `rdtime`, `rdinstret` work in S and U.
const COUNTERS: usize = 0b111;

/// PMP entry: naturally aligned range / to top of address space, and the rights.
const NAPOT: usize = 3 << 3;
const RWX: usize = 0b111;

/// Makes this hart ready for S-mode.
pub fn prepare() {
    csr::write!("mie", 0);
    csr::write!("mideleg", interrupt::SSI | interrupt::STI | interrupt::SEI | interrupt::USER);
    let time_works = csr::attempt!("csrr {value}, time", 0);
    let exceptions = if time_works { DELEGATED_EXCEPTIONS } else { DELEGATED_EXCEPTIONS & !ILLEGAL_INSTRUCTION };
    csr::write!("medeleg", exceptions);
    csr::write!("mcounteren", COUNTERS);
    csr::write!("scounteren", COUNTERS);
    close_firmware_memory();
    csr::clear!("mip", interrupt::SSI | interrupt::STI);
    csr::write!("mie", interrupt::MSI);
    csr::clear!("mstatus", status::MPP | status::SIE | status::SPIE | status::SPP);
    csr::set!("mstatus", status::MPP_SUPERVISOR | status::MPIE);
}

/// Entry 0 takes the firmware's range from S and U, entry 1 opens everything else. A hart without PMP allows all anyway.
fn close_firmware_memory() {
    let napot = |base: usize, bytes: usize| (base | (bytes / 2 - 1)) >> 2;
    let firmware = napot(FIRMWARE_BASE, FIRMWARE_BYTES);
    let _ = csr::attempt!("csrw pmpaddr0, {value}", firmware)
        && csr::attempt!("csrw pmpaddr1, {value}", usize::MAX >> 10)
        && csr::attempt!("csrw pmpcfg0, {value}", (NAPOT | RWX) << 8 | NAPOT);
}
