//! Decoder of 32-bit instructions. Anything outside rv64imafd + Zicsr + Zifencei + privileged + N decodes to [`Op::Illegal`].

use super::float::instruction::{File, destination, is_legal};
use super::insn::{Insn, Op};

fn sign(value: u32, width: u32) -> i32 {
    (value << (32 - width)) as i32 >> (32 - width)
}

/// Decodes `raw` (already expanded if it was compressed). `offset`, `len`, `cost` and `index` are the caller's to set.
pub fn decode(raw: u32) -> Insn {
    let rd = (raw >> 7 & 31) as u8;
    let rs1 = (raw >> 15 & 31) as u8;
    let rs2 = (raw >> 20 & 31) as u8;
    let funct3 = raw >> 12 & 7;
    let funct7 = raw >> 25;
    let imm_i = raw as i32 >> 20;
    let imm_u = (raw & 0xFFFF_F000) as i32;
    let illegal = Insn::new(Op::Illegal, 0, 0, 0, raw as i32);
    let insn = |op, imm| Insn::new(op, rd, rs1, rs2, imm);
    match raw & 0x7F {
        0x37 => insn(Op::Li, imm_u),
        0x17 => insn(Op::Auipc, imm_u),
        0x6F => {
            let imm = sign((raw >> 31) << 20 | (raw & 0xF_F000) | (raw >> 20 & 1) << 11 | (raw >> 21 & 0x3FF) << 1, 21);
            insn(Op::Jal, imm)
        }
        0x67 if funct3 == 0 => insn(Op::Jalr, imm_i),
        0x63 => {
            let imm =
                sign((raw >> 31) << 12 | (raw >> 7 & 1) << 11 | (raw >> 25 & 0x3F) << 5 | (raw >> 8 & 0xF) << 1, 13);
            let op = match funct3 {
                0 => Op::Beq,
                1 => Op::Bne,
                4 => Op::Blt,
                5 => Op::Bge,
                6 => Op::Bltu,
                7 => Op::Bgeu,
                _ => return illegal,
            };
            insn(op, imm)
        }
        0x03 => {
            const LOADS: [Op; 7] = [Op::Lb, Op::Lh, Op::Lw, Op::Ld, Op::Lbu, Op::Lhu, Op::Lwu];
            LOADS.get(funct3 as usize).map_or(illegal, |&op| insn(op, imm_i))
        }
        0x23 => {
            const STORES: [Op; 4] = [Op::Sb, Op::Sh, Op::Sw, Op::Sd];
            let imm = sign((funct7 << 5) | u32::from(rd), 12);
            STORES.get(funct3 as usize).map_or(illegal, |&op| insn(op, imm))
        }
        0x07 => match funct3 {
            2 => Insn { rd, ..insn(Op::Flw, imm_i) },
            3 => Insn { rd, ..insn(Op::Fld, imm_i) },
            _ => illegal,
        },
        0x27 => {
            let imm = sign((funct7 << 5) | u32::from(rd), 12);
            match funct3 {
                2 => insn(Op::Fsw, imm),
                3 => insn(Op::Fsd, imm),
                _ => illegal,
            }
        }
        0x43 | 0x47 | 0x4B | 0x4F | 0x53 if is_legal(raw) => {
            let insn = insn(Op::Float, raw as i32);
            if destination(raw) == File::Float { Insn { rd, ..insn } } else { insn }
        }
        0x13 => {
            let op = match (funct3, raw >> 26) {
                (0, _) if rd == 0 => return insn(Op::Nop, 0),
                (0, _) if rs1 == 0 => return insn(Op::Li, imm_i),
                (0, _) if imm_i == 0 => return insn(Op::Mv, 0),
                (0, _) => Op::Addi,
                (2, _) => Op::Slti,
                (3, _) => Op::Sltiu,
                (4, _) => Op::Xori,
                (6, _) => Op::Ori,
                (7, _) => Op::Andi,
                (1, 0) => return insn(Op::Slli, imm_i & 63),
                (5, 0) => return insn(Op::Srli, imm_i & 63),
                (5, 0x10) => return insn(Op::Srai, imm_i & 63),
                _ => return illegal,
            };
            insn(op, imm_i)
        }
        0x1B => match (funct3, funct7) {
            (0, _) => insn(Op::Addiw, imm_i),
            (1, 0) => insn(Op::Slliw, imm_i & 31),
            (5, 0) => insn(Op::Srliw, imm_i & 31),
            (5, 0x20) => insn(Op::Sraiw, imm_i & 31),
            _ => illegal,
        },
        0x33 => {
            let op = match (funct7, funct3) {
                (0, 0) if rs1 == 0 => return Insn::new(Op::Mv, rd, rs2, 0, 0),
                (0, 0) => Op::Add,
                (0x20, 0) => Op::Sub,
                (0, 1) => Op::Sll,
                (0, 2) => Op::Slt,
                (0, 3) => Op::Sltu,
                (0, 4) => Op::Xor,
                (0, 5) => Op::Srl,
                (0x20, 5) => Op::Sra,
                (0, 6) => Op::Or,
                (0, 7) => Op::And,
                (1, 0) => Op::Mul,
                (1, 1) => Op::Mulh,
                (1, 2) => Op::Mulhsu,
                (1, 3) => Op::Mulhu,
                (1, 4) => Op::Div,
                (1, 5) => Op::Divu,
                (1, 6) => Op::Rem,
                (1, 7) => Op::Remu,
                _ => return illegal,
            };
            insn(op, 0)
        }
        0x3B => {
            let op = match (funct7, funct3) {
                (0, 0) => Op::Addw,
                (0x20, 0) => Op::Subw,
                (0, 1) => Op::Sllw,
                (0, 5) => Op::Srlw,
                (0x20, 5) => Op::Sraw,
                (1, 0) => Op::Mulw,
                (1, 4) => Op::Divw,
                (1, 5) => Op::Divuw,
                (1, 6) => Op::Remw,
                (1, 7) => Op::Remuw,
                _ => return illegal,
            };
            insn(op, 0)
        }
        0x2F => {
            let word = match funct3 {
                2 => true,
                3 => false,
                _ => return illegal,
            };
            let pick = |w, d| if word { w } else { d };
            let op = match funct7 >> 2 {
                0x02 if rs2 == 0 => pick(Op::LrW, Op::LrD),
                0x03 => pick(Op::ScW, Op::ScD),
                0x01 => pick(Op::AmoswapW, Op::AmoswapD),
                0x00 => pick(Op::AmoaddW, Op::AmoaddD),
                0x04 => pick(Op::AmoxorW, Op::AmoxorD),
                0x0C => pick(Op::AmoandW, Op::AmoandD),
                0x08 => pick(Op::AmoorW, Op::AmoorD),
                0x10 => pick(Op::AmominW, Op::AmominD),
                0x14 => pick(Op::AmomaxW, Op::AmomaxD),
                0x18 => pick(Op::AmominuW, Op::AmominuD),
                0x1C => pick(Op::AmomaxuW, Op::AmomaxuD),
                _ => return illegal,
            };
            Insn { ordered: funct7 & 3 != 0, ..insn(op, 0) }
        }
        0x0F => match funct3 {
            0 if raw == 0x0100_000F => insn(Op::Pause, 0),
            0 => insn(Op::Fence, 0),
            1 => insn(Op::FenceI, 0),
            _ => illegal,
        },
        0x73 => system(raw, rd, rs1, rs2, funct3, funct7),
        0x7B if funct3 == 6 && rs2 == 0 => {
            let op = match (funct7, rs1, rd) {
                (0, _, 0) => Op::UipiSend,
                (1, 0, _) => Op::UipiRead,
                (2, _, 0) => Op::UipiWrite,
                (3, 0, 0) => Op::UipiActivate,
                (4, 0, 0) => Op::UipiDeactivate,
                _ => return illegal,
            };
            insn(op, raw as i32)
        }
        _ => illegal,
    }
}

