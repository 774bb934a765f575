//! Random system calls. Most of them make some sense, so that they get past the first check; a part of every one may be noise, and some
//! are nothing but noise.

use abi::extension::*;
use abi::label::Label::{self, *};
use abi::label::Table;
use abi::message::MessageInfo;
use abi::{object, syscall};
use kernel_guest::trap::Registers;
use userlib::time;

use crate::random::Random;

/// Where what is in the workers' CNode.
pub mod place {
    /// Radix of the CNode.
    pub const RADIX: u64 = 6;
    /// Guard that makes its addresses 64 bits long.
    pub const GUARD: u64 = 64 - RADIX;
    /// Best priority of a worker.
    pub const MAX_PRIORITY: u64 = 100;
    /// The workers' TCBs.
    pub const TCB: u64 = 1;
    /// The CNode itself.
    pub const NODE: u64 = 10;
    /// Two.
    pub const ENDPOINT: u64 = 11;
    /// Two.
    pub const NOTIFICATION: u64 = 13;
    /// Badged: endpoints, then notifications.
    pub const BADGED: u64 = 15;
    /// Two, and a read-only copy.
    pub const FRAME: u64 = 19;
    /// Three; the first becomes a root when a worker assigns it an ASID.
    pub const TABLE: u64 = 22;
    /// Of 16 KiB, and of 4 KiB.
    pub const UNTYPED: u64 = 25;
    pub const ASID_CONTROL: u64 = 27;
    pub const ASID_POOL: u64 = 28;
    pub const IRQ_HANDLER: u64 = 29;
    pub const DOMAIN: u64 = 30;
    pub const SENDER_TABLE: u64 = 31;
    /// Of radix 2.
    pub const SMALL_NODE: u64 = 32;
    /// Slots that requests name at random.
    pub const END: u64 = 48;
    /// The endpoint that gets the workers' faults; lasts, because every fault without handler is a line on the console.
    pub const FAULTS: u64 = 50;
}

/// A system call: registers, and what is in the IPC buffer.
pub struct Request {
    /// a0 to a7.
    pub registers: Registers,
    /// Message words, of which the first four are in registers.
    pub words: [u64; WORDS],
    /// Capabilities to send.
    pub caps: [u64; 3],
    /// Where a capability is to go: CNode, index, depth.
    pub receive: [u64; 3],
}

const WORDS: usize = 12;
/// Waits until a time end within so many ticks of the time base, some of them in the past.
const TICKS: u64 = 4096;

/// What the requests are about; those that stop a worker are rare.
const LABELS: [(Label, u8); 40] = [
    (UntypedRetype, 8),
    (TCBReadRegisters, 2),
    (TCBWriteRegisters, 1),
    (TCBCopyRegisters, 1),
    (TCBConfigure, 1),
    (TCBSetPriority, 2),
    (TCBSetMCPriority, 1),
    (TCBSetSchedParams, 2),
    (TCBSetIPCBuffer, 1),
    (TCBSetSpace, 1),
    (TCBSuspend, 1),
    (TCBResume, 6),
    (TCBBindNotification, 3),
    (TCBUnbindNotification, 2),
    (TCBSetAffinity, 3),
    (TCBSetTLSBase, 1),
    (TCBSetFlags, 1),
    (CNodeRevoke, 2),
    (CNodeDelete, 6),
    (CNodeCancelBadgedSends, 2),
    (CNodeCopy, 8),
    (CNodeMint, 8),
    (CNodeMove, 6),
    (CNodeMutate, 3),
    (CNodeRotate, 3),
    (CNodeSaveCaller, 3),
    (IRQAckIRQ, 1),
    (IRQSetIRQHandler, 2),
    (IRQClearIRQHandler, 1),
    (DomainSetSet, 1),
    (DomainScheduleConfigure, 1),
    (DomainScheduleSetStart, 1),
    (RISCVPageTableMap, 3),
    (RISCVPageTableUnmap, 1),
    (RISCVPageMap, 5),
    (RISCVPageUnmap, 2),
    (RISCVPageGetAddress, 1),
    (RISCVASIDControlMakePool, 1),
    (RISCVASIDPoolAssign, 3),
    (IRQIssueIRQHandler, 1),
];

const EXTENSIONS: [u64; 6] = [
    TCB_BIND_USER_INTERRUPT,
    TCB_UNBIND_USER_INTERRUPT,
    TCB_SET_SENDER_TABLE,
    SENDER_TABLE_REGISTER,
    SENDER_TABLE_UNREGISTER,
    TCB_SET_SYSCALL_RING,
];

