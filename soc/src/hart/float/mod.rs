//! Binary floating point, exactly: values, flags and all five rounding modes of IEEE 754-2019 with RISC-V's choices.
//!
//! Nothing here uses the host's floating point. A number is taken apart into sign, exponent and an integer significand, an
//! operation gives an exact (or, with a sticky last bit, exact enough) 128-bit significand, and one function,
//! [`round::round`], makes a result of it. RISC-V's choices (unprivileged manual, chapters "F" and "D"): a result that is
//! NaN is the canonical NaN; tininess is detected after rounding; a single in a 64-bit register is boxed with ones.

mod arithmetic;
mod compare;
mod convert;
pub(crate) mod instruction;
mod round;
#[cfg(test)]
mod tests;

pub(crate) use arithmetic::{add, divide, multiply, multiply_add, square_root};
pub(crate) use compare::{Order, classify, compare, maximum, minimum};
pub(crate) use convert::{Integer, convert, from_integer, to_integer};

/// Exception flags in the positions of `fflags`.
pub(crate) mod flag {
    pub const INEXACT: u8 = 1;
    pub const UNDERFLOW: u8 = 1 << 1;
    pub const OVERFLOW: u8 = 1 << 2;
    pub const DIVIDE_BY_ZERO: u8 = 1 << 3;
    pub const INVALID: u8 = 1 << 4;
}

/// How a result that does not fit is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    NearestEven,
    Zero,
    Down,
    Up,
    NearestAway,
}

impl Rounding {
    /// The mode with number `rm` (static field or `frm`); 5 to 7 are none.
    pub fn of(rm: u8) -> Option<Self> {
        [Self::NearestEven, Self::Zero, Self::Down, Self::Up, Self::NearestAway].get(usize::from(rm)).copied()
    }
}

/// A binary interchange format of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the fraction field.
    pub fraction: u32,
    /// Bits of the exponent field.
    pub exponent: u32,
}

/// `binary32`.
pub(crate) const SINGLE: Format = Format { fraction: 23, exponent: 8 };
/// `binary64`.
pub(crate) const DOUBLE: Format = Format { fraction: 52, exponent: 11 };

impl Format {
    pub const fn sign_bit(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The canonical NaN: positive, quiet, no payload.
    pub const fn nan(self) -> u64 {
        self.infinity() | self.quiet_bit()
    }

    const fn quiet_bit(self) -> u64 {
        1 << (self.fraction - 1)
    }

    /// Exponent of the largest finite numbers.
    const fn largest_exponent(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Exponent of the smallest normal numbers.
    const fn smallest_exponent(self) -> i32 {
        1 - self.largest_exponent()
    }

    const fn signed(self, sign: bool, magnitude: u64) -> u64 {
        if sign { magnitude | self.sign_bit() } else { magnitude }
    }

    fn is_negative(self, bits: u64) -> bool {
        bits & self.sign_bit() != 0
    }

    fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign_bit() > self.infinity()
    }

    fn is_signalling(self, bits: u64) -> bool {
        self.is_nan(bits) && bits & self.quiet_bit() == 0
    }

    /// Takes `bits` apart.
    fn unpack(self, bits: u64) -> Unpacked {
        let sign = self.is_negative(bits);
        let magnitude = bits & !self.sign_bit();
        if magnitude >= self.infinity() {
            return if magnitude == self.infinity() { Unpacked::Infinity(sign) } else { Unpacked::Nan };
        }
        let field = (magnitude >> self.fraction) as i32;
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let unit = self.smallest_exponent() - self.fraction as i32;
        if field != 0 {
            let significand = fraction | 1 << self.fraction;
            return Unpacked::Number(Number { sign, exponent: unit + field - 1, significand });
        }
        if fraction == 0 {
            return Unpacked::Zero(sign);
        }
        let shift = fraction.leading_zeros() - (63 - self.fraction);
        Unpacked::Number(Number { sign, exponent: unit - shift as i32, significand: fraction << shift })
    }
}

/// A finite number other than zero: `significand` times two to the `exponent`, with bit `fraction` of it the highest set.
#[derive(Clone, Copy, Debug)]
struct Number {
    sign: bool,
    exponent: i32,
    significand: u64,
}

/// What bits mean. A NaN loses its payload: no result depends on it.
#[derive(Clone, Copy, Debug)]
enum Unpacked {
    Nan,
    Infinity(bool),
    Zero(bool),
    Number(Number),
}

/// The NaN that an invalid operation gives.
fn invalid(format: Format, flags: &mut u8) -> u64 {
    *flags |= flag::INVALID;
    format.nan()
}

/// If an operand is NaN: the result, with the flag if one signals.
fn nan_of(format: Format, operands: &[u64], flags: &mut u8) -> Option<u64> {
    if operands.iter().any(|&bits| format.is_signalling(bits)) {
        *flags |= flag::INVALID;
    }
    operands.iter().any(|&bits| format.is_nan(bits)).then_some(format.nan())
}

/// A single as it lies in a 64-bit register.
pub(crate) fn boxed(single: u64) -> u64 {
    single | 0xFFFF_FFFF << 32
}

/// The single that a 64-bit register holds: the canonical NaN if the register is not boxed.
pub(crate) fn unboxed(register: u64) -> u64 {
    if register >> 32 == 0xFFFF_FFFF { register & 0xFFFF_FFFF } else { SINGLE.nan() }
}
