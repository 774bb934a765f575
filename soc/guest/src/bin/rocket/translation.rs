//! DTLB misses: M-mode data accesses through Sv39 by `mstatus.MPRV`, so that code is not translated and only data misses.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use soc_guest::measure::report;
use soc_guest::{read_csr, write_csr};

const VALID: u64 = 1;
const READ_WRITE_EXECUTE: u64 = 7 << 1;
const ACCESSED_DIRTY: u64 = 3 << 6;
const LEAF: u64 = VALID | READ_WRITE_EXECUTE | ACCESSED_DIRTY;
const SV39: u64 = 8 << 60;
const RAM: u64 = 0x8000_0000;
/// Where each mapping is seen: 4 KiB pages, 2 MiB pages; 1 GiB is the identity.
const SMALL: u64 = 0x1_0000_0000;
const MIDDLE: u64 = 0x1_4000_0000;

#[repr(C, align(4096))]
struct Table([AtomicU64; 512]);

const fn empty() -> Table {
    Table([const { AtomicU64::new(0) }; 512])
}
static ROOT: Table = empty();
static SMALL_MIDDLE: Table = empty();
static SMALL_LEAVES: Table = empty();
static MIDDLE_LEAVES: Table = empty();

/// 64 pages to touch.
#[repr(C, align(4096))]
struct Pages([u8; 64 * 4096]);
static PAGES: Pages = Pages([0; 64 * 4096]);

fn number(table: &Table) -> u64 {
    (&raw const *table).addr() as u64 >> 12
}

fn build() {
    let pages = (&raw const PAGES).addr() as u64 >> 12;
    ROOT.0[2].store(RAM >> 2 | LEAF, Relaxed);
    ROOT.0[(SMALL >> 30) as usize].store(number(&SMALL_MIDDLE) << 10 | VALID, Relaxed);
    ROOT.0[(MIDDLE >> 30) as usize].store(number(&MIDDLE_LEAVES) << 10 | VALID, Relaxed);
    SMALL_MIDDLE.0[0].store(number(&SMALL_LEAVES) << 10 | VALID, Relaxed);
    MIDDLE_LEAVES.0[0].store(RAM >> 2 | LEAF, Relaxed);
    for (index, leaf) in SMALL_LEAVES.0.iter().enumerate() {
        leaf.store((pages + index as u64 % 64) << 10 | LEAF, Relaxed);
    }
}

/// Extra cycles of an access to a1 right behind `$before` over the same access again. Everything is in the L1D: the twelfth time, for
/// victims are chosen at random and the tables share a set.
macro_rules! translated {
    ($name:literal, $address:expr, $before:literal, $access:literal) => {{
        let mut extra = 0u64;
        for _ in 0..12 {
            // SAFETY: with MPRV only the accesses between set and clear are translated, and both addresses are mapped.
            unsafe {
                asm!(
                    ".option push", ".option norvc", "li t0, 1 << 17", "csrs mstatus, t0", ".balign 64",
                    $before, "nop", "nop", "nop", "nop",
                    "csrr a6, mcycle", $access, "csrr a7, mcycle", "sub a3, a7, a6",
                    "csrr a6, mcycle", $access, "csrr a7, mcycle", "sub a7, a7, a6", "sub a3, a3, a7",
                    "csrc mstatus, t0", ".option pop",
                    in("a1") $address, in("a2") $address + 4096, out("a3") extra, out("a6") _, out("a7") _,
                    out("t0") _, out("t1") _, out("t2") _,
                );
            }
        }
        report($name, extra, 1);
    }};
}

pub fn misses() {
    build();
    let status = read_csr!("mstatus");
    write_csr!("mstatus", status & !(3 << 11) | 1 << 11);
    write_csr!("satp", SV39 | number(&ROOT));
    let there = (&raw const PAGES).addr() as u64;
    translated!("DTLB miss, 3 levels", SMALL, "sfence.vma", "ld t1, 256(a1)\nadd t2, t1, t1");
    translated!("DTLB miss, 2 levels", MIDDLE + there - RAM, "sfence.vma", "ld t1, 256(a1)\nadd t2, t1, t1");
    translated!("DTLB miss, 1 level", there, "sfence.vma", "ld t1, 256(a1)\nadd t2, t1, t1");
    translated!(
        "DTLB miss, upper levels known",
        SMALL,
        "sfence.vma\nld t1, 512(a2)\nadd t2, t1, t1",
        "ld t1, 256(a1)\nadd t2, t1, t1"
    );
    translated!("store TLB miss, 3 levels", SMALL, "sfence.vma", "sd t1, 256(a1)\nadd t2, t1, t1");
    reach("pages in reach, 32", 32, 4096);
    reach("pages beyond reach, 48", 48, 4096);
    reach("pages at a stride of 16 KiB, 8", 8, 4 * 4096);
    switch();
    write_csr!("satp", 0);
    write_csr!("mstatus", status);
}

/// Extra cycles per load when `pages` pages are loaded from in turn, over as many loads from one.
fn reach(name: &str, pages: u64, stride: u64) {
    const ROUNDS: u64 = 16;
    let round = |step: u64| {
        let mut cycles = 0u64;
        for _ in 0..2 {
            // SAFETY: as `translated`; all pages are mapped.
            unsafe {
                asm!(
                    ".option push", ".option norvc", "li t0, 1 << 17", "csrs mstatus, t0", ".balign 64", "csrr a6, mcycle",
                    ".balign 64", "3: mv t1, a1", "mv t2, a2",
                    "2: ld t3, 0(t1)", "add t1, t1, a3", "addi t2, t2, -1", "bnez t2, 2b",
                    "addi a4, a4, -1", "bnez a4, 3b",
                    "csrr a7, mcycle", "sub a7, a7, a6", "csrc mstatus, t0", ".option pop",
                    in("a1") SMALL, in("a2") pages, in("a3") step, inout("a4") ROUNDS => _, out("a6") _, lateout("a7") cycles,
                    out("t0") _, out("t1") _, out("t2") _, out("t3") _,
                );
            }
        }
        cycles
    };
    // Line 1 of each page, so that the lines do not share a set.
    let (many, one) = (round(stride + 64), round(0));
    report(name, many.saturating_sub(one), pages * ROUNDS);
}

/// `csrw satp` and `sfence.vma` in S-mode, code on the 1 GiB page.
fn switch() {
    extern "C" fn body(_: u64) -> u64 {
        let cycles: u64;
        // SAFETY: the same root again; RAM stays mapped where it is.
        unsafe {
            asm!(
                ".option push", ".option norvc", "li t0, 3", "csrr t1, satp", ".balign 64",
                "2: csrr a6, cycle", "csrw satp, t1", "sfence.vma", "csrr a7, cycle",
                "addi t0, t0, -1", "bnez t0, 2b", "sub a7, a7, a6", ".option pop",
                out("a6") _, lateout("a7") cycles, out("t0") _, out("t1") _,
            );
        }
        cycles
    }
    let vector = read_csr!("mtvec");
    write_csr!("mtvec", soc_guest::entry::machine_vector());
    let trap = soc_guest::entry::enter(soc_guest::entry::Mode::Supervisor, body, 0);
    write_csr!("mtvec", vector);
    // One of the cycles is that of the first read.
    report("csrw satp, sfence.vma", trap.result - 1, 1);
}
