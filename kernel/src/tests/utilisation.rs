//! Benchmark calls: who used the core.

use abi::label::Label::*;
use abi::syscall::*;

use super::world::World;
use crate::arch::Interrupt;

fn report(w: &mut World, cptr: u64) -> Vec<u64> {
    let root = w.root;
    w.syscall(BENCHMARK_GET_THREAD_UTILISATION, cptr, 0, &[], &[]);
    (0..13).map(|index| w.buffer_word(root, abi::ipc_buffer::MESSAGE + index)).collect()
}

#[test]
fn every_cycle_is_somebodys() {
    let mut w = World::new();
    (w.k.config.benchmarks, w.k.config.utilisation) = (true, true);
    let other = w.thread(255);
    w.resume(other);
    w.syscall(BENCHMARK_RESET_LOG, 0, 0, &[], &[]);
    // root, other, root, idle, root.
    let root = w.root;
    w.syscall(YIELD, 0, 0, &[], &[]);
    assert!(w.runs(other));
    w.syscall(YIELD, 0, 0, &[], &[]);
    assert!(w.runs(root));
    w.ok(other.slot, TCBSuspend, &[], &[]);
    let notification = w.make(abi::object::NOTIFICATION, 0);
    let handler = w.fresh();
    w.ok(abi::bootinfo::slot::IRQ_CONTROL, IRQIssueIRQHandler, &[7, handler, 64], &[abi::bootinfo::slot::CNODE]);
    w.ok(handler, IRQSetIRQHandler, &[], &[notification]);
    w.syscall(RECV, notification, 0, &[], &[]);
    assert!(w.running().is_none());
    w.interrupt(Interrupt::Source(7));
    assert!(w.runs(root));
    w.syscall(BENCHMARK_FINALIZE_LOG, 0, 0, &[], &[]);
    let (own, theirs) = (report(&mut w, root.slot), report(&mut w, other.slot));
    assert_eq!((own[1], theirs[1], own[6], own[10]), (3, 1, 1, 5), "schedules: root, other, idle, all");
    assert!(own[0] > 0 && theirs[0] > 0 && own[4] > 0 && own[4] == own[5]);
    // Cycles outside and inside the kernel are all that passed, but for the entry that ended the account.
    let sum = own[0] + theirs[0] + own[4] + own[11];
    assert!(own[9] >= sum - own[11] && own[9] <= sum, "{own:?} {theirs:?}");
    assert_eq!(own[3] + theirs[3] + own[8], own[12], "entries");
    assert_eq!(own[2] + theirs[2] + own[7], own[11], "cycles in the kernel");
    w.syscall(BENCHMARK_RESET_THREAD_UTILISATION, other.slot, 0, &[], &[]);
    assert_eq!(report(&mut w, other.slot)[..4], [0; 4]);
    w.k.arch.console.clear();
    w.syscall(BENCHMARK_DUMP_ALL_THREADS_UTILISATION, 0, 0, &[], &[]);
    assert_eq!(w.k.arch.console.iter().filter(|&&byte| byte == b'\n').count(), 2, "a line for each thread");
}

#[test]
fn without_the_option_the_calls_are_unknown() {
    let mut w = World::new();
    w.k.config.benchmarks = true;
    let root = w.root;
    w.syscall(BENCHMARK_GET_THREAD_UTILISATION, root.slot, 0, &[], &[]);
    assert!(!w.runs(root), "a fault without handler");
}

#[test]
fn a_snapshot_names_threads_and_capabilities() {
    let mut w = World::new();
    let endpoint = w.make(abi::object::ENDPOINT, 0);
    w.mint(endpoint, abi::rights::Rights::READ, 77);
    w.k.arch.console.clear();
    w.syscall(DEBUG_SNAPSHOT, 0, 0, &[], &[]);
    let text = String::from_utf8_lossy(&w.k.arch.console).into_owned();
    for part in ["arch riscv", "= tcb (name: ''", "prio: 255", "cnode_", "(rights: 0x2, badge: 77)", "(22 bits, free:"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}
