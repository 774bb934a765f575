//! What a mapping allows: rights of the frame capability, rights and attributes of the mapping.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, rights, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::A0;
use sel4_conformance::server::actor::{Actor, Faults, Stub};

const TABLE: &str = "page rights";
/// Where the frame is mapped.
const V: u64 = 0x18_0000_0000;
/// `seL4_RISCV_ExecuteNever`.
const NEVER: u64 = 1;
const NONE: u64 = 0;
const READ: u64 = rights::READ;
const WRITE: u64 = rights::WRITE;
const BOTH: u64 = rights::READ_WRITE;

/// Runs the rows: a thread loads from the page, stores to it, jumps into it.
pub fn run(m: &mut Machine) {
    for (kind, bits) in [(object::PAGE, 12), (object::MEGA_PAGE, 21)] {
        let block = m.block();
        let frame = m.make(block, kind, 0);
        let faults = Faults::new(m, block);
        let actor = Actor::new(m, block, faults, 0);
        for _ in 0..if bits == 12 { 2 } else { 1 } {
            let table = m.make(block, object::PAGE_TABLE, 0);
            m.prepare(table, RISCVPageTableMap, &[V, 0], &[slot::VSPACE]);
        }
        // Rights of the capability; rights and attributes of the mapping; whether load, store and fetch are allowed.
        for (row, cap, mapping, attributes, allowed) in [
            ("read, write, execute", BOTH, BOTH, 0, [1, 1, 1]),
            ("read, write", BOTH, BOTH, NEVER, [1, 1, 0]),
            ("read, execute", BOTH, READ, 0, [1, 0, 1]),
            ("read", BOTH, READ, NEVER, [1, 0, 0]),
            ("write alone is none: execute", BOTH, WRITE, 0, [0, 0, 1]),
            ("no rights: execute", BOTH, NONE, 0, [0, 0, 1]),
            ("no rights, never execute", BOTH, NONE, NEVER, [0, 0, 0]),
            ("capability without Write", READ, BOTH, NEVER, [1, 0, 0]),
            ("capability without Read", WRITE, BOTH, 0, [0, 0, 1]),
            ("further attributes and rights are ignored", BOTH, !0, !1, [1, 1, 1]),
        ] {
            let page = m.copy(frame, cap);
            m.prepare(page, RISCVPageMap, &[V, mapping, attributes], &[slot::VSPACE]);
            let got = [(Stub::load(), 5), (Stub::store(), 7), (Stub::jump(), 1)].map(|(stub, status)| {
                actor.start(m, stub, &[(A0, V)]);
                let message = faults.next(m);
                // A VM fault of this access; the page holds zeros, so a jump into it ends in an illegal instruction there.
                let (label, _) = message.content();
                u64::from(!(label == 5 && message.word(1) == V && message.word(3) == status))
            });
            m.expect(TABLE, row, (0, &allowed), (0, &got));
            m.prepare(slot::CNODE, CNodeDelete, &[page, 64], &[]);
        }
        actor.start(m, Stub::load(), &[(A0, V)]);
        let message = faults.next(m);
        m.expect(TABLE, "deleted: unmapped", (0, &[5, V]), (0, &[message.content().0, message.word(1)]));
    }
}
