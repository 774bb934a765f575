//! Decoding of the one instruction that the firmware emulates: a read of `time`.
//!
//! A hart may lack the `time` CSR (Rocket does; privileged manual, "counter-enable register" note: emulation by the
//! execution environment). The assembler forms of a pure read are `csrrs rd, time, x0` and `csrrc rd, time, x0`.

const SYSTEM: u32 = 0b111_0011;
const CSRRS: u32 = 2;
const CSRRC: u32 = 3;
const TIME: u32 = 0xc01;

/// The destination register of `instruction` if it is a pure read of `time`.
pub fn reads_time(instruction: u32) -> Option<usize> {
    let opcode = instruction & 0x7f;
    let operation = (instruction >> 12) & 7;
    let source = (instruction >> 15) & 31;
    let csr = instruction >> 20;
    let pure_read = matches!(operation, CSRRS | CSRRC) && source == 0;
    (opcode == SYSTEM && pure_read && csr == TIME).then_some(((instruction >> 7) & 31) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_rdtime_only() {
        assert_eq!(reads_time(0xc010_2573), Some(10), "rdtime a0");
        assert_eq!(reads_time(0xc010_22f3), Some(5), "rdtime t0");
        assert_eq!(reads_time(0xc000_2573), None, "rdcycle a0");
        assert_eq!(reads_time(0xc015_2573), None, "csrrs a0, time, a0 writes");
        assert_eq!(reads_time(0xc010_1573), None, "csrrw a0, time, x0 writes");
        assert_eq!(reads_time(0), None);
    }
}
