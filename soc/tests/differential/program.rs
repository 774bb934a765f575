//! Random programs: every instruction of RV64IMAC, valid or not, that can be let loose without losing the program.
//!
//! Jumps go forward, to the start of an instruction, so every program ends. `sp`, `s0` and `s1` point into the data and are
//! never written; stores and atomics use them alone, so a program does not overwrite itself, and loads these and `zero`, around
//! which nothing is mapped, so that no device is read. Encodings are drawn at random
//! and kept if the reference decoder says that they keep these rules; illegal ones are kept too, the handler passes over them.

use super::reference::{self, Instruction, Kind};

/// Registers that point to data.
const POINTERS: [usize; 3] = [2, 8, 9];

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A register's value: often small, negative, or a power of two away from an edge.
    pub fn value(&mut self) -> u64 {
        let value = self.next();
        match value & 7 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (value >> 3 & 63),
            3 => (1u64 << (value >> 3 & 63)).wrapping_neg(),
            4 => i64::from(self.next() as i32) as u64,
            5 => self.next() & 0xFF,
            _ => self.next(),
        }
    }
}

/// One instruction of a program.
enum Piece {
    /// As it is.
    Code(Vec<u8>),
    /// A jump or branch over so many instructions, encoded once the distance in bytes is known.
    Forward { over: usize, word: u32, length: usize },
}

impl Piece {
    fn length(&self) -> usize {
        match self {
            Self::Code(bytes) => bytes.len(),
            Self::Forward { length, .. } => *length,
        }
    }
}

fn code(words: &[u32]) -> Piece {
    let bytes = |word: &u32| word.to_le_bytes()[..if word & 3 == 3 { 4 } else { 2 }].to_vec();
    Piece::Code(words.iter().flat_map(bytes).collect())
}

/// The code of a program of `count` pieces.
pub fn program(random: &mut Random, count: usize) -> Vec<u8> {
    let pieces: Vec<Piece> = (0..count).map(|_| piece(random)).collect();
    let mut out = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Code(bytes) => out.extend(bytes),
            Piece::Forward { over, word, length } => {
                let passed = pieces[index + 1..].iter().take(*over);
                let distance = (length + passed.map(Piece::length).sum::<usize>()) as u32;
                out.extend(&(word | forward(*word, distance)).to_le_bytes()[..*length]);
            }
        }
    }
    out
}

fn piece(random: &mut Random) -> Piece {
    match random.below(16) {
        0 => branch(random),
        1 => jump(random),
        2 => reservation(random),
        3..=6 => compressed(random),
        _ => full(random),
    }
}

/// `beq` to `bgeu`, or the compressed two.
fn branch(random: &mut Random) -> Piece {
    let over = random.below(6) as usize;
    let operands = random.next() as u32;
    if operands & 1 == 0 {
        let funct3 = [0, 1, 4, 5, 6, 7][random.below(6) as usize];
        Piece::Forward { over, word: 0x63 | funct3 << 12 | operands & 0x01FF_8000, length: 4 }
    } else {
        let funct3 = 6 + (operands >> 1 & 1);
        Piece::Forward { over, word: 1 | funct3 << 13 | operands & 0x0380, length: 2 }
    }
}

/// `jal`, `c.j`, or `auipc` and `jalr`.
fn jump(random: &mut Random) -> Piece {
    let over = random.below(6) as usize;
    match random.below(3) {
        0 => Piece::Forward { over, word: 0x6F | register(random) << 7, length: 4 },
        1 => Piece::Forward { over, word: 0xA001, length: 2 },
        _ => {
            let (base, link) = (register(random), register(random));
            // x0 cannot hold the address: then the jump stays away.
            if base == 0 {
                return code(&[0x13]);
            }
            // auipc base, 0; jalr link, 8(base): to the instruction behind.
            code(&[0x17 | base << 7, 0x67 | link << 7 | base << 15 | 8 << 20])
        }
    }
}

