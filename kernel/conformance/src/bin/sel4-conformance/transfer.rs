//! Capabilities in messages: what arrives as a badge, what as a capability, and what does not.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, rights, slot};

use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::{Actor, Faults};
use sel4_conformance::server::start::{CAPS, RECV, SEND};

const TABLE: &str = "capability transfer";

/// Runs the rows: a thread sends capabilities, the root task receives.
pub fn run(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let ep = m.make(block, object::ENDPOINT, 0);
    let other = m.make(block, object::NOTIFICATION, 0);
    let no_grant = m.copy(ep, rights::READ_WRITE);
    let (same, empty, received) = (m.fresh(), m.fresh(), m.fresh());
    m.prepare(slot::CNODE, CNodeMint, &[same, 64, ep, 64, rights::ALL, 0x55], &[slot::CNODE]);
    m.buffer.receive_into(slot::CNODE, received, 64);
    // Capabilities sent; capsUnwrapped, extraCaps and whether the receive slot is filled.
    let rows: [(&str, u64, &[u64], [u64; 3]); 9] = [
        ("[same endpoint]", ep, &[same], [1, 1, 0]),
        ("[other]", ep, &[other], [0, 1, 1]),
        ("[other, other]", ep, &[other, other], [0, 1, 1]),
        ("[same endpoint, other]", ep, &[same, other], [1, 2, 1]),
        ("[other, same endpoint]", ep, &[other, same], [2, 2, 1]),
        ("[same, same, same]", ep, &[same, same, same], [7, 3, 0]),
        ("[other] without Grant", no_grant, &[other], [0, 0, 0]),
        ("[IRQ control]", ep, &[slot::IRQ_CONTROL], [0, 0, 0]),
        ("[null, other]", ep, &[empty, other], [0, 0, 0]),
    ];
    for (row, through, sent, expected) in rows {
        (0..).zip(sent).for_each(|(index, &capability)| actor.buffer.set(CAPS + index, capability));
        actor.call(m, SEND, through, (sent.len() as u64) << 7, [0; 4]);
        let [_, info, ..] = m.send(RECV, ep, 0, [0; 4]);
        let badge = m.buffer.get(CAPS);
        let filled = m.invoke(slot::CNODE, CNodeSaveCaller, &[received, 64], &[]).error == 8;
        let got = [info >> 9 & 7, info >> 7 & 3, u64::from(filled)];
        m.expect(TABLE, row, (0, &expected), (0, &got));
        if expected[0] & 1 != 0 {
            m.expect(TABLE, "its badge", (0, &[0x55]), (0, &[badge]));
        }
        m.prepare(slot::CNODE, CNodeDelete, &[received, 64], &[]);
        faults.next(m);
    }
    // Where there is no receive slot, nothing arrives, and nobody is told.
    for (row, index, depth) in [("no such slot", received, 63), ("slot in use", slot::TCB, 64)] {
        m.buffer.receive_into(slot::CNODE, index, depth);
        actor.buffer.set(CAPS, other);
        actor.call(m, SEND, ep, 1 << 7, [0; 4]);
        let [_, info, ..] = m.send(RECV, ep, 0, [0; 4]);
        m.expect(TABLE, row, (0, &[0]), (0, &[info]));
        faults.next(m);
    }
}
