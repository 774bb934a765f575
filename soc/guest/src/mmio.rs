//! The few registers of the board that the programs touch. Addresses are the board's fixed map: these programs test the machine
//! below any device tree.

const FINISHER: usize = 0x0010_0000;
const UINTC: usize = 0x0300_0000;
/// The UART's scratch register. The test bench around Rocket RTL (`bench/rtl`) has no finisher: this write is its end.
const UART_SCRATCH: usize = 0x1000_0007;

/// A register of a UINTC receiver.
#[derive(Clone, Copy)]
pub enum Register {
    /// Posts one vector.
    Send = 0,
    /// Active, mode, hart.
    Low = 8,
    /// Pending bits.
    High = 16,
    /// Active alone.
    Active = 24,
}

/// Address of a receiver's register.
pub fn uintc_address(receiver: usize, register: Register) -> usize {
    UINTC + 32 * receiver + register as usize
}

/// Reads a UINTC register.
pub fn uintc_read(receiver: usize, register: Register) -> u64 {
    // SAFETY: a device register of the board, 8-byte aligned, not memory of the program.
    unsafe { (uintc_address(receiver, register) as *const u64).read_volatile() }
}

/// Writes a UINTC register.
pub fn uintc_write(receiver: usize, register: Register, value: u64) {
    // SAFETY: as `uintc_read`.
    unsafe { (uintc_address(receiver, register) as *mut u64).write_volatile(value) }
}

/// Ends the machine.
pub fn exit(code: u32) -> ! {
    let word = if code == 0 { 0x5555 } else { code << 16 | 0x3333 };
    // SAFETY: the UART's scratch register, which nothing reads, and the test finisher's register.
    unsafe {
        (UART_SCRATCH as *mut u8).write_volatile(code as u8);
        (FINISHER as *mut u32).write_volatile(word);
    }
    loop {
        core::hint::spin_loop();
    }
}
