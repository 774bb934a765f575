//! A case: one instruction with its operands, and what must come of it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use soc_guest::println;

static CASES: AtomicU64 = AtomicU64::new(0);
static FAILURES: AtomicU64 = AtomicU64::new(0);

/// Runs the cases of a group and prints how many there were.
pub fn group(name: &str, cases: fn()) {
    let (count, failures) = (CASES.load(Relaxed), FAILURES.load(Relaxed));
    cases();
    let count = CASES.load(Relaxed) - count;
    let verdict = if FAILURES.load(Relaxed) == failures { "PASS" } else { "FAIL" };
    println!("{name}: {count} cases {verdict}");
}

/// Whether any case of any group has failed.
pub fn failed() -> bool {
    FAILURES.load(Relaxed) > 0
}

/// Counts a case, and tells of it if it fails.
pub fn check(name: &str, found: u64, expected: u64) {
    CASES.fetch_add(1, Relaxed);
    if found != expected {
        FAILURES.fetch_add(1, Relaxed);
        println!("FAIL {name}: {found:#x}, expected {expected:#x}");
    }
}

/// A synchronous trap as M-mode sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// `mcause`; all ones if there was none.
    pub cause: u64,
    /// `mtval`.
    pub value: u64,
    /// `mepc`, from the start of the instruction.
    pub place: u64,
}

/// `mcause` of a [`Trap`] that did not happen.
pub const NONE: u64 = u64::MAX;

/// Counts a case that must trap with `cause` and `value` at the instruction itself.
pub fn check_trap(name: &str, found: Trap, cause: u64, value: u64) {
    check(name, found.cause, cause);
    if cause != NONE {
        check(name, found.value, value);
        check(name, found.place, 0);
    }
}

/// a0 after an instruction on a1 and a2 (a0 = -1 before).
macro_rules! gives {
    ($insn:expr, $a:expr, $b:expr => $expected:expr) => {{
        let (a, b): (u64, u64) = ($a, $b);
        let found: u64;
        // SAFETY: a register instruction; what it may use is declared.
        unsafe {
            core::arch::asm!(
                ".option push", ".option norvc", $insn, ".option pop",
                inlateout("a0") u64::MAX => found, inlateout("a1") a => _, inlateout("a2") b => _, out("t0") _,
            );
        }
        $crate::case::check($insn, found, $expected);
    }};
}

/// The trap that an instruction on a1 and a2 takes in M-mode.
macro_rules! traps {
    ($insn:expr, $a:expr, $b:expr) => {{
        let (a, b): (u64, u64) = ($a, $b);
        let (cause, value, place): (u64, u64, u64);
        // SAFETY: the instruction traps, or does to the words that the case names what it is to do. `mtvec` is restored.
        unsafe {
            core::arch::asm!(
                ".option push", ".option norvc",
                "la t0, 3f", "csrrw t0, mtvec, t0", "li a3, -1", "2:", $insn, "j 4f",
                ".balign 4", "3:", "csrr a3, mcause", "csrr a4, mtval", "csrr a5, mepc", "la t1, 2b", "sub a5, a5, t1",
                "4:", "csrw mtvec, t0", ".option pop",
                out("a0") _, inlateout("a1") a => _, inlateout("a2") b => _,
                out("a3") cause, out("a4") value, out("a5") place, out("t0") _, out("t1") _,
            );
        }
        $crate::case::Trap { cause, value, place }
    }};
}
