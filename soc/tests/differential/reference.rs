//! A second RV64IMAC, written from the manual's tables and for nothing but being right: one function decodes, one executes, one
//! instruction at a time, no caches. It shares no code with the machine that it is compared with.
//!
//! Machine mode, no translation, floating point switched off (so its instructions are illegal). Left out: SYSTEM instructions
//! and custom-3 (user interrupts), which the caller keeps away from.

/// Where RAM begins.
pub const RAM: u64 = 0x8000_0000;

/// An exception: cause and value for `mtval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    pub cause: u64,
    pub value: u64,
}

/// What an instruction does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// rd = f(rs1, rs2 or imm)
    Alu {
        op: Alu,
        word: bool,
        immediate: bool,
    },
    /// rd = imm, plus pc
    Upper {
        relative: bool,
    },
    Load {
        bytes: u64,
        signed: bool,
    },
    Store {
        bytes: u64,
    },
    /// funct5 and width
    Atomic {
        op: u32,
        bytes: u64,
    },
    /// funct3
    Branch {
        condition: u32,
    },
    /// To pc + imm, or rs1 + imm
    Jump {
        register: bool,
    },
    Fence,
}

/// Operations on registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Div,
    Divu,
    Rem,
    Remu,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub kind: Kind,
    pub rd: usize,
    pub rs1: usize,
    pub rs2: usize,
    pub imm: i64,
    pub length: u64,
}

