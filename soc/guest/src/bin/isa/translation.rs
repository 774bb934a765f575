//! Sv39: what each bit of an entry allows to whom, superpages, canonical addresses, and A and D as Rocket has them (faults).

use super::case::check;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use soc_guest::entry::{Mode, enter, machine_vector};
use soc_guest::write_csr;

const V: u64 = 1;
const R: u64 = 1 << 1;
const W: u64 = 1 << 2;
const X: u64 = 1 << 3;
const U: u64 = 1 << 4;
const A: u64 = 1 << 6;
const D: u64 = 1 << 7;
const SUM: u64 = 1 << 18;
const MXR: u64 = 1 << 19;
const FS: u64 = 1 << 13;
const FETCH: u64 = 12;
const LOAD: u64 = 13;
const STORE: u64 = 15;
const RAM: u64 = 0x8000_0000;
/// Where the page under test is seen.
const PAGE: u64 = 0x4000_0000;
const VALUE: u64 = 0x1234;

#[repr(C, align(4096))]
struct Table([AtomicU64; 512]);
const fn empty() -> Table {
    Table([const { AtomicU64::new(0) }; 512])
}
static ROOT: Table = empty();
static MIDDLE: Table = empty();
static LEAVES: Table = empty();
static DATA: Table = empty();

fn number(table: &Table) -> u64 {
    (&raw const *table).addr() as u64 >> 12
}

extern "C" fn load(at: u64) -> u64 {
    let value;
    // SAFETY: reads the page under test, or traps.
    unsafe { core::arch::asm!("ld {0}, 0({1})", out(reg) value, in(reg) at) };
    value
}
extern "C" fn store(at: u64) -> u64 {
    // SAFETY: writes the page under test, or traps.
    unsafe { core::arch::asm!("sd {0}, 0({0})", in(reg) at) };
    0
}
extern "C" fn fetch(at: u64) -> u64 {
    // SAFETY: the page traps: it may not be executed, or holds zeros.
    unsafe { core::arch::asm!("jr {0}", in(reg) at, options(noreturn)) }
}

/// One access in `mode` with `flags` in the leaf: its cause, or 0 if it was done.
fn access(mode: Mode, body: extern "C" fn(u64) -> u64, at: u64, status: u64) -> u64 {
    write_csr!("mstatus", FS | status);
    let trap = enter(mode, body, at);
    let done = match mode {
        Mode::User => 8,
        Mode::Supervisor => 9,
    };
    if trap.cause >= FETCH {
        check("value of a page fault", trap.value, at);
    }
    if trap.cause == done { 0 } else { trap.cause }
}

fn leaf(flags: u64) {
    LEAVES.0[0].store(number(&DATA) << 10 | flags, Relaxed);
    // SAFETY: the tables are as stored.
    unsafe { core::arch::asm!("sfence.vma") };
}

pub fn all() {
    write_csr!("mtvec", machine_vector());
    // The program itself: RAM as one superpage, for S at first.
    ROOT.0[2].store(RAM >> 2 | V | R | W | X | A | D, Relaxed);
    ROOT.0[1].store(number(&MIDDLE) << 10 | V, Relaxed);
    MIDDLE.0[0].store(number(&LEAVES) << 10 | V, Relaxed);
    DATA.0[0].store(VALUE, Relaxed);
    write_csr!("satp", 8 << 60 | number(&ROOT));
    let supervisor = |name: &str, body, flags, status, cause| {
        leaf(flags);
        check(name, access(Mode::Supervisor, body, PAGE, status), cause);
    };
    let all = V | R | W | X | A | D;
    supervisor("load", load, all, 0, 0);
    supervisor("store", store, all, 0, 0);
    supervisor("load, not valid", load, all & !V, 0, LOAD);
    supervisor("store, read only", store, V | R | A, 0, STORE);
    supervisor("load, write only is reserved", load, V | W | A | D, 0, LOAD);
    supervisor("load, execute only", load, V | X | A, 0, LOAD);
    supervisor("load, execute only, MXR", load, V | X | A, MXR, 0);
    supervisor("fetch, not executable", fetch, V | R | W | A | D, 0, FETCH);
    supervisor("load, not accessed", load, all & !A, 0, LOAD);
    supervisor("store, not dirty", store, all & !D, 0, STORE);
    supervisor("load, not dirty", load, all & !D, 0, 0);
    supervisor("load of a user page", load, all | U, 0, LOAD);
    supervisor("load of a user page, SUM", load, all | U, SUM, 0);
    supervisor("fetch of a user page, SUM", fetch, all | U, SUM, FETCH);
    supervisor("load, a pointer at the last level", load, V | A, 0, LOAD);
    // Rocket tells 40 bits of the address, with their sign.
    check("load, not canonical", enter(Mode::Supervisor, load, 1 << 39).cause, LOAD);
    // A superpage of 2 MiB, aligned and not.
    MIDDLE.0[1].store(RAM >> 2 | all, Relaxed);
    MIDDLE.0[2].store((RAM + 0x1000) >> 2 | all, Relaxed);
    check("load, 2 MiB", access(Mode::Supervisor, load, PAGE + 0x20_0000, 0), 0);
    check("load, misaligned superpage", access(Mode::Supervisor, load, PAGE + 0x40_0000, 0), LOAD);
    // For U the program's own page is missing first.
    check("fetch in U of a supervisor page", enter(Mode::User, load, PAGE).cause, FETCH);
    ROOT.0[2].store(RAM >> 2 | all | U, Relaxed);
    let user = |name: &str, flags, cause| {
        leaf(flags);
        check(name, access(Mode::User, load, PAGE, 0), cause);
    };
    user("load in U", all | U, 0);
    user("load in U of a supervisor page", all, LOAD);
    write_csr!("satp", 0);
    write_csr!("mstatus", FS);
}
