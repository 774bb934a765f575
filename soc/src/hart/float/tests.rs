//! Every operation against two oracles: the host's floating point (values, round to nearest) and an independent rounder
//! over long binary integers, which works from the definition: round once with unbounded exponent, once bounded.

use super::*;

const MODES: [Rounding; 5] =
    [Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up, Rounding::NearestAway];

/// Xorshift: the vectors are the same in every run.
struct Source(u64);

impl Source {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Operands that meet the edges: special values, sparse fractions, exponents at both ends and close to each other.
    fn operand(&mut self, format: Format) -> u64 {
        let (kind, fraction, sign) = (self.word() % 16, self.word(), self.word() & 1 != 0);
        let largest = (1 << format.exponent) - 1;
        let field = match kind {
            0 => {
                return format.signed(
                    sign,
                    [0, 1, format.infinity(), format.nan(), format.infinity() | 1][self.word() as usize % 5],
                );
            }
            1 | 2 => 0,
            3 => 1 + self.word() % 3,
            4 => largest - 1 - self.word() % 3,
            5..=8 => largest / 2 + self.word() % 4,
            9..=11 => largest / 2 - 60 + self.word() % 120,
            _ => self.word() % largest,
        };
        let mask = (1 << format.fraction) - 1;
        let fraction = match self.word() % 6 {
            0 => 0,
            1 => mask,
            2 => 1 << (fraction % u64::from(format.fraction)),
            3 => mask << (fraction % u64::from(format.fraction)),
            _ => fraction,
        };
        format.signed(sign, field << format.fraction | fraction & mask)
    }
}

/// A natural number, one bit per element, the lowest first.
type Long = Vec<bool>;

fn long(mut value: u128, shift: usize) -> Long {
    let mut bits = vec![false; shift];
    while value != 0 {
        bits.push(value & 1 != 0);
        value >>= 1;
    }
    bits
}

fn length(bits: &Long) -> usize {
    bits.iter().rposition(|&bit| bit).map_or(0, |at| at + 1)
}

fn less(a: &Long, b: &Long) -> bool {
    let top = length(a).max(length(b));
    let at = |bits: &Long, index: usize| bits.get(index).copied().unwrap_or(false);
    (0..top).rev().find(|&i| at(a, i) != at(b, i)).is_some_and(|i| at(b, i))
}

/// `a` + `b`, or `a` - `b` if `minus` (then `a` is not less).
fn sum(a: &Long, b: &Long, minus: bool) -> Long {
    let mut carry = 0i8;
    let bit = |bits: &Long, index: usize| i8::from(bits.get(index).copied().unwrap_or(false));
    (0..=a.len().max(b.len()))
        .map(|i| {
            let total = bit(a, i) + if minus { -bit(b, i) } else { bit(b, i) } + carry;
            carry = total.div_euclid(2);
            total.rem_euclid(2) != 0
        })
        .collect()
}

/// An exact number: sign, integer, exponent of its last bit; `more`: a positive amount less than the last bit is missing.
#[derive(Clone)]
struct Exact {
    sign: bool,
    bits: Long,
    exponent: i32,
    more: bool,
}

impl Exact {
    /// By the manual's formula for a field, not by `unpack`.
    fn of(format: Format, bits: u64) -> Self {
        let field = (bits >> format.fraction & ((1 << format.exponent) - 1)) as i32;
        let fraction = bits & ((1 << format.fraction) - 1);
        let significand = if field == 0 { fraction } else { fraction + (1 << format.fraction) };
        let bias = (1 << (format.exponent - 1)) - 1;
        let exponent = field.max(1) - bias - format.fraction as i32;
        Self { sign: bits & format.sign_bit() != 0, bits: long(significand.into(), 0), exponent, more: false }
    }

    fn small(&self) -> u128 {
        self.bits.iter().rev().fold(0, |value, &bit| value << 1 | u128::from(bit))
    }