/// Bits `high` to `low` of `word`.
fn bits(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

/// The lowest `width` bits as a signed number.
fn signed(value: u32, width: u32) -> i64 {
    i64::from((value << (32 - width)) as i32 >> (32 - width))
}

/// Decodes the instruction in the lowest bits of `word`; none if it is illegal.
pub fn decode(word: u32) -> Option<Instruction> {
    if word & 3 == 3 { decode_32(word) } else { decode_16(word & 0xFFFF) }
}

fn decode_32(word: u32) -> Option<Instruction> {
    let (funct3, funct7) = (bits(word, 14, 12), bits(word, 31, 25));
    let i_imm = signed(bits(word, 31, 20), 12);
    let make = |kind, imm| {
        let (rd, rs1, rs2) = (bits(word, 11, 7) as usize, bits(word, 19, 15) as usize, bits(word, 24, 20) as usize);
        Some(Instruction { kind, rd, rs1, rs2, imm, length: 4 })
    };
    match word & 0x7F {
        0x37 => make(Kind::Upper { relative: false }, i64::from((word & 0xFFFF_F000) as i32)),
        0x17 => make(Kind::Upper { relative: true }, i64::from((word & 0xFFFF_F000) as i32)),
        0x6F => {
            let imm = bits(word, 31, 31) << 20
                | bits(word, 19, 12) << 12
                | bits(word, 20, 20) << 11
                | bits(word, 30, 21) << 1;
            make(Kind::Jump { register: false }, signed(imm, 21))
        }
        0x67 if funct3 == 0 => make(Kind::Jump { register: true }, i_imm),
        0x63 if funct3 != 2 && funct3 != 3 => {
            let imm =
                bits(word, 31, 31) << 12 | bits(word, 7, 7) << 11 | bits(word, 30, 25) << 5 | bits(word, 11, 8) << 1;
            make(Kind::Branch { condition: funct3 }, signed(imm, 13))
        }
        0x03 if funct3 != 7 => make(Kind::Load { bytes: 1 << (funct3 & 3), signed: funct3 < 4 }, i_imm),
        0x23 if funct3 < 4 => {
            make(Kind::Store { bytes: 1 << funct3 }, signed(bits(word, 31, 25) << 5 | bits(word, 11, 7), 12))
        }
        0x13 => {
            let shift = |op, funct6| {
                let valid = bits(word, 31, 26) == funct6;
                valid
                    .then(|| make(Kind::Alu { op, word: false, immediate: true }, i64::from(bits(word, 25, 20))))
                    .flatten()
            };
            match funct3 {
                1 => shift(Alu::Sll, 0),
                5 => shift(Alu::Srl, 0).or_else(|| shift(Alu::Sra, 0x10)),
                _ => {
                    let op = [Alu::Add, Alu::Sll, Alu::Slt, Alu::Sltu, Alu::Xor, Alu::Srl, Alu::Or, Alu::And]
                        [funct3 as usize];
                    make(Kind::Alu { op, word: false, immediate: true }, i_imm)
                }
            }
        }
        0x1B => {
            let op = match (funct3, funct7) {
                (0, _) => return make(Kind::Alu { op: Alu::Add, word: true, immediate: true }, i_imm),
                (1, 0) => Alu::Sll,
                (5, 0) => Alu::Srl,
                (5, 0x20) => Alu::Sra,
                _ => return None,
            };
            make(Kind::Alu { op, word: true, immediate: true }, i64::from(bits(word, 24, 20)))
        }
        opcode @ (0x33 | 0x3B) => {
            let narrow = opcode == 0x3B;
            let op = match (funct7, funct3) {
                (0, 0) => Alu::Add,
                (0x20, 0) => Alu::Sub,
                (0, 1) => Alu::Sll,
                (0, 5) => Alu::Srl,
                (0x20, 5) => Alu::Sra,
                (1, 0) => Alu::Mul,
                (1, 4) => Alu::Div,
                (1, 5) => Alu::Divu,
                (1, 6) => Alu::Rem,
                (1, 7) => Alu::Remu,
                _ if narrow => return None,
                (0, 2) => Alu::Slt,
                (0, 3) => Alu::Sltu,
                (0, 4) => Alu::Xor,
                (0, 6) => Alu::Or,
                (0, 7) => Alu::And,
                (1, 1) => Alu::Mulh,
                (1, 2) => Alu::Mulhsu,
                (1, 3) => Alu::Mulhu,
                _ => return None,
            };
            make(Kind::Alu { op, word: narrow, immediate: false }, 0)
        }
        0x0F if funct3 < 2 => make(Kind::Fence, 0),
        0x2F if funct3 == 2 || funct3 == 3 => {
            let op = bits(word, 31, 27);
            let valid = match op {
                0b00010 => bits(word, 24, 20) == 0,
                0b00000 | 0b00001 | 0b00011 => true,
                _ => op & 3 == 0,
            };
            valid.then(|| make(Kind::Atomic { op, bytes: 1 << funct3 }, 0)).flatten()
        }
        _ => None,
    }
}

fn decode_16(word: u32) -> Option<Instruction> {
    let (rd, rs2) = (bits(word, 11, 7) as usize, bits(word, 6, 2) as usize);
    let (high, low) = (8 + bits(word, 9, 7) as usize, 8 + bits(word, 4, 2) as usize);
    let make = |kind, rd, rs1, rs2, imm| Some(Instruction { kind, rd, rs1, rs2, imm, length: 2 });
    let alu = |op, word, rd, rs1, rs2| make(Kind::Alu { op, word, immediate: false }, rd, rs1, rs2, 0);
    let with = |op, word, rd, rs1, imm| make(Kind::Alu { op, word, immediate: true }, rd, rs1, 0, imm);
    let six = bits(word, 12, 12) << 5 | bits(word, 6, 2);
    match (word & 3, bits(word, 15, 13)) {
        (0, 0) => {
            let imm = bits(word, 12, 11) << 4 | bits(word, 10, 7) << 6 | bits(word, 6, 6) << 2 | bits(word, 5, 5) << 3;
            (imm != 0).then(|| with(Alu::Add, false, low, 2, i64::from(imm))).flatten()
        }
        (0, code @ (2 | 6)) => {
            let imm = i64::from(bits(word, 12, 10) << 3 | bits(word, 6, 6) << 2 | bits(word, 5, 5) << 6);
            if code == 2 {
                make(Kind::Load { bytes: 4, signed: true }, low, high, 0, imm)
            } else {
                make(Kind::Store { bytes: 4 }, 0, high, low, imm)
            }
        }
        (0, code @ (3 | 7)) => {
            let imm = i64::from(bits(word, 12, 10) << 3 | bits(word, 6, 5) << 6);
            if code == 3 {
                make(Kind::Load { bytes: 8, signed: true }, low, high, 0, imm)
            } else {
                make(Kind::Store { bytes: 8 }, 0, high, low, imm)
            }
        }
        (1, 0) => with(Alu::Add, false, rd, rd, signed(six, 6)),
        (1, 1) => (rd != 0).then(|| with(Alu::Add, true, rd, rd, signed(six, 6))).flatten(),
        (1, 2) => with(Alu::Add, false, rd, 0, signed(six, 6)),
        (1, 3) if rd == 2 => {
            let imm = bits(word, 12, 12) << 9
                | bits(word, 6, 6) << 4
                | bits(word, 5, 5) << 6
                | bits(word, 4, 3) << 7
                | bits(word, 2, 2) << 5;
            (imm != 0).then(|| with(Alu::Add, false, 2, 2, signed(imm, 10))).flatten()
        }
        (1, 3) => (six != 0).then(|| make(Kind::Upper { relative: false }, rd, 0, 0, signed(six, 6) << 12)).flatten(),
        (1, 4) => match (bits(word, 11, 10), bits(word, 12, 12), bits(word, 6, 5)) {
            (0, ..) => with(Alu::Srl, false, high, high, i64::from(six)),
            (1, ..) => with(Alu::Sra, false, high, high, i64::from(six)),
            (2, ..) => with(Alu::And, false, high, high, signed(six, 6)),
            (_, 0, operation) => {
                alu([Alu::Sub, Alu::Xor, Alu::Or, Alu::And][operation as usize], false, high, high, low)
            }
            (_, _, 0) => alu(Alu::Sub, true, high, high, low),
            (_, _, 1) => alu(Alu::Add, true, high, high, low),
            _ => None,
        },
        (1, 5) => {
            let imm = bits(word, 12, 12) << 11
                | bits(word, 11, 11) << 4
                | bits(word, 10, 9) << 8
                | bits(word, 8, 8) << 10
                | bits(word, 7, 7) << 6
                | bits(word, 6, 6) << 7
                | bits(word, 5, 3) << 1
                | bits(word, 2, 2) << 5;
            make(Kind::Jump { register: false }, 0, 0, 0, signed(imm, 12))
        }
        (1, code @ (6 | 7)) => {
            let imm = bits(word, 12, 12) << 8
                | bits(word, 11, 10) << 3
                | bits(word, 6, 5) << 6
                | bits(word, 4, 3) << 1
                | bits(word, 2, 2) << 5;
            make(Kind::Branch { condition: code - 6 }, 0, high, 0, signed(imm, 9))
        }
        (2, 0) => with(Alu::Sll, false, rd, rd, i64::from(six)),
        (2, 2) => {
            let imm = bits(word, 12, 12) << 5 | bits(word, 6, 4) << 2 | bits(word, 3, 2) << 6;
            (rd != 0).then(|| make(Kind::Load { bytes: 4, signed: true }, rd, 2, 0, i64::from(imm))).flatten()
        }
        (2, 3) => {
            let imm = bits(word, 12, 12) << 5 | bits(word, 6, 5) << 3 | bits(word, 4, 2) << 6;
            (rd != 0).then(|| make(Kind::Load { bytes: 8, signed: true }, rd, 2, 0, i64::from(imm))).flatten()
        }
        (2, 4) => match (bits(word, 12, 12), rd, rs2) {
            (0, 0, 0) => None,
            (0, _, 0) => make(Kind::Jump { register: true }, 0, rd, 0, 0),
            (0, ..) => alu(Alu::Add, false, rd, 0, rs2),
            // c.ebreak is SYSTEM, and the caller's business.
            (_, 0, 0) => None,
            (_, _, 0) => make(Kind::Jump { register: true }, 1, rd, 0, 0),
            _ => alu(Alu::Add, false, rd, rd, rs2),
        },
        (2, 6) => make(Kind::Store { bytes: 4 }, 0, 2, rs2, i64::from(bits(word, 12, 9) << 2 | bits(word, 8, 7) << 6)),
        (2, 7) => make(Kind::Store { bytes: 8 }, 0, 2, rs2, i64::from(bits(word, 12, 10) << 3 | bits(word, 9, 7) << 6)),
        _ => None,
    }
}

/// Registers and RAM.
pub struct Reference {
    pub x: [u64; 32],
    pub pc: u64,
    pub ram: Vec<u8>,
    /// The reserved address.
    reserved: Option<u64>,
}

impl Reference {
    pub fn new(ram: Vec<u8>) -> Self {
        Self { x: [0; 32], pc: RAM, ram, reserved: None }
    }

    fn offset(&self, address: u64, bytes: u64) -> Option<usize> {
        let offset = address.checked_sub(RAM)?;
        (offset.checked_add(bytes)? <= self.ram.len() as u64).then_some(offset as usize)
    }

    fn peek(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = self.offset(address, bytes)?;
        Some((0..bytes as usize).rev().fold(0, |value, index| value << 8 | u64::from(self.ram[offset + index])))
    }

    fn load(&self, address: u64, bytes: u64) -> Result<u64, Trap> {
        if !address.is_multiple_of(bytes) {
            return Err(Trap { cause: 4, value: address });
        }
        self.peek(address, bytes).ok_or(Trap { cause: 5, value: address })
    }

    /// Checks a store before it has any effect.
    fn check_store(&self, address: u64, bytes: u64) -> Result<usize, Trap> {
        if !address.is_multiple_of(bytes) {
            return Err(Trap { cause: 6, value: address });
        }
        self.offset(address, bytes).ok_or(Trap { cause: 7, value: address })
    }

    fn store(&mut self, address: u64, bytes: u64, value: u64) -> Result<(), Trap> {
        let offset = self.check_store(address, bytes)?;
        self.ram[offset..offset + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        Ok(())
    }

    /// Executes the instruction at `pc`. On a trap only the reservation is gone; `pc` stays.
    pub fn step(&mut self) -> Result<(), Trap> {
        let result = self.execute();
        self.x[0] = 0;
        if result.is_err() {
            self.reserved = None;
        }
        result
    }

    fn execute(&mut self) -> Result<(), Trap> {
        let low = self.peek(self.pc, 2).ok_or(Trap { cause: 1, value: self.pc })? as u32;
        let high = if low & 3 == 3 {
            self.peek(self.pc.wrapping_add(2), 2).ok_or(Trap { cause: 1, value: self.pc.wrapping_add(2) })? as u32
        } else {
            0
        };
        let word = low | high << 16;
        let Instruction { kind, rd, rs1, rs2, imm, length } =
            decode(word).ok_or(Trap { cause: 2, value: u64::from(word) })?;
        let (a, b) = (self.x[rs1], self.x[rs2]);
        let address = a.wrapping_add(imm as u64);
        let mut next = self.pc.wrapping_add(length);
        match kind {
            Kind::Alu { op, word, immediate } => {
                let b = if immediate { imm as u64 } else { b };
                self.x[rd] =
                    if word { i64::from(alu_32(op, a as u32, b as u32) as i32) as u64 } else { alu_64(op, a, b) };
            }
            Kind::Upper { relative } => self.x[rd] = (imm as u64).wrapping_add(if relative { self.pc } else { 0 }),
            Kind::Load { bytes, signed } => {
                let value = self.load(address, bytes)?;
                let unused = 64 - 8 * bytes;
                self.x[rd] = if signed { ((value << unused) as i64 >> unused) as u64 } else { value };
            }
            Kind::Store { bytes } => self.store(address, bytes, b)?,
            Kind::Atomic { op, bytes } => self.x[rd] = self.atomic(op, bytes, a, b)?,
            Kind::Branch { condition } => {
                let taken = match condition & 6 {
                    0 => a == b,
                    4 => (a as i64) < b as i64,
                    _ => a < b,
                };
                if taken != (condition & 1 == 1) {
                    next = self.pc.wrapping_add(imm as u64);
                }
            }
            Kind::Jump { register } => {
                let target = if register { address & !1 } else { self.pc.wrapping_add(imm as u64) };
                self.x[rd] = next;
                next = target;
            }
            Kind::Fence => {}
        }
        self.pc = next;
        Ok(())
    }

    fn atomic(&mut self, op: u32, bytes: u64, address: u64, operand: u64) -> Result<u64, Trap> {
        let widen = |value: u64| if bytes == 4 { i64::from(value as i32) as u64 } else { value };
        match op {
            0b00010 => {
                let value = self.load(address, bytes)?;
                self.reserved = Some(address);
                return Ok(widen(value));
            }
            0b00011 => {
                self.check_store(address, bytes)?;
                if self.reserved.take() != Some(address) {
                    return Ok(1);
                }
                self.store(address, bytes, operand)?;
                return Ok(0);
            }
            _ => {}
        }
        self.check_store(address, bytes)?;
        let old = widen(self.load(address, bytes)?);
        let operand = widen(operand);
        // Sign extension keeps the order of unsigned numbers of the same width.
        let new = match op {
            0b00000 => old.wrapping_add(operand),
            0b00001 => operand,
            0b00100 => old ^ operand,
            0b01000 => old | operand,
            0b01100 => old & operand,
            0b10000 => (old as i64).min(operand as i64) as u64,
            0b10100 => (old as i64).max(operand as i64) as u64,
            0b11000 => old.min(operand),
            _ => old.max(operand),
        };
        self.store(address, bytes, new)?;
        Ok(old)
    }
}

fn alu_64(op: Alu, a: u64, b: u64) -> u64 {
    let (sa, sb) = (a as i64, b as i64);
    match op {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Sll => a << (b & 63),
        Alu::Slt => u64::from(sa < sb),
        Alu::Sltu => u64::from(a < b),
        Alu::Xor => a ^ b,
        Alu::Srl => a >> (b & 63),
        Alu::Sra => (sa >> (b & 63)) as u64,
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::Mul => a.wrapping_mul(b),
        Alu::Mulh => ((i128::from(sa) * i128::from(sb)) >> 64) as u64,
        Alu::Mulhsu => ((i128::from(sa) * i128::from(b)) >> 64) as u64,
        Alu::Mulhu => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Alu::Div if b == 0 => u64::MAX,
        Alu::Div => sa.wrapping_div(sb) as u64,
        Alu::Divu => a.checked_div(b).unwrap_or(u64::MAX),
        Alu::Rem if b == 0 => a,
        Alu::Rem => sa.wrapping_rem(sb) as u64,
        Alu::Remu => a.checked_rem(b).unwrap_or(a),
    }
}

fn alu_32(op: Alu, a: u32, b: u32) -> u32 {
    let (sa, sb) = (a as i32, b as i32);
    match op {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Sll => a << (b & 31),
        Alu::Srl => a >> (b & 31),
        Alu::Sra => (sa >> (b & 31)) as u32,
        Alu::Mul => a.wrapping_mul(b),
        Alu::Div if b == 0 => u32::MAX,
        Alu::Div => sa.wrapping_div(sb) as u32,
        Alu::Divu => a.checked_div(b).unwrap_or(u32::MAX),
        Alu::Rem if b == 0 => a,
        Alu::Rem => sa.wrapping_rem(sb) as u32,
        Alu::Remu => a.checked_rem(b).unwrap_or(a),
        Alu::Slt | Alu::Sltu | Alu::Xor | Alu::Or | Alu::And | Alu::Mulh | Alu::Mulhsu | Alu::Mulhu => {
            unreachable!("no word form: the decoder makes none")
        }
    }
}
