//! M: products, and division with the results that the manual gives for a zero divisor and for overflow.

const MIN: u64 = 1 << 63;
const MINUS: u64 = u64::MAX;
/// -2^31, as a sign-extended word.
const MIN_WORD: u64 = 0xFFFF_FFFF_8000_0000;

pub fn all() {
    gives!("mul a0, a1, a2", MINUS, 3 => -3i64 as u64);
    gives!("mul a0, a1, a2", 1 << 32, 1 << 32 => 0);
    gives!("mulh a0, a1, a2", MIN, MIN => 1 << 62);
    gives!("mulh a0, a1, a2", MINUS, 1 => MINUS);
    gives!("mulhu a0, a1, a2", MINUS, MINUS => MINUS - 1);
    gives!("mulhsu a0, a1, a2", MINUS, MINUS => MINUS);
    gives!("mulhsu a0, a1, a2", 1, MINUS => 0);
    gives!("mulw a0, a1, a2", 0x1_0000_0003, 0x4000_0000 => 0xFFFF_FFFF_C000_0000);
    gives!("div a0, a1, a2", -7i64 as u64, 2 => -3i64 as u64);
    gives!("div a0, a1, a2", 7, 0 => MINUS);
    gives!("div a0, a1, a2", MIN, MINUS => MIN);
    gives!("divu a0, a1, a2", MINUS, 2 => MINUS >> 1);
    gives!("divu a0, a1, a2", 7, 0 => MINUS);
    gives!("rem a0, a1, a2", -7i64 as u64, 2 => MINUS);
    gives!("rem a0, a1, a2", -7i64 as u64, 0 => -7i64 as u64);
    gives!("rem a0, a1, a2", MIN, MINUS => 0);
    gives!("remu a0, a1, a2", MINUS, 10 => 5);
    gives!("remu a0, a1, a2", 7, 0 => 7);
    gives!("divw a0, a1, a2", 0x1_8000_0000, MINUS => MIN_WORD);
    gives!("divw a0, a1, a2", 7, 1 << 32 => MINUS);
    gives!("divuw a0, a1, a2", 0x8000_0000, 1 => MIN_WORD);
    gives!("divuw a0, a1, a2", 7, 0 => MINUS);
    gives!("remw a0, a1, a2", 0x8000_0000, MINUS => 0);
    gives!("remw a0, a1, a2", 0x1_8000_0000, 0 => MIN_WORD);
    gives!("remuw a0, a1, a2", 0xFFFF_FFFF, 16 => 15);
    gives!("remuw a0, a1, a2", 0x8000_0000, 0 => MIN_WORD);
}
