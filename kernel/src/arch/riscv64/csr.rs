//! Supervisor registers by name or number, nothing else.

/// Reads a CSR.
macro_rules! read {
    ($csr:literal) => {{
        let value: usize;
        // SAFETY: reading this register has no side effect.
        unsafe { core::arch::asm!(concat!("csrr {}, ", $csr), out(reg) value, options(nomem, nostack)) };
        value
    }};
}

/// Writes a CSR. The caller's module says why the new value is sound.
macro_rules! write {
    ($csr:literal, $value:expr) => {{
        let value: usize = $value;
        // SAFETY: only registers that steer U-mode, interrupts or the address space are written through this macro; the
        // kernel's own code, stack and data keep their (global) translation whatever they hold.
        unsafe { core::arch::asm!(concat!("csrw ", $csr, ", {}"), in(reg) value, options(nostack)) }
    }};
}

/// Sets bits of a CSR.
macro_rules! set {
    ($csr:literal, $bits:expr) => {{
        let bits: usize = $bits;
        // SAFETY: as for `write`.
        unsafe { core::arch::asm!(concat!("csrs ", $csr, ", {}"), in(reg) bits, options(nostack)) }
    }};
}

/// Clears bits of a CSR.
macro_rules! clear {
    ($csr:literal, $bits:expr) => {{
        let bits: usize = $bits;
        // SAFETY: as for `write`.
        unsafe { core::arch::asm!(concat!("csrc ", $csr, ", {}"), in(reg) bits, options(nostack)) }
    }};
}

pub(super) use {clear, read, set, write};

/// Interrupt bits of `sie` and `sip`.
pub mod interrupt {
    /// Software: another hart wants attention.
    pub const SOFTWARE: usize = 1 << 1;
    /// Timer.
    pub const TIMER: usize = 1 << 5;
    /// External: the PLIC.
    pub const EXTERNAL: usize = 1 << 9;
}

/// Bits of `sstatus`.
pub mod status {
    /// User interrupts: enabled, and enabled before the last one (N extension).
    pub const USER_INTERRUPTS: usize = 1 << 0 | 1 << 4;
    /// Interrupts enabled after `sret`.
    pub const SPIE: usize = 1 << 5;
    /// Privilege after `sret`: 0 = U.
    pub const SPP: usize = 1 << 8;
    /// Floating point, two bits: 0 = Off, all set = Dirty.
    pub const FS: usize = 3 << 13;
    /// Floating point: the state Initial, and the bit in which Dirty differs from Clean.
    pub const FS_INITIAL: usize = 1 << 13;
    /// Floating point: the state Clean.
    pub const FS_CLEAN: usize = 2 << 13;
    /// Supervisor loads and stores reach user pages.
    pub const SUM: usize = 1 << 18;
    /// Loads reach execute-only pages.
    pub const MXR: usize = 1 << 19;
}
