//! Numbers of the user-interrupt CSRs, and typed access to those a program may touch itself.
//!
//! On another architecture than RISC-V the accessors behave like a hart whose registers are hardwired to zero.

/// `ustatus`: UIE and UPIE.
pub const USTATUS: u16 = 0x000;
/// `uie`: which user interrupts are enabled.
pub const UIE: u16 = 0x004;
/// `utvec`: handler address and mode.
pub const UTVEC: u16 = 0x005;
/// `uscratch`: one word for the handler.
pub const USCRATCH: u16 = 0x040;
/// `uepc`: the interrupted instruction.
pub const UEPC: u16 = 0x041;
/// `ucause`: bit 63 and the interrupt code.
pub const UCAUSE: u16 = 0x042;
/// `utval`: 0 for interrupts.
pub const UTVAL: u16 = 0x043;
/// `uip`: pending user interrupts.
pub const UIP: u16 = 0x044;
/// `sedeleg`: hardwired 0.
pub const SEDELEG: u16 = 0x102;
/// `sideleg`: interrupts that the supervisor hands to U-mode.
pub const SIDELEG: u16 = 0x103;
/// `suist`: see [`crate::format::Suist`].
pub const SUIST: u16 = 0x1B0;
/// `suirs`: see [`crate::format::Suirs`].
pub const SUIRS: u16 = 0x1B1;

/// `ustatus.UIE`: user interrupts are taken.
pub const USTATUS_UIE: u64 = 1 << 0;
/// `ustatus.UPIE`: UIE before the interrupt, restored by `uret`.
pub const USTATUS_UPIE: u64 = 1 << 4;
/// USI, the user software interrupt, in `uie`, `uip`, `sideleg`, `mideleg`, `sie` and `sip`: the one that UIPI raises.
pub const USI: u64 = 1 << 0;
/// `ucause` of a user software interrupt.
pub const CAUSE_USER_SOFTWARE: u64 = 1 << 63;

/// Lets this thread take user interrupts (`ustatus.UIE` := 1). One that is pending is taken before the next instruction.
///
/// Compiler accesses to memory do not move over it.
#[inline] // one instruction; a call would cost more
pub fn enable() {
    // SAFETY: changes only whether an installed handler may run; the handler keeps every register and the stack below.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!("csrsi {ustatus}, 1", ustatus = const USTATUS)
    }
}

/// Stops this thread from taking user interrupts (`ustatus.UIE` := 0).
#[inline] // one instruction
pub fn disable() {
    // SAFETY: as for `enable`.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!("csrci {ustatus}, 1", ustatus = const USTATUS)
    }
}

/// The bits of `ustatus`.
#[inline] // one instruction
pub fn ustatus() -> u64 {
    #[cfg(target_arch = "riscv64")]
    {
        let bits;
        // SAFETY: reads a register.
        unsafe { core::arch::asm!("csrr {bits}, {ustatus}", bits = out(reg) bits, ustatus = const USTATUS) };
        bits
    }
    #[cfg(not(target_arch = "riscv64"))]
    0
}

/// The bits of `uip`: bit 0 is up while a user software interrupt is pending.
#[inline] // one instruction
pub fn uip() -> u64 {
    #[cfg(target_arch = "riscv64")]
    {
        let bits;
        // SAFETY: reads a register.
        unsafe { core::arch::asm!("csrr {bits}, {uip}", bits = out(reg) bits, uip = const UIP) };
        bits
    }
    #[cfg(not(target_arch = "riscv64"))]
    0
}
