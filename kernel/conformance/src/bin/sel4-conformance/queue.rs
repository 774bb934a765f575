//! Who is served first at an endpoint, and what takes threads out of its queue.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, rights, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{A0, A1, A2};
use sel4_conformance::server::actor::{Actor, FAULT_BADGE as BADGE, Faults, Stub, settle};
use sel4_conformance::server::start::{CALL, RECV, REPLY_RECV, SEND};

const TABLE: &str = "queues";

/// An endpoint with a capability for each of two threads, badges 0x10 and 0x11.
struct Meeting {
    block: u64,
    faults: Faults,
    endpoint: u64,
    threads: [(Actor, u64); 2],
}

impl Meeting {
    fn new(m: &mut Machine) -> Self {
        let block = m.block();
        let faults = Faults::new(m, block);
        let endpoint = m.make(block, object::ENDPOINT, 0);
        let threads = [0, 1].map(|index| {
            let badged = m.fresh();
            let words = [badged, 64, endpoint, 64, rights::ALL, 0x10 + index as u64];
            m.prepare(slot::CNODE, CNodeMint, &words, &[slot::CNODE]);
            (Actor::new(m, block, faults, index), badged)
        });
        Self { block, faults, endpoint, threads }
    }

    /// Lets a thread wait in a system call on its capability.
    fn queue(&self, m: &mut Machine, index: usize, number: i64) {
        let (actor, badged) = self.threads[index];
        actor.call(m, number, badged, 1, [0x20 + index as u64, 0, 0, 0]);
        settle(m, self.block, self.faults);
    }

    /// Badges in the order in which the root task receives.
    fn order(&self, m: &mut Machine) -> [u64; 2] {
        [0, 1].map(|_| m.send(RECV, self.endpoint, 0, [0; 4])[0])
    }
}

/// Runs the rows.
pub fn run(m: &mut Machine) {
    first_come(m);
    cancelled(m);
    reply_and_receive(m);
    bound(m);
}

/// First come, first served, whatever the priorities.
fn first_come(m: &mut Machine) {
    let meeting = Meeting::new(m);
    meeting.threads[1].0.set_priority(m, 150);
    meeting.queue(m, 0, SEND);
    meeting.queue(m, 1, SEND);
    let got = meeting.order(m);
    m.expect(TABLE, "a queue is in order of arrival", (0, &[0x10, 0x11]), (0, &got));
}

/// CancelBadgedSends makes those with the badge send again; the others stay where they are.
fn cancelled(m: &mut Machine) {
    let meeting = Meeting::new(m);
    for (row, cancel, expected) in
        [("cancelled senders come last", 0, [0x11, 0x10]), ("the others stay in order", 1, [0x10, 0x11])]
    {
        meeting.queue(m, 0, SEND);
        meeting.queue(m, 1, SEND);
        m.prepare(slot::CNODE, CNodeCancelBadgedSends, &[meeting.threads[cancel].1, 64], &[]);
        settle(m, meeting.block, meeting.faults);
        let got = meeting.order(m);
        m.expect(TABLE, row, (0, &expected), (0, &got));
        meeting.faults.next(m);
        meeting.faults.next(m);
    }
    // An unbadged capability cancels nobody.
    meeting.queue(m, 0, SEND);
    meeting.queue(m, 1, SEND);
    m.prepare(slot::CNODE, CNodeCancelBadgedSends, &[meeting.endpoint, 64], &[]);
    settle(m, meeting.block, meeting.faults);
    let got = meeting.order(m);
    m.expect(TABLE, "without badge nobody is cancelled", (0, &[0x10, 0x11]), (0, &got));
}

/// ReplyRecv answers the first caller and takes the second.
fn reply_and_receive(m: &mut Machine) {
    let meeting = Meeting::new(m);
    meeting.queue(m, 0, CALL);
    meeting.queue(m, 1, CALL);
    let [badge, info, first, ..] = m.send(RECV, meeting.endpoint, 0, [0; 4]);
    m.expect(TABLE, "Recv takes the first caller", (0, &[0x10, 1, 0x20]), (0, &[badge, info, first]));
    let [badge, info, first, ..] = m.send(REPLY_RECV, meeting.endpoint, 0x33 << 12 | 2, [7, 8, 9, 9]);
    m.expect(TABLE, "ReplyRecv takes the second", (0, &[0x11, 1, 0x21]), (0, &[badge, info, first]));
    let _ = meeting.faults.next(m);
    let got = [A0, A1, A2, A2 + 1].map(|register| meeting.threads[0].0.register(m, register));
    m.expect(TABLE, "and has answered the first", (0, &[0, 0x33 << 12 | 2, 7, 8]), (0, &got));
}

/// A signal to the notification of a thread that receives on an endpoint ends its receive.
fn bound(m: &mut Machine) {
    let meeting = Meeting::new(m);
    let [(actor, _), (other, _)] = meeting.threads;
    let (n, badged) = (m.make(meeting.block, object::NOTIFICATION, 0), m.fresh());
    m.prepare(slot::CNODE, CNodeMint, &[badged, 64, n, 64, rights::ALL, 9], &[slot::CNODE]);
    m.prepare(actor.tcb, TCBBindNotification, &[], &[n]);
    meeting.queue(m, 0, RECV);
    m.send(SEND, badged, 0, [0; 4]);
    meeting.faults.next(m);
    let got = [A0, A1, A2].map(|register| actor.register(m, register));
    m.expect(TABLE, "a bound signal ends a Recv: only a0 changes", (0, &[9, 1, 0x20]), (0, &got));
    m.send(SEND, badged, 0, [0; 4]);
    actor.call(m, RECV, meeting.endpoint, 1, [0x20, 0, 0, 0]);
    meeting.faults.next(m);
    let got = [A0, A1, A2].map(|register| actor.register(m, register));
    m.expect(TABLE, "a signal before the Recv is taken first", (0, &[9, 1, 0x20]), (0, &got));
    other.call(m, RECV, n, 0, [0; 4]);
    let message = meeting.faults.next(m);
    let expected = [BADGE, Stub::ecall().0, n, 1, 2, 0];
    m.expect(TABLE, "nobody else may wait on it", (1, &expected), message.content());
    other.call(m, SEND, n, 0, [0; 4]);
    meeting.faults.next(m);
    actor.call(m, RECV, n, 0, [0; 4]);
    meeting.faults.next(m);
    let got = actor.register(m, A0);
    m.expect(TABLE, "its thread may; a signal without badge is 0", (0, &[0]), (0, &[got]));
}