fn system(raw: u32, rd: u8, rs1: u8, rs2: u8, funct3: u32, funct7: u32) -> Insn {
    let op = match raw {
        0x0000_0073 => Op::Ecall,
        0x0010_0073 => Op::Ebreak,
        0x0020_0073 => Op::Uret,
        0x1020_0073 => Op::Sret,
        0x3020_0073 => Op::Mret,
        0x1050_0073 => Op::Wfi,
        _ if funct3 == 0 && funct7 == 0x09 && rd == 0 => Op::SfenceVma,
        _ if funct3 != 0 && funct3 != 4 => Op::Csr,
        _ => Op::Illegal,
    };
    Insn::new(op, rd, rs1, rs2, raw as i32)
}

#[cfg(test)]
mod tests {
    use super::super::insn::SINK;
    use super::*;

    fn check(raw: u32, op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) {
        let insn = decode(raw);
        assert_eq!((insn.op, insn.rd, insn.rs1, insn.rs2, insn.imm), (op, rd, rs1, rs2, imm), "{raw:#010x}");
    }

    /// Encodings made with the GNU assembler.
    #[test]
    fn against_the_assembler() {
        check(0xfff5_0513, Op::Addi, 10, 10, 31, -1);
        check(0x4015_5513, Op::Srai, 10, 10, 1, 1);
        check(0xfe05_0fe3, Op::Beq, 31, 10, 0, -2);
        check(0x0080_00ef, Op::Jal, 1, 0, 8, 8);
        check(0xffdff06f, Op::Jal, SINK, 31, 29, -4);
        check(0xfe11_3c23, Op::Sd, 24, 2, 1, -8);
        check(0x00c5_b52f, Op::AmoaddD, 10, 11, 12, 0);
        check(0x1005_a52f, Op::LrW, 10, 11, 0, 0);
        assert!(decode(0x06c5_b52f).ordered);
        assert_eq!(decode(0x3420_2573).op, Op::Csr);
        assert_eq!(decode(0x1200_0073).op, Op::SfenceVma);
    }

