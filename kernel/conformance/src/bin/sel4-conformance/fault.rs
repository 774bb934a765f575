//! Faults as the handler receives them, and what its reply does.

use sel4_conformance::System;
use sel4_conformance::number::{Invocation::*, object, rights, slot};

use sel4_conformance::server::Machine;
use sel4_conformance::server::actor::register::{A0, A6, A7, PC, RA, SP};
use sel4_conformance::server::actor::{Actor, FAULT_BADGE as BADGE, Faults, Message, Stub, settle};
use sel4_conformance::server::start::{CALL, CAPS, NB_RECV, NB_SEND, RECV, REPLY, SEND};

const TABLE: &str = "faults";
const CAP_FAULT: u64 = 1;
const UNKNOWN_SYSCALL: u64 = 2;
const USER_EXCEPTION: u64 = 3;
const VM_FAULT: u64 = 5;

/// Runs the rows.
pub fn run(m: &mut Machine) {
    capability_faults(m);
    memory_faults(m);
    exceptions(m);
    small_space(m);
    replies(m);
    stale(m);
}

fn capability_faults(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let pc = Stub::ecall().0;
    let far = 1 << 40;
    let missing = [BADGE, pc, 0x1F40, 1, 2, 0];
    let guard = |receiving| [BADGE, pc, far, receiving, 4, 0x40, 0, 0x33];
    for (row, number, capability, expected) in [
        ("Call, bit 40 set", CALL, far, &guard(0)[..]),
        ("Send, bit 40 set", SEND, far, &guard(0)),
        ("Recv, bit 40 set", RECV, far, &guard(1)),
        ("NBRecv, bit 40 set", NB_RECV, far, &guard(1)),
        ("Recv on an empty slot", RECV, 0x1F40, &missing),
        ("NBRecv on an empty slot", NB_RECV, 0x1F40, &missing),
        ("Recv on a TCB", RECV, slot::TCB, &[BADGE, pc, 1, 1, 2, 0]),
    ] {
        actor.call(m, number, capability, 0, [0; 4]);
        let message = faults.next(m);
        m.expect(TABLE, row, (CAP_FAULT, expected), message.content());
    }
    // No fault: the thread gets to its ebreak.
    let reached = [BADGE, pc + 4, 0, 3, 0];
    actor.call(m, NB_SEND, far, 0, [0; 4]);
    let message = faults.next(m);
    m.expect(TABLE, "NBSend, bit 40 set", (USER_EXCEPTION, &reached), message.content());
    actor.call(m, CALL, 0x1F40, 0, [0; 4]);
    let message = faults.next(m);
    m.expect(TABLE, "Call on an empty slot", (USER_EXCEPTION, &reached), message.content());
    let info = actor.register(m, 17);
    m.expect(TABLE, "Call on an empty slot, reply", (0, &[2 << 12 | 1]), (0, &[info]));
    actor.buffer.set(CAPS, 1 << 50);
    actor.call(m, CALL, slot::TCB, 1 << 7, [0; 4]);
    let message = faults.next(m);
    let expected = [BADGE, pc, 1 << 50, 0, 4, 0x40, 0, 0x33];
    m.expect(TABLE, "Call with extra cap, bit 50 set", (CAP_FAULT, &expected), message.content());
    actor.call(m, NB_SEND, slot::TCB, 1 << 7, [0; 4]);
    let message = faults.next(m);
    m.expect(TABLE, "NBSend with extra cap, bit 50 set", (USER_EXCEPTION, &reached), message.content());
}

