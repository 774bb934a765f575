//! A round: a CSpace with one or more capabilities of every type, worker threads that live in it, and what becomes of them.

use abi::bootinfo::slot;
use abi::extension::SENDER_TABLE;
use abi::label::Label;
use abi::object;
use abi::register;
use abi::rights::Rights;

use crate::plan::{MAX_WORKERS, Plan};
use crate::random::Random;
use crate::request::place;
use crate::supervisor::{ARENA, NODE, Supervisor};
use crate::worker::{self, PAGES, STACK, STATE, STRIDE, State};

/// Calls after which a round ends.
const CALLS: u64 = 4_000;
/// Times that workers which are all stopped are started again.
const REVIVALS: usize = 40;
/// Simulated time between two looks of the supervisor.
const SLEEP_NS: u64 = 20_000_000;
/// Interrupts whose handlers the workers get: sources that never fire.
const IRQ: u64 = 60;

/// Runs round `number`; gives the calls that were made.
pub fn run(supervisor: &mut Supervisor, plan: &Plan, number: u64) -> u64 {
    let mark = supervisor.mark();
    let mut random = Random(plan.seed ^ number.wrapping_mul(0xD134_2543_DE82_EF95));
    let node = build(supervisor, plan);
    let mut tcbs = [0; MAX_WORKERS];
    for (index, tcb) in tcbs[..plan.workers].iter_mut().enumerate() {
        *tcb = supervisor.slot();
        let from = place::TCB + index as u64;
        supervisor.ok(NODE, Label::CNodeCopy, &[*tcb, 64, from, place::RADIX, Rights::ALL.0], &[node]);
        supervisor
            .set_state(index, State { random: random.word(), seed: plan.seed, calls: 0, labels: plan.labels as u64 });
    }
    let mut calls = 0;
    for _ in 0..REVIVALS {
        let first = random.word();
        if (0..plan.workers).any(|index| start(supervisor, plan, node, tcbs[index], index, first).is_err()) {
            break;
        }
        loop {
            supervisor.sleep(SLEEP_NS);
            let now = (0..plan.workers).map(|index| supervisor.calls(index)).sum();
            if now == calls || now >= CALLS {
                break;
            }
            calls = now;
        }
        if calls >= CALLS {
            break;
        }
    }
    // Everything of the round is made of this block, but the handler of an interrupt, which goes with the CNode.
    supervisor.ok(NODE, Label::CNodeRevoke, &[ARENA, 64], &[]);
    supervisor.reset(mark);
    calls
}

/// Fills the workers' CNode.
fn build(supervisor: &mut Supervisor, plan: &Plan) -> u64 {
    let node = supervisor.make(ARENA, object::CNODE, place::RADIX);
    let s = &*supervisor;
    let make = |kind: u64, size: u64, to: u64, count: u64| {
        s.ok(ARENA, Label::UntypedRetype, &[kind, size, 0, 0, to, count], &[node]);
    };
    make(object::TCB, 0, place::TCB, plan.workers as u64);
    make(object::ENDPOINT, 0, place::ENDPOINT, 2);
    make(object::ENDPOINT, 0, place::FAULTS, 1);
    make(object::NOTIFICATION, 0, place::NOTIFICATION, 2);
    make(object::PAGE_4K, 0, place::FRAME, 2);
    make(object::PAGE_TABLE, 0, place::TABLE, 3);
    make(object::UNTYPED, 14, place::UNTYPED, 1);
    make(object::UNTYPED, 12, place::UNTYPED + 1, 1);
    make(SENDER_TABLE, 0, place::SENDER_TABLE, 1);
    make(object::CNODE, 2, place::SMALL_NODE, 1);
    let radix = place::RADIX;
    let derive = |to: u64, from: u64, rights: Rights, data: u64| {
        s.ok(node, Label::CNodeMint, &[to, radix, from, radix, rights.0, data], &[node]);
    };
    derive(place::BADGED, place::ENDPOINT, Rights::ALL, 5);
    derive(place::BADGED + 1, place::ENDPOINT + 1, Rights::WRITE, 6);
    derive(place::BADGED + 2, place::NOTIFICATION, Rights::READ_WRITE, 1 << 3);
    derive(place::BADGED + 3, place::NOTIFICATION + 1, Rights::WRITE, 1 << 4);
    derive(place::FRAME + 2, place::FRAME, Rights::READ, 0);
    for (to, from) in
        [(place::ASID_CONTROL, slot::ASID_CONTROL), (place::ASID_POOL, slot::ASID_POOL), (place::DOMAIN, slot::DOMAIN)]
    {
        s.ok(node, Label::CNodeCopy, &[to, radix, from, 64, Rights::ALL.0], &[NODE]);
    }
    s.ok(node, Label::CNodeMint, &[place::NODE, radix, node, 64, Rights::ALL.0, place::GUARD], &[NODE]);
    s.ok(slot::IRQ_CONTROL, Label::IRQIssueIRQHandler, &[IRQ, place::IRQ_HANDLER, radix], &[node]);
    node
}

/// Makes a worker run, whatever has become of it. Error: its TCB or its CNode is gone.
fn start(s: &Supervisor, plan: &Plan, node: u64, tcb: u64, index: usize, random: u64) -> Result<(), u64> {
    let pages = PAGES + index as u64 * STRIDE;
    let words = [place::FAULTS, place::GUARD, 0, pages];
    s.invoke(tcb, Label::TCBSuspend, &[], &[])?;
    s.invoke(tcb, Label::TCBConfigure, &words, &[node, s.space, s.buffers[index]])?;
    let priority = place::MAX_PRIORITY - (random >> (2 * index)) % 4;
    s.invoke(tcb, Label::TCBSetSchedParams, &[place::MAX_PRIORITY, priority], &[slot::TCB])?;
    if plan.harts > 1 {
        s.invoke(tcb, Label::TCBSetAffinity, &[index as u64 % plan.harts], &[])?;
    }
    let mut words = [0; register::COUNT + 2];
    (words[0], words[1]) = (1, register::COUNT as u64);
    let registers = &mut words[2..];
    registers[register::PC] = worker::work as *const () as u64;
    registers[register::SP] = pages + STACK + STATE;
    registers[register::GP] = global_pointer();
    registers[register::A0] = pages + STATE;
    s.invoke(tcb, Label::TCBWriteRegisters, &words, &[]).map(drop)
}

fn global_pointer() -> u64 {
    let value: u64;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mv {}, gp", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
