//! Refusals: per object one table of bad argument and expected answer. The answers are those that seL4 16.0.0 gives (release build of
//! its own kernel, UP, root CNode of 13 bits with guard size 51, interrupts of qemu-riscv-virt).

use abi::bootinfo::slot;
use abi::label::Label::{self, *};
use abi::object::{self as ty};
use abi::rights::Rights;

use super::world::{DEVICE_UNTYPED, UNTYPED, World};

const ROOT: u64 = slot::CNODE;

/// Slots of one object of each kind.
struct Things {
    endpoint: u64,
    tcb: u64,
    cnode: u64,
    frame: u64,
    notification: u64,
    table: u64,
}

fn world() -> (World, Things) {
    let mut w = World::new();
    let things = Things {
        endpoint: w.make(ty::ENDPOINT, 0),
        tcb: w.make(ty::TCB, 0),
        cnode: w.make(ty::CNODE, 4),
        frame: w.make(ty::PAGE_4K, 0),
        notification: w.make(ty::NOTIFICATION, 0),
        table: w.make(ty::PAGE_TABLE, 0),
    };
    (w, things)
}

/// One row: what is called, with what, and the error with its words.
type Row<'a> = (&'a str, u64, Label, &'a [u64], &'a [u64], u64, &'a [u64]);

fn check(w: &mut World, rows: &[Row<'_>]) {
    for &(name, cptr, label, words, caps, error, expected) in rows {
        assert_eq!(w.invoke(cptr, label, words, caps), (error, expected.to_vec()), "{name}");
    }
}

#[test]
fn wrong_labels() {
    let (mut w, t) = world();
    let handler = w.fresh();
    w.ok(slot::IRQ_CONTROL, IRQIssueIRQHandler, &[10, handler, 64], &[ROOT]);
    for cptr in [0, 7, 500] {
        assert_eq!(w.call(cptr, 99, &[], &[]), (2, vec![0]), "empty slot {cptr}");
    }
    let objects = [
        t.tcb,
        t.cnode,
        UNTYPED,
        slot::IRQ_CONTROL,
        slot::ASID_CONTROL,
        slot::ASID_POOL,
        t.frame,
        t.table,
        slot::DOMAIN,
        handler,
    ];
    for cptr in objects {
        for label in [0, 99, u64::MAX >> 12] {
            assert_eq!(w.call(cptr, label, &[0; 8], &[]), (3, vec![]), "label {label} on {cptr}");
        }
    }
}

#[test]
fn retype() {
    let (mut w, t) = world();
    let free = w.fresh();
    let small = w.make(ty::UNTYPED, 20);
    // The big untyped has children; a fresh one of 4 MiB shows the number of bytes left.
    check(
        &mut w,
        &[
            ("length 5", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, free], &[ROOT], 7, &[]),
            ("no extra cap", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, free, 1], &[], 7, &[]),
            ("type 9", UNTYPED, UntypedRetype, &[9, 0, 0, 0, free, 1], &[ROOT], 1, &[0]),
            ("untyped, size 39", UNTYPED, UntypedRetype, &[ty::UNTYPED, 39, 0, 0, free, 1], &[ROOT], 4, &[0, 0x26]),
            ("CNode, size 64", UNTYPED, UntypedRetype, &[ty::CNODE, 64, 0, 0, free, 1], &[ROOT], 4, &[0, 0x26]),
            ("CNode, size 0", UNTYPED, UntypedRetype, &[ty::CNODE, 0, 0, 0, free, 1], &[ROOT], 1, &[1]),
            ("untyped, size 3", UNTYPED, UntypedRetype, &[ty::UNTYPED, 3, 0, 0, free, 1], &[ROOT], 1, &[1]),
            ("x0 = TCB, depth 0", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, free, 1], &[t.tcb], 6, &[0, 2, 0]),
            ("depth 65", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 65, free, 1], &[ROOT], 4, &[1, 0x40]),
            (
                "node = TCB slot",
                UNTYPED,
                UntypedRetype,
                &[ty::ENDPOINT, 0, t.tcb, 64, free, 1],
                &[ROOT],
                6,
                &[0, 2, 0x40],
            ),
            (
                "depth 32",
                UNTYPED,
                UntypedRetype,
                &[ty::ENDPOINT, 0, 0, 32, free, 1],
                &[ROOT],
                6,
                &[0, 4, 0x20, 0, 0x33],
            ),
            ("offset 2^13", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, 1 << 13, 1], &[ROOT], 4, &[0, 0x1FFF]),
            ("0 objects", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, free, 0], &[ROOT], 4, &[1, 0x100]),
            ("257 objects", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, free, 257], &[ROOT], 4, &[1, 0x100]),
            (
                "too near the end",
                UNTYPED,
                UntypedRetype,
                &[ty::ENDPOINT, 0, 0, 0, (1 << 13) - 2, 3],
                &[ROOT],
                4,
                &[1, 2],
            ),
            ("occupied", UNTYPED, UntypedRetype, &[ty::ENDPOINT, 0, 0, 0, t.tcb, 1], &[ROOT], 8, &[]),
            ("1 GiB", small, UntypedRetype, &[ty::GIGA_PAGE, 0, 0, 0, free, 1], &[ROOT], 10, &[1 << 20]),
            ("device TCB", DEVICE_UNTYPED, UntypedRetype, &[ty::TCB, 0, 0, 0, free, 1], &[ROOT], 1, &[1]),
            (
                "endpoint, size 999",
                DEVICE_UNTYPED,
                UntypedRetype,
                &[ty::ENDPOINT, 999, 0, 0, free, 1],
                &[ROOT],
                4,
                &[0, 0x26],
            ),
            ("copy with children", ROOT, CNodeCopy, &[free, 64, UNTYPED, 64, 15], &[ROOT], 9, &[]),
        ],
    );
}

