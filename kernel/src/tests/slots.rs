//! The derivation tree: copies, moves, revocation, deletion of containers, preemption.

use abi::bootinfo::slot;
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;

use super::world::{UNTYPED, World};
use crate::arch::Interrupt;
use crate::object::cap::Kind;
use crate::object::tcb::ThreadState;

const ROOT: u64 = slot::CNODE;

#[test]
fn revoking_the_original_deletes_copies_and_revoking_a_copy_nothing() {
    let mut w = World::new();
    let tcb = w.make(ty::TCB, 0);
    let (first, second) = (w.copy(tcb, Rights::ALL), w.copy(tcb, Rights::ALL));
    w.revoke(first);
    assert!(!w.cap(second).is_null() && !w.cap(tcb).is_null());
    w.revoke(tcb);
    assert!(w.cap(first).is_null() && w.cap(second).is_null() && !w.cap(tcb).is_null());
}

#[test]
fn a_badge_makes_a_family_of_its_own() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let (one, two) = (w.mint(endpoint, Rights::ALL, 1), w.mint(endpoint, Rights::ALL, 2));
    let copy_of_one = w.copy(one, Rights::ALL);
    let unbadged = w.copy(endpoint, Rights::ALL);
    w.revoke(one);
    assert!(w.cap(copy_of_one).is_null());
    assert!(!w.cap(one).is_null() && !w.cap(two).is_null() && !w.cap(unbadged).is_null());
    w.revoke(endpoint);
    assert!(w.cap(one).is_null() && w.cap(two).is_null() && w.cap(unbadged).is_null());
}

#[test]
fn moves_and_rotations_keep_the_place_in_the_tree() {
    let mut w = World::new();
    let cnode = w.make(ty::CNODE, 4);
    let (copy, moved, third) = (w.copy(cnode, Rights::ALL), w.fresh(), w.fresh());
    w.ok(ROOT, CNodeMove, &[moved, 64, copy, 64], &[ROOT]);
    w.ok(ROOT, CNodeMutate, &[copy, 64, moved, 64, 60], &[ROOT]);
    assert_eq!(w.cap(copy).guard_size(), 60);
    // pivot -> destination, source -> pivot; then a swap of the two.
    w.ok(ROOT, CNodeRotate, &[third, 64, 8, cnode, 64, 7, copy, 64], &[ROOT, ROOT]);
    assert_eq!((w.cap(third).guard_size(), w.cap(cnode).guard_size(), w.cap(copy).kind()), (8, 7, Kind::Null));
    w.ok(ROOT, CNodeRotate, &[third, 64, 1, cnode, 64, 2, third, 64], &[ROOT, ROOT]);
    assert_eq!((w.cap(third).guard_size(), w.cap(cnode).guard_size()), (1, 2));
    // Two swaps so far: the original, from which the copy descends, is in `cnode` again.
    w.revoke(cnode);
    assert!(w.cap(third).is_null());
}

#[test]
fn deleting_a_cnode_deletes_what_is_in_it() {
    let mut w = World::new();
    let outer = w.make(ty::CNODE, 4);
    let endpoint = w.make(ty::ENDPOINT, 0);
    let thread = w.thread(10);
    w.resume(thread);
    w.ok(outer, CNodeCopy, &[0, 4, endpoint, 64, 15], &[ROOT]);
    w.ok(outer, CNodeMove, &[1, 4, thread.slot, 64], &[ROOT]);
    w.delete(outer);
    assert!(w.cap(outer).is_null());
    assert_eq!(w.state(thread), ThreadState::Inactive);
}

#[test]
fn cnodes_that_hold_each_other_can_be_deleted() {
    let mut w = World::new();
    let (a, b) = (w.make(ty::CNODE, 4), w.make(ty::CNODE, 4));
    // A copy of each in the other and in itself; then only b's outer capability remains.
    for (target, index, source) in [(a, 0, b), (b, 0, a), (a, 1, a), (b, 1, b)] {
        w.ok(target, CNodeCopy, &[index, 4, source, 64, 15], &[ROOT]);
    }
    w.delete(a);
    w.delete(b);
    assert!(w.cap(a).is_null() && w.cap(b).is_null());
    // All children of the untyped are gone: it can be copied again.
    w.revoke(UNTYPED);
    w.copy(UNTYPED, Rights::ALL);
}

