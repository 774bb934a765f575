//! The floating-point unit of a hart: on, off, and its registers to memory and back.
//!
//! `sstatus.FS` says what U may do and what has happened (privileged manual, "Extension Context Status in mstatus Register"): Off, and
//! every floating-point instruction is illegal; Clean, as in memory; Dirty, changed since. The kernel itself uses no floating point and
//! leaves the field alone between `enter` and `leave`.

use core::arch::asm;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use abi::config::MAX_NUM_NODES;

use super::context::FpuState;
use super::csr::status;
use super::{core_number, csr};

/// Whose registers the unit of each core works on while it is on: where they go if another core asks for them.
static STATE: [AtomicPtr<FpuState>; MAX_NUM_NODES] = [const { AtomicPtr::new(null_mut()) }; MAX_NUM_NODES];

/// Turns the unit of this core on for the thread with `state`; `load`: it holds other registers.
pub fn enter(state: &mut FpuState, load: bool) {
    STATE[core_number()].store(state, Ordering::Relaxed);
    csr::set!("sstatus", status::FS_CLEAN);
    if load {
        restore(state);
        // Loading made it Dirty.
        csr::clear!("sstatus", status::FS_INITIAL);
    }
}

/// Turns the unit of this core off; `state` is up to date afterwards.
pub fn leave(state: &mut FpuState) {
    STATE[core_number()].store(null_mut(), Ordering::Relaxed);
    if csr::read!("sstatus") & status::FS == status::FS {
        save(state);
    }
    csr::clear!("sstatus", status::FS);
}

/// Turns the unit of this core off, for another core that holds the kernel lock.
pub fn leave_core() {
    let state = STATE[core_number()].load(Ordering::Relaxed);
    if !state.is_null() {
        // SAFETY: `enter` got it from the token: a field of a TCB, which lives while it has a unit. The holder of the lock waits until
        // this core has answered, so nobody else borrows it now.
        leave(unsafe { &mut *state });
    }
}

fn save(state: &mut FpuState) {
    // SAFETY: stores 32 registers and a word inside `state`; the unit is on; the kernel keeps nothing in those registers.
    unsafe {
        asm!(
            ".option push",
            ".option arch, +d",
            ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            r"fsd f\number, 8*\number({state})",
            ".endr",
            "frcsr {word}",
            "sd {word}, {fcsr}({state})",
            ".option pop",
            state = in(reg) state,
            word = out(reg) _,
            fcsr = const FpuState::FCSR_OFFSET,
            options(nostack)
        );
    }
}

fn restore(state: &FpuState) {
    // SAFETY: loads 32 registers and a word from `state`; the unit is on; the kernel keeps nothing in those registers.
    unsafe {
        asm!(
            ".option push",
            ".option arch, +d",
            ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            r"fld f\number, 8*\number({state})",
            ".endr",
            "ld {word}, {fcsr}({state})",
            "fscsr {word}",
            ".option pop",
            state = in(reg) state,
            word = out(reg) _,
            fcsr = const FpuState::FCSR_OFFSET,
            options(nostack, readonly)
        );
    }
}