    fn times(&self, other: &Self) -> Self {
        let bits = long(self.small() * other.small(), 0);
        Self { sign: self.sign != other.sign, bits, exponent: self.exponent + other.exponent, more: false }
    }

    fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let align = |number: &Self| [vec![false; (number.exponent - exponent) as usize], number.bits.clone()].concat();
        let (a, b) = (align(self), align(other));
        let swap = less(&a, &b);
        let sign = if swap { other.sign } else { self.sign };
        let bits = if swap { sum(&b, &a, self.sign != other.sign) } else { sum(&a, &b, self.sign != other.sign) };
        Self { sign, bits, exponent, more: false }
    }

    /// Long division, one bit at a time.
    fn over(&self, other: &Self) -> Self {
        let (mut rest, divisor) = (self.small(), other.small());
        let (mut quotient, mut exponent) = (rest / divisor, self.exponent - other.exponent);
        rest %= divisor;
        while quotient < 1 << 70 {
            rest <<= 1;
            quotient = quotient << 1 | u128::from(rest >= divisor);
            rest -= if rest >= divisor { divisor } else { 0 };
            exponent -= 1;
        }
        Self { sign: self.sign != other.sign, bits: long(quotient, 0), exponent, more: rest != 0 }
    }

    /// Digit by digit: the largest root whose square is not above.
    fn root(&self) -> Self {
        let odd = self.exponent.rem_euclid(2);
        let mut square = self.small() << odd;
        let mut exponent = self.exponent - odd;
        while square < 1 << 120 {
            square <<= 2;
            exponent -= 2;
        }
        let mut root = 0u128;
        for bit in (0..64).rev() {
            let next = root | 1 << bit;
            root = if next * next <= square { next } else { root };
        }
        Self { sign: false, bits: long(root, 0), exponent: exponent / 2, more: root * root != square }
    }

    /// The multiple of two to the `unit` that rounding gives, divided by it, and whether it is exact.
    fn multiple(&self, unit: i32, mode: Rounding) -> (u128, bool) {
        let cut = (unit - self.exponent).max(0) as usize;
        let kept: Long = self.bits.iter().skip(cut).copied().collect();
        let mut kept = Self { bits: kept, ..self.clone() }.small() << (self.exponent - unit).max(0);
        let half = cut > 0 && self.bits.get(cut - 1) == Some(&true);
        let below = self.more || self.bits.iter().take(cut.saturating_sub(1)).any(|&bit| bit);
        let up = match mode {
            Rounding::NearestEven => half && (below || kept & 1 != 0),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => self.sign && (half || below),
            Rounding::Up => !self.sign && (half || below),
        };
        kept += u128::from(up);
        (kept, !half && !below)
    }

    /// Bits and flags in `format`; `zero_sign` is the sign of an exact zero.
    fn rounded(&self, format: Format, mode: Rounding, zero_sign: bool) -> (u64, u8) {
        let (sign_of, precision) = (|sign| if sign { format.sign_bit() } else { 0 }, format.fraction as i32 + 1);
        let digits = length(&self.bits) as i32;
        if digits == 0 {
            return (sign_of(zero_sign), 0);
        }
        let bias = (1 << (format.exponent - 1)) - 1;
        let leading = |unit: i32, kept: u128| unit + kept.ilog2() as i32;
        let free_unit = self.exponent + digits - precision;
        let (free, exact) = self.multiple(free_unit, mode);
        if leading(free_unit, free) > bias {
            let outward = match mode {
                Rounding::NearestEven | Rounding::NearestAway => true,
                Rounding::Zero => false,
                Rounding::Down => self.sign,
                Rounding::Up => !self.sign,
            };
            return (sign_of(self.sign) | (format.infinity() - u64::from(!outward)), flag::OVERFLOW | flag::INEXACT);
        }
        let tiny = leading(free_unit, free) < 1 - bias;
        let least = 1 - bias - format.fraction as i32;
        let unit = free_unit.max(least);
        let (kept, exact) = if unit == free_unit { (free, exact) } else { self.multiple(unit, mode) };
        let flags = if exact { 0 } else { flag::INEXACT | if tiny { flag::UNDERFLOW } else { 0 } };
        let hidden = 1u128 << format.fraction;
        let magnitude = match kept {
            _ if kept < hidden => kept as u64,
            _ => {
                let field = (leading(unit, kept) + bias) as u64;
                let shifted = if kept >= 2 * hidden { kept >> 1 } else { kept };
                field << format.fraction | (shifted - hidden) as u64
            }
        };
        (sign_of(self.sign) | magnitude, flags)
    }
}

