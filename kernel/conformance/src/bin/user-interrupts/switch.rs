//! The state of a thread when others run on its hart.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{A0, S1, S2};
use sel4_conformance::server::actor::{Actor, Faults};

use crate::bell::{Bell, Table};
use crate::stub::{self, uipi_send};

const TABLE: &str = "switch";
const S4: usize = 8;
const S5: usize = 9;
const S6: usize = 10;
const S8: usize = 12;

/// Turns of a loop between two sends: longer than a handler takes, also where the kernel emulates what it does.
const PAUSE: u64 = 2000;

/// Runs the rows.
pub fn run(m: &mut Machine) {
    two_receivers(m);
    late_handler(m);
    inside_the_handler(m);
    nothing_lost(m);
}

/// D4: two receivers share a hart; each gets its own bits, and no entry is empty.
fn two_receivers(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bells = [0, 1].map(|index| Bell::new(m, block, faults, index));
    let table = Table::new(m, block, slot::TCB);
    let badged = bells.map(|bell| bell.badged(m, 5));
    let indices = badged.map(|badged| table.register(m, badged));
    // The root task runs between their turns: they yield, and each time both have been sent to, or only the second.
    bells.iter().for_each(|bell| bell.start(m, stub::yields(), stub::handler(), &[(S1, 40)]));
    uipi_send(indices[1]);
    faults.next(m);
    faults.next(m);
    let counts = bells.map(|bell| [13, 14, 15].map(|register| bell.thread.register(m, register)));
    m.expect(TABLE, "the first got nothing", (0, &[0, 0, 0]), (0, &counts[0]));
    m.expect(TABLE, "the second got its bit", (0, &[0, 1 << 5, 1]), (0, &counts[1]));
    // From the other hart, while the two take turns.
    let sender = Actor::new(m, block, faults, 2);
    let other = Table::new(m, block, sender.tcb);
    let index = other.register(m, badged[1]);
    m.prepare(sender.tcb, TCBSetAffinity, &[1], &[]);
    bells.iter().for_each(|bell| bell.start(m, stub::yields(), stub::handler(), &[(S1, 400)]));
    sender.start(m, stub::flood(), &[(A0, index), (S1, PAUSE)]);
    faults.next(m);
    faults.next(m);
    m.prepare(sender.tcb, TCBSuspend, &[], &[]);
    let counts = bells.map(|bell| [13, 14, 15].map(|register| bell.thread.register(m, register)));
    m.expect(TABLE, "under fire the first gets nothing", (0, &[0, 0, 0]), (0, &counts[0]));
    let [empty, bits, entries] = counts[1];
    let got = [empty, bits, u64::from(entries > 20)];
    m.expect(TABLE, "under fire the second has no empty entry", (0, &[0, 1 << 5, 1]), (0, &got));
}

/// D10: the receiver is made for a thread that has never run; it sets its handler later, and then another one.
fn late_handler(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    let peer = Actor::new(m, block, faults, 1);
    let badged = bell.badged(m, 3);
    let table = Table::new(m, block, peer.tcb);
    let index = table.register(m, badged);
    // They take turns: the peer sends, the other one takes what came, and changes its handler in its third turn.
    bell.start(m, stub::yields(), stub::handler(), &[(S1, 4), (S5, 2)]);
    peer.start(m, stub::send(), &[(S1, 4), (S2, index)]);
    faults.next(m);
    faults.next(m);
    let got = [S8, 15].map(|register| bell.thread.register(m, register));
    m.expect(TABLE, "entries of the second handler, and of both", (0, &[1, 4]), (0, &got));
}

/// D11: a thread that is switched away inside its handler takes its state with it.
fn inside_the_handler(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bells = [0, 1].map(|index| Bell::new(m, block, faults, index));
    let badged = bells[0].badged(m, 3);
    let index = Table::new(m, block, slot::TCB).register(m, badged);
    uipi_send(index);
    // Both yield; the first does so inside its handler as well.
    bells[1].start(m, stub::yields(), stub::handler(), &[(S1, 2)]);
    bells[0].start(m, stub::yields(), stub::slow_handler(), &[(S1, 2)]);
    faults.next(m);
    faults.next(m);
    let first = [6, 7, S6, 15].map(|register| bells[0].thread.register(m, register));
    m.expect(TABLE, "ustatus in the handler, before and after", (0, &[0x10, 0x10, 0x11, 1]), (0, &first));
    let second = [S6, 15].map(|register| bells[1].thread.register(m, register));
    m.expect(TABLE, "ustatus of the other", (0, &[1, 0]), (0, &second));
}

/// D6: sends from another hart while the kernel switches the receiver out and in: none is lost.
fn nothing_lost(m: &mut Machine) {
    const ROUNDS: u64 = 300;
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    let (peer, sender) = (Actor::new(m, block, faults, 1), Actor::new(m, block, faults, 2));
    for tcb in [bell.thread.tcb, peer.tcb] {
        m.prepare(tcb, TCBSetAffinity, &[1], &[]);
    }
    let badged = bell.badged(m, 3);
    let index = Table::new(m, block, sender.tcb).register(m, badged);
    // A word behind the IPC buffer, in its page.
    let count = bell.thread.buffer.address() + 2048;
    peer.start(m, stub::peer(), &[]);
    bell.start(m, stub::yields(), stub::counting_handler(), &[(S1, u64::MAX), (S4, count)]);
    sender.start(m, stub::ping(), &[(A0, index), (S1, ROUNDS), (S4, count), (S5, 1 << 20)]);
    faults.next(m);
    [bell.thread, peer].iter().for_each(|actor| m.prepare(actor.tcb, TCBSuspend, &[], &[]));
    let left = sender.register(m, S1);
    m.expect(TABLE, "rounds that were not answered", (0, &[0]), (0, &[left]));
}
