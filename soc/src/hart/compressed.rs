//! Expansion of RV64C instructions to their 32-bit twins (unprivileged manual, chapter "C"), so that there is one decoder.

const SP: u32 = 2;
const RA: u32 = 1;

fn bits(c: u32, high: u32, low: u32) -> u32 {
    c >> low & ((1 << (high - low + 1)) - 1)
}

fn sign(value: u32, width: u32) -> u32 {
    ((value << (32 - width)) as i32 >> (32 - width)) as u32
}

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | imm << 20
}

fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: u32) -> u32 {
    opcode | bits(imm, 4, 0) << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | bits(imm, 11, 5) << 25
}

fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25
}

fn jal(rd: u32, imm: u32) -> u32 {
    0x6F | rd << 7
        | bits(imm, 19, 12) << 12
        | bits(imm, 11, 11) << 20
        | bits(imm, 10, 1) << 21
        | bits(imm, 20, 20) << 31
}

fn branch(funct3: u32, rs1: u32, imm: u32) -> u32 {
    0x63 | bits(imm, 11, 11) << 7
        | bits(imm, 4, 1) << 8
        | funct3 << 12
        | rs1 << 15
        | bits(imm, 10, 5) << 25
        | bits(imm, 12, 12) << 31
}

/// The 32-bit form of compressed instruction `half`, or none if it is illegal or reserved.
pub fn expand(half: u16) -> Option<u32> {
    let c = u32::from(half);
    let funct3 = bits(c, 15, 13);
    let rd = bits(c, 11, 7);
    let rs2 = bits(c, 6, 2);
    let rd_short = bits(c, 4, 2) + 8;
    let rs1_short = bits(c, 9, 7) + 8;
    let imm6 = sign(bits(c, 12, 12) << 5 | bits(c, 6, 2), 6);
    let shamt = bits(c, 12, 12) << 5 | bits(c, 6, 2);
    let imm_w = bits(c, 5, 5) << 6 | bits(c, 12, 10) << 3 | bits(c, 6, 6) << 2;
    let imm_d = bits(c, 6, 5) << 6 | bits(c, 12, 10) << 3;
    let insn = match (c & 3, funct3) {
        (0, 0) => {
            let imm = bits(c, 10, 7) << 6 | bits(c, 12, 11) << 4 | bits(c, 5, 5) << 3 | bits(c, 6, 6) << 2;
            if imm == 0 {
                return None;
            }
            i_type(0x13, 0, rd_short, SP, imm)
        }
        (0, 1) => i_type(0x07, 3, rd_short, rs1_short, imm_d),
        (0, 2) => i_type(0x03, 2, rd_short, rs1_short, imm_w),
        (0, 3) => i_type(0x03, 3, rd_short, rs1_short, imm_d),
        (0, 5) => s_type(0x27, 3, rs1_short, rd_short, imm_d),
        (0, 6) => s_type(0x23, 2, rs1_short, rd_short, imm_w),
        (0, 7) => s_type(0x23, 3, rs1_short, rd_short, imm_d),
        (1, 0) => i_type(0x13, 0, rd, rd, imm6),
        (1, 1) if rd != 0 => i_type(0x1B, 0, rd, rd, imm6),
        (1, 2) => i_type(0x13, 0, rd, 0, imm6),
        (1, 3) if rd == SP => {
            let imm = sign(
                bits(c, 12, 12) << 9
                    | bits(c, 4, 3) << 7
                    | bits(c, 5, 5) << 6
                    | bits(c, 2, 2) << 5
                    | bits(c, 6, 6) << 4,
                10,
            );
            if imm == 0 {
                return None;
            }
            i_type(0x13, 0, SP, SP, imm)
        }
        (1, 3) if imm6 != 0 => 0x37 | rd << 7 | imm6 << 12,
        (1, 4) => {
            let funct2 = bits(c, 11, 10);
            match (funct2, bits(c, 12, 12), bits(c, 6, 5)) {
                (0, _, _) => i_type(0x13, 5, rs1_short, rs1_short, shamt),
                (1, _, _) => i_type(0x13, 5, rs1_short, rs1_short, shamt | 0x400),
                (2, _, _) => i_type(0x13, 7, rs1_short, rs1_short, imm6),
                (3, 0, 0) => r_type(0x33, 0, 0x20, rs1_short, rs1_short, rd_short),
                (3, 0, 1) => r_type(0x33, 4, 0, rs1_short, rs1_short, rd_short),
                (3, 0, 2) => r_type(0x33, 6, 0, rs1_short, rs1_short, rd_short),
                (3, 0, 3) => r_type(0x33, 7, 0, rs1_short, rs1_short, rd_short),
                (3, 1, 0) => r_type(0x3B, 0, 0x20, rs1_short, rs1_short, rd_short),
                (3, 1, 1) => r_type(0x3B, 0, 0, rs1_short, rs1_short, rd_short),
                _ => return None,
            }
        }
        (1, 5) => {
            let imm = bits(c, 12, 12) << 11
                | bits(c, 8, 8) << 10
                | bits(c, 10, 9) << 8
                | bits(c, 6, 6) << 7
                | bits(c, 7, 7) << 6
                | bits(c, 2, 2) << 5
                | bits(c, 11, 11) << 4
                | bits(c, 5, 3) << 1;
            jal(0, sign(imm, 12))
        }
        (1, 6 | 7) => {
            let imm = bits(c, 12, 12) << 8
                | bits(c, 6, 5) << 6
                | bits(c, 2, 2) << 5
                | bits(c, 11, 10) << 3
                | bits(c, 4, 3) << 1;
            branch(funct3 - 6, rs1_short, sign(imm, 9))
        }
        (2, 0) => i_type(0x13, 1, rd, rd, shamt),
        (2, 1) => i_type(0x07, 3, rd, SP, bits(c, 4, 2) << 6 | bits(c, 12, 12) << 5 | bits(c, 6, 5) << 3),
        (2, 2) if rd != 0 => i_type(0x03, 2, rd, SP, bits(c, 3, 2) << 6 | bits(c, 12, 12) << 5 | bits(c, 6, 4) << 2),
        (2, 3) if rd != 0 => i_type(0x03, 3, rd, SP, bits(c, 4, 2) << 6 | bits(c, 12, 12) << 5 | bits(c, 6, 5) << 3),
        (2, 4) => match (bits(c, 12, 12), rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => i_type(0x67, 0, 0, rd, 0),
            (0, _, _) => r_type(0x33, 0, 0, rd, 0, rs2),
            (_, 0, 0) => 0x0010_0073,
            (_, _, 0) => i_type(0x67, 0, RA, rd, 0),
            (_, _, _) => r_type(0x33, 0, 0, rd, rd, rs2),
        },
        (2, 5) => s_type(0x27, 3, SP, rs2, bits(c, 9, 7) << 6 | bits(c, 12, 10) << 3),
        (2, 6) => s_type(0x23, 2, SP, rs2, bits(c, 8, 7) << 6 | bits(c, 12, 9) << 2),
        (2, 7) => s_type(0x23, 3, SP, rs2, bits(c, 9, 7) << 6 | bits(c, 12, 10) << 3),
        _ => return None,
    };
    Some(insn)
}