fn is_finite(format: Format, bits: u64) -> bool {
    bits & format.infinity() != format.infinity()
}

fn run(operation: impl Fn(&mut u8) -> u64) -> (u64, u8) {
    let mut flags = 0;
    (operation(&mut flags), flags)
}

#[track_caller]
fn same(what: &str, format: Format, operands: &[u64], mode: Rounding, got: (u64, u8), want: (u64, u8)) {
    assert_eq!(got, want, "{what} {operands:x?} {mode:?} {} bits: got {got:x?}, want {want:x?}", format.fraction);
}

/// Finite operands, all modes, values and flags.
#[test]
fn arithmetic_against_the_definition() {
    let mut source = Source(0x1234_5678_9ABC_DEF1);
    for n in 0..12_000 {
        let format = if n % 2 == 0 { SINGLE } else { DOUBLE };
        let [a, mut b, c] = [0; 3].map(|_| source.operand(format));
        if n % 7 == 0 {
            // Close to each other: cancellation.
            b = (a ^ format.sign_bit()).wrapping_add(source.word() % 3) & (format.sign_bit() | (format.sign_bit() - 1));
        }
        if ![a, b, c].iter().all(|&bits| is_finite(format, bits)) {
            continue;
        }
        let [x, y, z] = [a, b, c].map(|bits| Exact::of(format, bits));
        let zero = |bits: u64| bits & !format.sign_bit() == 0;
        let negative = |bits: u64| bits & format.sign_bit() != 0;
        let (plus, times, fused) = (x.plus(&y), x.times(&y), x.times(&y).plus(&z));
        let quotient = (!zero(b)).then(|| x.over_or_zero(&y));
        let root = (!zero(a) && !negative(a)).then(|| x.root());
        for mode in MODES {
            let sum_zero = |p: bool, q: bool| if p == q { p } else { mode == Rounding::Down };
            let got = run(|flags| add(format, a, b, mode, flags));
            same("add", format, &[a, b], mode, got, plus.rounded(format, mode, sum_zero(negative(a), negative(b))));
            let got = run(|flags| multiply(format, a, b, mode, flags));
            same("mul", format, &[a, b], mode, got, times.rounded(format, mode, times.sign));
            let got = run(|flags| multiply_add(format, a, b, c, mode, flags));
            let want = fused.rounded(format, mode, sum_zero(times.sign, negative(c)));
            same("fma", format, &[a, b, c], mode, got, want);
            if let Some(quotient) = &quotient {
                let got = run(|flags| divide(format, a, b, mode, flags));
                same("div", format, &[a, b], mode, got, quotient.rounded(format, mode, quotient.sign));
            }
            if let Some(root) = &root {
                let got = run(|flags| square_root(format, a, mode, flags));
                same("sqrt", format, &[a], mode, got, root.rounded(format, mode, false));
            }
            let other = if format == SINGLE { DOUBLE } else { SINGLE };
            let got = run(|flags| convert(format, other, a, mode, flags));
            same("convert", format, &[a], mode, got, x.rounded(other, mode, x.sign));
        }
    }
}

