//! Control and status registers by name, nothing else.

/// Reads a CSR.
macro_rules! read {
    ($csr:literal) => {{
        let value: usize;
        // SAFETY: reading this register has no side effect on memory or control flow.
        unsafe { core::arch::asm!(concat!("csrr {}, ", $csr), out(reg) value, options(nomem, nostack)) };
        value
    }};
}

/// Writes a CSR. Used for registers whose new value changes S/U state or interrupt routing, never this code's own memory.
macro_rules! write {
    ($csr:literal, $value:expr) => {{
        let value: usize = $value;
        // SAFETY: the registers written by this firmware steer lower modes and interrupts only.
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

/// Executes one instruction on a CSR that this hart may lack: `true` if it did not trap.
/// `mtvec` points behind the instruction meanwhile; interrupts are off in M, so nothing else can come.
macro_rules! attempt {
    ($instruction:literal, $value:expr) => {{
        let value: usize = $value;
        let trapped: usize;
        // SAFETY: a trap lands on label 2, where `mtvec` is put back; mepc, mcause and mstatus.MPP are dead here,
        // because this runs at hart start only.
        unsafe {
            core::arch::asm!(
                "la {old}, 2f",
                "csrrw {old}, mtvec, {old}",
                "li {trapped}, 1",
                $instruction,
                "li {trapped}, 0",
                ".align 2",
                "2: csrw mtvec, {old}",
                old = out(reg) _,
                trapped = out(reg) trapped,
                value = inout(reg) value => _,
                options(nostack)
            );
        }
        trapped == 0
    }};
}

pub(super) use {attempt, clear, read, set, write};

/// Interrupt bits of `mie`, `mip`, `mideleg`.
pub mod interrupt {
    /// Supervisor software.
    pub const SSI: usize = 1 << 1;
    /// Machine software.
    pub const MSI: usize = 1 << 3;
    /// Supervisor timer.
    pub const STI: usize = 1 << 5;
    /// Machine timer.
    pub const MTI: usize = 1 << 7;
    /// Supervisor external.
    pub const SEI: usize = 1 << 9;
    /// User software, timer, external (N extension).
    pub const USER: usize = 1 << 0 | 1 << 4 | 1 << 8;
}

/// Bits of `mstatus`.
pub mod status {
    /// Previous interrupt enable and current one, supervisor.
    pub const SIE: usize = 1 << 1;
    /// Supervisor's saved interrupt enable.
    pub const SPIE: usize = 1 << 5;
    /// Machine's saved interrupt enable.
    pub const MPIE: usize = 1 << 7;
    /// Supervisor's previous privilege.
    pub const SPP: usize = 1 << 8;
    /// Previous privilege, two bits.
    pub const MPP: usize = 3 << 11;
    /// `MPP` = supervisor.
    pub const MPP_SUPERVISOR: usize = 1 << 11;
    /// Loads and stores use the rights and translation of `MPP`.
    pub const MPRV: usize = 1 << 17;
    /// Loads may read execute-only pages.
    pub const MXR: usize = 1 << 19;
}
