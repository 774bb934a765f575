//! Empty slots, and labels that an object does not know.

use crate::number::{Invocation::*, object, slot};
use crate::row::{Outcome, System};

/// Labels that no object of seL4 16 knows; the last has all 52 bits.
const UNKNOWN: [u64; 3] = [0, 99, (1 << 52) - 1];

/// Runs the table.
pub fn run(s: &mut impl System) {
    let block = s.block();
    let empty = s.fresh();
    let handler = s.fresh();
    s.prepare(slot::IRQ_CONTROL, IRQIssueIRQHandler, &[10, handler, 64], &[slot::CNODE]);
    for (row, capability) in [("null", slot::NULL), ("empty slot", empty), ("slot 7", slot::IO_PORT)] {
        for label in [0, 1, 20, 41, 99] {
            expect(s, row, capability, label, 2, &[0]);
        }
    }
    let objects = [
        ("TCB", s.make(block, object::TCB, 0)),
        ("CNode", s.make(block, object::CNODE, 4)),
        ("untyped", block),
        ("IRQ control", slot::IRQ_CONTROL),
        ("IRQ handler", handler),
        ("ASID control", slot::ASID_CONTROL),
        ("ASID pool", slot::ASID_POOL),
        ("frame", s.make(block, object::PAGE, 0)),
        ("page table", s.make(block, object::PAGE_TABLE, 0)),
        ("domain", slot::DOMAIN),
    ];
    for (row, capability) in objects {
        for label in UNKNOWN {
            expect(s, row, capability, label, 3, &[]);
        }
    }
    // A label of another object comes before every check of the message: these have no words and no capabilities.
    let smp = s.smp();
    for (row, capability) in objects.into_iter().filter(|&(row, _)| row != "untyped") {
        expect(s, row, capability, UntypedRetype.number(smp), 3, &[]);
    }
    for foreign in [TCBSuspend, CNodeDelete, RISCVPageUnmap] {
        expect(s, "label of another object", block, foreign.number(smp), 3, &[]);
    }
}

fn expect(s: &mut impl System, row: &str, capability: u64, label: u64, error: u64, words: &[u64]) {
    let answer = s.call(capability, label, &[], &[]);
    let got = (answer.error, answer.words());
    s.report(&Outcome { table: "wrong object or label", row, expected: (error, words), got });
}