#[test]
fn cnode_operations() {
    let (mut w, t) = world();
    let (free, badged, read_only) = (w.fresh(), w.fresh(), w.fresh());
    let full = w.copy(t.endpoint, Rights::ALL);
    let guarded = w.fresh();
    check(
        &mut w,
        &[
            ("Delete, depth 0", ROOT, CNodeDelete, &[free, 0], &[], 4, &[1, 0x40]),
            ("Delete, depth 65", ROOT, CNodeDelete, &[free, 65], &[], 4, &[1, 0x40]),
            ("Delete, depth 63", ROOT, CNodeDelete, &[free, 63], &[], 6, &[0, 3, 0x3F, 0x40]),
            ("Delete, depth 13", ROOT, CNodeDelete, &[free, 13], &[], 6, &[0, 4, 0xD, 0, 0x33]),
            ("Delete, bit 40", ROOT, CNodeDelete, &[1 << 40, 64], &[], 6, &[0, 4, 0x40, 0, 0x33]),
            ("Delete, length 1", ROOT, CNodeDelete, &[free], &[], 7, &[]),
            ("Copy from empty", ROOT, CNodeCopy, &[free, 64, 4000, 64, 15], &[ROOT], 6, &[1, 2, 0x40]),
            ("Copy onto occupied", ROOT, CNodeCopy, &[t.tcb, 64, t.endpoint, 64, 15], &[ROOT], 8, &[]),
            ("Copy, source root = TCB", ROOT, CNodeCopy, &[free, 64, t.endpoint, 64, 15], &[t.tcb], 6, &[1, 1]),
            ("Copy, length 4", ROOT, CNodeCopy, &[free, 64, t.endpoint, 64], &[ROOT], 7, &[]),
            ("Copy, no extra cap", ROOT, CNodeCopy, &[free, 64, t.endpoint, 64, 15], &[], 7, &[]),
            ("Mint", ROOT, CNodeMint, &[badged, 64, t.endpoint, 64, 15, 0x77], &[ROOT], 0, &[]),
            ("Mint from the badged", ROOT, CNodeMint, &[free, 64, badged, 64, 15, 0x78], &[ROOT], 3, &[]),
            ("Mutate endpoint", ROOT, CNodeMutate, &[free, 64, full, 64, 0], &[ROOT], 3, &[]),
            ("Copy IRQ control", ROOT, CNodeCopy, &[free, 64, slot::IRQ_CONTROL, 64, 15], &[ROOT], 3, &[]),
            ("Copy read-only", ROOT, CNodeCopy, &[read_only, 64, t.endpoint, 64, 2], &[ROOT], 0, &[]),
            ("Call through read-only", read_only, CNodeCopy, &[], &[], 2, &[0]),
            ("Cancel on read-only", ROOT, CNodeCancelBadgedSends, &[read_only, 64], &[], 3, &[]),
            ("Cancel on full rights", ROOT, CNodeCancelBadgedSends, &[full, 64], &[], 0, &[]),
            ("Cancel on TCB", ROOT, CNodeCancelBadgedSends, &[t.tcb, 64], &[], 3, &[]),
            ("SaveCaller onto occupied", ROOT, CNodeSaveCaller, &[t.tcb, 64], &[], 8, &[]),
            ("SaveCaller without caller", ROOT, CNodeSaveCaller, &[free, 64], &[], 0, &[]),
            ("Rotate, pivot = source", ROOT, CNodeRotate, &[free, 64, 0, full, 64, 0, full, 64], &[ROOT, ROOT], 3, &[]),
            (
                "Rotate, pivot empty",
                ROOT,
                CNodeRotate,
                &[free, 64, 0, 4000, 64, 0, full, 64],
                &[ROOT, ROOT],
                6,
                &[0, 2, 0x40],
            ),
            (
                "Rotate, source empty",
                ROOT,
                CNodeRotate,
                &[free, 64, 0, full, 64, 0, 4000, 64],
                &[ROOT, ROOT],
                6,
                &[1, 2, 0x40],
            ),
            ("Rotate endpoints", ROOT, CNodeRotate, &[free, 64, 0, full, 64, 0, badged, 64], &[ROOT, ROOT], 3, &[]),
            ("Mint guard 60", ROOT, CNodeMint, &[guarded, 64, t.cnode, 64, 15, 5 << 6 | 60], &[ROOT], 0, &[]),
            ("Mint guard 61", ROOT, CNodeMint, &[free, 64, t.cnode, 64, 15, 5 << 6 | 61], &[ROOT], 3, &[]),
            ("Delete through the guard", guarded, CNodeDelete, &[5 << 4 | 3, 64], &[], 0, &[]),
            ("Delete, wrong guard", guarded, CNodeDelete, &[6 << 4 | 3, 64], &[], 6, &[0, 4, 0x40, 5, 0x3C]),
            ("Revoke", ROOT, CNodeRevoke, &[t.endpoint, 64], &[], 0, &[]),
            ("Delete empty", ROOT, CNodeDelete, &[free, 64], &[], 0, &[]),
        ],
    );
}

