//! D22: a sender that never stops. The receiver gets on with its work, can be deaf, and the kernel can end it.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{A0, S1};
use sel4_conformance::server::actor::{Actor, Faults};

use crate::bell::{Bell, Table};
use crate::stub;

const TABLE: &str = "storm";
/// Turns of a loop that the receiver has to do.
const WORK: u64 = 200_000;
/// Turns of a loop between two sends: longer than a handler takes, also where the kernel emulates what it does.
const PAUSE: u64 = 2000;

/// Runs the rows.
pub fn run(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    let sender = Actor::new(m, block, faults, 1);
    let badged = bell.badged(m, 4);
    let index = Table::new(m, block, sender.tcb).register(m, badged);
    m.prepare(bell.thread.tcb, TCBSetAffinity, &[1], &[]);

    // As long as a handler is shorter than the time between two sends, there is progress.
    sender.start(m, stub::flood(), &[(A0, index), (S1, PAUSE)]);
    bell.start(m, stub::work(), stub::handler(), &[(S1, WORK)]);
    faults.next(m);
    let [empty, bits, entries] = [13, 14, 15].map(|register| bell.thread.register(m, register));
    let got = [empty, bits, u64::from(entries > 20)];
    m.expect(TABLE, "the receiver works on", (0, &[0, 1 << 4, 1]), (0, &got));

    // Against a sender that never pauses a receiver can be deaf, and poll.
    m.prepare(sender.tcb, TCBSuspend, &[], &[]);
    sender.start(m, stub::flood(), &[(A0, index)]);
    bell.start(m, stub::quiet_work(), stub::handler(), &[(S1, WORK)]);
    faults.next(m);
    let got = [7, 15].map(|register| bell.thread.register(m, register));
    m.expect(TABLE, "inactive, it is left alone and can poll", (0, &[1 << 4, 0]), (0, &got));

    // The root task has the hart that the sender uses, so the kernel can take the entry away under fire.
    m.prepare(slot::CNODE, CNodeDelete, &[badged, 64], &[]);
    bell.start(m, stub::work(), stub::handler(), &[(S1, WORK)]);
    faults.next(m);
    let entries = bell.thread.register(m, 15);
    m.expect(TABLE, "the capability deleted, nothing comes any more", (0, &[1]), (0, &[u64::from(entries <= 1)]));
    m.prepare(sender.tcb, TCBSuspend, &[], &[]);
}
