//! CNode invocations, and the addresses of slots.

use crate::number::{Invocation::*, object as o, rights, slot};
use crate::row::System;

const ROOT: u64 = slot::CNODE;

/// All of them but Rotate.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let (free, badged, read_only) = (s.fresh(), s.fresh(), s.fresh());
    let (empty, moved) = (s.fresh(), s.fresh());
    let ep = s.make(u, o::ENDPOINT, 0);
    let full = s.copy(ep, rights::ALL);
    let no_grant = s.copy(ep, rights::READ_WRITE);
    s.check(
        "slot addresses",
        &[
            ("depth 0", ROOT, CNodeDelete, &[free, 0], &[], 4, &[1, 0x40]),
            ("depth 65", ROOT, CNodeDelete, &[free, 65], &[], 4, &[1, 0x40]),
            ("depth 63", ROOT, CNodeDelete, &[free, 63], &[], 6, &[0, 3, 0x3F, 0x40]),
            ("depth 13", ROOT, CNodeDelete, &[free, 13], &[], 6, &[0, 4, 0xD, 0, 0x33]),
            ("depth 1", ROOT, CNodeDelete, &[free, 1], &[], 6, &[0, 4, 1, 0, 0x33]),
            ("bit 40 set", ROOT, CNodeDelete, &[1 << 40, 64], &[], 6, &[0, 4, 0x40, 0, 0x33]),
        ],
    );
    for invocation in [CNodeRevoke, CNodeDelete, CNodeCancelBadgedSends, CNodeSaveCaller] {
        s.check(
            "CNode",
            &[
                ("length 0", ROOT, invocation, &[], &[], 7, &[]),
                ("length 1", ROOT, invocation, &[free], &[], 7, &[]),
                ("depth 0", ROOT, invocation, &[free, 0], &[], 4, &[1, 0x40]),
                ("bit 40 set", ROOT, invocation, &[1 << 40, 64], &[], 6, &[0, 4, 0x40, 0, 0x33]),
            ],
        );
    }
    for (invocation, length) in [(CNodeCopy, 5), (CNodeMint, 6), (CNodeMove, 4), (CNodeMutate, 5)] {
        let words = [free, 64, ep, 64, 15, 0];
        let with = |index: usize, word: u64| {
            let mut words = words;
            words[index] = word;
            words
        };
        s.check(
            "CNode transfers",
            &[
                ("length 1", ROOT, invocation, &words[..1], &[ROOT], 7, &[]),
                ("length 3", ROOT, invocation, &words[..3], &[ROOT], 7, &[]),
                ("no extra cap", ROOT, invocation, &words[..length], &[], 7, &[]),
                ("destination depth 65", ROOT, invocation, &with(1, 65)[..length], &[], 4, &[1, 0x40]),
                ("onto occupied slot", ROOT, invocation, &with(0, slot::TCB)[..length], &[ROOT], 8, &[]),
                ("occupied, no source", ROOT, invocation, &[ep, 64, empty, 99], &[ROOT], 8, &[]),
                ("source root = TCB", ROOT, invocation, &words[..length], &[slot::TCB], 6, &[1, 1]),
                ("source depth 0", ROOT, invocation, &with(3, 0)[..length], &[ROOT], 4, &[1, 0x40]),
                ("source depth 63", ROOT, invocation, &with(3, 63)[..length], &[ROOT], 6, &[1, 3, 0x3F, 0x40]),
                ("from empty slot", ROOT, invocation, &with(2, empty)[..length], &[ROOT], 6, &[1, 2, 0x40]),
                ("empty, length 4", ROOT, invocation, &with(2, empty)[..4], &[ROOT], 6, &[1, 2, 0x40]),
            ],
        );
        if length > 4 {
            s.check("CNode transfers", &[("one word short", ROOT, invocation, &words[..length - 1], &[ROOT], 7, &[])]);
        }
    }
    s.check(
        "CNode",
        &[
            ("Mint badge 0x77", ROOT, CNodeMint, &[badged, 64, ep, 64, 15, 0x77], &[ROOT], 0, &[]),
            ("Mint from the badged", ROOT, CNodeMint, &[free, 64, badged, 64, 15, 0x78], &[ROOT], 3, &[]),
            ("Mint the same badge", ROOT, CNodeMint, &[free, 64, badged, 64, 15, 0x77], &[ROOT], 3, &[]),
            ("Mutate endpoint", ROOT, CNodeMutate, &[free, 64, full, 64, 0], &[ROOT], 3, &[]),
            ("Copy IRQ control", ROOT, CNodeCopy, &[free, 64, slot::IRQ_CONTROL, 64, 15], &[ROOT], 3, &[]),
            ("Mint IRQ control", ROOT, CNodeMint, &[free, 64, slot::IRQ_CONTROL, 64, 15, 0], &[ROOT], 3, &[]),
            ("Copy, rights = Read", ROOT, CNodeCopy, &[read_only, 64, ep, 64, 2], &[ROOT], 0, &[]),
            ("Call through it", read_only, Unknown, &[], &[], 2, &[0]),
            ("CancelBadgedSends on it", ROOT, CNodeCancelBadgedSends, &[read_only, 64], &[], 3, &[]),
            ("CancelBadgedSends without Grant", ROOT, CNodeCancelBadgedSends, &[no_grant, 64], &[], 3, &[]),
            ("CancelBadgedSends, full rights", ROOT, CNodeCancelBadgedSends, &[full, 64], &[], 0, &[]),
            ("CancelBadgedSends, badged", ROOT, CNodeCancelBadgedSends, &[badged, 64], &[], 0, &[]),
            ("CancelBadgedSends on TCB", ROOT, CNodeCancelBadgedSends, &[slot::TCB, 64], &[], 3, &[]),
            ("CancelBadgedSends, empty", ROOT, CNodeCancelBadgedSends, &[empty, 64], &[], 3, &[]),
            ("SaveCaller onto occupied", ROOT, CNodeSaveCaller, &[slot::TCB, 64], &[], 8, &[]),
            ("SaveCaller, no reply cap", ROOT, CNodeSaveCaller, &[free, 64], &[], 0, &[]),
            ("Move", ROOT, CNodeMove, &[moved, 64, full, 64], &[ROOT], 0, &[]),
            ("Move again", ROOT, CNodeMove, &[free, 64, full, 64], &[ROOT], 6, &[1, 2, 0x40]),
            ("Move IRQ control", ROOT, CNodeMove, &[free, 64, slot::IRQ_CONTROL, 64], &[ROOT], 0, &[]),
            ("Move it back", ROOT, CNodeMove, &[slot::IRQ_CONTROL, 64, free, 64], &[ROOT], 0, &[]),
            ("Revoke", ROOT, CNodeRevoke, &[ep, 64], &[], 0, &[]),
            ("the badged one is gone", badged, Unknown, &[], &[], 2, &[0]),
            ("Revoke empty slot", ROOT, CNodeRevoke, &[empty, 64], &[], 0, &[]),
            ("Delete empty slot", ROOT, CNodeDelete, &[empty, 64], &[], 0, &[]),
            ("Delete", ROOT, CNodeDelete, &[ep, 64], &[], 0, &[]),
            ("Delete again", ROOT, CNodeDelete, &[ep, 64], &[], 0, &[]),
        ],
    );
}

