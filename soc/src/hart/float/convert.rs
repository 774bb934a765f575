//! Conversions between formats, and from and to integers.

use super::round::{Cut, round};
use super::{Format, Rounding, Unpacked, flag, nan_of};

/// An integer type of the conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integer {
    I32,
    U32,
    I64,
    U64,
}

impl Integer {
    /// The type with number `code` in the last two bits of the rs2 field of a conversion.
    pub fn of(code: u8) -> Self {
        [Self::I32, Self::U32, Self::I64, Self::U64][usize::from(code & 3)]
    }

    /// Largest magnitude of a number with sign `negative`.
    fn limit(self, negative: bool) -> u128 {
        match (self, negative) {
            (Self::I32, _) => (1 << 31) - u128::from(!negative),
            (Self::I64, _) => (1 << 63) - u128::from(!negative),
            (Self::U32 | Self::U64, true) => 0,
            (Self::U32, false) => (1 << 32) - 1,
            (Self::U64, false) => (1 << 64) - 1,
        }
    }

    /// A register with plus or minus `magnitude`; both 32-bit types are sign-extended (unprivileged manual).
    fn register(self, negative: bool, magnitude: u128) -> u64 {
        let value = if negative { (magnitude as u64).wrapping_neg() } else { magnitude as u64 };
        match self {
            Self::I32 | Self::U32 => value as i32 as u64,
            Self::I64 | Self::U64 => value,
        }
    }
}

/// `bits` of format `from` as format `to`.
pub(crate) fn convert(from: Format, to: Format, bits: u64, mode: Rounding, flags: &mut u8) -> u64 {
    if nan_of(from, &[bits], flags).is_some() {
        return to.nan();
    }
    match from.unpack(bits) {
        Unpacked::Nan => to.nan(),
        Unpacked::Infinity(sign) => to.signed(sign, to.infinity()),
        Unpacked::Zero(sign) => to.signed(sign, 0),
        Unpacked::Number(number) => round(to, number.sign, number.exponent, number.significand.into(), mode, flags),
    }
}

/// The integer `register` as a number.
pub(crate) fn from_integer(format: Format, register: u64, integer: Integer, mode: Rounding, flags: &mut u8) -> u64 {
    let value = match integer {
        Integer::I32 => i128::from(register as i32),
        Integer::U32 => i128::from(register as u32),
        Integer::I64 => i128::from(register as i64),
        Integer::U64 => i128::from(register),
    };
    if value == 0 {
        return 0;
    }
    round(format, value < 0, 0, value.unsigned_abs(), mode, flags)
}

/// `bits` rounded to an integer, as a register. Out of range: invalid alone, and the nearest integer there is; NaN counts
/// as plus infinity.
pub(crate) fn to_integer(format: Format, bits: u64, integer: Integer, mode: Rounding, flags: &mut u8) -> u64 {
    let (sign, cut) = match format.unpack(bits) {
        Unpacked::Zero(_) => return 0,
        Unpacked::Nan => (false, None),
        Unpacked::Infinity(sign) => (sign, None),
        Unpacked::Number(number) => {
            // 2^66 and more is out of any range; below, the shift left cannot lose bits.
            let small = number.exponent + (format.fraction as i32) < 66;
            (number.sign, small.then(|| Cut::new(number.significand.into(), -number.exponent)))
        }
    };
    let limit = integer.limit(sign);
    let Some(cut) = cut.filter(|cut| cut.rounded(sign, mode) <= limit) else {
        *flags |= flag::INVALID;
        return integer.register(sign, limit);
    };
    if cut.is_inexact() {
        *flags |= flag::INEXACT;
    }
    integer.register(sign, cut.rounded(sign, mode))
}
