//! L1 misses one by one, pointer chases and streams. All of it in registers, so that no stack line disturbs the sets.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use soc_guest::measure::report;

const LINE: u64 = 64;
const BUFFER: usize = 64 << 10;

#[repr(C, align(65536))]
struct Buffer([AtomicU64; BUFFER / 8]);
static BUFFERS: [Buffer; 2] = [const { Buffer([const { AtomicU64::new(0) }; BUFFER / 8]) }; 2];

fn buffer(which: usize) -> u64 {
    (&raw const BUFFERS[which]).addr() as u64
}

/// Runs one asm loop over `$bytes` bytes from `$from`, one line a turn; gives its cycles. a0 = line, t0 = end.
macro_rules! sweep {
    ($from:expr, $bytes:expr, $body:literal) => {{
        let cycles: u64;
        // SAFETY: touches the two buffers only, which nothing else uses; registers are declared.
        unsafe {
            asm!(
                ".option push", ".option norvc", ".balign 64",
                "csrr a6, mcycle",
                ".balign 64",
                "2:", $body, "addi a0, a0, 64", "bne a0, t0, 2b",
                "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
                inout("a0") $from => _, in("t0") $from + $bytes as u64, inout("a1") buffer(1) => _,
                out("t1") _, out("t2") _, out("t3") _, out("a6") _, lateout("a7") cycles,
            );
        }
        cycles
    }};
}

/// Fills the cache with lines of the second buffer, clean or dirty.
fn fill(dirty: bool) {
    for _ in 0..4 {
        if dirty {
            sweep!(buffer(1), BUFFER, "sd t0, 0(a0)");
        } else {
            sweep!(buffer(1), BUFFER, "ld t1, 0(a0)");
        }
    }
}

/// Extra cycles of an access that misses over one that hits, for 32 lines of the first buffer.
macro_rules! miss {
    ($name:literal, $dirty:literal, $access:literal) => {{
        const LINES: u64 = 32;
        // The code is fetched and the first buffer's lines leave in this order, so the measurement itself misses in data only.
        let mut extra = 0;
        for _ in 0..2 {
            fill($dirty);
            // SAFETY: as `sweep`.
            unsafe {
                asm!(
                    ".option push", ".option norvc", "li t0, 0", "mv a1, a0", ".balign 64",
                    "2: csrr a6, mcycle", $access, "csrr a7, mcycle",
                    "sub a7, a7, a6", "add t0, t0, a7",
                    "nop", "nop", "nop", "nop", "nop",
                    "csrr a6, mcycle", $access, "csrr a7, mcycle",
                    "sub a7, a7, a6", "sub t0, t0, a7",
                    "addi a0, a0, 64", "addi t3, t3, -1", "bnez t3, 2b", ".option pop",
                    inout("a0") buffer(0) => _, out("t0") extra, inout("t3") LINES => _,
                    out("a1") _, out("t1") _, out("t2") _, out("a6") _, out("a7") _,
                );
            }
        }
        report($name, extra, LINES);
    }};
}

pub fn misses() {
    miss!("load miss, clean victim", false, "ld t1, 0(a0)\nadd t2, t1, t1");
    miss!("store miss, clean victim", false, "sd t1, 0(a0)\nadd t2, t1, t1");
    miss!("amo miss, clean victim", false, "amoadd.d t1, t2, (a0)\nadd t2, t1, t1");
    miss!("lr miss, clean victim", false, "lr.d t1, (a0)\nadd t2, t1, t1");
    miss!("load miss, dirty victim", true, "ld t1, 0(a0)\nadd t2, t1, t1");
    miss!("store miss, dirty victim", true, "sd t1, 0(a0)\nadd t2, t1, t1");
    fill(false);
    let cycles: u64;
    // SAFETY: as `sweep`.
    unsafe {
        asm!(
            ".option push", ".option norvc", ".balign 64",
            "ld t1, 0(a0)", "add t2, t1, t1", "nop", "nop", "nop", "nop", "nop", "nop",
            "csrr a6, mcycle", "sd t1, 0(a0)", "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
            in("a0") buffer(0), out("t1") _, out("t2") _, out("a6") _, lateout("a7") cycles,
        );
    }
    report("store to a line loaded before", cycles, 1);
    report("instruction miss", instruction_lines(true) - instruction_lines(false), 65);
}

