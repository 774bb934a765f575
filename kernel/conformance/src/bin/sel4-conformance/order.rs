//! Who runs next: C (current) wakes V while P is ready. Small c: C goes on after its call.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object};

use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{S0, S1, S2, S3};
use sel4_conformance::server::actor::{Actor, Faults, PRIORITY, Stub, settle, take_log};
use sel4_conformance::server::start::{CALL, SEND};

const TABLE: &str = "order of threads";

/// Runs the rows.
pub fn run(m: &mut Machine) {
    let resume = TCBResume.number(m.smp()) << 12;
    // Woken by a signal it joins at the tail; resumed, it comes right after the current thread.
    case(m, "equal priority, signal", PRIORITY, None, b"CcPVCPC");
    case(m, "equal priority, Resume", PRIORITY, Some(resume), b"CcVPCPC");
    case(m, "V higher, signal", PRIORITY + 1, None, b"CVcPCPC");
    case(m, "V higher, Resume", PRIORITY + 1, Some(resume), b"CVcPCPC");
    case(m, "V lower, signal", PRIORITY - 1, None, b"CcPCPC");
    case(m, "V lower, Resume", PRIORITY - 1, Some(resume), b"CcPCPC");
}

/// V waits for a signal, or is suspended and C resumes it by a Call with this info word.
fn case(m: &mut Machine, row: &str, priority: u64, resume: Option<u64>, expected: &[u8]) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let n = m.make(block, object::NOTIFICATION, 0);
    let [current, peer, waiter] = [0, 1, 2].map(|index| Actor::new(m, block, faults, index));
    waiter.set_priority(m, priority);
    match resume {
        None => waiter.start(m, Stub::waiter(), &[(S0, n), (S1, 1)]),
        Some(_) => waiter.load(m, Stub::waiter(), &[(S0, n)]),
    }
    settle(m, block, faults);
    take_log();
    peer.start(m, Stub::peer(), &[]);
    let (capability, info, number) = match resume {
        None => (n, 0, SEND),
        Some(info) => (waiter.tcb, info, CALL),
    };
    current.start(m, Stub::current(), &[(S0, capability), (S2, info), (S3, number as u64)]);
    faults.next(m);
    let (letters, count) = take_log();
    let mut words = [0; 16];
    words.iter_mut().zip(expected).for_each(|(word, &letter)| *word = u64::from(letter));
    m.expect(TABLE, row, (0, &words[..expected.len()]), (0, &letters[..count]));
}
