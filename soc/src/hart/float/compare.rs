//! Comparisons, minimum and maximum, classes.

use super::{Format, Unpacked, flag, nan_of};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    LessOrEqual,
    Less,
    Equal,
}

/// A number that orders as `bits` does, with both zeros equal.
fn key(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & !format.sign_bit()) as i64;
    if format.is_negative(bits) { -magnitude } else { magnitude }
}

/// Whether `a` stands in `order` to `b`: false with a NaN, which is invalid if it signals or if `order` is not equality.
pub(crate) fn compare(format: Format, a: u64, b: u64, order: Order, flags: &mut u8) -> bool {
    if nan_of(format, &[a, b], flags).is_some() {
        if order != Order::Equal {
            *flags |= flag::INVALID;
        }
        return false;
    }
    let (a, b) = (key(format, a), key(format, b));
    match order {
        Order::LessOrEqual => a <= b,
        Order::Less => a < b,
        Order::Equal => a == b,
    }
}

/// `minimumNumber` of IEEE 754-2019: a NaN gives way to a number, -0 is less than +0.
pub(crate) fn minimum(format: Format, a: u64, b: u64, flags: &mut u8) -> u64 {
    select(format, a, b, flags, |a, b| a <= b)
}

/// `maximumNumber`, as [`minimum`].
pub(crate) fn maximum(format: Format, a: u64, b: u64, flags: &mut u8) -> u64 {
    select(format, a, b, flags, |a, b| a >= b)
}

type Rank = (i64, bool);

fn select(format: Format, a: u64, b: u64, flags: &mut u8, first: impl Fn(Rank, Rank) -> bool) -> u64 {
    nan_of(format, &[a, b], flags);
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => format.nan(),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let rank = |bits| (key(format, bits), !format.is_negative(bits));
            if first(rank(a), rank(b)) { a } else { b }
        }
    }
}

/// The class mask of `fclass`.
pub(crate) fn classify(format: Format, bits: u64) -> u64 {
    let pair = |negative: u32, positive: u32, sign: bool| 1 << if sign { negative } else { positive };
    let subnormal = bits & format.infinity() == 0;
    match format.unpack(bits) {
        Unpacked::Infinity(sign) => pair(0, 7, sign),
        Unpacked::Number(number) if subnormal => pair(2, 5, number.sign),
        Unpacked::Number(number) => pair(1, 6, number.sign),
        Unpacked::Zero(sign) => pair(3, 4, sign),
        Unpacked::Nan if format.is_signalling(bits) => 1 << 8,
        Unpacked::Nan => 1 << 9,
    }
}