impl Exact {
    fn over_or_zero(&self, other: &Self) -> Self {
        if self.small() == 0 { Self { sign: self.sign != other.sign, ..self.clone() } } else { self.over(other) }
    }
}

/// Conversions to integers from the exact number, and from integers by the rounder.
#[test]
fn integers_against_the_definition() {
    let mut source = Source(77);
    for n in 0..20_000 {
        let format = if n % 2 == 0 { SINGLE } else { DOUBLE };
        let bias = (1u64 << (format.exponent - 1)) - 1;
        let field = bias - 3 + source.word() % 70;
        let a =
            format.signed(source.word() & 1 != 0, field << format.fraction | source.word() >> (64 - format.fraction));
        let exact = Exact::of(format, a);
        let raw = source.word() >> (source.word() % 64);
        let raw = if source.word() & 1 != 0 { raw.wrapping_neg() } else { raw };
        for mode in MODES {
            let (magnitude, is_exact) = exact.multiple(0, mode);
            let value = if exact.sign { -(magnitude as i128) } else { magnitude as i128 };
            for (integer, low, high) in [
                (Integer::I32, i32::MIN.into(), i32::MAX.into()),
                (Integer::U32, 0, u32::MAX.into()),
                (Integer::I64, i64::MIN.into(), i64::MAX.into()),
                (Integer::U64, 0, i128::from(u64::MAX)),
            ] {
                let clamped = value.clamp(low, high);
                let narrow = matches!(integer, Integer::I32 | Integer::U32);
                let register = if narrow { clamped as i32 as u64 } else { clamped as u64 };
                let flags = match (clamped == value, is_exact) {
                    (false, _) => flag::INVALID,
                    (true, false) => flag::INEXACT,
                    (true, true) => 0,
                };
                let got = run(|flags| to_integer(format, a, integer, mode, flags));
                same("to integer", format, &[a], mode, got, (register, flags));
                let value = match integer {
                    Integer::I32 => i128::from(raw as i32),
                    Integer::U32 => i128::from(raw as u32),
                    Integer::I64 => i128::from(raw as i64),
                    Integer::U64 => i128::from(raw),
                };
                let bits = long(value.unsigned_abs(), 0);
                let want = Exact { sign: value < 0, bits, exponent: 0, more: false }.rounded(format, mode, false);
                let got = run(|flags| from_integer(format, raw, integer, mode, flags));
                same("from integer", format, &[raw], mode, got, want);
            }
        }
    }
}

/// Values of all operands, also infinities and NaNs, against the host, whose default mode is round to nearest, ties to even.
#[test]
fn values_against_the_host() {
    let mut source = Source(99);
    let nearest = Rounding::NearestEven;
    let double = |value: f64| if value.is_nan() { DOUBLE.nan() } else { value.to_bits() };
    let single = |value: f32| if value.is_nan() { SINGLE.nan() } else { u64::from(value.to_bits()) };
    for _ in 0..200_000 {
        let [a, b, c] = [0; 3].map(|_| source.operand(DOUBLE));
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let f = &mut 0;
        assert_eq!(add(DOUBLE, a, b, nearest, f), double(x + y), "{a:x} + {b:x}");
        assert_eq!(multiply(DOUBLE, a, b, nearest, f), double(x * y), "{a:x} * {b:x}");
        assert_eq!(divide(DOUBLE, a, b, nearest, f), double(x / y), "{a:x} / {b:x}");
        assert_eq!(square_root(DOUBLE, a, nearest, f), double(x.sqrt()), "sqrt {a:x}");
        assert_eq!(multiply_add(DOUBLE, a, b, c, nearest, f), double(x.mul_add(y, z)), "{a:x} * {b:x} + {c:x}");
        assert_eq!(convert(DOUBLE, SINGLE, a, nearest, f), single(x as f32), "{a:x}");
        assert_eq!(compare(DOUBLE, a, b, Order::Less, f), x < y, "{a:x} {b:x}");
        assert_eq!(compare(DOUBLE, a, b, Order::LessOrEqual, f), x <= y, "{a:x} {b:x}");
        assert_eq!(compare(DOUBLE, a, b, Order::Equal, f), x == y, "{a:x} {b:x}");
        let [a, b, c] = [0; 3].map(|_| source.operand(SINGLE));
        let [x, y, z] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
        assert_eq!(add(SINGLE, a, b, nearest, f), single(x + y), "{a:x} + {b:x}");
        assert_eq!(multiply(SINGLE, a, b, nearest, f), single(x * y), "{a:x} * {b:x}");
        assert_eq!(divide(SINGLE, a, b, nearest, f), single(x / y), "{a:x} / {b:x}");
        assert_eq!(square_root(SINGLE, a, nearest, f), single(x.sqrt()), "sqrt {a:x}");
        assert_eq!(multiply_add(SINGLE, a, b, c, nearest, f), single(x.mul_add(y, z)), "{a:x} * {b:x} + {c:x}");
        assert_eq!(convert(SINGLE, DOUBLE, a, nearest, f), double(x.into()), "{a:x}");
    }
}

