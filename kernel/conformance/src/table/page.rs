//! RISCV_Page invocations.

use crate::number::{Invocation::*, USER_TOP, object as o, slot};
use crate::row::{Outcome, System};

const ROOT: u64 = slot::CNODE;
const SPACE: u64 = slot::VSPACE;
/// Where the tables map: a gigabyte that no root task uses.
const V: u64 = 0x20_0000_0000;

/// Mapping, remapping, unmapping, and the tables that it takes.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let mut table = || s.make(u, o::PAGE_TABLE, 0);
    let (giga, mega, third, other_root) = (table(), table(), table(), table());
    let (frame, second) = (s.make(u, o::PAGE, 0), s.make(u, o::PAGE, 0));
    let (copy, table_copy, free) = (s.fresh(), s.fresh(), s.fresh());
    s.prepare(slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[other_root]);
    s.check(
        "RISCV_Page",
        &[
            ("Map, length 2", frame, RISCVPageMap, &[V, 3], &[SPACE], 7, &[]),
            ("Map, no extra cap", frame, RISCVPageMap, &[V, 3, 0], &[], 7, &[]),
            ("Map, no tables", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 6, &[0, 2, 0x1E]),
            ("table of the 1 GiB slot", giga, RISCVPageTableMap, &[V, 0], &[SPACE], 0, &[]),
            ("the same table again", giga, RISCVPageTableMap, &[V, 0], &[SPACE], 2, &[0]),
            ("Map, 2 MiB table missing", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 6, &[0, 2, 0x15]),
            ("table of the 2 MiB slot", mega, RISCVPageTableMap, &[V, 0], &[SPACE], 0, &[]),
            ("third table at the same address", third, RISCVPageTableMap, &[V, 0], &[SPACE], 8, &[]),
            ("Map unaligned", frame, RISCVPageMap, &[V + 8, 3, 0], &[SPACE], 5, &[]),
            ("Map at the top", frame, RISCVPageMap, &[USER_TOP, 3, 0], &[SPACE], 1, &[0]),
            ("Map at the top, unaligned", frame, RISCVPageMap, &[USER_TOP + 8, 3, 0], &[SPACE], 1, &[0]),
            ("Map at -1", frame, RISCVPageMap, &[u64::MAX, 3, 0], &[SPACE], 1, &[0]),
            ("Map below the top", frame, RISCVPageMap, &[USER_TOP - 0x1000, 3, 0], &[SPACE], 6, &[0, 2, 0x1E]),
            ("Map, VSpace = null", frame, RISCVPageMap, &[V, 3, 0], &[slot::NULL], 2, &[1]),
            ("Map, VSpace = frame", frame, RISCVPageMap, &[V, 3, 0], &[frame], 2, &[1]),
            ("Map, VSpace = unmapped table", frame, RISCVPageMap, &[V, 3, 0], &[third], 2, &[1]),
            ("Map, VSpace = inner table", frame, RISCVPageMap, &[V + 8, 3, 0], &[mega], 2, &[1]),
            ("Map", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 0, &[]),
            ("Map again, same place", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 0, &[]),
            ("Map again, read-only", frame, RISCVPageMap, &[V, 2, 1], &[SPACE], 0, &[]),
            ("Map again, no rights", frame, RISCVPageMap, &[V, 0, 1], &[SPACE], 0, &[]),
            ("Map again, other address", frame, RISCVPageMap, &[V + 0x1000, 3, 0], &[SPACE], 1, &[0]),
            ("Map again, other VSpace", frame, RISCVPageMap, &[V, 3, 0], &[other_root], 6, &[0, 2, 0x1E]),
            ("Map again, as before", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 0, &[]),
            ("Map second frame there", second, RISCVPageMap, &[V, 3, 0], &[SPACE], 8, &[]),
            ("table over a page", third, RISCVPageTableMap, &[V, 0], &[SPACE], 8, &[]),
            ("Unmap the root", SPACE, RISCVPageTableUnmap, &[], &[], 9, &[]),
            ("Copy mapped table", ROOT, CNodeCopy, &[table_copy, 64, mega, 64, 15], &[ROOT], 0, &[]),
            ("Unmap a table with a copy", mega, RISCVPageTableUnmap, &[], &[], 9, &[]),
            ("Copy unmapped table", ROOT, CNodeCopy, &[free, 64, third, 64, 15], &[ROOT], 3, &[]),
            ("Copy mapped frame", ROOT, CNodeCopy, &[copy, 64, frame, 64, 15], &[ROOT], 0, &[]),
            ("Map the copy elsewhere", copy, RISCVPageMap, &[V + 0x1000, 3, 0], &[SPACE], 0, &[]),
            ("delete the table's copy", ROOT, CNodeDelete, &[table_copy, 64], &[], 0, &[]),
            ("Unmap the table", mega, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("Unmap it again", mega, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("Map, recorded, table gone", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 6, &[0, 2, 0x15]),
            ("Unmap", frame, RISCVPageUnmap, &[], &[], 0, &[]),
            ("Unmap again", frame, RISCVPageUnmap, &[], &[], 0, &[]),
        ],
    );
    other_space(s, u, frame, mega, other_root);
}

/// A frame that is mapped in one address space cannot be mapped in a second one.
fn other_space(s: &mut impl System, u: u64, frame: u64, mega: u64, other: u64) {
    let tables = [s.make(u, o::PAGE_TABLE, 0), s.make(u, o::PAGE_TABLE, 0)];
    for table in tables {
        s.prepare(table, RISCVPageTableMap, &[V, 0], &[other]);
    }
    s.check(
        "RISCV_Page",
        &[
            ("table again", mega, RISCVPageTableMap, &[V, 0], &[SPACE], 0, &[]),
            ("Map there", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 0, &[]),
            ("Map in another VSpace", frame, RISCVPageMap, &[V, 3, 0], &[other], 2, &[1]),
            ("the same, other address", frame, RISCVPageMap, &[V + 0x1000, 3, 0], &[other], 2, &[1]),
            ("Unmap", frame, RISCVPageUnmap, &[], &[], 0, &[]),
            ("Map in the other VSpace", frame, RISCVPageMap, &[V, 3, 0], &[other], 0, &[]),
        ],
    );
}

/// Pages of 2 MiB, and addresses.
pub fn sizes(s: &mut impl System) {
    let u = s.block();
    let large = s.make(u, o::MEGA_PAGE, 0);
    let (giga, mega) = (s.make(u, o::PAGE_TABLE, 0), s.make(u, o::PAGE_TABLE, 0));
    let (frame, next) = (s.make(u, o::PAGE, 0), s.make(u, o::PAGE, 0));
    s.check(
        "pages of 2 MiB",
        &[
            ("no table", large, RISCVPageMap, &[V, 3, 0], &[SPACE], 6, &[0, 2, 0x1E]),
            ("table of the 1 GiB slot", giga, RISCVPageTableMap, &[V, 0], &[SPACE], 0, &[]),
            ("aligned to 4 KiB only", large, RISCVPageMap, &[V + 0x1000, 3, 0], &[SPACE], 5, &[]),
            ("end beyond the top", large, RISCVPageMap, &[USER_TOP & !0x1F_FFFF, 3, 0], &[SPACE], 1, &[0]),
            ("Map", large, RISCVPageMap, &[V, 3, 0], &[SPACE], 0, &[]),
            ("table over it", mega, RISCVPageTableMap, &[V, 0], &[SPACE], 8, &[]),
            ("small page over it", frame, RISCVPageMap, &[V, 3, 0], &[SPACE], 6, &[0, 2, 0x15]),
            ("Unmap", large, RISCVPageUnmap, &[], &[], 0, &[]),
            ("table of the 2 MiB slot", mega, RISCVPageTableMap, &[V, 0], &[SPACE], 0, &[]),
            ("Map over a table", large, RISCVPageMap, &[V, 3, 0], &[SPACE], 6, &[0, 2, 0xC]),
        ],
    );
    let (first, second) =
        (s.invoke(frame, RISCVPageGetAddress, &[], &[]), s.invoke(next, RISCVPageGetAddress, &[], &[]));
    let expected = [first.words[0] + 0x1000];
    let got = (second.error, second.words());
    s.report(&Outcome { table: "RISCV_Page", row: "GetAddress of the next frame", expected: (0, &expected), got });
}