#[cfg(test)]
mod tests {
    use super::expand;

    /// Pairs made with the GNU assembler: compressed form, full form.
    #[test]
    fn against_the_assembler() {
        for (half, full) in [
            (0x0808, 0x0101_0513), // c.addi4spn a0, 16
            (0x4188, 0x0005_a503), // c.lw a0, 0(a1)
            (0x6588, 0x0085_b503), // c.ld a0, 8(a1)
            (0xc188, 0x00a5_a023), // c.sw a0, 0(a1)
            (0xe588, 0x00a5_b423), // c.sd a0, 8(a1)
            (0x157d, 0xfff5_0513), // c.addi a0, -1
            (0x357d, 0xfff5_051b), // c.addiw a0, -1
            (0x557d, 0xfff0_0513), // c.li a0, -1
            (0x7139, 0xfc01_0113), // c.addi16sp -64
            (0x757d, 0xffff_f537), // c.lui a0, 0xfffff
            (0x8105, 0x0015_5513), // c.srli a0, 1
            (0x8d0d, 0x40b5_0533), // c.sub a0, a1
            (0x8d2d, 0x00b5_4533), // c.xor a0, a1
            (0x9d0d, 0x40b5_053b), // c.subw a0, a1
            (0xbffd, 0xffff_f06f), // c.j -2
            (0xdd7d, 0xfe05_0fe3), // c.beqz a0, -2
            (0x8082, 0x0000_8067), // ret
            (0x9502, 0x0005_00e7), // c.jalr a0
            (0x852e, 0x00b0_0533), // c.mv a0, a1
            (0x952e, 0x00b5_0533), // c.add a0, a1
            (0x60a2, 0x0081_3083), // c.ldsp ra, 8(sp)
            (0xe406, 0x0011_3423), // c.sdsp ra, 8(sp)
            (0x2588, 0x0085_b507), // c.fld fa0, 8(a1)
            (0xa588, 0x00a5_b427), // c.fsd fa0, 8(a1)
            (0x2522, 0x0081_3507), // c.fldsp fa0, 8(sp)
            (0x2002, 0x0001_3007), // c.fldsp ft0, 0(sp)
            (0xa42a, 0x00a1_3427), // c.fsdsp fa0, 8(sp)
            (0x9002, 0x0010_0073), // c.ebreak
            (0x0001, 0x0000_0013), // c.nop
        ] {
            assert_eq!(expand(half), Some(full), "{half:#06x}: {:#010x?}", expand(half));
        }
        for illegal in [0x0000, 0x8000, 0x8002, 0x4002, 0x6101 & !0x107c | 0x0100] {
            assert_eq!(expand(illegal), None, "{illegal:#06x}");
        }
    }
}
