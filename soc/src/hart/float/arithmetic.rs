//! Sum, product, fused multiply-add, quotient and square root.

use super::round::round;
use super::{Format, Number, Rounding, Unpacked, flag, invalid, nan_of};

/// `a` + `b`.
pub(crate) fn add(format: Format, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    if let Some(nan) = nan_of(format, &[a, b], flags) {
        return nan;
    }
    add_wide(format, Wide::of(format.unpack(a)), Wide::of(format.unpack(b)), mode, flags)
}

/// `a` * `b`.
pub(crate) fn multiply(format: Format, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    if let Some(nan) = nan_of(format, &[a, b], flags) {
        return nan;
    }
    match product(format.unpack(a), format.unpack(b)) {
        Wide::Nan => invalid(format, flags),
        Wide::Infinity(sign) => format.signed(sign, format.infinity()),
        Wide::Zero(sign) => format.signed(sign, 0),
        Wide::Number(sign, exponent, significand) => round(format, sign, exponent, significand, mode, flags),
    }
}

/// `a` * `b` + `c`, rounded once. Infinity times zero is invalid also if `c` is a quiet NaN.
pub(crate) fn multiply_add(format: Format, a: u64, b: u64, c: u64, mode: Rounding, flags: &mut u8) -> u64 {
    let nan = nan_of(format, &[a, b, c], flags);
    let product = product(format.unpack(a), format.unpack(b));
    if matches!(product, Wide::Nan) && !format.is_nan(a) && !format.is_nan(b) {
        return invalid(format, flags);
    }
    nan.unwrap_or_else(|| add_wide(format, product, Wide::of(format.unpack(c)), mode, flags))
}

/// `a` / `b`.
pub(crate) fn divide(format: Format, a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    if let Some(nan) = nan_of(format, &[a, b], flags) {
        return nan;
    }
    let sign = format.is_negative(a) != format.is_negative(b);
    match (format.unpack(a), format.unpack(b)) {
        (Unpacked::Infinity(_), Unpacked::Infinity(_)) | (Unpacked::Zero(_), Unpacked::Zero(_)) => {
            invalid(format, flags)
        }
        (Unpacked::Infinity(_), _) => format.signed(sign, format.infinity()),
        (Unpacked::Zero(_), _) | (_, Unpacked::Infinity(_)) => format.signed(sign, 0),
        (_, Unpacked::Zero(_)) => {
            *flags |= flag::DIVIDE_BY_ZERO;
            format.signed(sign, format.infinity())
        }
        (Unpacked::Number(a), Unpacked::Number(b)) => {
            // Three bits more than the format keeps, the last one sticky.
            let shift = format.fraction + 4;
            let (dividend, divisor) = (u128::from(a.significand) << shift, u128::from(b.significand));
            let quotient = dividend / divisor;
            let significand = quotient | u128::from(quotient * divisor != dividend);
            round(format, sign, a.exponent - b.exponent - shift as i32, significand, mode, flags)
        }
        // NaNs have been dealt with.
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => format.nan(),
    }
}

/// The square root of `a`.
pub(crate) fn square_root(format: Format, a: u64, mode: Rounding, flags: &mut u8) -> u64 {
    if let Some(nan) = nan_of(format, &[a], flags) {
        return nan;
    }
    match format.unpack(a) {
        Unpacked::Zero(_) | Unpacked::Infinity(false) => a,
        Unpacked::Number(Number { sign: false, exponent, significand }) => {
            let shift = format.fraction as i32 + 6;
            let shift = shift + ((exponent - shift) & 1);
            let square = u128::from(significand) << shift;
            let root = square.isqrt();
            let significand = root | u128::from(root * root != square);
            round(format, false, (exponent - shift) / 2, significand, mode, flags)
        }
        _ => invalid(format, flags),
    }
}

/// An operand of a sum, exact: a number of any format, or a product. A number is sign, exponent, significand.
#[derive(Clone, Copy, Debug)]
enum Wide {
    Nan,
    Infinity(bool),
    Zero(bool),
    Number(bool, i32, u128),
}

