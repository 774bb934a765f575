//! Loads and stores of every width, and the atomics: results, memory, and the traps of misaligned addresses.

use super::case::{NONE, check, check_trap};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

static WORDS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

const LOAD_MISALIGNED: u64 = 4;
const LOAD_FAULT: u64 = 5;
const STORE_MISALIGNED: u64 = 6;
const STORE_FAULT: u64 = 7;
/// Nothing is there, neither on the board nor around the RTL.
const NOWHERE: u64 = 0x8000;

/// Address of the first word, which holds `value`, the second all ones.
fn word(value: u64) -> u64 {
    WORDS[0].store(value, Relaxed);
    WORDS[1].store(u64::MAX, Relaxed);
    (&raw const WORDS).addr() as u64
}

pub fn plain() {
    const VALUE: u64 = 0x8877_6655_F4F3_F2F1;
    gives!("lb a0, 0(a1)", word(VALUE), 0 => 0xFFFF_FFFF_FFFF_FFF1);
    gives!("lbu a0, 3(a1)", word(VALUE), 0 => 0xF4);
    gives!("lh a0, 2(a1)", word(VALUE), 0 => 0xFFFF_FFFF_FFFF_F4F3);
    gives!("lhu a0, 6(a1)", word(VALUE), 0 => 0x8877);
    gives!("lw a0, 4(a1)", word(VALUE), 0 => 0xFFFF_FFFF_8877_6655);
    gives!("lwu a0, 4(a1)", word(VALUE), 0 => 0x8877_6655);
    gives!("ld a0, -8(a1)", word(VALUE) + 8, 0 => VALUE);
    gives!(".option rvc\nc.lw a0, 4(a1)\n.option norvc", word(VALUE), 0 => 0xFFFF_FFFF_8877_6655);
    gives!(".option rvc\nc.ld a0, 0(a1)\n.option norvc", word(VALUE), 0 => VALUE);
    macro_rules! stores {
        ($insn:literal, $at:literal => $expected:expr) => {
            gives!(concat!($insn, " a2, ", $at, "(a1)\nld a0, 0(a1)"), word(VALUE), 0x1122_3344_5566_7788 => $expected)
        };
    }
    stores!("sb", 1 => 0x8877_6655_F4F3_88F1);
    stores!("sh", 2 => 0x8877_6655_7788_F2F1);
    stores!("sw", 4 => 0x5566_7788_F4F3_F2F1);
    stores!("sd", 0 => 0x1122_3344_5566_7788);
    stores!(".option rvc\nc.sw", 0 => 0x8877_6655_5566_7788);
    let at = word(0);
    check_trap("lh, misaligned", traps!("lh a0, 1(a1)", at, 0), LOAD_MISALIGNED, at + 1);
    check_trap("lw, misaligned", traps!("lw a0, 2(a1)", at, 0), LOAD_MISALIGNED, at + 2);
    check_trap("ld, misaligned", traps!("ld a0, 4(a1)", at, 0), LOAD_MISALIGNED, at + 4);
    check_trap("sh, misaligned", traps!("sh a2, 3(a1)", at, 0), STORE_MISALIGNED, at + 3);
    check_trap("sd, misaligned", traps!("sd a2, 1(a1)", at, 0), STORE_MISALIGNED, at + 1);
    check_trap("ld, nowhere", traps!("ld a0, 0(a1)", NOWHERE, 0), LOAD_FAULT, NOWHERE);
    check_trap("sd, nowhere", traps!("sd a2, 0(a1)", NOWHERE, 0), STORE_FAULT, NOWHERE);
}

pub fn atomic() {
    const VALUE: u64 = 0xFFFF_FFFE_8000_0001;
    /// `VALUE`'s low word as an AMO returns it.
    const LOW: u64 = 0xFFFF_FFFF_8000_0001;
    // The old value, and what is in memory afterwards.
    macro_rules! amo {
        ($insn:literal, $operand:expr => $old:expr, $after:expr) => {
            gives!(concat!($insn, " a0, a2, (a1)"), word(VALUE), $operand => $old);
            check($insn, WORDS[0].load(Relaxed), $after);
        };
    }
    amo!("amoswap.d", 5 => VALUE, 5);
    amo!("amoadd.d.aqrl", 2 => VALUE, VALUE + 2);
    amo!("amoxor.d", u64::MAX => VALUE, !VALUE);
    amo!("amoand.d", 0xFF => VALUE, 1);
    amo!("amoor.d", 0xFF => VALUE, VALUE | 0xFF);
    amo!("amomin.d", 0 => VALUE, VALUE);
    amo!("amomax.d", 0 => VALUE, 0);
    amo!("amominu.d", 0 => VALUE, 0);
    amo!("amomaxu.d", 0 => VALUE, VALUE);
    amo!("amoswap.w", 5 => LOW, 0xFFFF_FFFE_0000_0005);
    amo!("amoadd.w", u64::MAX => LOW, 0xFFFF_FFFE_8000_0000);
    amo!("amoxor.w", u64::MAX => LOW, 0xFFFF_FFFE_7FFF_FFFE);
    amo!("amoand.w", 1 => LOW, 0xFFFF_FFFE_0000_0001);
    amo!("amoor.w", 6 => LOW, 0xFFFF_FFFE_8000_0007);
    amo!("amomin.w", 0 => LOW, VALUE);
    amo!("amomax.w", 0 => LOW, 0xFFFF_FFFE_0000_0000);
    amo!("amominu.w", 0 => LOW, 0xFFFF_FFFE_0000_0000);
    amo!("amomaxu.w", 0 => LOW, VALUE);
    gives!("lr.w a0, (a1)", word(VALUE), 0 => LOW);
    gives!("lr.d t0, (a1)\nsc.d a0, a2, (a1)", word(VALUE), 9 => 0);
    check("sc.d stores", WORDS[0].load(Relaxed), 9);
    gives!("lr.d t0, (a1)\nsc.d a0, a2, (a1)\nsc.d a0, a2, (a1)", word(VALUE), 9 => 1);
    gives!("sc.w a0, a2, (a1)", word(VALUE), 9 => 1);
    check("a failing sc.w leaves memory", WORDS[0].load(Relaxed), VALUE);
    let at = word(0);
    check_trap("lr.w, misaligned", traps!("lr.w a0, (a1)", at + 2, 0), LOAD_MISALIGNED, at + 2);
    check_trap("amoadd.d, misaligned", traps!("amoadd.d a0, a2, (a1)", at + 4, 0), STORE_MISALIGNED, at + 4);
    check_trap("amoadd.w, aligned for its width", traps!("amoadd.w a0, a2, (a1)", at + 4, 0), NONE, 0);
    check_trap("amoadd.d, nowhere", traps!("amoadd.d a0, a2, (a1)", NOWHERE, 0), STORE_FAULT, NOWHERE);
}
