//! The encoding of the arithmetic of F and D: which forms exist, and which registers and unit they use.

use super::{DOUBLE, Format, SINGLE};

/// Opcode of everything but loads, stores and fused multiply-adds.
const OP_FP: u32 = 0x53;

/// Major function of an `OP-FP` instruction (`funct5`).
pub(crate) mod function {
    pub const ADD: u32 = 0x00;
    pub const SUBTRACT: u32 = 0x01;
    pub const MULTIPLY: u32 = 0x02;
    pub const DIVIDE: u32 = 0x03;
    pub const INJECT_SIGN: u32 = 0x04;
    pub const MINIMUM_MAXIMUM: u32 = 0x05;
    pub const CONVERT_FORMAT: u32 = 0x08;
    pub const SQUARE_ROOT: u32 = 0x0B;
    pub const COMPARE: u32 = 0x14;
    pub const TO_INTEGER: u32 = 0x18;
    pub const FROM_INTEGER: u32 = 0x1A;
    pub const MOVE_TO_INTEGER_OR_CLASSIFY: u32 = 0x1C;
    pub const MOVE_FROM_INTEGER: u32 = 0x1E;
}

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Integer,
    Float,
}

/// The part of the FPU that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    MultiplyAdd { double: bool },
    Divide { double: bool },
    SquareRoot { double: bool },
    Move,
    FromInteger,
    ToInteger,
}

/// The format field; none for half and quad precision.
pub(crate) fn format(raw: u32) -> Option<Format> {
    [SINGLE, DOUBLE].get((raw >> 25 & 3) as usize).copied()
}

pub(crate) fn rm(raw: u32) -> u8 {
    (raw >> 12 & 7) as u8
}

fn rs2(raw: u32) -> u8 {
    (raw >> 20 & 31) as u8
}

/// True for the four fused multiply-adds.
pub(crate) fn is_fused(raw: u32) -> bool {
    raw & 0x7F != OP_FP
}

/// True if `raw`, which has one of the five opcodes of floating-point arithmetic, is an instruction of F or D. A dynamic
/// rounding mode is checked when it executes.
pub(crate) fn is_legal(raw: u32) -> bool {
    let (rm, rs2) = (rm(raw), rs2(raw));
    let rounds = !matches!(rm, 5 | 6);
    let exists = is_fused(raw) && rounds
        || !is_fused(raw)
            && match raw >> 27 {
                function::ADD | function::SUBTRACT | function::MULTIPLY | function::DIVIDE => rounds,
                function::SQUARE_ROOT => rounds && rs2 == 0,
                function::INJECT_SIGN | function::COMPARE => rm <= 2,
                function::MINIMUM_MAXIMUM => rm <= 1,
                // From the other one of the two formats.
                function::CONVERT_FORMAT => rounds && u32::from(rs2) == 1 - (raw >> 25 & 1),
                function::TO_INTEGER | function::FROM_INTEGER => rounds && rs2 <= 3,
                function::MOVE_TO_INTEGER_OR_CLASSIFY => rm <= 1 && rs2 == 0,
                function::MOVE_FROM_INTEGER => rm == 0 && rs2 == 0,
                _ => false,
            };
    exists && format(raw).is_some()
}

/// The registers that a legal instruction reads.
pub(crate) fn operands(raw: u32) -> [Option<(File, u8)>; 3] {
    let first = (raw >> 15 & 31) as u8;
    let float = |register| Some((File::Float, register));
    if is_fused(raw) {
        return [float(first), float(rs2(raw)), float((raw >> 27) as u8)];
    }
    match raw >> 27 {
        function::FROM_INTEGER | function::MOVE_FROM_INTEGER => [Some((File::Integer, first)), None, None],
        function::SQUARE_ROOT
        | function::CONVERT_FORMAT
        | function::TO_INTEGER
        | function::MOVE_TO_INTEGER_OR_CLASSIFY => [float(first), None, None],
        _ => [float(first), float(rs2(raw)), None],
    }
}

/// The file that a legal instruction writes.
pub(crate) fn destination(raw: u32) -> File {
    if unit(raw) == Unit::ToInteger { File::Integer } else { File::Float }
}

/// The unit that a legal instruction uses.
pub(crate) fn unit(raw: u32) -> Unit {
    let double = raw >> 25 & 1 != 0;
    if is_fused(raw) {
        return Unit::MultiplyAdd { double };
    }
    match raw >> 27 {
        function::DIVIDE => Unit::Divide { double },
        function::SQUARE_ROOT => Unit::SquareRoot { double },
        function::INJECT_SIGN | function::MINIMUM_MAXIMUM | function::CONVERT_FORMAT => Unit::Move,
        function::COMPARE | function::TO_INTEGER | function::MOVE_TO_INTEGER_OR_CLASSIFY => Unit::ToInteger,
        function::FROM_INTEGER | function::MOVE_FROM_INTEGER => Unit::FromInteger,
        _ => Unit::MultiplyAdd { double },
    }
}