#[test]
fn tcb() {
    let (mut w, t) = world();
    let other = w.make(ty::TCB, 0);
    let authority = w.make(ty::TCB, 0);
    w.ok(authority, TCBSetMCPriority, &[5], &[slot::TCB]);
    let second = w.make(ty::NOTIFICATION, 0);
    let cspace = 51;
    check(
        &mut w,
        &[
            ("Read self", slot::TCB, TCBReadRegisters, &[0, 2], &[], 3, &[]),
            ("Read count 0", t.tcb, TCBReadRegisters, &[0, 0], &[], 4, &[1, 0x20]),
            ("Read count 33", t.tcb, TCBReadRegisters, &[0, 33], &[], 4, &[1, 0x20]),
            ("Write length 4, count 5", t.tcb, TCBWriteRegisters, &[0, 5, 0, 0], &[], 7, &[]),
            ("Copy from endpoint", t.tcb, TCBCopyRegisters, &[0], &[t.endpoint], 2, &[1]),
            ("Copy, no cap", t.tcb, TCBCopyRegisters, &[0], &[], 7, &[]),
            ("SetPriority 256", t.tcb, TCBSetPriority, &[256], &[slot::TCB], 4, &[0, 0xFF]),
            ("SetPriority by endpoint", t.tcb, TCBSetPriority, &[1], &[t.endpoint], 2, &[1]),
            ("SetPriority, no cap", t.tcb, TCBSetPriority, &[1], &[], 7, &[]),
            ("SetSchedParams 255, 256", t.tcb, TCBSetSchedParams, &[255, 256], &[slot::TCB], 4, &[0, 0xFF]),
            ("SetPriority above MCP", t.tcb, TCBSetPriority, &[6], &[authority], 4, &[0, 5]),
            ("Configure, null CSpace", t.tcb, TCBConfigure, &[0, cspace, 0, 0], &[0, 3, 0], 3, &[]),
            ("Configure, null VSpace", t.tcb, TCBConfigure, &[0, cspace, 0, 0], &[ROOT, 0, 0], 3, &[]),
            ("Configure, 2 caps", t.tcb, TCBConfigure, &[0, cspace, 0, 0], &[ROOT, 3], 7, &[]),
            ("Configure, no frame", t.tcb, TCBConfigure, &[0, cspace, 0, 0x1000], &[ROOT, 3, t.tcb], 3, &[]),
            ("Configure, 0x1200", t.tcb, TCBConfigure, &[0, cspace, 0, 0x1200], &[ROOT, 3, t.frame], 5, &[]),
            ("Configure, unmapped table", t.tcb, TCBConfigure, &[0, cspace, 0, 0], &[ROOT, t.table, 0], 3, &[]),
            ("Configure, guard 52", t.tcb, TCBConfigure, &[0, 52, 0, 0], &[ROOT, 3, 0], 3, &[]),
            ("Bind", t.tcb, TCBBindNotification, &[], &[t.notification], 0, &[]),
            ("Bind twice", t.tcb, TCBBindNotification, &[], &[second], 3, &[]),
            ("Bind endpoint", other, TCBBindNotification, &[], &[t.endpoint], 3, &[]),
            ("Bind bound notification", other, TCBBindNotification, &[], &[t.notification], 3, &[]),
            ("Unbind unbound", other, TCBUnbindNotification, &[], &[], 3, &[]),
            ("Bind, no cap", other, TCBBindNotification, &[], &[], 7, &[]),
            ("SetTLSBase, length 0", t.tcb, TCBSetTLSBase, &[], &[], 7, &[]),
            ("SetFlags 0, 1", t.tcb, TCBSetFlags, &[0, 1], &[], 0, &[1]),
            ("SetFlags 0, 0xFF", t.tcb, TCBSetFlags, &[0, 0xFF], &[], 0, &[1]),
            ("SetFlags 1, 0", t.tcb, TCBSetFlags, &[1, 0], &[], 0, &[0]),
            ("SetFlags, length 1", t.tcb, TCBSetFlags, &[1], &[], 7, &[]),
            ("Suspend inactive", t.tcb, TCBSuspend, &[], &[], 0, &[]),
            ("SetIPCBuffer 0x1001", t.tcb, TCBSetIPCBuffer, &[0x1001], &[t.frame], 5, &[]),
            ("SetIPCBuffer 0", t.tcb, TCBSetIPCBuffer, &[0], &[0], 0, &[]),
            ("Read two registers", t.tcb, TCBReadRegisters, &[0, 2], &[], 0, &[0, 0]),
            ("Read all registers", t.tcb, TCBReadRegisters, &[0, 32], &[], 0, &[0; 32]),
        ],
    );
}