/// The bits of an offset in the format of `word`.
fn forward(word: u32, distance: u32) -> u32 {
    let bit = |from: u32, count: u32, to: u32| (distance >> from & ((1 << count) - 1)) << to;
    match word & 0x7F {
        0x63 => bit(12, 1, 31) | bit(11, 1, 7) | bit(5, 6, 25) | bit(1, 4, 8),
        0x6F => bit(20, 1, 31) | bit(12, 8, 12) | bit(11, 1, 20) | bit(1, 10, 21),
        _ if word >> 13 == 5 => {
            bit(11, 1, 12)
                | bit(4, 1, 11)
                | bit(8, 2, 9)
                | bit(10, 1, 8)
                | bit(6, 1, 7)
                | bit(7, 1, 6)
                | bit(1, 3, 3)
                | bit(5, 1, 2)
        }
        _ => bit(8, 1, 12) | bit(3, 2, 10) | bit(6, 2, 5) | bit(1, 2, 3) | bit(5, 1, 2),
    }
}

/// A register that may be written.
fn register(random: &mut Random) -> u32 {
    loop {
        let register = random.below(32) as usize;
        if !POINTERS.contains(&register) {
            return register as u32;
        }
    }
}

/// `lr` and `sc` side by side: whether one far from the other succeeds is up to the hardware.
fn reservation(random: &mut Random) -> Piece {
    let width = 2 + random.below(2) as u32;
    let pointer = POINTERS[random.below(3) as usize] as u32;
    let common = 0x2F | width << 12 | pointer << 15 | (random.below(4) as u32) << 25;
    let lr = common | 0b00010 << 27 | register(random) << 7;
    let sc = common | 0b00011 << 27 | register(random) << 7 | (random.below(32) as u32) << 20;
    if random.below(4) == 0 { code(&[sc]) } else { code(&[lr, sc]) }
}

/// A full-length instruction of any opcode, with fields that are valid half of the time.
fn full(random: &mut Random) -> Piece {
    const OPCODES: [u32; 20] = [
        0x33, 0x33, 0x33, 0x3B, 0x3B, 0x13, 0x13, 0x1B, 0x03, 0x03, 0x23, 0x23, 0x2F, 0x2F, 0x37, 0x17, 0x0F, 0x07,
        0x53, 0x0B,
    ];
    loop {
        let mut word = random.next() as u32 & !0x7F | OPCODES[random.below(20) as usize];
        if random.below(2) == 0 {
            // Valid operations are rare among 7 random bits.
            let funct7 = [0, 1, 0x20][random.below(3) as usize];
            word = word & 0x01FF_FFFF | funct7 << 25;
        }
        if matches!(word & 0x7F, 0x03 | 0x23 | 0x2F) && random.below(8) != 0 {
            word = word & !(31 << 15) | (POINTERS[random.below(3) as usize] as u32) << 15;
        }
        if reference::decode(word).is_none_or(|instruction| is_kept(&instruction)) {
            return code(&[word]);
        }
    }
}

/// A half-length instruction.
fn compressed(random: &mut Random) -> Piece {
    loop {
        let word = random.next() as u32 & 0xFFFF;
        let ebreak = word == 0x9002;
        if word & 3 != 3 && !ebreak && reference::decode(word).is_none_or(|instruction| is_kept(&instruction)) {
            return code(&[word]);
        }
    }
}

/// Whether an instruction may stand anywhere.
fn is_kept(instruction: &Instruction) -> bool {
    let Instruction { kind, rd, rs1, .. } = instruction;
    let places = match kind {
        Kind::Branch { .. } | Kind::Jump { .. } => false,
        // Reservations have their own piece.
        Kind::Atomic { op, .. } => !matches!(op, 0b00010 | 0b00011) && POINTERS.contains(rs1),
        Kind::Store { .. } => return POINTERS.contains(rs1),
        Kind::Load { .. } => *rs1 == 0 || POINTERS.contains(rs1),
        _ => true,
    };
    places && !POINTERS.contains(rd)
}