/// CNode_Rotate.
pub fn rotate(s: &mut impl System) {
    let u = s.block();
    let (free, empty) = (s.fresh(), s.fresh());
    let (ep, other) = (s.make(u, o::ENDPOINT, 0), s.make(u, o::ENDPOINT, 0));
    let (cnode, second) = (s.make(u, o::CNODE, 4), s.make(u, o::CNODE, 4));
    let (both, guard) = ([ROOT, ROOT], 5 << 6 | 60);
    let rotate = CNodeRotate;
    s.check(
        "CNode_Rotate",
        &[
            ("length 7", ROOT, rotate, &[free, 64, 0, ep, 64, 0, other], &both, 7, &[]),
            ("one extra cap", ROOT, rotate, &[free, 64, 0, ep, 64, 0, other, 64], &[ROOT], 7, &[]),
            ("source root = TCB", ROOT, rotate, &[free, 64, 0, ep, 0, 0, other, 64], &[ROOT, slot::TCB], 6, &[1, 1]),
            ("source depth 65", ROOT, rotate, &[free, 64, 0, ep, 64, 0, other, 65], &both, 4, &[1, 0x40]),
            ("pivot depth 63", ROOT, rotate, &[free, 64, 0, ep, 63, 0, other, 64], &both, 6, &[1, 3, 0x3F, 0x40]),
            ("pivot = source", ROOT, rotate, &[free, 64, 0, ep, 64, 0, ep, 64], &both, 3, &[]),
            ("pivot = destination", ROOT, rotate, &[free, 64, 0, free, 64, 0, ep, 64], &both, 3, &[]),
            ("destination occupied", ROOT, rotate, &[slot::TCB, 64, 0, ep, 64, 0, empty, 64], &both, 8, &[]),
            ("source empty", ROOT, rotate, &[free, 64, 0, ep, 64, 0, empty, 64], &both, 6, &[1, 2, 0x40]),
            ("pivot empty", ROOT, rotate, &[free, 64, 0, empty, 64, 0, ep, 64], &both, 6, &[0, 2, 0x40]),
            ("two endpoints", ROOT, rotate, &[free, 64, 0, ep, 64, 0, other, 64], &both, 3, &[]),
            ("guard too long for the source", ROOT, rotate, &[free, 64, 0, cnode, 64, 61, second, 64], &both, 3, &[]),
            ("guard too long for the pivot", ROOT, rotate, &[free, 64, 61, cnode, 64, 0, second, 64], &both, 3, &[]),
            // Pivot goes to the destination with the first data word, source to the pivot's slot with the second.
            ("two CNodes", ROOT, rotate, &[free, 64, guard, cnode, 64, 0, second, 64], &both, 0, &[]),
            ("the pivot has its guard", free, CNodeDelete, &[5 << 4 | 3, 64], &[], 0, &[]),
            ("the source has none", cnode, CNodeDelete, &[3, 4], &[], 0, &[]),
            ("the source's slot is empty", second, CNodeDelete, &[3, 4], &[], 2, &[0]),
            ("swap", ROOT, rotate, &[free, 64, 0, cnode, 64, guard, free, 64], &both, 0, &[]),
            ("the source has the guard now", cnode, CNodeDelete, &[5 << 4 | 3, 64], &[], 0, &[]),
            ("the pivot has none", free, CNodeDelete, &[3, 4], &[], 0, &[]),
        ],
    );
}

