//! The log of kernel entries.

use abi::log::{INTERRUPT, RECORDS, SYSCALL, UNKNOWN_SYSCALL, VM_FAULT};
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::*;

use super::world::World;
use crate::arch::Interrupt;
use crate::arch::host::ARENA;
use crate::arch::register::A0;
use crate::object::cap::Kind;

const ILLEGAL_OPERATION: u64 = 3;

fn world() -> World {
    let mut w = World::new();
    (w.k.config.benchmarks, w.k.config.entries) = (true, true);
    w
}

/// A call of the root task, which has to go on: its answer.
fn ask(w: &mut World, number: isize, argument: u64) -> u64 {
    w.syscall(number, argument, 0, &[], &[]);
    assert!(w.runs(w.root));
    w.register(w.root, A0)
}

/// Record `index` of the log in `frame`: start, duration, path, details.
fn record(w: &World, frame: u64, index: usize) -> (u64, u64, u8, u64) {
    let start = (w.cap(frame).paddr().0 - ARENA.0) as usize + 24 * index;
    let bytes = &w.k.arch.memory()[start..start + 24];
    let number =
        |from: usize, to: usize| bytes[from..to].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    (number(0, 8), number(8, 12), bytes[12], number(13, 21))
}

#[test]
fn what_is_no_frame_for_a_log_is_refused() {
    let mut w = world();
    let (large, small, other) = (w.make(ty::MEGA_PAGE, 0), w.make(ty::PAGE_4K, 0), w.make(ty::NOTIFICATION, 0));
    let read_only = w.copy(large, Rights::READ);
    assert_eq!(ask(&mut w, BENCHMARK_RESET_LOG, 0), ILLEGAL_OPERATION);
    for wrong in [0, 1 << 40, other, small, read_only] {
        assert_eq!(ask(&mut w, BENCHMARK_SET_LOG_BUFFER, wrong), ILLEGAL_OPERATION, "capability {wrong}");
    }
    assert_eq!(ask(&mut w, BENCHMARK_SET_LOG_BUFFER, large), 0);
    assert_eq!(ask(&mut w, BENCHMARK_RESET_LOG, 0), 0);
}

#[test]
fn each_entry_leaves_a_record() {
    let mut w = world();
    let (frame, endpoint) = (w.make(ty::MEGA_PAGE, 0), w.make(ty::ENDPOINT, 0));
    ask(&mut w, BENCHMARK_SET_LOG_BUFFER, frame);
    ask(&mut w, BENCHMARK_RESET_LOG, 0);
    w.syscall(NB_SEND, endpoint, 0x5_1234, &[], &[]);
    w.syscall(YIELD, 1 << 40, 0, &[], &[]);
    ask(&mut w, BENCHMARK_NULL_SYSCALL, 0);
    w.interrupt(Interrupt::Source(7));
    let timer = w.k.max_irq() as u64;
    w.interrupt(Interrupt::Timer);
    let records = ask(&mut w, BENCHMARK_FINALIZE_LOG, 0);
    let null = (Kind::Null as u64) << 4;
    let expected = [
        // The reset is over after it has begun the log.
        (UNKNOWN_SYSCALL, (-BENCHMARK_RESET_LOG) as u64 & 0xF | null),
        (SYSCALL, 4 | (Kind::Endpoint as u64) << 4 | 0x5_1234 << 10),
        (SYSCALL, 7 | 0x1F << 4),
        (UNKNOWN_SYSCALL, (-BENCHMARK_NULL_SYSCALL) as u64 & 0xF | null),
        (INTERRUPT, 7 << 3),
        (INTERRUPT, timer << 3),
    ];
    assert_eq!(records, expected.len() as u64);
    let mut before = 0;
    for (index, &(path, details)) in expected.iter().enumerate() {
        let record = record(&w, frame, index);
        assert_eq!((record.2, record.3), (path, details), "record {index}");
        assert!(record.0 > before && record.1 > 0, "record {index}");
        before = record.0 + record.1 - 1;
    }
    // A fault, of a thread that has no handler.
    w.fault(13, 0x7000);
    let record = record(&w, frame, 7);
    assert_eq!((record.2, record.3), (VM_FAULT, 13 << 3));
}

#[test]
fn a_full_log_counts_on() {
    let mut w = world();
    w.check = false;
    let frame = w.make(ty::MEGA_PAGE, 0);
    ask(&mut w, BENCHMARK_SET_LOG_BUFFER, frame);
    ask(&mut w, BENCHMARK_RESET_LOG, 0);
    let many = if cfg!(miri) { 200 } else { RECORDS + 10 };
    (0..many).for_each(|_| w.syscall(YIELD, 0, 0, &[], &[]));
    assert_eq!(ask(&mut w, BENCHMARK_FINALIZE_LOG, 0), many + 1);
    let last = (many + 1).min(RECORDS) as usize;
    assert_eq!(record(&w, frame, last - 1).2, SYSCALL);
    assert_eq!(record(&w, frame, last + 1).0, 0, "nothing behind it");
}

#[test]
fn the_log_ends_before_its_frame_can_be_something_else() {
    let mut w = world();
    let frame = w.make(ty::MEGA_PAGE, 0);
    ask(&mut w, BENCHMARK_SET_LOG_BUFFER, frame);
    ask(&mut w, BENCHMARK_RESET_LOG, 0);
    w.delete(frame);
    assert_eq!(ask(&mut w, BENCHMARK_FINALIZE_LOG, 0), 1, "the reset alone");
    assert_eq!(ask(&mut w, BENCHMARK_RESET_LOG, 0), ILLEGAL_OPERATION);
}

#[test]
fn without_the_option_there_is_no_log() {
    let mut w = World::new();
    w.k.config.benchmarks = true;
    let root = w.root;
    assert_eq!(ask(&mut w, BENCHMARK_RESET_LOG, 0), 0);
    w.syscall(BENCHMARK_SET_LOG_BUFFER, root.slot, 0, &[], &[]);
    assert!(!w.runs(root), "a fault without handler");
}
