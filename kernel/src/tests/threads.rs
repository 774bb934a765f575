//! TCB invocations that succeed.

use abi::bootinfo::slot;
use abi::label::Label::*;
use abi::object as ty;
use abi::register::{A0, COUNT, PC, RA, SP, TP, X};
use abi::rights::Rights;
use abi::syscall::*;

use super::world::World;
use crate::arch::register;
use crate::object::tcb::ThreadState::*;

#[test]
fn registers_are_written_and_read_in_the_order_of_the_user_context() {
    let mut w = World::new();
    let thread = w.thread(10);
    let values: Vec<u64> = (0..COUNT as u64).map(|index| 0x100 + index).collect();
    let mut words = vec![0, COUNT as u64];
    words.extend(&values);
    w.ok(thread.slot, TCBWriteRegisters, &words, &[]);
    assert_eq!(w.state(thread), Inactive);
    assert_eq!(w.ok(thread.slot, TCBReadRegisters, &[0, COUNT as u64], &[]), values);
    for (index, &register) in X.iter().enumerate().skip(1) {
        assert_eq!(w.register(thread, usize::from(register)), values[index]);
    }
    assert_eq!(w.k.get(thread.tcb).context.next_pc, values[PC]);
    // Fewer leave the rest alone; bit 0 starts it.
    w.ok(thread.slot, TCBWriteRegisters, &[1, 2, 0xAA, 0xBB], &[]);
    assert_eq!(w.state(thread), Restart);
    let read = w.ok(thread.slot, TCBReadRegisters, &[1, 3], &[]);
    assert_eq!((read[PC], read[RA], read[SP]), (0xAA, 0xBB, values[SP]));
    assert_eq!(w.state(thread), Inactive, "suspended by the read");
}

#[test]
fn registers_are_copied_by_halves() {
    let mut w = World::new();
    let (source, target) = (w.thread(10), w.thread(10));
    let mut words = vec![0, COUNT as u64];
    words.extend((0..COUNT as u64).map(|index| 0x100 + index));
    w.ok(source.slot, TCBWriteRegisters, &words, &[]);
    w.ok(target.slot, TCBCopyRegisters, &[4], &[source.slot]);
    let read = w.ok(target.slot, TCBReadRegisters, &[0, COUNT as u64], &[]);
    assert_eq!((read[PC], read[SP], read[A0], read[TP]), (0x100, 0x102, 0, 0));
    w.ok(target.slot, TCBCopyRegisters, &[8 | 2], &[source.slot]);
    let read = w.ok(target.slot, TCBReadRegisters, &[0, COUNT as u64], &[]);
    assert_eq!((read[A0], read[TP]), (0x110, 0x11F));
    assert_eq!(w.state(target), Restart);
}

#[test]
fn configure_replaces_spaces_and_buffer() {
    let mut w = World::new();
    let thread = w.thread(255);
    let cnode = w.make(ty::CNODE, 4);
    let endpoint = w.make(ty::ENDPOINT, 0);
    w.ok(cnode, CNodeCopy, &[3, 4, endpoint, 64, 15], &[slot::CNODE]);
    w.ok(thread.slot, TCBSetSpace, &[3, 60, 0], &[cnode, slot::VSPACE]);
    w.resume(thread);
    w.run_as(thread, |w| w.syscall(SEND, 3, 9, &[1, 2, 3, 4, 5], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    assert_eq!((w.message(w.root).label, w.message(w.root).words.len()), (9, 5));
    // An address beyond its 64 bits of guard and radix is its fault, and its handler is in its own space.
    w.run_as(thread, |w| w.syscall(SEND, 1 << 20, 0, &[], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    assert_eq!(w.message(w.root).label, 1);
}

#[test]
fn a_thread_whose_last_cnode_capability_it_holds_is_not_reconfigured() {
    let mut w = World::new();
    let thread = w.thread(10);
    let cnode = w.make(ty::CNODE, 4);
    w.ok(thread.slot, TCBSetSpace, &[0, 60, 0], &[cnode, slot::VSPACE]);
    w.delete(cnode);
    let words = [0, 51, 0];
    assert_eq!(w.invoke(thread.slot, TCBSetSpace, &words, &[slot::CNODE, slot::VSPACE]), (3, vec![]));
}

#[test]
fn tls_base_is_the_thread_pointer() {
    let mut w = World::new();
    let thread = w.thread(10);
    w.ok(thread.slot, TCBSetTLSBase, &[0x1234], &[]);
    assert_eq!(w.register(thread, register::TP), 0x1234);
}

#[test]
fn debug_calls() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    for byte in b"ok" {
        w.syscall(DEBUG_PUT_CHAR, u64::from(*byte), 0, &[], &[]);
    }
    assert_eq!(w.k.arch.console, b"ok");
    for (cptr, kind) in [(endpoint, 4), (slot::TCB, 12), (slot::DOMAIN, 20), (0, 0), (1 << 40, 0)] {
        w.syscall(DEBUG_CAP_IDENTIFY, cptr, 0, &[], &[]);
        assert_eq!(w.register(w.root, register::A0), kind);
    }
    w.set_buffer_word(w.root, 1, u64::from_le_bytes(*b"root\0\0\0\0"));
    w.syscall(DEBUG_NAME_THREAD, slot::TCB, 0, &[], &[]);
    w.syscall(DEBUG_DUMP_SCHEDULER, 0, 0, &[], &[]);
    assert!(String::from_utf8_lossy(&w.k.arch.console).contains("core 0: runs 'root'"));
    // Without debug calls the numbers are unknown: a fault, and the root task has no handler.
    w.k.config.printing = false;
    w.syscall(DEBUG_PUT_CHAR, 65, 0, &[], &[]);
    assert_eq!(w.state(w.root), Inactive);
}

#[test]
fn read_only_copies_of_a_buffer_can_be_sent_from_only() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let thread = w.thread(255);
    let frame = w.make(ty::PAGE_4K, 0);
    let read_only = w.copy(frame, Rights::READ);
    w.ok(thread.slot, TCBSetIPCBuffer, &[0x8000], &[read_only]);
    w.resume(thread);
    w.run_as(thread, |w| w.syscall(SEND, endpoint, 0, &[1, 2, 3, 4, 5], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    assert_eq!(w.message(w.root).words, [1, 2, 3, 4, 5]);
    w.run_as(thread, |w| w.syscall(RECV, endpoint, 0, &[], &[]));
    w.syscall(SEND, endpoint, 0, &[1, 2, 3, 4, 5], &[]);
    let info = abi::message::MessageInfo(w.register(thread, register::A1));
    assert_eq!(info.length(), 4);
}