/// Guards, and paths through two CNodes.
pub fn guards(s: &mut impl System) {
    let u = s.block();
    let (guarded, free, inner) = (s.fresh(), s.fresh(), s.fresh());
    let cnode = s.make(u, o::CNODE, 4);
    s.check(
        "guards",
        &[
            (
                "Mint radix 4, guard 60 bits",
                ROOT,
                CNodeMint,
                &[guarded, 64, cnode, 64, 15, 5 << 6 | 60],
                &[ROOT],
                0,
                &[],
            ),
            ("Mint radix 4, guard 61 bits", ROOT, CNodeMint, &[free, 64, cnode, 64, 15, 5 << 6 | 61], &[ROOT], 3, &[]),
            ("Mutate, guard 61 bits", ROOT, CNodeMutate, &[free, 64, cnode, 64, 61], &[ROOT], 3, &[]),
            ("Delete through the guard", guarded, CNodeDelete, &[5 << 4 | 3, 64], &[], 0, &[]),
            ("Delete, wrong guard", guarded, CNodeDelete, &[6 << 4 | 3, 64], &[], 6, &[0, 4, 0x40, 5, 0x3C]),
            ("Delete, radix only", cnode, CNodeDelete, &[3, 4], &[], 0, &[]),
            ("Delete, radix too large", cnode, CNodeDelete, &[3, 3], &[], 6, &[0, 3, 3, 4]),
            ("bits left in an empty slot", cnode, CNodeDelete, &[0x30, 8], &[], 6, &[0, 3, 4, 0]),
            ("put it into itself", cnode, CNodeCopy, &[2, 4, cnode, 64, 15], &[ROOT], 0, &[]),
            ("path of two", cnode, CNodeCopy, &[0x23, 8, slot::TCB, 64, 15], &[ROOT], 0, &[]),
            ("the same slot, path of one", cnode, CNodeCopy, &[3, 4, slot::TCB, 64, 15], &[ROOT], 8, &[]),
            ("bits left on a TCB", cnode, CNodeDelete, &[0x30, 8], &[], 6, &[0, 3, 4, 0]),
            ("bits left below a path", cnode, CNodeDelete, &[0x230, 12], &[], 6, &[0, 3, 4, 0]),
            ("Mutate to 4 + 4 bits", ROOT, CNodeMutate, &[inner, 64, guarded, 64, 9 << 6 | 4], &[ROOT], 0, &[]),
            ("its path", inner, CNodeDelete, &[0x93, 8], &[], 0, &[]),
            ("guard of a short path", inner, CNodeDelete, &[0x9, 3], &[], 6, &[0, 4, 3, 9, 4]),
            ("path too short behind the guard", inner, CNodeDelete, &[0x9 << 3, 7], &[], 6, &[0, 3, 7, 8]),
        ],
    );
}
