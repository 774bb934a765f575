//! Untyped_Retype (reference manual, `seL4_Untyped_Retype`).

use crate::number::{Invocation::*, ROOT_BITS, object as o, slot};
use crate::row::System;

const TABLE: &str = "Untyped_Retype";
const ROOT: u64 = slot::CNODE;

/// Runs the table.
pub fn run(s: &mut impl System) {
    let (u, device) = (s.block(), s.device());
    let free = s.fresh();
    let end = (1 << ROOT_BITS) - 2;
    s.check(
        TABLE,
        &[
            ("length 5", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free], &[ROOT], 7, &[]),
            ("no extra cap", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 1], &[], 7, &[]),
            ("length 5 and type 9", u, UntypedRetype, &[9, 0, 0, 0, free], &[ROOT], 7, &[]),
            ("type 9", u, UntypedRetype, &[9, 0, 0, 0, free, 1], &[ROOT], 1, &[0]),
            ("type 9, size 99", u, UntypedRetype, &[9, 99, 0, 0, free, 1], &[ROOT], 1, &[0]),
            ("untyped, size 39", u, UntypedRetype, &[o::UNTYPED, 39, 0, 0, free, 1], &[ROOT], 4, &[0, 0x26]),
            ("CNode, size 64", u, UntypedRetype, &[o::CNODE, 64, 0, 0, free, 1], &[ROOT], 4, &[0, 0x26]),
            ("CNode, size 34", u, UntypedRetype, &[o::CNODE, 34, 0, 0, free, 1], &[ROOT], 4, &[0, 0x26]),
            ("CNode, size 0", u, UntypedRetype, &[o::CNODE, 0, 0, 0, free, 1], &[ROOT], 1, &[1]),
            ("CNode, size 0, depth 65", u, UntypedRetype, &[o::CNODE, 0, 0, 65, free, 1], &[ROOT], 1, &[1]),
            ("untyped, size 3", u, UntypedRetype, &[o::UNTYPED, 3, 0, 0, free, 1], &[ROOT], 1, &[1]),
            ("x0 = TCB, depth 0", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 1], &[slot::TCB], 6, &[0, 2, 0]),
            ("x0 empty, depth 0", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 1], &[free], 6, &[0, 2, 0]),
            ("x0 = TCB, depth 64", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 64, free, 1], &[slot::TCB], 6, &[0, 1]),
            ("depth 65", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 65, free, 1], &[ROOT], 4, &[1, 0x40]),
            ("node = TCB slot", u, UntypedRetype, &[o::ENDPOINT, 0, 1, 64, free, 1], &[ROOT], 6, &[0, 2, 0x40]),
            ("node = empty slot", u, UntypedRetype, &[o::ENDPOINT, 0, free, 64, free, 1], &[ROOT], 6, &[0, 2, 0x40]),
            ("depth 32", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 32, free, 1], &[ROOT], 6, &[0, 4, 0x20, 0, 0x33]),
            ("offset 2^13", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, 1 << 13, 0], &[ROOT], 4, &[0, 0x1FFF]),
            ("offset -1", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, u64::MAX, 1], &[ROOT], 4, &[0, 0x1FFF]),
            ("0 objects", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 0], &[ROOT], 4, &[1, 0x100]),
            ("257 objects", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 257], &[ROOT], 4, &[1, 0x100]),
            ("257 objects at the end", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, end, 257], &[ROOT], 4, &[1, 0x100]),
            ("3 objects, 2 slots", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, end, 3], &[ROOT], 4, &[1, 2]),
            ("occupied slot", u, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, slot::TCB, 1], &[ROOT], 8, &[]),
            ("occupied, too big", u, UntypedRetype, &[o::GIGA_PAGE, 0, 0, 0, slot::TCB, 1], &[ROOT], 8, &[]),
            ("1 GiB from 4 MiB", u, UntypedRetype, &[o::GIGA_PAGE, 0, 0, 0, free, 1], &[ROOT], 10, &[0x40_0000]),
            ("TCB from device", device, UntypedRetype, &[o::TCB, 0, 0, 0, free, 1], &[ROOT], 1, &[1]),
            ("page table from device", device, UntypedRetype, &[o::PAGE_TABLE, 0, 0, 0, free, 1], &[ROOT], 1, &[1]),
            (
                "endpoint, size 999, from device",
                device,
                UntypedRetype,
                &[o::ENDPOINT, 999, 0, 0, free, 1],
                &[ROOT],
                4,
                &[0, 0x26],
            ),
        ],
    );
    devices(s, device);
    copies_and_room(s, u, free);
}

/// Device memory becomes frames and smaller untypeds, and nothing else.
fn devices(s: &mut impl System, device: u64) {
    let (small, frame, other) = (s.fresh(), s.fresh(), s.fresh());
    s.check(
        TABLE,
        &[
            ("untyped from device", device, UntypedRetype, &[o::UNTYPED, 13, 0, 0, small, 1], &[ROOT], 0, &[]),
            ("frame from device", small, UntypedRetype, &[o::PAGE, 0, 0, 0, frame, 1], &[ROOT], 0, &[]),
            ("endpoint from device", small, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, other, 1], &[ROOT], 1, &[1]),
            ("CNode from device", small, UntypedRetype, &[o::CNODE, 1, 0, 0, other, 1], &[ROOT], 1, &[1]),
            ("too much of it", small, UntypedRetype, &[o::TCB, 0, 0, 0, other, 3], &[ROOT], 10, &[0x1000]),
            ("copy of a device frame", ROOT, CNodeCopy, &[other, 64, frame, 64, 15], &[ROOT], 0, &[]),
            ("revoke the device untyped", ROOT, CNodeRevoke, &[device, 64], &[], 0, &[]),
            ("all are gone", ROOT, CNodeMove, &[small, 64, other, 64], &[ROOT], 6, &[1, 2, 0x40]),
        ],
    );
}

/// What children of an untyped do to it.
fn copies_and_room(s: &mut impl System, u: u64, free: u64) {
    let small = s.make(u, o::UNTYPED, 12);
    let (copy, child) = (s.fresh(), s.fresh());
    let frame = s.make(u, o::PAGE, 0);
    s.check(
        TABLE,
        &[
            ("copy with children", ROOT, CNodeCopy, &[free, 64, u, 64, 15], &[ROOT], 9, &[]),
            ("mint with children", ROOT, CNodeMint, &[free, 64, u, 64, 15, 0], &[ROOT], 9, &[]),
            ("copy without children", ROOT, CNodeCopy, &[copy, 64, small, 64, 15], &[ROOT], 0, &[]),
            // The copy is its child and has all of its memory.
            ("from a copied one", small, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 1], &[ROOT], 10, &[0]),
            ("from the copy", copy, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, child, 1], &[ROOT], 0, &[]),
            ("255 more", copy, UntypedRetype, &[o::ENDPOINT, 0, 0, 0, free, 255], &[frame], 6, &[0, 2, 0]),
            ("bytes left", copy, UntypedRetype, &[o::PAGE, 0, 0, 0, free, 1], &[ROOT], 10, &[0xFF0]),
            ("revoke", ROOT, CNodeRevoke, &[copy, 64], &[], 0, &[]),
            ("all of it again", copy, UntypedRetype, &[o::PAGE, 0, 0, 0, child, 1], &[ROOT], 0, &[]),
            ("none left", copy, UntypedRetype, &[o::UNTYPED, 4, 0, 0, free, 1], &[ROOT], 10, &[0]),
        ],
    );
}