const INF: u64 = 0x7F80_0000;
const QUIET: u64 = 0x7FC0_0000;
const SIGNALLING: u64 = 0x7F80_0001;
const ONE: u64 = 0x3F80_0000;
const MINUS: u64 = 0x8000_0000;
const LARGEST: u64 = 0x7F7F_FFFF;
const SMALLEST_NORMAL: u64 = 0x0080_0000;

/// What the manual and IEEE 754-2019 say outside ordinary numbers; singles.
#[test]
fn special_operands() {
    let n = Rounding::NearestEven;
    let s = SINGLE;
    assert_eq!(run(|f| add(s, INF, INF | MINUS, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| add(s, QUIET | 1, ONE, n, f)), (QUIET, 0), "payloads are lost");
    assert_eq!(run(|f| add(s, SIGNALLING, QUIET, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| multiply(s, INF, 0, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| multiply_add(s, INF, 0, QUIET, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| multiply_add(s, INF, ONE, INF | MINUS, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| multiply_add(s, ONE, ONE, SIGNALLING, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| multiply_add(s, QUIET, ONE, ONE, n, f)), (QUIET, 0));
    assert_eq!(run(|f| divide(s, ONE | MINUS, 0, n, f)), (INF | MINUS, flag::DIVIDE_BY_ZERO));
    assert_eq!(run(|f| divide(s, 0, 0, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| divide(s, INF, 0, n, f)), (INF, 0), "infinity over zero is exact");
    assert_eq!(run(|f| divide(s, INF, INF, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| square_root(s, ONE | MINUS, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| square_root(s, INF | MINUS, n, f)), (QUIET, flag::INVALID));
    assert_eq!(run(|f| square_root(s, MINUS, n, f)), (MINUS, 0));
    assert_eq!(run(|f| convert(s, DOUBLE, SIGNALLING, n, f)), (DOUBLE.nan(), flag::INVALID));
    for (order, flags) in [(Order::Equal, 0), (Order::Less, flag::INVALID), (Order::LessOrEqual, flag::INVALID)] {
        assert_eq!(run(|f| compare(s, QUIET, ONE, order, f).into()), (0, flags));
        assert_eq!(run(|f| compare(s, ONE, SIGNALLING, order, f).into()), (0, flag::INVALID));
    }
    assert_eq!(run(|f| minimum(s, 0, MINUS, f)), (MINUS, 0));
    assert_eq!(run(|f| maximum(s, MINUS, 0, f)), (0, 0));
    assert_eq!(run(|f| minimum(s, QUIET, ONE, f)), (ONE, 0));
    assert_eq!(run(|f| maximum(s, ONE, SIGNALLING, f)), (ONE, flag::INVALID));
    assert_eq!(run(|f| maximum(s, QUIET | MINUS, QUIET, f)), (QUIET, 0));
    for (bits, wide, narrow) in [
        (QUIET | MINUS, i64::MAX as u64, i32::MAX as u64),
        (INF, i64::MAX as u64, i32::MAX as u64),
        (INF | MINUS, i64::MIN as u64, i32::MIN as u64),
    ] {
        assert_eq!(run(|f| to_integer(s, bits, Integer::I64, n, f)), (wide, flag::INVALID));
        assert_eq!(run(|f| to_integer(s, bits, Integer::I32, n, f)), (narrow, flag::INVALID));
    }
    assert_eq!(run(|f| to_integer(s, QUIET, Integer::U32, n, f)), (u64::MAX, flag::INVALID), "sign-extended");
    assert_eq!(run(|f| to_integer(s, 0xBF00_0000, Integer::U64, n, f)), (0, flag::INEXACT), "-0.5");
    assert_eq!(run(|f| to_integer(s, ONE | MINUS, Integer::U64, n, f)), (0, flag::INVALID));
}

/// Rows where flag implementations go wrong; singles.
#[test]
fn boundaries() {
    use Rounding::{Down, NearestEven, Up, Zero};
    let s = SINGLE;
    let (inexact, over, under) = (flag::INEXACT, flag::OVERFLOW | flag::INEXACT, flag::UNDERFLOW | flag::INEXACT);
    let one_less = 0x3F7F_FFFF; // 1 - 2^-24
    // The smallest normal times 1 - 2^-24 rounds to the smallest normal; with unbounded exponent it would stay below.
    assert_eq!(run(|f| multiply(s, SMALLEST_NORMAL, one_less, NearestEven, f)), (SMALLEST_NORMAL, under));
    // (2^-126 - 2^-149) * (1 + 2^-23) is 2^-126 * (1 - 2^-46): with unbounded exponent it rounds to 2^-126: not tiny.
    assert_eq!(run(|f| multiply(s, 0x007F_FFFF, ONE + 1, NearestEven, f)), (SMALLEST_NORMAL, inexact));
    assert_eq!(run(|f| multiply(s, 0x007F_FFFF, ONE + 1, Zero, f)), (0x007F_FFFF, under));
    assert_eq!(run(|f| multiply(s, SMALLEST_NORMAL, 0x3F00_0000, NearestEven, f)), (0x0040_0000, 0), "exact");
    for (mode, value) in [(NearestEven, INF), (Zero, LARGEST), (Down, LARGEST), (Up, INF)] {
        assert_eq!(run(|f| add(s, LARGEST, LARGEST, mode, f)), (value, over));
    }
    assert_eq!(run(|f| add(s, LARGEST, ONE, Zero, f)), (LARGEST, inexact), "rounds to the largest: no overflow");
    assert_eq!(run(|f| add(s, LARGEST, ONE, Up, f)), (INF, over));
    assert_eq!(run(|f| multiply(s, 1, 1, Up, f)), (1, under));
    assert_eq!(run(|f| multiply(s, 1, 1 | MINUS, Up, f)), (MINUS, under));
    assert_eq!(run(|f| add(s, ONE, ONE | MINUS, Down, f)), (MINUS, 0));
    assert_eq!(run(|f| add(s, 1, MINUS | 1, NearestEven, f)), (0, 0));
}

#[test]
fn classes() {
    for (at, bits) in
        [INF | MINUS, ONE | MINUS, 1 | MINUS, MINUS, 0, 1, ONE, INF, SIGNALLING, QUIET].into_iter().enumerate()
    {
        assert_eq!(classify(SINGLE, bits), 1 << at, "{bits:x}");
    }
}

#[test]
fn boxes() {
    assert_eq!(unboxed(boxed(ONE)), ONE);
    assert_eq!(unboxed(ONE), QUIET);
    assert_eq!(unboxed(0xFFFF_FFFE_0000_0000 | ONE), QUIET);
}