impl Wide {
    fn of(value: Unpacked) -> Self {
        match value {
            Unpacked::Nan => Self::Nan,
            Unpacked::Infinity(sign) => Self::Infinity(sign),
            Unpacked::Zero(sign) => Self::Zero(sign),
            Unpacked::Number(number) => Self::Number(number.sign, number.exponent, number.significand.into()),
        }
    }
}

/// The exact product; NaN for infinity times zero, and if an operand is NaN.
fn product(a: Unpacked, b: Unpacked) -> Wide {
    let sign = |value| match value {
        Unpacked::Nan => false,
        Unpacked::Infinity(sign) | Unpacked::Zero(sign) => sign,
        Unpacked::Number(number) => number.sign,
    };
    let negative = sign(a) != sign(b);
    match (a, b) {
        (Unpacked::Number(a), Unpacked::Number(b)) => {
            let significand = u128::from(a.significand) * u128::from(b.significand);
            Wide::Number(negative, a.exponent + b.exponent, significand)
        }
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => Wide::Nan,
        (Unpacked::Infinity(_), Unpacked::Zero(_)) | (Unpacked::Zero(_), Unpacked::Infinity(_)) => Wide::Nan,
        (Unpacked::Infinity(_), _) | (_, Unpacked::Infinity(_)) => Wide::Infinity(negative),
        _ => Wide::Zero(negative),
    }
}

/// Highest bit of an operand of a sum: one bit is left for the carry.
const TOP: u32 = 126;

/// The sum of two operands of which none is NaN by itself.
fn add_wide(format: Format, a: Wide, b: Wide, mode: Rounding, flags: &mut u8) -> u64 {
    let (a, b) = match (a, b) {
        (Wide::Nan, _) | (_, Wide::Nan) => return invalid(format, flags),
        (Wide::Infinity(a), Wide::Infinity(b)) if a != b => return invalid(format, flags),
        (Wide::Infinity(sign), _) | (_, Wide::Infinity(sign)) => return format.signed(sign, format.infinity()),
        (Wide::Zero(a), Wide::Zero(b)) => return format.signed(if a == b { a } else { mode == Rounding::Down }, 0),
        (Wide::Number(sign, exponent, significand), Wide::Zero(_))
        | (Wide::Zero(_), Wide::Number(sign, exponent, significand)) => {
            return round(format, sign, exponent, significand, mode, flags);
        }
        (Wide::Number(a_sign, a_exponent, a), Wide::Number(b_sign, b_exponent, b)) => {
            ((a_sign, top_aligned(a_exponent, a)), (b_sign, top_aligned(b_exponent, b)))
        }
    };
    // Tuples of exponent and significand order as magnitudes do.
    let ((sign, (exponent, large)), (other, (small_exponent, small))) = if a.1 >= b.1 { (a, b) } else { (b, a) };
    // A significand has at most 106 bits, so nothing is lost by shifts of up to 21; behind larger ones at most one leading
    // bit cancels, and the sticky bit stays far below the last place.
    let small = shifted_right(small, (exponent - small_exponent) as u32);
    if sign == other {
        return round(format, sign, exponent, large + small, mode, flags);
    }
    match large - small {
        0 => format.signed(mode == Rounding::Down, 0),
        difference => round(format, sign, exponent, difference, mode, flags),
    }
}

/// The same number with bit [`TOP`] the highest set.
fn top_aligned(exponent: i32, significand: u128) -> (i32, u128) {
    let shift = TOP - significand.ilog2();
    (exponent - shift as i32, significand << shift)
}

/// `significand` shifted; bits that fall out leave a one in the last place.
fn shifted_right(significand: u128, shift: u32) -> u128 {
    if shift > TOP {
        return 1;
    }
    let kept = significand >> shift;
    kept | u128::from(kept << shift != significand)
}
