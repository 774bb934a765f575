//! Bits that arrive: across harts, at a thread that spins, that blocks, that makes them itself.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, slot};
use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{A0, PC, S1};
use sel4_conformance::server::actor::{Faults, settle};
use sel4_conformance::server::start::{SEND, counters};

use crate::bell::{Bell, Table};
use crate::stub::{self, uipi_send};

const TABLE: &str = "delivery";
const S7: usize = 11;
/// s9 empty entries, s10 bits, s11 entries.
const COUNTS: [usize; 3] = [13, 14, 15];
/// Ticks of the time base (10 core cycles each) from `uipi.send` on one hart to the handler on another. The soc's fast mode lets harts
/// take turns of some hundred cycles; its timed mode needs two ticks.
const BOUND: u64 = 300;

/// Runs the rows.
pub fn run(m: &mut Machine) {
    across_harts(m);
    blocked(m);
    self_made(m);
    senders_apart(m);
    wild_indices(m);
}

fn counts(m: &mut Machine, bell: Bell) -> [u64; 3] {
    COUNTS.map(|register| bell.thread.register(m, register))
}

/// D3: the receiver spins on another hart and makes no system call.
fn across_harts(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    m.prepare(bell.thread.tcb, TCBSetAffinity, &[1], &[]);
    let badged = bell.badged(m, 5);
    let index = Table::new(m, block, slot::TCB).register(m, badged);
    bell.start(m, stub::until(), stub::time_handler(), &[]);
    let [_, started] = counters();
    while counters()[1] < started + 1000 {}
    let [_, sent] = counters();
    uipi_send(index);
    faults.next(m);
    let counts = counts(m, bell);
    m.expect(TABLE, "a spinning receiver on another hart", (0, &[0, 1 << 5, 1]), (0, &counts));
    // Each hart reads its own time, and in fast mode a hart may be ahead of the other by its turn.
    let took = bell.thread.register(m, S7).abs_diff(sent);
    m.expect(TABLE, "it arrives in time", (0, &[took.min(BOUND)]), (0, &[took]));
}

/// D12: a send to a blocked thread wakes nobody, but is not lost; a signal wakes it.
fn blocked(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    let badged = bell.badged(m, 5);
    let index = Table::new(m, block, slot::TCB).register(m, badged);
    bell.start(m, stub::doze(), stub::handler(), &[(A0, bell.notification)]);
    settle(m, block, faults);
    uipi_send(index);
    settle(m, block, faults);
    let pc = bell.thread.register(m, PC);
    let sleeps =
        (stub::doze().0..stub::doze().0 + 64).contains(&pc) && bell.thread.register(m, A0) == bell.notification;
    m.expect(TABLE, "a send wakes no blocked thread", (0, &[1]), (0, &[u64::from(sleeps)]));
    m.send(SEND, badged, 0, [0; 4]);
    faults.next(m);
    let got = bell.thread.register(m, A0);
    m.expect(TABLE, "a signal wakes it", (0, &[1 << 5]), (0, &[got]));
    let counts = counts(m, bell);
    m.expect(TABLE, "the bit sent before is there", (0, &[0, 1 << 5, 1]), (0, &counts));

    // Sent before it waits, to a thread that has never enabled its handler: the wait takes the bit.
    let other = Bell::new(m, block, faults, 1);
    let badged = other.badged(m, 5);
    let index = Table::new(m, block, slot::TCB).register(m, badged);
    uipi_send(index);
    other.thread.start(m, stub::doze(), &[(A0, other.notification)]);
    faults.next(m);
    let got = other.thread.register(m, A0);
    m.expect(TABLE, "a wait takes pending bits", (0, &[1 << 5]), (0, &[got]));
}

/// D24: every bit that a thread can make itself, and D5 for one that has no receiver.
fn self_made(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    bell.start(m, stub::self_made(), stub::handler(), &[]);
    faults.next(m);
    let counts = counts(m, bell);
    m.expect(TABLE, "self-made bits", (0, &[1, u64::MAX, 2]), (0, &counts));

    bell.unbind(m);
    bell.start(m, stub::plain(), stub::handler(), &[]);
    let message = faults.next(m);
    m.expect(TABLE, "without receiver it goes on", (0, &[3]), (0, &[message.word(2)]));
    let seen = [5, 6, 7, 15].map(|register| bell.thread.register(m, register));
    m.expect(TABLE, "without receiver there is nothing to raise", (0, &[0; 4]), (0, &seen));
}

/// D23: each peer has a vector of its own.
fn senders_apart(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    let table = Table::new(m, block, slot::TCB);
    let indices = [0, 17, 31, 32, 62, 63].map(|vector| {
        let badged = bell.badged(m, vector);
        table.register(m, badged)
    });
    indices.iter().for_each(|&index| uipi_send(index));
    uipi_send(indices[1]);
    bell.start(m, stub::until(), stub::handler(), &[]);
    faults.next(m);
    let bits = 1 | 1 << 17 | 1 << 31 | 1 << 32 | 1 << 62 | 1 << 63;
    let counts = counts(m, bell);
    m.expect(TABLE, "a bit per sender", (0, &[0, bits, 1]), (0, &counts));
}

/// D21: whatever index a sender names, only registered receivers get bits.
fn wild_indices(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let bell = Bell::new(m, block, faults, 0);
    let badged = bell.badged(m, 9);
    let index = Table::new(m, block, slot::TCB).register(m, badged);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for bit in 0..64 {
        for wild in [1 << bit, !(1 << bit), u64::MAX >> bit, u64::MAX << bit, random] {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if wild != index {
                uipi_send(wild);
            }
        }
    }
    bell.start(m, stub::yields(), stub::handler(), &[(S1, 3)]);
    faults.next(m);
    let got = counts(m, bell);
    m.expect(TABLE, "wild indices reach nobody", (0, &[0, 0, 0]), (0, &got));
    uipi_send(index);
    bell.start(m, stub::yields(), stub::handler(), &[(S1, 3)]);
    faults.next(m);
    let got = counts(m, bell);
    m.expect(TABLE, "the registered one does", (0, &[0, 1 << 9, 1]), (0, &got));
}
