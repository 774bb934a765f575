//! Emulated user interrupts on the machine: from the trap to [`VirtualHart`], and from the return to U into the handler.
//!
//! Harts without N raise an illegal-instruction exception for every instruction of the extension; `stval` is the instruction (the
//! privileged manual leaves that open; on a hart that reports 0 the thread gets the fault of any illegal instruction).

use core::mem::offset_of;
use core::sync::atomic::{AtomicU16, Ordering};

use abi::config::MAX_NUM_NODES;

use super::super::context::{Context, UserInterruptState};
use super::super::{DIRECT_MAP, core_number, csr, smp};
use super::emulated::{Receivers, VirtualHart};
use crate::object::tcb::Tcb;

static RECEIVERS: Receivers = Receivers::new();
/// The receiver of the thread that each core runs; 0: it has none.
static LOADED: [AtomicU16; MAX_NUM_NODES] = [const { AtomicU16::new(0) }; MAX_NUM_NODES];

/// Makes a receiver empty; no core runs its thread.
pub fn reset(receiver: u16) {
    RECEIVERS.set_core(receiver, None);
    RECEIVERS.take(receiver);
}

/// Posts bits.
pub fn post(receiver: u16, bits: u64) {
    let core = RECEIVERS.post(receiver, bits);
    interrupt(core);
}

/// Takes the pending bits.
pub fn take(receiver: u16) -> u64 {
    RECEIVERS.take(receiver)
}

/// The thread of `state` runs on this core. Its registers are where they are.
pub fn load(state: &UserInterruptState) {
    let core = core_number();
    LOADED[core].store(state.receiver, Ordering::Relaxed);
    RECEIVERS.set_core(state.receiver, Some(core));
}

/// The thread of this core leaves it.
pub fn unload_core() {
    let receiver = LOADED[core_number()].swap(0, Ordering::Relaxed);
    RECEIVERS.set_core(receiver, None);
}

/// A core must look for a pending interrupt. This one does on its way out.
fn interrupt(core: Option<usize>) {
    if let Some(core) = core.filter(|&core| core != core_number()) {
        smp::call(1 << core);
    }
}

/// Executes the instruction in `stval` for a thread that trapped on it, if it is one of the extension's. Under the kernel lock.
pub fn execute(tcb: &mut Tcb) -> bool {
    let (context, state) = (&mut tcb.context, &mut tcb.user_interrupt);
    let mut hart = VirtualHart { context, state, receivers: &RECEIVERS };
    let load = |paddr: u64| {
        // SAFETY: `execute` passes addresses inside the sender table of the thread only: a kernel object, which exists as long as
        // a thread names it, and which the direct map covers.
        unsafe { ((DIRECT_MAP + paddr as usize) as *const u64).read_volatile() }
    };
    let Some(executed) = hart.execute(csr::read!("stval") as u32, load) else { return false };
    interrupt(executed.interrupt);
    true
}

/// Takes the user interrupt of the thread that this core is about to run, if one is due. Gives `context` back.
///
/// # Safety
/// `context` is that of a thread which this core enters next, before it takes the kernel lock again.
pub unsafe fn take_interrupt(context: *mut Context) -> *mut Context {
    // SAFETY: the context of a thread is a field of its TCB.
    let tcb = unsafe { context.byte_sub(offset_of!(Tcb, context)) }.cast::<Tcb>();
    // SAFETY: this core is about to load the thread's registers from there: until that thread traps, no other core touches these
    // two fields (it would stop this core first, stall.rs).
    let (context, state) = unsafe { (&mut (*tcb).context, &mut (*tcb).user_interrupt) };
    VirtualHart { context, state, receivers: &RECEIVERS }.take_interrupt();
    &raw mut *context
}
