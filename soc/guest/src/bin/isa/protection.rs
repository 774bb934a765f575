//! PMP: rights of S and U, M's own only if locked, ways of giving a range, the entry that counts.

use super::case::{NONE, check, check_trap};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use soc_guest::entry::{Mode, enter, machine_vector};
use soc_guest::{read_csr, write_csr};

const R: u64 = 1;
const W: u64 = 2;
const ALL: u64 = 7;
const TOR: u64 = 1 << 3;
const NA4: u64 = 2 << 3;
const NAPOT: u64 = 3 << 3;
const LOCK: u64 = 1 << 7;
const LOAD_FAULT: u64 = 5;
const STORE_FAULT: u64 = 7;

#[repr(C, align(4096))]
struct Page([AtomicU64; 512]);
static PAGE: Page = Page([const { AtomicU64::new(0) }; 512]);

extern "C" fn load(at: u64) -> u64 {
    let value;
    // SAFETY: reads the page under test, or traps.
    unsafe { core::arch::asm!("lw {0}, 0({1})", out(reg) value, in(reg) at) };
    value
}
extern "C" fn store(at: u64) -> u64 {
    // SAFETY: writes the page under test, or traps.
    unsafe { core::arch::asm!("sw {0}, 0({0})", in(reg) at) };
    0
}

pub fn all() {
    write_csr!("mtvec", machine_vector());
    PAGE.0[0].store(1, Relaxed);
    let at = (&raw const PAGE).addr() as u64;
    // Entry 0 is under test, entry 1 gives everything else.
    write_csr!("pmpaddr1", u64::MAX);
    let entry = |config: u64, address: u64| {
        write_csr!("pmpcfg0", (NAPOT | ALL) << 8 | config);
        write_csr!("pmpaddr0", address);
    };
    let cause = |body, at| match enter(Mode::Supervisor, body, at) {
        trap if trap.cause == 9 => 0,
        trap => {
            check("value of an access fault", trap.value, at);
            trap.cause
        }
    };
    let page = at >> 2 | 0x1FF;
    entry(NAPOT | ALL, page);
    check("load, all rights", cause(load, at), 0);
    entry(NAPOT | R, page);
    check("load, read", cause(load, at + 4092), 0);
    check("store, read", cause(store, at), STORE_FAULT);
    check("load behind the range", cause(load, at + 4096), 0);
    entry(NAPOT, page);
    check("load, no right", cause(load, at), LOAD_FAULT);
    check("the first entry counts", cause(load, at + 8), LOAD_FAULT);
    entry(NA4, at >> 2);
    check("four bytes: inside", cause(load, at), LOAD_FAULT);
    check("four bytes: behind", cause(load, at + 4), 0);
    entry(0, page);
    check("an entry that is off", cause(load, at), 0);
    // Top of range: from 0 on in entry 0, so the guest program itself stays allowed.
    entry(TOR | ALL, (at + 8) >> 2);
    write_csr!("pmpcfg0", NAPOT << 8 | TOR | ALL);
    write_csr!("pmpaddr1", page);
    check("below a top of range", cause(load, at + 4), 0);
    check("from the top on", cause(load, at + 8), LOAD_FAULT);
    write_csr!("pmpaddr1", u64::MAX);
    // A locked entry binds M too, and can be changed no more until reset; so it is the last one here.
    write_csr!("pmpaddr2", page);
    write_csr!("pmpcfg0", (LOCK | NAPOT | R | W) << 16);
    check_trap("M may what a locked entry gives", traps!("lw a0, 0(a1)", at, 0), NONE, 0);
    write_csr!("pmpaddr3", (at >> 2) + 1);
    write_csr!("pmpcfg0", (LOCK | NA4) << 24);
    check("a locked entry stays", read_csr!("pmpcfg0") >> 16 & 0xFF, LOCK | NAPOT | R | W);
    write_csr!("pmpaddr2", 0);
    check("and its address", read_csr!("pmpaddr2"), page);
    write_csr!("pmpaddr0", (at >> 2) + 4);
    write_csr!("pmpcfg0", LOCK | NA4);
    check_trap("M may not what a locked entry denies", traps!("lw a0, 0(a1)", at + 16, 0), LOAD_FAULT, at + 16);
}