#[test]
fn a_chain_of_last_capabilities_is_worked_off() {
    let mut w = World::new();
    // cnode 0 holds the last capability to cnode 1, which holds the last one to cnode 2, ...
    let chain: Vec<u64> = (0..20).map(|_| w.make(ty::CNODE, 2)).collect();
    for pair in chain.windows(2).rev() {
        w.ok(pair[0], CNodeMove, &[2, 2, pair[1], 64], &[ROOT]);
    }
    w.delete(chain[0]);
    w.revoke(UNTYPED);
    w.copy(UNTYPED, Rights::ALL);
}

#[test]
fn revoking_an_untyped_takes_everything_and_the_memory_can_be_used_again() {
    let mut w = World::new();
    let block = w.make(ty::UNTYPED, 16);
    let endpoint = w.make_from(block, ty::ENDPOINT, 0);
    let tcb = w.make_from(block, ty::TCB, 0);
    let frame = w.make_from(block, ty::PAGE_4K, 0);
    w.revoke(block);
    assert!([endpoint, tcb, frame].iter().all(|&s| w.cap(s).is_null()));
    let table = w.make_from(block, ty::PAGE_TABLE, 0);
    assert_eq!(w.cap(table).paddr(), w.cap(block).paddr(), "from the start again");
    let table = w.object::<crate::object::vspace::PageTable>(table);
    assert!(w.k.get(table).0.iter().all(|entry| entry.bits() == 0), "zeroed");
}

#[test]
fn a_long_revoke_lets_interrupts_in_and_goes_on() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let first = w.fresh();
    for index in 0..300 {
        let target = first + 1000 + index;
        w.k.work_units = 0;
        w.check = false;
        w.ok(ROOT, CNodeMint, &[target, 64, endpoint, 64, 15, 1 + index], &[ROOT]);
    }
    w.check = true;
    w.k.arch.pending.push_back(Interrupt::Timer);
    let number = CNodeRevoke.number(w.k.config.labels).expect("exists");
    w.syscall(abi::syscall::CALL, ROOT, number, &[endpoint, 64], &[]);
    // Preempted: the tick was handled, some descendants are left, the thread is about to do it again.
    assert!(w.runs(w.root));
    let left = (0..300).filter(|index| !w.cap(first + 1000 + index).is_null()).count();
    assert!((100..300).contains(&left), "{left}");
    let root = w.root;
    assert_eq!(w.k.get(root.tcb).context.next_pc, w.register(root, crate::arch::register::PC));
    w.trap(abi::syscall::CALL);
    assert_eq!(w.message(root).label, 0);
    assert!((0..300).all(|index| w.cap(first + 1000 + index).is_null()));
}

#[test]
fn a_preempted_retype_goes_on_where_it_stopped() {
    let mut w = World::new();
    let target = w.fresh();
    let number = UntypedRetype.number(w.k.config.labels).expect("exists");
    let mut rounds = 0;
    let words = [ty::ENDPOINT, 0, 0, 0, target, 1];
    w.check = false;
    loop {
        w.k.arch.pending.push_back(Interrupt::Timer);
        if rounds == 0 {
            w.syscall(abi::syscall::CALL, UNTYPED, number, &words, &[ROOT]);
        } else {
            w.trap(abi::syscall::CALL);
        }
        rounds += 1;
        if !w.cap(target).is_null() {
            break;
        }
    }
    // 4 MiB in chunks of 256 bytes, 100 of them between two looks.
    assert_eq!(rounds, (4 << 20) / 256 / 100 + 1);
}

#[test]
fn copying_an_untyped_locks_the_original() {
    let mut w = World::new();
    let block = w.make(ty::UNTYPED, 14);
    let copy = w.copy(block, Rights::ALL);
    let target = w.fresh();
    let words = [ty::PAGE_4K, 0, 0, 0, target, 1];
    assert_eq!(w.invoke(block, UntypedRetype, &words, &[ROOT]), (10, vec![0]));
    w.make_from(copy, ty::PAGE_4K, 0);
    w.revoke(block);
    w.make_from(block, ty::PAGE_4K, 0);
}
