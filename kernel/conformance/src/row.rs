//! A row: one invocation, and what seL4 answers to it.

use crate::number::{Invocation, ROOT_GUARD, object, slot};

/// What is called, in the words of the table; with which message words and extra capabilities; the expected error code (0 is success)
/// and the expected words of the answer.
pub type Row<'a> = (&'a str, u64, Invocation, &'a [u64], &'a [u64], u64, &'a [u64]);

/// Most words that an answer has: all registers of a thread.
pub const MAX_WORDS: usize = 32;

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Error code; 0 is success.
    pub error: u64,
    /// Message words.
    pub words: [u64; MAX_WORDS],
    /// How many of them.
    pub length: usize,
}

impl Answer {
    /// The message words that count.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.length.min(MAX_WORDS)]
    }
}

/// One row that has been run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// Name of the table.
    pub table: &'a str,
    /// Name of the row.
    pub row: &'a str,
    /// Expected error and words.
    pub expected: (u64, &'a [u64]),
    /// Error and words that came.
    pub got: (u64, &'a [u64]),
}

impl Outcome<'_> {
    /// Whether the kernel did what seL4 does.
    pub fn good(&self) -> bool {
        self.expected == self.got
    }
}

/// A system under test, seen from its root task. The tables take nothing for granted but this and the fixed slots of a root task.
pub trait System {
    /// The kernel numbers its invocations as an SMP build does.
    fn smp(&self) -> bool;
    /// Cores that the kernel runs on.
    fn cores(&self) -> u64;
    /// Calls a capability and gives the answer of the kernel.
    fn call(&mut self, capability: u64, label: u64, words: &[u64], extra: &[u64]) -> Answer;
    /// Slot of an untyped of 4 MiB without children; what a table makes of it is gone when the next one asks.
    fn block(&mut self) -> u64;
    /// Slot of a device untyped of at least 64 KiB.
    fn device(&self) -> u64;
    /// An empty slot.
    fn fresh(&mut self) -> u64;
    /// Takes the outcome of a row, good or bad.
    fn report(&mut self, outcome: &Outcome<'_>);

    /// Calls a capability by the name of the invocation.
    fn invoke(&mut self, capability: u64, invocation: Invocation, words: &[u64], extra: &[u64]) -> Answer {
        let label = invocation.number(self.smp());
        self.call(capability, label, words, extra)
    }

    /// Runs rows in their order; a row finds what those before it have done.
    fn check(&mut self, table: &str, rows: &[Row<'_>]) {
        for &(row, capability, invocation, words, extra, error, expected) in rows {
            let answer = self.invoke(capability, invocation, words, extra);
            let got = (answer.error, answer.words());
            self.report(&Outcome { table, row, expected: (error, expected), got });
        }
    }

    /// Prepares a table: this must succeed, and is reported if it does not.
    fn prepare(&mut self, capability: u64, invocation: Invocation, words: &[u64], extra: &[u64]) {
        let answer = self.invoke(capability, invocation, words, extra);
        if answer.error != 0 {
            let got = (answer.error, answer.words());
            self.report(&Outcome { table: "preparation", row: name(invocation), expected: (0, &[]), got });
        }
    }

    /// A new object out of `untyped`, in a fresh slot.
    fn make(&mut self, untyped: u64, kind: u64, size_bits: u64) -> u64 {
        let target = self.fresh();
        let words = [kind, size_bits, 0, 0, target, 1];
        self.prepare(untyped, Invocation::UntypedRetype, &words, &[slot::CNODE]);
        target
    }

    /// A copy with these rights, in a fresh slot.
    fn copy(&mut self, source: u64, rights: u64) -> u64 {
        let target = self.fresh();
        self.prepare(slot::CNODE, Invocation::CNodeCopy, &[target, 64, source, 64, rights], &[slot::CNODE]);
        target
    }

    /// A thread with the root task's CSpace and VSpace, without IPC buffer, not started.
    fn thread(&mut self, untyped: u64) -> u64 {
        let thread = self.make(untyped, object::TCB, 0);
        let extra = [slot::CNODE, slot::VSPACE, slot::NULL];
        self.prepare(thread, Invocation::TCBConfigure, &[0, ROOT_GUARD, 0, 0], &extra);
        thread
    }
}

/// Name of an invocation that prepares tables.
const fn name(invocation: Invocation) -> &'static str {
    match invocation {
        Invocation::UntypedRetype => "Untyped_Retype",
        Invocation::CNodeCopy => "CNode_Copy",
        Invocation::CNodeDelete => "CNode_Delete",
        Invocation::TCBConfigure => "TCB_Configure",
        _ => "another invocation",
    }
}