#[test]
fn address_spaces() {
    let (mut w, t) = world();
    let (gigabyte, megabyte, third) = (t.table, w.make(ty::PAGE_TABLE, 0), w.make(ty::PAGE_TABLE, 0));
    let frame = t.frame;
    let second = w.make(ty::PAGE_4K, 0);
    let space = slot::VSPACE;
    let v = 0x1000_0000;
    let (copy, free, table_copy) = (w.fresh(), w.fresh(), w.fresh());
    check(
        &mut w,
        &[
            ("no tables", frame, RISCVPageMap, &[v, 3, 0], &[space], 6, &[0, 2, 0x1E]),
            ("no cap", frame, RISCVPageMap, &[v, 3, 0], &[], 7, &[]),
            ("first table", gigabyte, RISCVPageTableMap, &[v, 0], &[space], 0, &[]),
            ("first table again", gigabyte, RISCVPageTableMap, &[v, 0], &[space], 2, &[0]),
            ("second missing", frame, RISCVPageMap, &[v, 3, 0], &[space], 6, &[0, 2, 0x15]),
            ("second table", megabyte, RISCVPageTableMap, &[v, 0], &[space], 0, &[]),
            ("third table", third, RISCVPageTableMap, &[v, 0], &[space], 8, &[]),
            ("unaligned", frame, RISCVPageMap, &[v + 8, 3, 0], &[space], 5, &[]),
            ("0x3FFFFFF000", frame, RISCVPageMap, &[0x3F_FFFF_F000, 3, 0], &[space], 1, &[0]),
            ("0x3FFFFFE000", frame, RISCVPageMap, &[0x3F_FFFF_E000, 3, 0], &[space], 6, &[0, 2, 0x1E]),
            ("VSpace = frame", frame, RISCVPageMap, &[v, 3, 0], &[frame], 2, &[1]),
            ("VSpace = unmapped table", frame, RISCVPageMap, &[v, 3, 0], &[third], 2, &[1]),
            ("VSpace = inner table", frame, RISCVPageMap, &[v, 3, 0], &[megabyte], 2, &[1]),
            ("map", frame, RISCVPageMap, &[v, 3, 0], &[space], 0, &[]),
            ("map again", frame, RISCVPageMap, &[v, 3, 0], &[space], 0, &[]),
            ("map elsewhere", frame, RISCVPageMap, &[v + 0x1000, 3, 0], &[space], 1, &[0]),
            ("second frame there", second, RISCVPageMap, &[v, 3, 0], &[space], 8, &[]),
            ("table over a page", third, RISCVPageTableMap, &[v, 0], &[space], 8, &[]),
            ("unmap root", space, RISCVPageTableUnmap, &[], &[], 9, &[]),
            ("copy mapped table", ROOT, CNodeCopy, &[table_copy, 64, megabyte, 64, 15], &[ROOT], 0, &[]),
            ("unmap while copied", megabyte, RISCVPageTableUnmap, &[], &[], 9, &[]),
            ("copy unmapped table", ROOT, CNodeCopy, &[free, 64, third, 64, 15], &[ROOT], 3, &[]),
            ("copy mapped frame", ROOT, CNodeCopy, &[copy, 64, frame, 64, 15], &[ROOT], 0, &[]),
            ("map the copy", copy, RISCVPageMap, &[v + 0x1000, 3, 0], &[space], 0, &[]),
            ("delete table copy", ROOT, CNodeDelete, &[table_copy, 64], &[], 0, &[]),
            ("unmap table", megabyte, RISCVPageTableUnmap, &[], &[], 0, &[]),
            ("frame without its table", frame, RISCVPageMap, &[v, 3, 0], &[space], 6, &[0, 2, 0x15]),
            ("unmap", frame, RISCVPageUnmap, &[], &[], 0, &[]),
            ("unmap again", frame, RISCVPageUnmap, &[], &[], 0, &[]),
            ("table at the top", third, RISCVPageTableMap, &[0x3F_FFFF_F000, 0], &[space], 1, &[0]),
            ("assign", slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[third], 0, &[]),
            ("assign again", slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[third], 2, &[1]),
            ("assign frame", slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[frame], 2, &[1]),
            ("assign, no cap", slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[], 7, &[]),
        ],
    );
}

