//! Address spaces: what the hardware would find.

use abi::bootinfo::slot;
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;

use super::world::{DEVICE, DEVICE_UNTYPED, World};
use crate::arch::host::Effect;
use crate::arch::sv39::{self, Pte};
use crate::mem::Ref;
use crate::object::tcb::Slot;
use crate::object::vspace::PageTable;

const V: u64 = 0x1234_5000;

/// The entry for `vaddr` as the hardware walks from the root of `space`.
fn translate(w: &World, space: u64, vaddr: u64) -> Pte {
    let mut table = w.object::<PageTable>(space);
    for level in 0..3 {
        let entry = w.k.get(table).0[sv39::index(vaddr, level)];
        if !entry.is_table() {
            return entry;
        }
        // SAFETY: a table of this world, which only walks its own.
        table = unsafe { Ref::assume(crate::mem::Paddr(entry.paddr()).kva()) };
    }
    panic!("a table at the last level");
}

/// A world with tables for `V` in the root task's space.
fn world() -> (World, u64, u64) {
    let mut w = World::new();
    let tables = [w.make(ty::PAGE_TABLE, 0), w.make(ty::PAGE_TABLE, 0)];
    for table in tables {
        w.ok(table, RISCVPageTableMap, &[V, 0], &[slot::VSPACE]);
    }
    w.effects();
    (w, tables[0], tables[1])
}

#[test]
fn a_page_is_mapped_with_the_rights_that_both_sides_allow() {
    let (mut w, ..) = world();
    let frame = w.make(ty::PAGE_4K, 0);
    let read_only = w.copy(frame, Rights::READ);
    let paddr = w.cap(frame).paddr().0;
    let flags = |w: &World| translate(w, slot::VSPACE, V).bits() & 0x3FF;
    // V 1, R 2, W 4, X 8, U 0x10, A 0x40, D 0x80.
    for (cap, rights, attributes, expected) in [
        (frame, 3, 0, 0xDF),
        (frame, 3, 1, 0xD7),
        (frame, 2, 1, 0xD3),
        (read_only, 3, 1, 0xD3),
        (frame, 1, 0, 0xD9), // write alone is nothing: execute only
        (frame, 0, 1, 0xD0), // nothing at all: not valid
    ] {
        w.ok(cap, RISCVPageMap, &[V, rights, attributes], &[slot::VSPACE]);
        assert_eq!(flags(&w), expected, "rights {rights} attributes {attributes}");
        if expected & 1 != 0 {
            assert_eq!(translate(&w, slot::VSPACE, V).paddr(), paddr);
        }
        w.ok(cap, RISCVPageUnmap, &[], &[]);
        assert_eq!(w.ok(frame, RISCVPageGetAddress, &[], &[]), [paddr]);
        // What was mapped without V cannot be told from nothing, so it stays; clear it for the next round.
        w.ok(cap, RISCVPageMap, &[V, 3, 0], &[slot::VSPACE]);
        w.ok(cap, RISCVPageUnmap, &[], &[]);
    }
}

#[test]
fn a_mapping_goes_with_its_capability() {
    let (mut w, ..) = world();
    let frame = w.make(ty::PAGE_4K, 0);
    w.ok(frame, RISCVPageMap, &[V, 3, 0], &[slot::VSPACE]);
    assert_eq!(w.effects(), [Effect::FencePage(1, V), Effect::CodeChanged]);
    w.delete(frame);
    assert!(!translate(&w, slot::VSPACE, V).is_valid());
    assert_eq!(w.effects(), [Effect::FencePage(1, V)]);
}

#[test]
fn mega_pages_and_devices() {
    let mut w = World::new();
    let thread = w.thread(10);
    let table = w.make(ty::PAGE_TABLE, 0);
    w.ok(table, RISCVPageTableMap, &[V, 0], &[slot::VSPACE]);
    let mega = w.make(ty::MEGA_PAGE, 0);
    let vaddr = V & !0x1F_FFFF;
    w.ok(mega, RISCVPageMap, &[vaddr, 3, 1], &[slot::VSPACE]);
    assert_eq!(translate(&w, slot::VSPACE, V).paddr(), w.cap(mega).paddr().0);
    let device = w.make_from(DEVICE_UNTYPED, ty::PAGE_4K, 0);
    assert_eq!(w.cap(device).paddr().0, DEVICE);
    assert!(w.cap(device).is_device());
    // Device memory is no IPC buffer.
    assert_eq!(w.invoke(thread.slot, TCBSetIPCBuffer, &[0x1000], &[device]), (3, vec![]));
}

#[test]
fn deleting_an_inner_table_takes_its_pages_out_of_reach() {
    let (mut w, _, inner) = world();
    let frame = w.make(ty::PAGE_4K, 0);
    w.ok(frame, RISCVPageMap, &[V, 3, 0], &[slot::VSPACE]);
    w.delete(inner);
    assert!(!translate(&w, slot::VSPACE, V).is_valid());
    // The frame still remembers; unmapping it does no harm, and it can be mapped elsewhere then.
    w.ok(frame, RISCVPageUnmap, &[], &[]);
}

#[test]
fn a_space_of_its_own_has_the_kernel_half_and_an_asid() {
    let mut w = World::new();
    let root = w.make(ty::PAGE_TABLE, 0);
    w.ok(slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[root]);
    let asid = w.cap(root).mapped_asid();
    assert!(asid > 1, "0 is never assigned, 1 is the root task's");
    let table = w.object::<PageTable>(root);
    use crate::arch::Arch;
    assert_eq!(w.k.get(table).0[256..], w.k.arch.kernel_half());
    // A thread in it: the core enters it, and leaves it when the space goes away.
    let thread = w.thread(100);
    w.ok(thread.slot, TCBSetSpace, &[0, 51, 0], &[slot::CNODE, root]);
    w.resume(thread);
    w.run_as(thread, |w| {
        assert_eq!(w.k.arch.space(), Some((w.cap(root).paddr(), asid)));
        w.delete(root);
        assert_eq!(
            w.k.arch.space(),
            Some((w.k.get(thread.tcb).cap(Slot::VSpace).paddr(), asid)),
            "the thread has a copy"
        );
    });
    w.ok(thread.slot, TCBSuspend, &[], &[]);
    w.effects();
    w.delete(thread.slot);
    assert_eq!(w.effects(), [Effect::EvictSpace(asid)]);
}

#[test]
fn a_thread_whose_space_is_gone_runs_in_the_kernels() {
    let mut w = World::new();
    let root = w.make(ty::PAGE_TABLE, 0);
    w.ok(slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[root]);
    let thread = w.thread(100);
    w.ok(thread.slot, TCBSetSpace, &[0, 51, 0], &[slot::CNODE, root]);
    w.delete(slot::ASID_POOL);
    assert_eq!(w.k.arch.space(), None, "the root task's own space went with the pool");
    w.resume(thread);
    w.run_as(thread, |w| assert_eq!(w.k.arch.space(), None));
}

#[test]
fn a_frame_without_rights_is_mapped_for_execution_only() {
    let mut w = World::new();
    let frame = w.make(ty::PAGE_4K, 0);
    let bare = w.copy(frame, Rights(0));
    for _ in 0..2 {
        let table = w.make(ty::PAGE_TABLE, 0);
        w.ok(table, RISCVPageTableMap, &[V, 0], &[slot::VSPACE]);
    }
    // The invariants look at the entry after each of these.
    w.ok(bare, RISCVPageMap, &[V, 3, 0], &[slot::VSPACE]);
    w.ok(bare, RISCVPageMap, &[V, 3, 1], &[slot::VSPACE]);
}
