//! Messages over endpoints: transfer, capabilities, replies, queues.

use abi::bootinfo::slot;
use abi::ipc_buffer::{CAPS_OR_BADGES, RECEIVE_CNODE, RECEIVE_DEPTH, RECEIVE_INDEX};
use abi::label::Label::*;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, NB_RECV, NB_SEND, RECV, REPLY, REPLY_RECV, SEND};

use super::world::{Message, World};
use crate::arch::register::{A0, A1, A2};
use crate::object::cap::Kind;
use crate::object::tcb::{Slot, ThreadState::*};

const ROOT: u64 = slot::CNODE;

fn message(badge: u64, label: u64, words: &[u64]) -> Message {
    Message { badge, label, unwrapped: 0, extra_caps: 0, words: words.to_vec() }
}

#[test]
fn a_call_reaches_a_waiting_server_and_the_reply_comes_back() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let badged = w.mint(endpoint, Rights::ALL, 0x42);
    let server = w.receiver(255, endpoint);
    assert_eq!(w.state(server), BlockedOnReceive);
    w.syscall(CALL, badged, 0x1_2345_6789_ABCD, &[1, 2, 3, 4, 5, 6], &[]);
    assert!(w.runs(server));
    assert_eq!(w.state(w.root), BlockedOnReply);
    assert_eq!(w.message(server), message(0x42, 0x1_2345_6789_ABCD, &[1, 2, 3, 4, 5, 6]));
    w.syscall(REPLY_RECV, endpoint, 7, &[9], &[]);
    assert!(w.runs(w.root));
    assert_eq!(w.message(w.root), message(0, 7, &[9]));
    assert_eq!(w.state(server), BlockedOnReceive);
}

#[test]
fn length_is_cut_to_120_and_to_4_without_a_buffer() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let server = w.receiver(255, endpoint);
    w.set_buffer_word(w.root, 1 + 119, 0xAB);
    let root = w.root;
    w.k.get_mut(root.tcb).context.x[A0] = endpoint;
    w.k.get_mut(root.tcb).context.x[A1] = 127;
    w.trap(CALL);
    let got = w.message(server);
    assert_eq!((got.words.len(), got.words[119]), (120, 0xAB));
    w.syscall(REPLY, 0, 0, &[], &[]);
    w.syscall(RECV, endpoint, 0, &[], &[]);
    // Without a buffer on one side only registers move.
    w.ok(server.slot, TCBSetIPCBuffer, &[0], &[0]);
    w.syscall(CALL, endpoint, 0, &[1, 2, 3, 4, 5], &[]);
    assert_eq!(w.message(server).words, [1, 2, 3, 4]);
}

#[test]
fn queues_are_first_in_first_out_whatever_the_priority() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let caps: Vec<u64> = (1..=3).map(|badge| w.mint(endpoint, Rights::ALL, badge)).collect();
    for (index, &cap) in caps.iter().enumerate() {
        let sender = w.thread(10 * (3 - index as u64));
        w.resume(sender);
        w.run_as(sender, |w| w.syscall(SEND, cap, 0, &[], &[]));
        assert_eq!(w.state(sender), BlockedOnSend);
    }
    for badge in 1..=3 {
        w.syscall(RECV, endpoint, 0, &[], &[]);
        assert_eq!(w.message(w.root).badge, badge);
    }
}

#[test]
fn non_blocking_calls_do_not_block() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    w.syscall(NB_SEND, endpoint, 1, &[1], &[]);
    assert!(w.runs(w.root));
    // A bad capability: NBSend says nothing.
    w.syscall(NB_SEND, 1 << 40, 1, &[1], &[]);
    assert!(w.runs(w.root));
    // NBRecv without a message changes a0 only.
    let root = w.root;
    let x = &mut w.k.get_mut(root.tcb).context.x;
    (x[A0], x[A1], x[A2]) = (endpoint, 0x7003, 0xAA);
    w.trap(NB_RECV);
    assert_eq!([w.register(root, A0), w.register(root, A1), w.register(root, A2)], [0, 0x7003, 0xAA]);
}

#[test]
fn without_grant_nobody_may_reply() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let send_only = w.mint(endpoint, Rights::WRITE, 5);
    let server = w.receiver(10, endpoint);
    w.syscall(CALL, send_only, 0, &[], &[]);
    assert_eq!(w.state(w.root), Inactive);
    assert!(w.runs(server));
    assert!(w.k.get(server.tcb).cap(Slot::Caller).is_null());
}

