//! CSR accesses by number and the user-interrupt instructions, for code that runs alone on the machine.

/// Reads a CSR.
#[macro_export]
macro_rules! read_csr {
    ($number:literal) => {{
        let value: u64;
        // SAFETY: a CSR read has no effect on memory; the program owns the hart.
        unsafe { core::arch::asm!(concat!("csrr {0}, ", $number), out(reg) value) };
        value
    }};
}

/// Writes a CSR; gives nothing back.
#[macro_export]
macro_rules! write_csr {
    ($number:literal, $value:expr) => {{
        let value: u64 = $value;
        // SAFETY: the program owns the hart and keeps no state that these registers could break: trap vectors are set up
        // by `entry`, translation is never switched on.
        unsafe { core::arch::asm!(concat!("csrw ", $number, ", {0}"), in(reg) value) };
    }};
}

/// Sets bits of a CSR.
#[macro_export]
macro_rules! set_csr {
    ($number:literal, $bits:expr) => {{
        let bits: u64 = $bits;
        // SAFETY: as `write_csr`.
        unsafe { core::arch::asm!(concat!("csrs ", $number, ", {0}"), in(reg) bits) };
    }};
}

/// Clears bits of a CSR.
#[macro_export]
macro_rules! clear_csr {
    ($number:literal, $bits:expr) => {{
        let bits: u64 = $bits;
        // SAFETY: as `write_csr`.
        unsafe { core::arch::asm!(concat!("csrc ", $number, ", {0}"), in(reg) bits) };
    }};
}

/// `uipi.send index`.
pub fn uipi_send(index: u64) {
    // SAFETY: posts a bit to a receiver; the handler saves every register that it uses. No `nomem`: what was stored before
    // must be visible to the receiver.
    unsafe { core::arch::asm!(".insn r 0x7b, 6, 0, x0, {0}, x0", in(reg) index) };
}

/// `uipi.read`.
pub fn uipi_read() -> u64 {
    let bits;
    // SAFETY: as `uipi_send`.
    unsafe { core::arch::asm!(".insn r 0x7b, 6, 1, {0}, x0, x0", out(reg) bits) };
    bits
}

/// `uipi.write bits`.
pub fn uipi_write(bits: u64) {
    // SAFETY: as `uipi_send`.
    unsafe { core::arch::asm!(".insn r 0x7b, 6, 2, x0, {0}, x0", in(reg) bits) };
}

/// `uipi.activate`.
pub fn uipi_activate() {
    // SAFETY: as `uipi_send`.
    unsafe { core::arch::asm!(".insn r 0x7b, 6, 3, x0, x0, x0") };
}

/// `uipi.deactivate`.
pub fn uipi_deactivate() {
    // SAFETY: as `uipi_send`.
    unsafe { core::arch::asm!(".insn r 0x7b, 6, 4, x0, x0, x0") };
}
