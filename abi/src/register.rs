//! Order of the registers in `seL4_UserContext` (Read/Write/CopyRegisters): 32 words, the first 16 are the frame registers.

/// Number of registers in the context.
pub const COUNT: usize = 32;
/// The first 16 are copied as frame registers, the others as integer registers.
pub const FRAME_COUNT: usize = 16;

/// Names by position.
pub const NAMES: [&str; COUNT] = [
    "pc", "ra", "sp", "gp", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "a0", "a1", "a2",
    "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "tp",
];

/// Hardware register number (x1..x31) by position; position 0 is the program counter and has none (0).
pub const X: [u8; COUNT] = [
    0, 1, 2, 3, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 10, 11, 12, 13, 14, 15, 16, 17, 5, 6, 7, 28, 29, 30, 31,
    4,
];

/// Position of the program counter.
pub const PC: usize = 0;
/// Position of the return address.
pub const RA: usize = 1;
/// Position of the stack pointer.
pub const SP: usize = 2;
/// Global pointer.
pub const GP: usize = 3;
/// Position of the frame pointer.
pub const S0: usize = 4;
/// Position of the first argument.
pub const A0: usize = 16;
/// Position of the second argument.
pub const A1: usize = 17;
/// Position of the thread pointer.
pub const TP: usize = 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hardware_register_has_one_place() {
        let mut seen = [0; 32];
        X[1..].iter().for_each(|&x| seen[x as usize] += 1);
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&n| n == 1));
    }
}
