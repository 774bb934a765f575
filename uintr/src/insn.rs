//! The five `uipi` instructions, and their encodings.
//!
//! They are R-type on opcode custom-3 with funct3 = 6; funct7 names the operation and rs2 is x0. No toolchain knows them,
//! hence `.insn`. On a hart without the N extension they raise an illegal-instruction fault: a program finds out first
//! whether its machine has them (the kernel refuses to make a receiver where it has not).
//!
//! All are safe: hardware checks every operand against what the kernel granted, and what is not granted has no effect.
//! On another architecture than RISC-V they behave like a hart with `suist` = `suirs` = 0.
//!
//! Ordering: loads and stores before [`send`] and [`write()`] are performed before the bit appears at the receiver; loads
//! after [`read`] see all that preceded the sends whose bits it returned. The compiler keeps the same order, since each is
//! an `asm!` block that may touch memory.

/// The operation: funct7 of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Operation {
    /// Post the interrupt of a sender table entry.
    Send = 0,
    /// Read and clear the own pending bits.
    Read = 1,
    /// OR into the own pending bits.
    Write = 2,
    /// Let pending bits raise the line.
    Activate = 3,
    /// Collect pending bits silently.
    Deactivate = 4,
}

/// Opcode custom-3.
pub const OPCODE: u32 = 0x7B;
/// funct3 of all five.
pub const FUNCT3: u32 = 6;
/// `uret`, legal in U-mode only.
pub const URET: u32 = 0x0020_0073;

impl Operation {
    /// The instruction word with registers `rd` and `rs1`.
    ///
    /// # Panics
    /// If a register number exceeds 31.
    pub const fn encode(self, rd: u32, rs1: u32) -> u32 {
        assert!(rd < 32 && rs1 < 32, "registers are x0 to x31");
        (self as u32) << 25 | rs1 << 15 | FUNCT3 << 12 | rd << 7 | OPCODE
    }

    /// The operation of an instruction word and its registers (`rd`, `rs1`), or `None` for any other instruction. Unused
    /// register fields must be x0, as the hardware demands.
    pub const fn decode(word: u32) -> Option<(Self, u32, u32)> {
        let (rd, rs1, rs2) = (word >> 7 & 31, word >> 15 & 31, word >> 20 & 31);
        if word & 0x7F != OPCODE || word >> 12 & 7 != FUNCT3 || rs2 != 0 {
            return None;
        }
        match word >> 25 {
            0 if rd == 0 => Some((Self::Send, rd, rs1)),
            1 if rs1 == 0 => Some((Self::Read, rd, rs1)),
            2 if rd == 0 => Some((Self::Write, rd, rs1)),
            3 if rd == 0 && rs1 == 0 => Some((Self::Activate, rd, rs1)),
            4 if rd == 0 && rs1 == 0 => Some((Self::Deactivate, rd, rs1)),
            _ => None,
        }
    }
}

/// `uipi.send`: posts the interrupt that entry `index` of the thread's sender table describes. No effect if there is no
/// such entry or it is not valid.
#[inline] // one instruction
pub fn send(index: u64) {
    #[cfg(target_arch = "riscv64")]
    // SAFETY: hardware checks the index; nothing of this program changes.
    unsafe {
        core::arch::asm!(".insn r 0x7b, 6, 0, x0, {index}, x0", index = in(reg) index)
    }
    #[cfg(not(target_arch = "riscv64"))]
    let _ = index;
}

/// `uipi.read`: the pending bits of the thread's receiver, clearing them in the same step. 0 without a receiver.
#[inline] // one instruction
pub fn read() -> u64 {
    #[cfg(target_arch = "riscv64")]
    {
        let bits;
        // SAFETY: touches only the own receiver.
        unsafe { core::arch::asm!(".insn r 0x7b, 6, 1, {bits}, x0, x0", bits = out(reg) bits) };
        bits
    }
    #[cfg(not(target_arch = "riscv64"))]
    0
}

/// `uipi.write`: ORs `bits` into the pending bits of the thread's receiver.
#[inline] // one instruction
pub fn write(bits: u64) {
    #[cfg(target_arch = "riscv64")]
    // SAFETY: touches only the own receiver.
    unsafe {
        core::arch::asm!(".insn r 0x7b, 6, 2, x0, {bits}, x0", bits = in(reg) bits)
    }
    #[cfg(not(target_arch = "riscv64"))]
    let _ = bits;
}

/// `uipi.activate`: pending bits raise the line; at once, if there are any.
#[inline] // one instruction
pub fn activate() {
    // SAFETY: touches only the own receiver.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!(".insn r 0x7b, 6, 3, x0, x0, x0")
    }
}

/// `uipi.deactivate`: pending bits are collected and raise nothing.
#[inline] // one instruction
pub fn deactivate() {
    // SAFETY: touches only the own receiver.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!(".insn r 0x7b, 6, 4, x0, x0, x0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_those_of_the_published_hardware() {
        assert_eq!(Operation::Send.encode(0, 0), 0x0000_607B);
        assert_eq!(Operation::Read.encode(0, 0), 0x0200_607B);
        assert_eq!(Operation::Write.encode(0, 0), 0x0400_607B);
        assert_eq!(Operation::Activate.encode(0, 0), 0x0600_607B);
        assert_eq!(Operation::Deactivate.encode(0, 0), 0x0800_607B);
        // uipi.read a0; uipi.send a1
        assert_eq!(Operation::Read.encode(10, 0), 0x0200_657B);
        assert_eq!(Operation::Send.encode(0, 11), 0x0005_E07B);
    }

    #[test]
    fn decode_takes_exactly_the_five() {
        for operation in
            [Operation::Send, Operation::Read, Operation::Write, Operation::Activate, Operation::Deactivate]
        {
            let word = operation.encode(0, 0);
            assert_eq!(Operation::decode(word), Some((operation, 0, 0)));
            assert_eq!(Operation::decode(word | 1 << 20), None, "rs2 must be x0");
            assert_eq!(Operation::decode(word & !(7 << 12) | 2 << 12), None, "funct3 must be 6");
        }
        assert_eq!(Operation::decode(Operation::Send.encode(1, 0)), None);
        assert_eq!(Operation::decode(Operation::Read.encode(1, 1)), None);
        assert_eq!(Operation::decode(5 << 25 | FUNCT3 << 12 | OPCODE), None);
        assert_eq!(Operation::decode(URET), None);
    }
}
