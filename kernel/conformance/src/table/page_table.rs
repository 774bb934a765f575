//! RISCV_PageTable invocations that page.rs has not.

use crate::number::{Invocation::*, USER_TOP, object as o, slot};
use crate::row::System;

const SPACE: u64 = slot::VSPACE;
const V: u64 = 0x20_4000_0000;

/// Runs the table.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let mut table = || s.make(u, o::PAGE_TABLE, 0);
    let (first, inner, third) = (table(), table(), table());
    let frame = s.make(u, o::PAGE, 0);
    s.check(
        "RISCV_PageTable",
        &[
            ("Map, length 1", first, RISCVPageTableMap, &[V], &[SPACE], 7, &[]),
            ("Map, no extra cap", first, RISCVPageTableMap, &[V, 0], &[], 7, &[]),
            ("Map at the top", first, RISCVPageTableMap, &[USER_TOP, 0], &[SPACE], 1, &[0]),
            ("Map, VSpace = frame", first, RISCVPageTableMap, &[USER_TOP, 0], &[frame], 2, &[1]),
            ("Map, VSpace = null", first, RISCVPageTableMap, &[V, 0], &[slot::NULL], 2, &[1]),
            ("Map, VSpace = unmapped table", first, RISCVPageTableMap, &[V, 0], &[third], 2, &[1]),
            ("Unmap, not mapped", first, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("Map", first, RISCVPageTableMap, &[V + 0x1234, 0], &[SPACE], 0, &[]),
            ("Map a mapped one, no VSpace", first, RISCVPageTableMap, &[V, 0], &[slot::NULL], 2, &[0]),
            ("Map a root", SPACE, RISCVPageTableMap, &[V, 0], &[SPACE], 2, &[0]),
            ("Map, VSpace = inner table", inner, RISCVPageTableMap, &[V, 0], &[first], 2, &[1]),
            ("Map, VSpace = inner, at the top", inner, RISCVPageTableMap, &[USER_TOP, 0], &[first], 1, &[0]),
            ("Map the next level", inner, RISCVPageTableMap, &[V, 0], &[SPACE], 0, &[]),
            ("Map a third level", third, RISCVPageTableMap, &[V, 0], &[SPACE], 8, &[]),
            ("Map beside it", third, RISCVPageTableMap, &[V + 0x20_0000, 0], &[SPACE], 0, &[]),
            ("Unmap", third, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("Unmap the upper level", first, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("Unmap the lower, cut off", inner, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("Assign a used one", slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[inner], 0, &[]),
            ("Unmap a root", inner, RISCVPageTableUnmap, &[], &[], 9, &[]),
        ],
    );
}