#[test]
fn asid_pools() {
    let (mut w, t) = world();
    let (block, big) = (w.make(ty::UNTYPED, 12), w.make(ty::UNTYPED, 13));
    let (pool, free) = (w.fresh(), w.fresh());
    let control = slot::ASID_CONTROL;
    let make = RISCVASIDControlMakePool;
    let (root, inner) = (w.make(ty::PAGE_TABLE, 0), w.make(ty::PAGE_TABLE, 0));
    check(
        &mut w,
        &[
            ("13 bits", control, make, &[pool, 64], &[big, ROOT], 2, &[1]),
            ("occupied", control, make, &[t.tcb, 64], &[block, ROOT], 8, &[]),
            ("depth 65", control, make, &[pool, 65], &[block, ROOT], 4, &[1, 0x40]),
            ("root = TCB", control, make, &[pool, 64], &[block, t.tcb], 6, &[0, 1]),
            ("1 cap", control, make, &[pool, 64], &[block], 7, &[]),
            ("make", control, make, &[pool, 64], &[block, ROOT], 0, &[]),
            ("from used", control, make, &[free, 64], &[block, ROOT], 9, &[]),
            ("assign", pool, RISCVASIDPoolAssign, &[], &[root], 0, &[]),
            ("delete pool", ROOT, CNodeDelete, &[pool, 64], &[], 0, &[]),
            ("table without pool", inner, RISCVPageTableMap, &[0x1000_0000, 0], &[root], 6, &[0, 1]),
            ("page without pool", t.frame, RISCVPageMap, &[0x1000_0000, 3, 0], &[root], 6, &[0, 1]),
        ],
    );
}