/// The next request.
pub fn next(random: &mut Random, labels: Table) -> Request {
    let mut request = Request {
        registers: [0; 8],
        words: core::array::from_fn(|_| word(random)),
        caps: core::array::from_fn(|_| slot(random)),
        receive: [place::NODE, slot(random), 64],
    };
    let (number, cptr, label, length, caps) = match random.below(64) {
        0 => return noise(request, random),
        1..=6 => {
            // Only what everybody may have: no halting debug call, no output.
            let number = match random.below(16) {
                0 => random.of([0, 77, syscall::NB_RECV]),
                1..=3 => syscall::YIELD,
                4..=5 => syscall::DEBUG_CAP_IDENTIFY,
                6 => RING_ENTER,
                _ => syscall::REPLY,
            };
            let first = if number == RING_ENTER { random.below(3) } else { slot(random) };
            (number, first, random.word() >> 44, random.below(6), random.below(3))
        }
        7..=19 => message(random),
        20..=23 => extension(random, &mut request),
        _ => invocation(random, labels, &mut request),
    };
    // One part of some requests is something else.
    match random.below(48) {
        0 => request.words[random.below(WORDS as u64) as usize] = random.word(),
        1 => request.caps[random.below(3) as usize] = random.word(),
        2 => request.receive[random.below(3) as usize] = random.word(),
        _ => {}
    }
    let length = if random.once_in(24) { random.below(128) } else { length };
    let caps = if random.once_in(24) { random.below(4) } else { caps };
    request.registers[0] = if random.once_in(64) { random.word() } else { cptr };
    request.registers[1] = MessageInfo::new(label, 0, caps as usize, length as usize).0;
    request.registers[2..6].copy_from_slice(&request.words[..4]);
    request.registers[6] = if random.once_in(4) { random.word() } else { slot(random) };
    if number == WAIT_UNTIL {
        request.registers[2] = time::ticks() + random.below(TICKS) - TICKS / 8;
        request.registers[6] = if random.once_in(2) { 0 } else { request.registers[6] };
    }
    request.registers[7] = number as u64;
    request
}

/// Registers of noise; not the calls that end the machine or print.
fn noise(mut request: Request, random: &mut Random) -> Request {
    request.registers = core::array::from_fn(|_| random.word());
    let number = random.of([syscall::CALL, syscall::SEND, syscall::NB_SEND, syscall::NB_RECV, syscall::RECV]);
    request.registers[7] = if random.once_in(2) { random.word() >> 1 } else { number as u64 };
    request
}

/// A slot of the CNode; seldom one that the workers need to go on.
fn slot(random: &mut Random) -> u64 {
    if random.once_in(16) {
        random.below(place::END)
    } else {
        place::ENDPOINT + random.below(place::END - place::ENDPOINT)
    }
}

fn word(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => random.below(8),
        2 => slot(random),
        3 => 64,
        4 => address(random),
        _ => random.word(),
    }
}

/// An address for mappings and buffers.
fn address(random: &mut Random) -> u64 {
    const BASE: u64 = 0x1000_0000;
    BASE + (random.below(4) << 21) + (random.below(4) << 12)
}

/// IPC; what may block for ever is rare.
fn message(random: &mut Random) -> (isize, u64, u64, u64, u64) {
    let number = match random.below(48) {
        0 => syscall::SEND,
        1..=2 => syscall::CALL,
        3 => syscall::RECV,
        4..=6 => syscall::REPLY_RECV,
        7..=15 => syscall::NB_RECV,
        16 => SIGNAL_RECV,
        17..=19 => WAIT_UNTIL,
        _ => syscall::NB_SEND,
    };
    let receives = !matches!(number, syscall::SEND | syscall::CALL | syscall::NB_SEND);
    let cptr = match random.below(24) {
        0 => slot(random),
        1..=4 if receives => place::FAULTS,
        // What can be received from.
        _ if receives => place::ENDPOINT + random.below(5),
        _ => place::ENDPOINT + random.below(8),
    };
    (number, cptr, random.below(1 << 20), random.below(14), random.below(4))
}

fn caller(random: &mut Random) -> isize {
    match random.below(32) {
        0 => syscall::SEND,
        1..=3 => syscall::NB_SEND,
        _ => syscall::CALL,
    }
}

fn extension(random: &mut Random, request: &mut Request) -> (isize, u64, u64, u64, u64) {
    let label = random.of(EXTENSIONS);
    let target = match label {
        SENDER_TABLE_REGISTER | SENDER_TABLE_UNREGISTER => place::SENDER_TABLE,
        _ => place::TCB + random.below(8),
    };
    request.words[0] = random.below(4);
    request.caps[0] = match label {
        TCB_SET_SENDER_TABLE => random.of([place::SENDER_TABLE, 0]),
        SENDER_TABLE_REGISTER => place::BADGED + 2 + random.below(2),
        TCB_SET_SYSCALL_RING => random.of([place::FRAME, place::FRAME + 1, place::FRAME + 2, 0]),
        _ => place::NOTIFICATION + random.below(2),
    };
    request.caps[1] = random.of([place::NOTIFICATION, place::NOTIFICATION + 1, 0]);
    (caller(random), target, label, 2, 2)
}

