//! Our kernel's objects for user interrupts (docs/architecture.md, section 5), as a root task makes them.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, rights, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::{Actor, Faults, Stub, register};

/// Object type and invocations behind seL4's.
const SENDER_TABLE: u64 = 0x40;
const BIND_USER_INTERRUPT: u64 = 0x100;
const UNBIND_USER_INTERRUPT: u64 = 0x101;
const SET_SENDER_TABLE: u64 = 0x102;
const REGISTER: u64 = 0x103;

/// Calls and must succeed; gives the first word.
pub fn must(m: &mut Machine, capability: u64, label: u64, words: &[u64], extra: &[u64]) -> u64 {
    let answer = m.call(capability, label, words, extra);
    assert_eq!(answer.error, 0, "label {label:#x} of {capability}: {:x?}", answer.words());
    answer.words[0]
}

/// A thread with a receiver.
#[derive(Clone, Copy)]
pub struct Bell {
    pub thread: Actor,
    pub notification: u64,
}

impl Bell {
    /// Thread `index` with a doorbell.
    pub fn new(m: &mut Machine, block: u64, faults: Faults, index: usize) -> Self {
        let thread = Actor::new(m, block, faults, index);
        let notification = m.make(block, object::NOTIFICATION, 0);
        m.prepare(thread.tcb, TCBBindNotification, &[], &[notification]);
        must(m, thread.tcb, BIND_USER_INTERRUPT, &[], &[notification]);
        Self { thread, notification }
    }

    /// A capability to it with this vector.
    pub fn badged(self, m: &mut Machine, vector: u64) -> u64 {
        let badged = m.fresh();
        let words = [badged, 64, self.notification, 64, rights::WRITE, 1 << vector];
        m.prepare(slot::CNODE, CNodeMint, &words, &[slot::CNODE]);
        badged
    }

    /// Takes the receiver away.
    pub fn unbind(self, m: &mut Machine) {
        must(m, self.thread.tcb, UNBIND_USER_INTERRUPT, &[], &[]);
    }

    /// Gives it a receiver again.
    pub fn bind(self, m: &mut Machine) {
        must(m, self.thread.tcb, BIND_USER_INTERRUPT, &[], &[self.notification]);
    }

    /// Starts the thread with a handler.
    pub fn start(self, m: &mut Machine, stub: Stub, handler: Stub, registers: &[(usize, u64)]) {
        let mut all = [(register::S0, handler.0); 8];
        all[1..=registers.len()].copy_from_slice(registers);
        self.thread.start(m, stub, &all[..=registers.len()]);
    }
}

/// A sender table that a thread uses.
#[derive(Clone, Copy)]
pub struct Table(pub u64);

impl Table {
    /// A table of the thread `tcb`.
    pub fn new(m: &mut Machine, block: u64, tcb: u64) -> Self {
        let table = m.make(block, SENDER_TABLE, 0);
        must(m, tcb, SET_SENDER_TABLE, &[], &[table]);
        Self(table)
    }

    /// Registers a doorbell: the index for `uipi.send`.
    pub fn register(self, m: &mut Machine, badged: u64) -> u64 {
        must(m, self.0, REGISTER, &[], &[badged])
    }
}
