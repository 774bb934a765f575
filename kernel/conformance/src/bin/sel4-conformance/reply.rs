//! Reply capabilities.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, slot};

use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::A0;
use sel4_conformance::server::actor::{Actor, Faults};
use sel4_conformance::server::start::{CALL, RECV};

const ROOT: u64 = slot::CNODE;

/// Runs the rows.
pub fn run(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let ep = m.make(block, object::ENDPOINT, 0);
    let (saved, second, moved, empty) = (m.fresh(), m.fresh(), m.fresh(), m.fresh());
    actor.call(m, CALL, ep, 0, [0; 4]);
    m.send(RECV, ep, 0, [0; 4]);
    m.check(
        "reply capabilities",
        &[
            ("SaveCaller onto occupied slot", ROOT, CNodeSaveCaller, &[slot::TCB, 64], &[], 8, &[]),
            ("SaveCaller", ROOT, CNodeSaveCaller, &[saved, 64], &[], 0, &[]),
            ("SaveCaller after that", ROOT, CNodeSaveCaller, &[second, 64], &[], 0, &[]),
            ("the second slot is empty", ROOT, CNodeMove, &[moved, 64, second, 64], &[ROOT], 6, &[1, 2, 0x40]),
            ("Copy", ROOT, CNodeCopy, &[second, 64, saved, 64, 15], &[ROOT], 3, &[]),
            ("Mint", ROOT, CNodeMint, &[second, 64, saved, 64, 15, 0], &[ROOT], 3, &[]),
            ("Move from empty slot", ROOT, CNodeMove, &[second, 64, empty, 64], &[ROOT], 6, &[1, 2, 0x40]),
            ("Move", ROOT, CNodeMove, &[moved, 64, saved, 64], &[ROOT], 0, &[]),
            // The words are the reply; the invoker gets an empty answer.
            ("Call on it", moved, Unknown, &[11, 12], &[], 0, &[]),
            ("Call on it again", moved, Unknown, &[], &[], 2, &[0]),
        ],
    );
    faults.next(m);
    let got = [0, 1, 2, 3].map(|index| actor.register(m, A0 + index));
    m.expect("reply capabilities", "what the caller got", (0, &[0, 99 << 12 | 2, 11, 12]), (0, &got));

    // Whoever is suspended takes its reply capability with it.
    actor.call(m, CALL, ep, 0, [0; 4]);
    m.send(RECV, ep, 0, [0; 4]);
    m.check(
        "reply capabilities",
        &[
            ("SaveCaller again", ROOT, CNodeSaveCaller, &[saved, 64], &[], 0, &[]),
            ("suspend the caller", actor.tcb, TCBSuspend, &[], &[], 0, &[]),
            ("its reply capability is gone", saved, Unknown, &[], &[], 2, &[0]),
        ],
    );
}
