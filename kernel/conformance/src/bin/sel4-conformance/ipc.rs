//! Messages and signals between the root task and another thread.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, rights, slot};

use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{A0, A7, PC};
use sel4_conformance::server::actor::{Actor, FAULT_BADGE as BADGE, Faults, Message, Stub, settle};
use sel4_conformance::server::start::{CALL, MESSAGE, NB_RECV, RECV, REPLY, SEND};

const TABLE: &str = "IPC";

/// Runs the rows.
pub fn run(m: &mut Machine) {
    messages(m);
    empty_receives(m);
    restarts(m);
}

fn messages(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let (ep, badged, received) = (m.make(block, object::ENDPOINT, 0), m.fresh(), m.fresh());
    m.prepare(slot::CNODE, CNodeMint, &[badged, 64, ep, 64, rights::ALL, 0x77], &[slot::CNODE]);
    let label = 0x1_2345_6789_ABCD;
    actor.call(m, CALL, badged, label << 12 | 2, [0xAA, 0xBB, 0xCC, 0xDD]);
    let message = Message::of(m, RECV, ep);
    m.expect(TABLE, "Call, 52-bit label, 2 words", (label, &[0x77, 0xAA, 0xBB]), message.content());

    // The reply: three words, one capability, which goes to the caller's receive slot.
    let sent = m.make(block, object::NOTIFICATION, 0);
    actor.buffer.receive_into(slot::CNODE, received, 64);
    m.buffer.set(sel4_conformance::server::start::CAPS, sent);
    m.send(REPLY, 0, 0x99 << 12 | 1 << 7 | 3, [1, 2, 3, 4]);
    faults.next(m);
    let got = [0, 1, 2, 3, 4].map(|index| actor.register(m, A0 + index));
    m.expect(TABLE, "Reply, 3 words, a capability", (0, &[0, 0x99083, 1, 2, 3]), (0, &got));
    m.check(TABLE, &[("the capability came", received, Unknown, &[], &[], 0, &[])]);

    // A length above 120 is 120.
    (0..120).for_each(|index| actor.buffer.set(MESSAGE + index, 0x1000 + index as u64));
    actor.call(m, SEND, badged, 127, [0; 4]);
    let [badge, info, ..] = m.send(RECV, ep, 0, [0; 4]);
    let got = [badge, info, m.buffer.get(MESSAGE + 4), m.buffer.get(MESSAGE + 119)];
    m.expect(TABLE, "Send, length field 127", (0, &[0x77, 120, 0x1004, 0x1000 + 119]), (0, &got));
    faults.next(m);

    // Without Grant and GrantReply nobody can answer: the caller stops for good.
    let plain = m.copy(ep, rights::READ_WRITE);
    actor.call(m, CALL, plain, 1, [5, 0, 0, 0]);
    let message = Message::of(m, RECV, ep);
    m.expect(TABLE, "Call without Grant and GrantReply", (0, &[0, 5]), message.content());
    m.send(REPLY, 0, 0, [0; 4]);
    settle(m, block, faults);
    let pc = actor.register(m, PC);
    m.expect(TABLE, "its caller stays where it was", (0, &[Stub::ecall().0]), (0, &[pc]));
}

/// Signals and empty polls write a0 only.
fn empty_receives(m: &mut Machine) {
    let block = m.block();
    let (ep, n) = (m.make(block, object::ENDPOINT, 0), m.make(block, object::NOTIFICATION, 0));
    let badged = m.fresh();
    m.prepare(slot::CNODE, CNodeMint, &[badged, 64, n, 64, rights::ALL, 0x30], &[slot::CNODE]);
    m.check(TABLE, &[("Call on a notification signals", badged, Unknown, &[1, 2], &[], 0, &[])]);
    let got = m.send(NB_RECV, n, 0, [0xAA, 0, 0, 0]);
    m.expect(TABLE, "NBRecv of a signal", (0, &[0x30, 0, 0xAA, 0, 0, 0]), (0, &got));
    for (row, capability) in [("NBRecv, idle notification", n), ("NBRecv, idle endpoint", ep)] {
        let got = m.send(NB_RECV, capability, 0x7003, [0xAA, 0xBB, 0xCC, 0xDD]);
        m.expect(TABLE, row, (0, &[0, 0x7003, 0xAA, 0xBB, 0xCC, 0xDD]), (0, &got));
    }
    m.send(SEND, badged, 0, [0; 4]);
    m.send(SEND, badged, 0, [0; 4]);
    let second = m.fresh();
    m.prepare(slot::CNODE, CNodeMint, &[second, 64, n, 64, rights::ALL, 0x103], &[slot::CNODE]);
    m.send(SEND, second, 0, [0; 4]);
    let got = m.send(RECV, n, 0x5002, [7, 8, 9, 10]);
    m.expect(TABLE, "Wait takes the OR of the badges", (0, &[0x133, 0x5002, 7, 8, 9, 10]), (0, &got));
}

/// A thread that is taken out of a blocking call makes the call again.
fn restarts(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let pc = Stub::ecall().0;
    let ep = m.make(block, object::ENDPOINT, 0);
    actor.call(m, RECV, ep, 0, [0; 4]);
    settle(m, block, faults);
    m.check(
        TABLE,
        &[
            ("suspend a thread in Recv", actor.tcb, TCBSuspend, &[], &[], 0, &[]),
            ("resume it", actor.tcb, TCBResume, &[], &[], 0, &[]),
        ],
    );
    m.send(SEND, ep, 0x42 << 12 | 1, [9, 0, 0, 0]);
    faults.next(m);
    let got = [1, 2].map(|index| actor.register(m, A0 + index));
    m.expect(TABLE, "its Recv is made again", (0, &[0x42 << 12 | 1, 9]), (0, &got));

    actor.call(m, RECV, ep, 0, [0; 4]);
    settle(m, block, faults);
    m.check(TABLE, &[("delete the endpoint that it waits on", slot::CNODE, CNodeDelete, &[ep, 64], &[], 0, &[])]);
    let message = faults.next(m);
    m.expect(TABLE, "it makes its Recv again", (1, &[BADGE, pc, ep, 1, 2, 0]), message.content());

    let label = TCBSuspend.number(m.smp());
    actor.call(m, CALL, actor.tcb, label << 12, [0; 4]);
    settle(m, block, faults);
    for row in ["resume a thread that suspended itself", "and again"] {
        m.check(TABLE, &[(row, actor.tcb, TCBResume, &[], &[], 0, &[])]);
        settle(m, block, faults);
        let got = [PC, A7].map(|register| actor.register(m, register));
        m.expect(TABLE, "it suspends itself again", (0, &[pc, CALL as u64]), (0, &got));
    }
}