#[test]
fn interrupts() {
    let (mut w, t) = world();
    let (handler, free) = (w.fresh(), w.fresh());
    let other = w.fresh();
    let read_only = w.copy(t.notification, Rights::READ);
    let control = slot::IRQ_CONTROL;
    let get = IRQIssueIRQHandler;
    check(
        &mut w,
        &[
            ("Get 0", control, get, &[0, free, 64], &[ROOT], 4, &[1, 0x60]),
            ("Get 97", control, get, &[97, free, 64], &[ROOT], 4, &[1, 0x60]),
            ("Get the timer", control, get, &[96, free, 64], &[ROOT], 9, &[]),
            ("Get 10", control, get, &[10, handler, 64], &[ROOT], 0, &[]),
            ("Get 10 again", control, get, &[10, free, 64], &[ROOT], 9, &[]),
            ("occupied", control, get, &[11, t.tcb, 64], &[ROOT], 8, &[]),
            ("depth 0", control, get, &[11, free, 0], &[ROOT], 4, &[1, 0x40]),
            ("length 2", control, get, &[11, free], &[ROOT], 7, &[]),
            ("GetTrigger", control, RISCVIRQIssueIRQHandlerTrigger, &[11, 1, other, 64], &[ROOT], 0, &[]),
            ("Set endpoint", handler, IRQSetIRQHandler, &[], &[t.endpoint], 2, &[0]),
            ("Set", handler, IRQSetIRQHandler, &[], &[t.notification], 0, &[]),
            ("Ack", handler, IRQAckIRQ, &[], &[], 0, &[]),
            ("Clear", handler, IRQClearIRQHandler, &[], &[], 0, &[]),
            ("Set, no cap", handler, IRQSetIRQHandler, &[], &[], 7, &[]),
            ("Set without Write", handler, IRQSetIRQHandler, &[], &[read_only], 2, &[0]),
        ],
    );
}

#[test]
fn domains() {
    let (mut w, t) = world();
    check(
        &mut w,
        &[
            ("Set 0", slot::DOMAIN, DomainSetSet, &[0], &[t.tcb], 0, &[]),
            ("Set 1", slot::DOMAIN, DomainSetSet, &[1], &[t.tcb], 1, &[0]),
            ("Set, length 0", slot::DOMAIN, DomainSetSet, &[], &[t.tcb], 7, &[]),
            ("Set, no cap", slot::DOMAIN, DomainSetSet, &[0], &[], 7, &[]),
            ("Set endpoint", slot::DOMAIN, DomainSetSet, &[0], &[t.endpoint], 1, &[1]),
            ("Configure", slot::DOMAIN, DomainScheduleConfigure, &[0, 0, 5], &[], 0, &[]),
            ("index 1", slot::DOMAIN, DomainScheduleConfigure, &[1, 0, 5], &[], 4, &[0, 0]),
            ("domain 1", slot::DOMAIN, DomainScheduleConfigure, &[0, 1, 5], &[], 4, &[0, 0]),
            ("duration 0", slot::DOMAIN, DomainScheduleConfigure, &[0, 0, 0], &[], 1, &[2]),
            ("duration 2^56", slot::DOMAIN, DomainScheduleConfigure, &[0, 0, 1 << 56], &[], 1, &[2]),
            ("length 2", slot::DOMAIN, DomainScheduleConfigure, &[0, 0], &[], 7, &[]),
            ("SetStart 1", slot::DOMAIN, DomainScheduleSetStart, &[1], &[], 1, &[0]),
            ("SetStart 2", slot::DOMAIN, DomainScheduleSetStart, &[2], &[], 4, &[0, 1]),
        ],
    );
}
