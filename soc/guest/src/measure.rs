//! Cycle measurements as the published RTL ones were made: copies of a construct between two reads of `mcycle`, the sixth time
//! round, and the difference between many copies and few, so that what surrounds them cancels.
//!
//! Registers of a construct: a0 = address of [`Data`], a1 and a2 = the two operands, a3 to a5, t0 to t5 and f-registers free.
//! Instructions are 4 bytes long unless the construct says `.option rvc`. A trap goes to [`skip`].

use core::arch::global_asm;
use core::sync::atomic::AtomicU64;

/// What constructs load and store. The first word holds its own address.
#[repr(C, align(4096))]
pub struct Data(pub [AtomicU64; 512]);

/// The data page.
pub static DATA: Data = Data([const { AtomicU64::new(0) }; 512]);

/// Address of the data page; sets up its first word.
pub fn data() -> u64 {
    let address = (&raw const DATA).addr() as u64;
    DATA.0[0].store(address, core::sync::atomic::Ordering::Relaxed);
    address
}

global_asm!(
    r#"
    .balign 64
    .option push
    .option norvc
    .globl measure_skip
measure_skip:
    csrr    t5, mepc
    addi    t5, t5, 4
    csrw    mepc, t5
    mret
    .option pop
"#
);

unsafe extern "C" {
    fn measure_skip();
}

/// A machine-mode trap handler that goes on behind the trapping instruction: csrr, addi, csrw, mret; t5 is lost.
pub fn skip() -> u64 {
    measure_skip as *const () as u64
}

/// Prints one result: `cycles` for `copies` copies.
pub fn report(point: &str, cycles: u64, copies: u64) {
    crate::println!("@{{\"point\":\"{point}\",\"cycles\":{cycles},\"copies\":{copies}}}");
}

/// Cycles between two reads of `mcycle` around `$count` copies of `$body`, the sixth time round.
#[macro_export]
macro_rules! copies {
    ($count:expr, $setup:literal, $body:expr, $a:expr, $b:expr) => {{
        let cycles: u64;
        let operands: [u64; 2] = [$a, $b];
        // SAFETY: the construct touches the data page, the registers declared here and CSRs that nothing else relies on.
        unsafe {
            core::arch::asm!(
                ".option push",
                ".option arch, +d",
                ".option norvc",
                "li t6, 6",
                $setup,
                ".balign 64",
                "20: csrr a6, mcycle",
                ".rept {count}",
                $body,
                ".endr",
                "csrr a7, mcycle",
                "addi t6, t6, -1",
                "beqz t6, 21f",
                "j 20b",
                "21: sub a7, a7, a6",
                ".option pop",
                count = const $count,
                inout("a0") $crate::measure::data() => _,
                inout("a1") operands[0] => _,
                inout("a2") operands[1] => _,
                out("a3") _, out("a4") _, out("a5") _, out("a6") _, lateout("a7") cycles,
                out("t0") _, out("t1") _, out("t2") _, out("t3") _, out("t4") _, out("t5") _, out("t6") _, out("ra") _,
            );
        }
        cycles
    }};
}

/// Reports a construct by the difference between 48 and 16 copies.
#[macro_export]
macro_rules! line {
    ($name:literal, $body:literal) => {
        $crate::line!($name, $body, 1, 1)
    };
    ($name:literal, $body:literal, $a:expr, $b:expr) => {
        $crate::line!($name, "", $body, $a, $b)
    };
    ($name:literal, $setup:literal, $body:literal, $a:expr, $b:expr) => {{
        let (few, many): (u64, u64) =
            ($crate::copies!(16, $setup, $body, $a, $b), $crate::copies!(48, $setup, $body, $a, $b));
        $crate::measure::report($name, many - few, 32);
    }};
}

/// The same with 12 and 4 copies, for long constructs and those that fill the branch predictor.
#[macro_export]
macro_rules! few {
    ($name:literal, $setup:literal, $body:literal) => {{
        let (few, many): (u64, u64) =
            ($crate::copies!(4, $setup, $body, 1, 1), $crate::copies!(12, $setup, $body, 1, 1));
        $crate::measure::report($name, many - few, 8);
    }};
}

/// Reports a loop by the difference between 192 and 64 turns; the body takes the number of turns from a2.
#[macro_export]
macro_rules! turns {
    ($name:literal, $setup:literal, $body:literal, $a:expr) => {{
        let (few, many) = $crate::turns!($setup, $body, $a);
        $crate::measure::report($name, many - few, 128);
    }};
    ($setup:literal, $body:expr, $a:expr) => {{
        let (few, many): (u64, u64) =
            ($crate::copies!(1, $setup, $body, $a, 64), $crate::copies!(1, $setup, $body, $a, 192));
        (few, many)
    }};
}
