//! Receivers that go away.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::Faults;
use sel4_conformance::server::actor::register::S1;

use crate::bell::{Bell, Table};
use crate::stub::{self, uipi_send};

const TABLE: &str = "teardown";
/// More than the hardware has receivers, many times over.
const LIVES: u64 = 2000;

/// Runs the rows.
pub fn run(m: &mut Machine) {
    old_sender(m);
    many_lives(m);
}

/// Runs the bell's thread for some turns; what its handler saw.
fn turns(m: &mut Machine, faults: Faults, bell: Bell) -> [u64; 3] {
    bell.start(m, stub::yields(), stub::handler(), &[(S1, 3)]);
    faults.next(m);
    [13, 14, 15].map(|register| bell.thread.register(m, register))
}

/// D8: the number of a receiver that is gone is used again, and old senders do not reach the new one.
fn old_sender(m: &mut Machine) {
    for (row, end) in [("unbound", 0), ("thread deleted", 1), ("notification deleted", 2), ("capability revoked", 3)] {
        let block = m.block();
        let faults = Faults::new(m, block);
        let bell = Bell::new(m, block, faults, 0);
        let badged = bell.badged(m, 7);
        let table = Table::new(m, block, slot::TCB);
        let old = table.register(m, badged);
        uipi_send(old);
        let before = turns(m, faults, bell);
        m.expect(TABLE, "it works", (0, &[0, 1 << 7, 1]), (0, &before));
        let delete = |m: &mut Machine, capability| m.prepare(slot::CNODE, CNodeDelete, &[capability, 64], &[]);
        match end {
            0 => bell.unbind(m),
            1 => delete(m, bell.thread.tcb),
            2 => {
                delete(m, badged);
                delete(m, bell.notification);
            }
            _ => {
                m.prepare(slot::CNODE, CNodeRevoke, &[bell.notification, 64], &[]);
                bell.unbind(m);
            }
        }
        uipi_send(old);
        let next = Bell::new(m, block, faults, 1);
        uipi_send(old);
        let got = turns(m, faults, next);
        m.expect(TABLE, row, (0, &[0, 0, 0]), (0, &got));
        let badged = next.badged(m, 8);
        let index = table.register(m, badged);
        uipi_send(index);
        let got = turns(m, faults, next);
        m.expect(TABLE, "the new one works", (0, &[0, 1 << 8, 1]), (0, &got));
    }
}

/// D7: receivers, entries and tables are given back.
fn many_lives(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    bell.unbind(m);
    let table = Table::new(m, block, slot::TCB);
    let badged = bell.badged(m, 1);
    let mut lives = 0;
    for _ in 0..LIVES {
        bell.bind(m);
        table.register(m, badged);
        bell.unbind(m);
        lives += 1;
    }
    m.expect(TABLE, "bound, registered, unbound", (0, &[LIVES]), (0, &[lives]));
    // With new objects each time: their memory comes back when the small block is revoked.
    let small = m.make(block, object::UNTYPED, 14);
    let (notification, slots) = (m.fresh(), m.fresh());
    for _ in 0..LIVES / 4 {
        for (kind, target) in [(object::NOTIFICATION, notification), (0x40, slots)] {
            m.prepare(small, UntypedRetype, &[kind, 0, 0, 0, target, 1], &[slot::CNODE]);
        }
        let again = Bell { notification, ..bell };
        again.bind(m);
        m.prepare(slot::CNODE, CNodeRevoke, &[small, 64], &[]);
    }
    let bell = Bell::new(m, block, faults, 1);
    let badged = bell.badged(m, 2);
    let index = table.register(m, badged);
    uipi_send(index);
    let got = turns(m, faults, bell);
    m.expect(TABLE, "after all of them one works", (0, &[0, 1 << 2, 1]), (0, &got));
}