fn memory_faults(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let (load, store) = (Stub::load(), Stub::store());
    let kernel = 0xFFFF_FFFF_8020_0000;
    for (row, stub, address, fetch, status) in [
        ("store to unmapped memory", store, 0x700_0008, 0, 7),
        ("load from unmapped memory", load, 0x700_0010, 0, 5),
        ("jump to unmapped memory", Stub::jump(), 0x700_0020, 1, 1),
        ("store to the kernel", store, kernel, 0, 7),
        ("load from the kernel", load, kernel, 0, 5),
        ("jump into the kernel", Stub::jump(), kernel, 1, 1),
    ] {
        actor.start(m, stub, &[(A0, address)]);
        let message = faults.next(m);
        let pc = if fetch == 1 { address } else { stub.0 };
        m.expect(TABLE, row, (VM_FAULT, &[BADGE, pc, address, fetch, status]), message.content());
    }
    misaligned(m, faults, actor);
}

/// A misaligned load from unmapped memory faults as an aligned one, where the hart makes misaligned accesses. Where it refuses them
/// (as Rocket does, and no firmware makes them in its place), that comes first.
fn misaligned(m: &mut Machine, faults: Faults, actor: Actor) {
    let load = Stub::load();
    actor.start(m, load, &[(A0, actor.buffer.address() + 1)]);
    let message = faults.next(m);
    let makes = message.word(0) != load.0;
    let address = 0x700_0011;
    let expected =
        if makes { (VM_FAULT, [BADGE, load.0, address, 0, 5]) } else { (USER_EXCEPTION, [BADGE, load.0, 0, 4, 0]) };
    actor.start(m, load, &[(A0, address)]);
    let message = faults.next(m);
    m.expect(TABLE, "misaligned load from unmapped memory", (expected.0, &expected.1), message.content());
}

fn exceptions(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    for (row, stub, cause) in [("the instruction of zeros", Stub::zero(), 2), ("ebreak", Stub::ebreak(), 3)] {
        actor.start(m, stub, &[(SP, 0x5000)]);
        let message = faults.next(m);
        m.expect(TABLE, row, (USER_EXCEPTION, &[BADGE, stub.0, 0x5000, cause, 0]), message.content());
    }
    let pc = Stub::ecall().0;
    let arguments = [0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666];
    for (row, number) in [("system call 77", 77), ("system call 0", 0), ("system call -31", -31_i64 as u64)] {
        let mut registers = [(A0, 0); 10];
        (0..).zip(arguments).for_each(|(index, value)| registers[index] = (A0 + index, value));
        registers[6..].copy_from_slice(&[(A6, 0x7777), (A7, number), (SP, 0x5000), (RA, 0x6000)]);
        actor.start(m, Stub::ecall(), &registers);
        let message = faults.next(m);
        let [a0, a1, a2, a3, a4, a5] = arguments;
        let expected = [BADGE, pc, 0x5000, 0x6000, a0, a1, a2, a3, a4, a5, 0x7777, number];
        m.expect(TABLE, row, (UNKNOWN_SYSCALL, &expected), message.content());
    }
}

/// A CSpace that resolves 60 bits: the address of the handler has four bits left over.
fn small_space(m: &mut Machine) {
    let block = m.block();
    let faults = Faults::new(m, block);
    let cnode = m.make(block, object::CNODE, 4);
    m.prepare(cnode, CNodeCopy, &[5, 4, faults.handler, 64, 15], &[slot::CNODE]);
    let actor = Actor::with_space(m, block, 0, 5 << 4, (cnode, 56));
    actor.call(m, RECV, 0x1F40, 0, [0; 4]);
    let message = faults.next(m);
    let expected = [BADGE, Stub::ecall().0, 0x1F40, 1, 4, 0x40, 0, 0x38];
    m.expect(TABLE, "handler with bits left over", (CAP_FAULT, &expected), message.content());
}

