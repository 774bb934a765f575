//! ASID control and ASID pools.

use crate::number::{Invocation::*, object as o, slot};
use crate::row::System;

const ROOT: u64 = slot::CNODE;
const CONTROL: u64 = slot::ASID_CONTROL;
/// Pools that there are (`seL4_NumASIDPoolsBits` = 7); the root task has the first.
const POOLS: usize = 128;

/// Runs the table.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let (block, big) = (s.make(u, o::UNTYPED, 12), s.make(u, o::UNTYPED, 13));
    let (pool, free) = (s.fresh(), s.fresh());
    let (root, inner, frame) = (s.make(u, o::PAGE_TABLE, 0), s.make(u, o::PAGE_TABLE, 0), s.make(u, o::PAGE, 0));
    let device = s.device();
    let device_block = s.make(device, o::UNTYPED, 12);
    let (make, assign) = (RISCVASIDControlMakePool, RISCVASIDPoolAssign);
    s.check(
        "RISCV_ASIDControl",
        &[
            ("length 1", CONTROL, make, &[pool], &[block, ROOT], 7, &[]),
            ("1 extra cap", CONTROL, make, &[pool, 64], &[block], 7, &[]),
            ("13-bit untyped", CONTROL, make, &[pool, 64], &[big, ROOT], 2, &[1]),
            ("device untyped", CONTROL, make, &[pool, 64], &[device_block, ROOT], 2, &[1]),
            ("a frame", CONTROL, make, &[pool, 65], &[frame, ROOT], 2, &[1]),
            ("root = TCB", CONTROL, make, &[pool, 64], &[block, slot::TCB], 6, &[0, 1]),
            ("depth 65", CONTROL, make, &[pool, 65], &[block, ROOT], 4, &[1, 0x40]),
            ("destination occupied", CONTROL, make, &[slot::TCB, 64], &[block, ROOT], 8, &[]),
            ("MakePool", CONTROL, make, &[pool, 64], &[block, ROOT], 0, &[]),
            ("from used untyped", CONTROL, make, &[slot::TCB, 65], &[block, ROOT], 9, &[]),
            ("Retype the untyped", block, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 1], &[ROOT], 10, &[0]),
        ],
    );
    s.check(
        "RISCV_ASIDPool",
        &[
            ("Assign, no extra cap", pool, assign, &[], &[], 7, &[]),
            ("Assign frame", pool, assign, &[], &[frame], 2, &[1]),
            ("Assign null", pool, assign, &[], &[slot::NULL], 2, &[1]),
            ("Assign", pool, assign, &[], &[root], 0, &[]),
            ("Assign again", pool, assign, &[], &[root], 2, &[1]),
            ("Assign elsewhere", slot::ASID_POOL, assign, &[], &[root], 2, &[1]),
            ("PageTableMap there", inner, RISCVPageTableMap, &[0x1000_0000, 0], &[root], 0, &[]),
            ("Assign an inner table", pool, assign, &[], &[inner], 2, &[1]),
            ("PageTableUnmap", inner, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("delete the pool", ROOT, CNodeDelete, &[pool, 64], &[], 0, &[]),
            ("PageTableMap, pool deleted", inner, RISCVPageTableMap, &[0x1000_0000, 0], &[root], 6, &[0, 1]),
            ("PageMap, pool deleted", frame, RISCVPageMap, &[0x1000_0000, 3, 0], &[root], 6, &[0, 1]),
            ("Assign a table that lost its pool", slot::ASID_POOL, assign, &[], &[root], 2, &[1]),
        ],
    );
    s.prepare(ROOT, CNodeDelete, &[device_block, 64], &[]);
    full_pool(s);
    full(s);
}

/// ASIDs of a pool (`seL4_ASIDPoolIndexBits` = 9).
const ASIDS: u64 = 512;

/// All ASIDs of a pool in use.
fn full_pool(s: &mut impl System) {
    let u = s.block();
    let (block, pool) = (s.make(u, o::UNTYPED, 12), s.fresh());
    s.prepare(CONTROL, RISCVASIDControlMakePool, &[pool, 64], &[block, ROOT]);
    // One more than there is room for, in consecutive slots.
    let first = s.fresh();
    (0..ASIDS).for_each(|_| assert!(s.fresh() > first, "slots are handed out in order"));
    for (offset, count) in [(0, 256), (256, 256), (512, 1)] {
        s.prepare(u, UntypedRetype, &[o::PAGE_TABLE, 0, 0, 0, first + offset, count], &[ROOT]);
    }
    (first..first + ASIDS).for_each(|table| s.prepare(pool, RISCVASIDPoolAssign, &[], &[table]));
    let last = first + ASIDS;
    s.check(
        "RISCV_ASIDPool",
        &[
            ("no ASID left", pool, RISCVASIDPoolAssign, &[], &[last], 8, &[]),
            ("no ASID left, used table", pool, RISCVASIDPoolAssign, &[], &[first], 2, &[1]),
            ("delete one address space", ROOT, CNodeDelete, &[first + 7, 64], &[], 0, &[]),
            ("its ASID is free", pool, RISCVASIDPoolAssign, &[], &[last], 0, &[]),
        ],
    );
}

/// All pools in use.
fn full(s: &mut impl System) {
    let u = s.block();
    for _ in 1..POOLS {
        let (block, pool) = (s.make(u, o::UNTYPED, 12), s.fresh());
        s.prepare(CONTROL, RISCVASIDControlMakePool, &[pool, 64], &[block, ROOT]);
    }
    let rows: &[_] = &[
        ("no pool left", CONTROL, RISCVASIDControlMakePool, &[0, 65][..], &[slot::TCB, ROOT][..], 8, &[][..]),
        ("no pool left, 1 extra cap", CONTROL, RISCVASIDControlMakePool, &[0, 65], &[slot::TCB], 7, &[]),
    ];
    s.check("RISCV_ASIDControl", rows);
}