#[test]
fn a_reply_capability_can_be_saved_used_once_and_not_copied() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let (saved, other) = (w.fresh(), w.fresh());
    let client = w.thread(255);
    w.resume(client);
    w.run_as(client, |w| w.syscall(CALL, endpoint, 0, &[], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    w.ok(ROOT, CNodeSaveCaller, &[saved, 64], &[]);
    assert_eq!(w.cap(saved).kind(), Kind::Reply);
    assert_eq!(w.invoke(ROOT, CNodeCopy, &[other, 64, saved, 64, 15], &[ROOT]), (3, vec![]));
    w.ok(ROOT, CNodeMove, &[other, 64, saved, 64], &[ROOT]);
    assert_eq!(w.call(other, 3, &[1], &[]), (0, vec![]));
    assert_eq!(w.message(client), message(0, 3, &[1]));
    assert_eq!(w.state(client), Running);
    assert_eq!(w.call(other, 3, &[1], &[]), (2, vec![0]));
}

#[test]
fn receiving_again_forgets_the_caller() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let client = w.thread(255);
    w.resume(client);
    w.run_as(client, |w| w.syscall(CALL, endpoint, 0, &[], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    w.syscall(NB_RECV, endpoint, 0, &[], &[]);
    w.syscall(REPLY, 0, 0, &[], &[]);
    assert_eq!(w.state(client), BlockedOnReply);
}

/// Sends `caps` from a client of 255 to the root task, which receives into a free slot; what arrived, and whether the slot is used.
fn transfer(rights: Rights, caps: impl Fn(&mut World, u64) -> Vec<u64>) -> (usize, usize, bool) {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let badged = w.mint(endpoint, rights, 1);
    let caps = caps(&mut w, endpoint);
    let target = w.fresh();
    let client = w.thread(255);
    w.resume(client);
    w.run_as(client, |w| w.syscall(CALL, badged, 0, &[], &caps));
    for (index, value) in [(RECEIVE_CNODE, ROOT), (RECEIVE_INDEX, target), (RECEIVE_DEPTH, 64)] {
        w.set_buffer_word(w.root, index, value);
    }
    w.syscall(RECV, endpoint, 0, &[], &[]);
    let got = w.message(w.root);
    if got.unwrapped & 1 != 0 {
        assert_eq!(w.buffer_word(w.root, CAPS_OR_BADGES), 0x77);
    }
    (got.unwrapped, got.extra_caps, !w.cap(target).is_null())
}

#[test]
fn capabilities_are_unwrapped_or_moved_into_one_slot() {
    let same = |w: &mut World, endpoint| w.mint(endpoint, Rights::ALL, 0x77);
    let other = |w: &mut World| w.make(ty::ENDPOINT, 0);
    let all = Rights::ALL;
    assert_eq!(transfer(all, |w, e| vec![same(w, e)]), (1, 1, false));
    assert_eq!(transfer(all, |w, _| vec![other(w)]), (0, 1, true));
    assert_eq!(transfer(all, |w, _| vec![other(w), other(w)]), (0, 1, true));
    assert_eq!(transfer(all, |w, e| vec![same(w, e), other(w)]), (1, 2, true));
    assert_eq!(transfer(all, |w, e| vec![other(w), same(w, e)]), (2, 2, true));
    assert_eq!(transfer(Rights(0xB), |w, _| vec![other(w)]), (0, 0, false));
    assert_eq!(transfer(all, |_, _| vec![slot::IRQ_CONTROL]), (0, 0, false));
}

#[test]
fn a_reply_carries_a_capability_if_the_server_received_with_grant() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let thing = w.make(ty::NOTIFICATION, 0);
    let target = w.fresh();
    let server = w.receiver(255, endpoint);
    for (index, value) in [(RECEIVE_CNODE, ROOT), (RECEIVE_INDEX, target), (RECEIVE_DEPTH, 64)] {
        w.set_buffer_word(w.root, index, value);
    }
    w.syscall(CALL, endpoint, 0, &[], &[]);
    assert!(w.runs(server));
    w.syscall(REPLY_RECV, endpoint, 0x99, &[1, 2, 3], &[thing]);
    assert!(w.runs(w.root));
    assert_eq!((w.register(w.root, A0), w.register(w.root, A1)), (0, 0x99083));
    assert_eq!(w.cap(target).object(), w.cap(thing).object::<crate::object::notification::Notification>());
}

#[test]
fn deleting_the_endpoint_restarts_who_waits() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let server = w.receiver(10, endpoint);
    w.delete(endpoint);
    assert_eq!(w.state(server), Restart);
    // It executes its Recv again and faults, without a handler: it stops.
    w.run_as(server, |w| w.trap(RECV));
    assert_eq!(w.state(server), Inactive);
}

#[test]
fn badged_sends_are_cancelled_and_the_others_keep_their_order() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let caps: Vec<u64> = [1, 2, 1, 3].iter().map(|&badge| w.mint(endpoint, Rights::ALL, badge)).collect();
    let senders: Vec<_> = caps
        .iter()
        .map(|&cap| {
            let sender = w.thread(10);
            w.resume(sender);
            w.run_as(sender, |w| w.syscall(SEND, cap, 0, &[], &[]));
            sender
        })
        .collect();
    w.ok(ROOT, CNodeCancelBadgedSends, &[caps[0], 64], &[]);
    assert_eq!(
        senders.iter().map(|&s| w.state(s)).collect::<Vec<_>>(),
        [Restart, BlockedOnSend, Restart, BlockedOnSend]
    );
    for badge in [2, 3] {
        w.syscall(RECV, endpoint, 0, &[], &[]);
        assert_eq!(w.message(w.root).badge, badge);
    }
}

#[test]
fn a_suspended_receiver_receives_again_when_resumed() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let server = w.receiver(255, endpoint);
    w.ok(server.slot, TCBSuspend, &[], &[]);
    assert_eq!(w.state(server), Inactive);
    w.resume(server);
    w.run_as(server, |w| w.trap(RECV));
    w.syscall(SEND, endpoint, 5, &[], &[]);
    assert_eq!(w.message(server).label, 5);
}

#[test]
fn deleting_the_caller_takes_its_reply_capability_away() {
    let mut w = World::new();
    let endpoint = w.make(ty::ENDPOINT, 0);
    let client = w.thread(255);
    w.resume(client);
    w.run_as(client, |w| w.syscall(CALL, endpoint, 0, &[], &[]));
    w.syscall(RECV, endpoint, 0, &[], &[]);
    assert_eq!(w.k.get(w.root.tcb).cap(Slot::Caller).kind(), Kind::Reply);
    w.delete(client.slot);
    assert!(w.k.get(w.root.tcb).cap(Slot::Caller).is_null());
}
