//! Faults as their handler receives them, and what replies do.

use abi::bootinfo::slot;
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, NB_RECV, NB_SEND, RECV, REPLY_RECV, SEND};

use super::world::{CODE, Thread, World};
use crate::arch::register::{A0, PC, RA, SP};
use crate::object::tcb::ThreadState::*;

/// A thread whose faults go to the root task, which waits for them at `endpoint` (badge 0xBAD).
fn world() -> (World, Thread, u64) {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let handler = w.mint(endpoint, Rights::ALL, 0xBAD);
    let thread = w.thread(100);
    w.ok(thread.slot, TCBSetSpace, &[handler, 51, 0], &[slot::CNODE, slot::VSPACE]);
    w.resume(thread);
    w.syscall(RECV, endpoint, 0, &[], &[]);
    assert!(w.runs(thread));
    (w, thread, endpoint)
}

/// Label and words of the fault that `action` of the thread makes.
fn fault(action: impl FnOnce(&mut World)) -> (u64, Vec<u64>) {
    let (mut w, thread, _) = world();
    action(&mut w);
    assert_eq!(w.state(thread), BlockedOnReply);
    let message = w.message(w.root);
    assert_eq!(message.badge, 0xBAD);
    (message.label, message.words)
}

#[test]
fn capability_faults() {
    let bit40 = 1 << 40;
    for number in [CALL, SEND] {
        assert_eq!(fault(|w| w.syscall(number, bit40, 0, &[], &[])), (1, vec![CODE, bit40, 0, 4, 0x40, 0, 0x33]));
    }
    for number in [RECV, NB_RECV] {
        assert_eq!(fault(|w| w.syscall(number, 0x1F40, 0, &[], &[])), (1, vec![CODE, 0x1F40, 1, 2, 0]));
    }
    assert_eq!(fault(|w| w.syscall(RECV, 1, 0, &[], &[])), (1, vec![CODE, 1, 1, 2, 0]));
    let bit50 = 1 << 50;
    let extra = fault(|w| w.syscall(CALL, slot::CNODE, 0, &[], &[bit50]));
    assert_eq!(extra, (1, vec![CODE, bit50, 0, 4, 0x40, 0, 0x33]));
}

#[test]
fn no_fault() {
    let (mut w, thread, _) = world();
    w.syscall(NB_SEND, 1 << 40, 0, &[], &[]);
    assert!(w.runs(thread));
    assert_eq!(w.call(0x1F40, 0, &[], &[]), (2, vec![0]));
}

#[test]
fn memory_faults_report_the_access_codes() {
    for (cause, fetch, status) in [(15, 0, 7), (7, 0, 7), (13, 0, 5), (5, 0, 5), (12, 1, 1), (1, 1, 1)] {
        let (label, words) = fault(|w| w.fault(cause, 0x700_0008));
        assert_eq!((label, words), (5, vec![CODE, 0x700_0008, fetch, status]), "cause {cause}");
    }
}

#[test]
fn exceptions() {
    let (label, words) = fault(|w| {
        let current = w.k.current();
        // The first illegal instruction turns the floating-point unit on.
        w.fault(2, 0);
        assert!(w.k.current() == current && w.k.this().fpu_on);
        w.k.get_mut(current).context.x[SP] = 0x8000;
        w.fault(2, 0);
    });
    assert_eq!((label, words), (3, vec![CODE, 0x8000, 2, 0]));
}

#[test]
fn unknown_system_call_and_its_reply() {
    let (mut w, thread, endpoint) = world();
    let x = &mut w.k.get_mut(thread.tcb).context.x;
    (x[SP], x[RA]) = (0x8000, 0x1234);
    for (index, value) in (1..=7).map(|n| n * 0x1111).enumerate() {
        x[A0 + index] = value;
    }
    w.trap(77);
    let expected = [CODE, 0x8000, 0x1234, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666, 0x7777, 77];
    assert_eq!((w.message(w.root).label, w.message(w.root).words), (2, expected.to_vec()));
    // The reply writes what it holds and lets the thread go on behind the call.
    w.syscall(REPLY_RECV, endpoint, 0, &[CODE + 4, 0x9000, 0x5678, 42], &[]);
    assert!(w.runs(thread));
    assert_eq!(w.k.get(thread.tcb).context.next_pc, CODE + 4);
    assert_eq!([SP, RA, A0].map(|r| w.register(thread, r)), [0x9000, 0x5678, 42]);
}

#[test]
fn a_labelled_reply_stops_the_thread_but_not_after_a_memory_fault() {
    let (mut w, thread, endpoint) = world();
    w.trap(77);
    w.syscall(REPLY_RECV, endpoint, 1, &[], &[]);
    assert_eq!(w.state(thread), Inactive);
    let (mut w, thread, endpoint) = world();
    w.fault(13, 0x7000);
    w.syscall(REPLY_RECV, endpoint, 1, &[1, 2, 3], &[]);
    assert!(w.runs(thread));
    assert_eq!(w.register(thread, PC), CODE);
    assert_eq!(w.k.get(thread.tcb).context.next_pc, CODE);
}

#[test]
fn without_a_handler_the_thread_stops() {
    let mut w = World::new();
    let thread = w.thread(100);
    w.resume(thread);
    w.run_as(thread, |w| w.fault(13, 0x7000));
    assert_eq!(w.state(thread), Inactive);
    let text = String::from_utf8(w.k.arch.console.clone()).expect("ASCII");
    assert!(text.contains("fault without handler"), "{text}");
}

#[test]
fn the_stale_fault_of_a_suspended_thread_is_delivered_by_its_next_send() {
    // A thread suspended while its fault is still queued keeps the record (as in the non-MCS kernel).
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let thread = w.thread(100);
    w.ok(thread.slot, TCBSetSpace, &[endpoint, 51, 0], &[slot::CNODE, slot::VSPACE]);
    w.resume(thread);
    w.run_as(thread, |w| w.fault(13, 0x7000));
    assert_eq!(w.state(thread), BlockedOnSend);
    w.ok(thread.slot, TCBSuspend, &[], &[]);
    w.resume(thread);
    w.run_as(thread, |w| w.syscall(SEND, endpoint, 9, &[], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    assert_eq!(w.message(w.root).label, 5);
}