/// An invocation of seL4's.
fn invocation(random: &mut Random, labels: Table, request: &mut Request) -> (isize, u64, u64, u64, u64) {
    let total: u64 = LABELS.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let mut at = random.below(total);
    let chosen = LABELS.iter().find(|(_, weight)| {
        let hit = at < u64::from(*weight);
        at = at.wrapping_sub(u64::from(*weight));
        hit
    });
    let label = chosen.map_or(CNodeCopy, |(label, _)| *label);
    let number = label.number(labels).unwrap_or(0);
    let (target, length, caps) = fill(random, label, request);
    (caller(random), target, number, length, caps)
}

/// Arguments that fit a label; gives the capability to invoke, and how much is sent.
fn fill(random: &mut Random, label: Label, request: &mut Request) -> (u64, u64, u64) {
    let tcb = |random: &mut Random| place::TCB + random.below(8);
    let (words, caps) = (&mut request.words, &mut request.caps);
    let target = match label {
        UntypedRetype => {
            let kind = random.below(10);
            words[0] = if kind == 9 { SENDER_TABLE } else { kind };
            words[1] = match kind {
                object::UNTYPED => 4 + random.below(10),
                object::CNODE => 1 + random.below(4),
                _ => 0,
            };
            (words[2], words[3], words[4], words[5]) = (0, 0, slot(random), 1 + random.below(3));
            caps[0] = place::NODE;
            place::UNTYPED + random.below(2)
        }
        TCBReadRegisters | TCBWriteRegisters | TCBCopyRegisters | TCBSuspend | TCBResume | TCBSetFlags => {
            (words[0], words[1]) = (random.below(16) & random.below(16), random.below(36));
            if label == TCBSetFlags {
                words[1] &= 1;
            }
            caps[0] = tcb(random);
            tcb(random)
        }
        TCBConfigure | TCBSetSpace => {
            (words[0], words[1], words[2], words[3]) = (place::FAULTS, place::GUARD, 0, address(random));
            *caps = [place::NODE, place::TABLE + random.below(3), place::FRAME + random.below(3)];
            tcb(random)
        }
        TCBSetPriority | TCBSetMCPriority | TCBSetSchedParams => {
            // Not far down: who never gets the hart calls nothing.
            (words[0], words[1]) = (place::MAX_PRIORITY - random.below(6), place::MAX_PRIORITY - random.below(6));
            caps[0] = tcb(random);
            tcb(random)
        }
        TCBSetIPCBuffer => {
            (words[0], caps[0]) = (address(random), place::FRAME + random.below(3));
            tcb(random)
        }
        TCBBindNotification | TCBUnbindNotification => {
            caps[0] = place::NOTIFICATION + random.below(2);
            tcb(random)
        }
        TCBSetAffinity | TCBSetTLSBase => {
            words[0] = random.below(5);
            tcb(random)
        }
        IRQIssueIRQHandler => slot(random),
        IRQAckIRQ | IRQSetIRQHandler | IRQClearIRQHandler => {
            caps[0] = place::NOTIFICATION + random.below(6);
            place::IRQ_HANDLER
        }
        DomainSetSet | DomainScheduleConfigure | DomainScheduleSetStart => {
            words[0] = random.below(3);
            caps[0] = tcb(random);
            place::DOMAIN
        }
        RISCVPageTableMap | RISCVPageTableUnmap => {
            (words[0], words[1], caps[0]) = (address(random), 0, place::TABLE);
            place::TABLE + random.below(3)
        }
        RISCVPageMap | RISCVPageUnmap | RISCVPageGetAddress => {
            (words[0], words[1], words[2], caps[0]) = (address(random), random.below(4), random.below(2), place::TABLE);
            place::FRAME + random.below(3)
        }
        RISCVASIDControlMakePool => {
            (words[0], words[1]) = (slot(random), 64);
            *caps = [place::UNTYPED + 1, place::NODE, 0];
            place::ASID_CONTROL
        }
        RISCVASIDPoolAssign => {
            caps[0] = place::TABLE + random.below(3) * random.below(2);
            place::ASID_POOL
        }
        CNodeRotate => {
            (words[0], words[1], words[2], words[3]) = (slot(random), 64, 0, slot(random));
            (words[4], words[5], words[6], words[7]) = (64, 0, slot(random), 64);
            *caps = [place::NODE, place::NODE, 0];
            place::NODE
        }
        _ => {
            // What else a CNode can be asked.
            (words[0], words[1], words[2], words[3]) = (slot(random), 64, slot(random), 64);
            (words[4], words[5]) = (random.below(16), random.of([0, 1, 2, 8, 60, 62]));
            caps[0] = place::NODE;
            if random.once_in(12) {
                (words[0], words[1]) = (random.below(4), 2);
                place::SMALL_NODE
            } else {
                place::NODE
            }
        }
    };
    (target, 8, 3)
}