/// Cycles of 64 lines of straight code and the beginning of the next, cold or warm.
fn instruction_lines(cold: bool) -> u64 {
    let mut cycles = 0;
    for _ in 0..2 {
        if cold {
            // SAFETY: instruction fetches start anew, nothing else changes.
            unsafe { asm!("fence.i") };
        }
        cycles = straight_code();
    }
    cycles
}

/// Its own code, so that cold and warm run the same lines.
#[inline(never)]
fn straight_code() -> u64 {
    let cycles: u64;
    // SAFETY: reads the cycle counter.
    unsafe {
        asm!(
            ".option push", ".option norvc", ".balign 64",
            ".rept 15", "nop", ".endr", "csrr a6, mcycle", ".rept 1024", "nop", ".endr", "csrr a7, mcycle",
            "sub a7, a7, a6", ".option pop",
            out("a6") _, lateout("a7") cycles,
        );
    }
    cycles
}

pub fn streams() {
    chase("chase, 16 KiB", 16 << 10);
    chase("chase, 32 KiB", 32 << 10);
    chase("chase, 64 KiB", 64 << 10);
    let lines = BUFFER as u64 / LINE;
    macro_rules! stream {
        ($name:literal, $lines:expr, $body:literal) => {{
            sweep!(buffer(0), $lines * LINE, $body);
            let cycles = sweep!(buffer(0), $lines * LINE, $body);
            report($name, cycles, $lines);
        }};
    }
    // Two destinations in turn: a load waits for a late result that it replaces.
    stream!(
        "read stream, per line",
        lines,
        "ld t1, 0(a0)\nld t3, 8(a0)\nld t1, 16(a0)\nld t3, 24(a0)\nld t1, 32(a0)\nld t3, 40(a0)\nld t1, 48(a0)\nld t3, 56(a0)\nadd t2, t3, t3"
    );
    stream!(
        "write stream, per line",
        lines,
        "sd t1, 0(a0)\nsd t1, 8(a0)\nsd t1, 16(a0)\nsd t1, 24(a0)\nsd t1, 32(a0)\nsd t1, 40(a0)\nsd t1, 48(a0)\nsd t1, 56(a0)\nadd t2, t1, t1\nnop"
    );
    macro_rules! copy {
        ($name:literal, $lines:expr) => {
            stream!(
                $name,
                $lines,
                "ld t1, 0(a0)\nsd t1, 0(a1)\nld t1, 8(a0)\nsd t1, 8(a1)\nld t1, 16(a0)\nsd t1, 16(a1)\n\
                 ld t1, 24(a0)\nsd t1, 24(a1)\nld t1, 32(a0)\nsd t1, 32(a1)\nld t1, 40(a0)\nsd t1, 40(a1)\n\
                 ld t1, 48(a0)\nsd t1, 48(a1)\nld t1, 56(a0)\nsd t1, 56(a1)\naddi a1, a1, 64"
            )
        };
    }
    copy!("copy in L1, per line", 32);
    copy!("copy, cold, per line", lines);
}

/// A random cycle through all lines of the first `bytes` of a buffer; cycles per load, with a loop of 5 cycles around it.
fn chase(name: &str, bytes: u64) {
    let lines = bytes / LINE;
    // Sattolo's algorithm on the identity, with a linear congruential generator (Knuth's MMIX constants).
    let word = |line: u64| &BUFFERS[0].0[(line * LINE / 8) as usize];
    (0..lines).for_each(|line| word(line).store(buffer(0) + line * LINE, Relaxed));
    let mut random = 1u64;
    for last in (1..lines).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = (random >> 33) % last;
        let (a, b) = (word(last).load(Relaxed), word(other).load(Relaxed));
        word(last).store(b, Relaxed);
        word(other).store(a, Relaxed);
    }
    let mut cycles = 0;
    for turns in [lines, 2 * lines] {
        // SAFETY: follows pointers inside the buffer.
        unsafe {
            asm!(
                ".option push", ".option norvc", ".balign 64", "csrr a6, mcycle", ".balign 64",
                "2: ld a0, 0(a0)", "nop", "nop", "addi t0, t0, -1", "bnez t0, 2b",
                "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
                inout("a0") buffer(0) => _, inout("t0") turns => _, out("a6") _, lateout("a7") cycles,
            );
        }
    }
    report(name, cycles, 2 * lines);
}