    /// The encodings of the user-interrupt instructions: opcode custom-3, funct3 110, other forms illegal.
    #[test]
    fn user_interrupt_encodings() {
        assert_eq!(decode(0x0000_607B | 10 << 15).op, Op::UipiSend);
        assert_eq!(decode(0x0200_607B | 10 << 7).op, Op::UipiRead);
        assert_eq!(decode(0x0400_607B | 10 << 15).op, Op::UipiWrite);
        assert_eq!(decode(0x0600_607B).op, Op::UipiActivate);
        assert_eq!(decode(0x0800_607B).op, Op::UipiDeactivate);
        assert_eq!(decode(0x0020_0073).op, Op::Uret);
        for illegal in [0x0000_207B, 0x0A00_607B, 0x0010_607B, 0x0000_607B | 1 << 7, 0x0200_607B | 1 << 15] {
            assert_eq!(decode(illegal).op, Op::Illegal, "{illegal:#x}");
        }
    }

    #[test]
    fn floating_point() {
        check(0x0085_3507, Op::Fld, 10, 10, 8, 8); // fld fa0, 8(a0)
        check(0x0005_2007, Op::Flw, 0, 10, 0, 0); // flw ft0, 0(a0)
        check(0xfea5_3c27, Op::Fsd, 24, 10, 10, -8); // fsd fa0, -8(a0)
        // fadd.d fa0, fa0, fa1; fmadd.s; fclass.d; fcvt.lu.s
        for raw in [0x02b5_7553, 0x60b5_7543, 0xe205_1553, 0xc035_7553] {
            assert_eq!(decode(raw).op, Op::Float, "{raw:#x}");
        }
        // fadd with rm 5; half and quad formats; fsqrt with rs2; fsgnj with rm 3; fcvt.s.s; fmv.x.w with rm 2; flh, fsq
        for raw in [
            0x02b5_5553,
            0x04b5_7553,
            0x06b5_7543,
            0x58b5_7553,
            0x20b5_3553,
            0x4005_7553,
            0xe005_2553,
            0x0005_1007,
            0x0005_4027,
        ] {
            assert_eq!(decode(raw).op, Op::Illegal, "{raw:#x}");
        }
    }
}
