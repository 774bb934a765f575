//! The one place where results become inexact.

use super::{Format, Rounding, flag};
use std::cmp::Ordering;

/// An integer and how what was cut off below it compares with half a unit; `None`: nothing was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub kept: u128,
    rest: Option<Ordering>,
}

impl Cut {
    /// `significand` divided by two to the `shift`, a negative one multiplies and must not lose bits.
    pub fn new(significand: u128, shift: i32) -> Self {
        let (kept, rest, half) = match shift {
            ..=0 => return Self { kept: significand << -shift, rest: None },
            1..128 => (significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1)),
            128 => (0, significand, 1 << 127),
            _ => return Self { kept: 0, rest: (significand != 0).then_some(Ordering::Less) },
        };
        Self { kept, rest: (rest != 0).then(|| rest.cmp(&half)) }
    }

    pub fn is_inexact(self) -> bool {
        self.rest.is_some()
    }

    /// The integer rounded; `sign` is that of the whole number.
    pub fn rounded(self, sign: bool, mode: Rounding) -> u128 {
        let Some(rest) = self.rest else { return self.kept };
        let up = match mode {
            Rounding::NearestEven => rest == Ordering::Greater || (rest == Ordering::Equal && self.kept & 1 != 0),
            Rounding::NearestAway => rest != Ordering::Less,
            Rounding::Zero => false,
            Rounding::Down => sign,
            Rounding::Up => !sign,
        };
        self.kept + u128::from(up)
    }
}

/// `significand` times two to the `exponent`, rounded to `format`. `significand` is not 0; its last bit may be sticky if it
/// has at least two bits more than the format keeps.
pub(super) fn round(
    format: Format,
    sign: bool,
    exponent: i32,
    significand: u128,
    mode: Rounding,
    flags: &mut u8,
) -> u64 {
    let (fraction, smallest) = (format.fraction as i32, format.smallest_exponent());
    let top = exponent + significand.ilog2() as i32;
    let effective = top.max(smallest);
    if effective > format.largest_exponent() {
        return overflow(format, sign, mode, flags);
    }
    let shift = effective - fraction - exponent;
    let cut = Cut::new(significand, shift);
    // The leading bit of a normal significand adds one to the exponent field, and a carry out of it another one.
    let magnitude = ((effective - smallest) as u64) << fraction;
    let magnitude = magnitude + cut.rounded(sign, mode) as u64;
    if magnitude >= format.infinity() {
        return overflow(format, sign, mode, flags);
    }
    if cut.is_inexact() {
        *flags |= flag::INEXACT;
        // Tiny after rounding: with an unbounded exponent the result would still lie below the smallest normal.
        let reaches_normal =
            || top == smallest - 1 && Cut::new(significand, shift - 1).rounded(sign, mode) >> (fraction + 1) != 0;
        if top < smallest && !reaches_normal() {
            *flags |= flag::UNDERFLOW;
        }
    }
    format.signed(sign, magnitude)
}

fn overflow(format: Format, sign: bool, mode: Rounding, flags: &mut u8) -> u64 {
    *flags |= flag::OVERFLOW | flag::INEXACT;
    let to_infinity = match mode {
        Rounding::NearestEven | Rounding::NearestAway => true,
        Rounding::Zero => false,
        Rounding::Down => sign,
        Rounding::Up => !sign,
    };
    format.signed(sign, format.infinity() - u64::from(!to_infinity))
}
