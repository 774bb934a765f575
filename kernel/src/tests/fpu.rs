//! Floating-point context: who has the unit, and that nobody sees another thread's registers.

use abi::label::Label::*;
use abi::syscall::*;

use super::world::{Thread, World, with_cores};
use crate::arch::host::Effect;
use crate::arch::{FpuState, Interrupt};
use crate::object::tcb::ThreadState;

const ILLEGAL: u64 = 2;

/// The running thread uses the unit for the first time since it was off, and leaves `value` everywhere.
fn compute(w: &mut World, value: u64) {
    if !w.k.this().fpu_on {
        w.fault(ILLEGAL, 0);
    }
    assert!(w.k.this().fpu_on);
    w.k.arch.fpu = FpuState { f: [value; 32], fcsr: value & 0xFF };
}

fn two_threads() -> (World, Thread, Thread) {
    let mut w = World::new();
    let (a, b) = (w.thread(255), w.thread(255));
    w.resume(a);
    w.resume(b);
    (w, a, b)
}

/// Yields until `thread` runs.
fn turn(w: &mut World, thread: Thread) {
    for _ in 0..3 {
        if !w.runs(thread) {
            w.syscall(YIELD, 0, 0, &[], &[]);
        }
    }
    assert!(w.runs(thread));
}

#[test]
fn registers_start_as_zero_and_stay_with_their_thread() {
    let (mut w, a, b) = two_threads();
    compute(&mut w, 1);
    turn(&mut w, a);
    assert!(!w.k.this().fpu_on, "nobody sees the unit of another thread");
    w.fault(ILLEGAL, 0);
    assert_eq!(w.k.arch.fpu, FpuState::default());
    compute(&mut w, 2);
    turn(&mut w, b);
    compute(&mut w, 3);
    for (thread, value) in [(w.root, 1), (a, 2), (b, 3), (a, 2), (w.root, 1)] {
        turn(&mut w, thread);
        assert!(w.k.this().fpu_on, "who has used it gets it back at once");
        assert_eq!(w.k.arch.fpu, FpuState { f: [value; 32], fcsr: value });
    }
}

#[test]
fn registers_are_not_loaded_when_nobody_else_used_the_unit() {
    let (mut w, a, _) = two_threads();
    compute(&mut w, 1);
    turn(&mut w, a);
    w.effects();
    let root = w.root;
    turn(&mut w, root);
    assert!(w.effects().contains(&Effect::EnterFpu { load: false }));
    assert_eq!(w.k.arch.fpu.f[31], 1);
}

#[test]
fn the_flag_takes_the_unit_and_gives_it_back_with_its_registers() {
    let mut w = World::new();
    let root = w.root;
    compute(&mut w, 7);
    assert_eq!(w.ok(root.slot, TCBSetFlags, &[0, 1], &[]), [1]);
    assert!(!w.k.this().fpu_on);
    assert_eq!(w.ok(root.slot, TCBSetFlags, &[1, 0], &[]), [0]);
    w.k.arch.fpu = FpuState::default();
    w.fault(ILLEGAL, 0);
    assert_eq!(w.k.arch.fpu.f[0], 7);
    // With the flag set, the instruction is a fault; the root task has no handler and stops.
    w.ok(root.slot, TCBSetFlags, &[0, 1], &[]);
    w.fault(ILLEGAL, 0);
    assert_eq!(w.state(root), ThreadState::Inactive);
}

#[test]
fn a_thread_that_moves_takes_its_registers_along() {
    let mut w = with_cores(2);
    let root = w.root;
    compute(&mut w, 5);
    w.syscall(CALL, root.slot, TCBSetAffinity.number(w.k.config.labels).expect("SMP"), &[1], &[]);
    assert!(!w.runs(root) && !w.k.this().fpu_on);
    assert_eq!(w.k.get(root.tcb).fpu.f, [5; 32]);
    assert!(w.k.cores.iter().all(|core| core.fpu.is_none()));
}

#[test]
fn a_new_thread_in_the_memory_of_an_old_one_has_no_registers() {
    let mut w = World::new();
    let a = w.thread(255);
    w.resume(a);
    turn(&mut w, a);
    compute(&mut w, 9);
    let root = w.root;
    turn(&mut w, root);
    assert_eq!(w.k.this().fpu, Some(a.tcb));
    w.delete(a.slot);
    assert_eq!(w.k.this().fpu, None);
}

#[test]
fn an_idle_core_keeps_the_registers_but_not_the_unit() {
    let mut w = World::new();
    let root = w.root;
    compute(&mut w, 4);
    let notification = w.make(abi::object::NOTIFICATION, 0);
    w.syscall(RECV, notification, 0, &[], &[]);
    assert!(w.running().is_none() && !w.k.this().fpu_on);
    w.interrupt(Interrupt::Timer);
    assert_eq!(w.k.get(root.tcb).fpu.f, [4; 32]);
}