fn replies(m: &mut Machine) {
    const TABLE: &str = "replies to faults";
    let block = m.block();
    let faults = Faults::new(m, block);
    let actor = Actor::new(m, block, faults, 0);
    let pc = Stub::ecall().0;
    // Whatever the reply says, a thread with a capability or memory fault executes its instruction again.
    actor.call(m, RECV, 0x1F40, 0, [0; 4]);
    faults.next(m);
    m.send(REPLY, 0, 7 << 12 | 1, [0x1_0000, 0, 0, 0]);
    let message = faults.next(m);
    m.expect(TABLE, "CapFault, label 7", (CAP_FAULT, &[BADGE, pc, 0x1F40, 1, 2, 0]), message.content());
    actor.start(m, Stub::load(), &[(A0, 0x700_0000)]);
    faults.next(m);
    m.send(REPLY, 0, 7 << 12 | 1, [0x1_0000, 0, 0, 0]);
    let message = faults.next(m);
    m.expect(TABLE, "VMFault, label 7", (VM_FAULT, &[BADGE, Stub::load().0, 0x700_0000, 0, 5]), message.content());

    // An unknown system call: the reply sets registers in the order of the message.
    let unknown = [(A7, 77), (A0, 1)];
    actor.start(m, Stub::ecall(), &unknown);
    faults.next(m);
    m.send(REPLY, 0, 4, [pc + 4, 0x5000, 0x6000, 0x7000]);
    let message = faults.next(m);
    m.expect(TABLE, "UnknownSyscall, length 4", (USER_EXCEPTION, &[BADGE, pc + 4, 0x5000, 3, 0]), message.content());
    let registers = [RA, A0, A0 + 1].map(|register| actor.register(m, register));
    m.expect(TABLE, "registers of the reply", (0, &[0x6000, 0x7000, 0]), (0, &registers));
    actor.start(m, Stub::ecall(), &unknown);
    faults.next(m);
    m.send(REPLY, 0, 0, [0; 4]);
    let message = faults.next(m);
    let again = message.content();
    m.expect(TABLE, "UnknownSyscall, length 0: again", (UNKNOWN_SYSCALL, &[BADGE, pc]), (again.0, &again.1[..2]));
    m.send(REPLY, 0, 1 << 12, [0; 4]);
    let quiet = faults.none(m);
    m.expect(TABLE, "UnknownSyscall, label 1: stops", (0, &[1]), (0, &[u64::from(quiet)]));

    // An exception: pc and sp.
    actor.start(m, Stub::zero(), &[]);
    faults.next(m);
    m.send(REPLY, 0, 3, [Stub::ebreak().0, 0x7000, 0x8000, 0]);
    let message = faults.next(m);
    m.expect(
        TABLE,
        "UserException, length 3",
        (USER_EXCEPTION, &[BADGE, Stub::ebreak().0, 0x7000, 3, 0]),
        message.content(),
    );
    m.send(REPLY, 0, 1 << 12 | 1, [Stub::zero().0, 0, 0, 0]);
    let quiet = faults.none(m);
    m.expect(TABLE, "UserException, label 1: stops", (0, &[1]), (0, &[u64::from(quiet)]));
    let stopped = actor.register(m, PC);
    m.expect(TABLE, "but the registers are set", (0, &[Stub::zero().0]), (0, &[stopped]));
}

/// A thread that is suspended while its fault waits to be received keeps the fault: its next message is the old fault, through the
/// capability that it uses now.
fn stale(m: &mut Machine) {
    let block = m.block();
    let (faults, others) = (Faults::new(m, block), Faults::new(m, block));
    let actor = Actor::new(m, block, faults, 0);
    let (ep, badged) = (m.make(block, object::ENDPOINT, 0), m.fresh());
    m.prepare(slot::CNODE, CNodeMint, &[badged, 64, ep, 64, rights::ALL, 0x42], &[slot::CNODE]);
    actor.start(m, Stub::ebreak(), &[]);
    settle(m, block, others);
    m.prepare(actor.tcb, TCBSuspend, &[], &[]);
    actor.call(m, CALL, badged, 0x77 << 12, [0; 4]);
    let message = Message::of(m, RECV, ep);
    let expected = [0x42, Stub::ecall().0, 0, 3, 0];
    m.expect(TABLE, "suspended with a fault in the queue", (USER_EXCEPTION, &expected), message.content());
}
