//! The UINTC's registers, and the switch of the user-interrupt CSRs of a hart that has the N extension.
//!
//! A hart holds the state of at most one thread. `load` and `unload` move it between the hart and the thread; a thread that
//! has neither a receiver nor a sender table has no state to move, and a switch between two such threads costs one test.
//!
//! For a thread without receiver `sideleg` is 0, so that it can neither set `uie` nor the software latch: what it leaves in
//! the CSRs cannot make another thread jump. `uie` is 0 whenever `sideleg` is 0, so the interrupt does not come to S-mode.
//!
//! Order of a switch-out: the receiver is made inactive first; then the line of this hart is low, and `sip.USIP` shows the
//! bare software latch. Order of a switch-in: LOW (hart and active together) last. Pending bits stay in the UINTC; the level
//! line delivers them at the first user instruction.

use core::arch::asm;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use abi::config::MAX_NUM_NODES;
use uintr::csr::{USI, USTATUS_UIE, USTATUS_UPIE};
use uintr::format::{Suirs, Suist};
use uintr::uintc::{self, Low};

use super::super::context::UserInterruptState;
use super::super::once::Once;
use super::super::{core_number, csr, smp};

static UINTC: Once<Uintc> = Once::new();
/// Whose state each core holds: where it goes back to if another core asks for it.
static LOADED: [AtomicPtr<UserInterruptState>; MAX_NUM_NODES] = [const { AtomicPtr::new(null_mut()) }; MAX_NUM_NODES];

/// The controller, if the machine has one.
#[inline]
pub fn get() -> Option<&'static Uintc> {
    UINTC.get()
}

/// Tells where the controller is; core 0, once.
pub fn init(uintc: Uintc) {
    UINTC.set(uintc);
}

/// Moves the state of this core into `state`.
pub fn unload(uintc: &Uintc, state: &mut UserInterruptState) {
    LOADED[core_number()].store(null_mut(), Ordering::Relaxed);
    uintc.unload(state);
}

/// Gives this core the state of the thread that runs next.
pub fn load(uintc: &Uintc, state: &mut UserInterruptState) {
    LOADED[core_number()].store(state, Ordering::Relaxed);
    uintc.load(state, smp::hart(core_number()));
}

/// Moves the state of this core back to the thread that it belongs to.
pub fn unload_core(uintc: &Uintc) {
    let state = LOADED[core_number()].swap(null_mut(), Ordering::Relaxed);
    if !state.is_null() {
        // SAFETY: `load` got it from the token: a field of a TCB, which lives as long as its state is loaded somewhere. The
        // holder of the lock waits until this core has answered, so nobody else borrows it now.
        uintc.unload(unsafe { &mut *state });
    }
}

/// The controller.
pub struct Uintc {
    base: usize,
    receivers: u16,
}

/// Device writes before this are done before anything after it.
fn device_fence() {
    // SAFETY: a fence.
    unsafe { asm!("fence iorw, iorw", options(nostack)) }
}

impl Uintc {
    /// A controller at the kernel address `base` with `receivers` receivers.
    ///
    /// # Safety
    /// `base` must map the registers of a UINTC with that many receivers, for ever, and every hart must have the N extension.
    pub unsafe fn new(base: usize, receivers: u16) -> Self {
        Self { base, receivers }
    }

    /// Receivers that the hardware has; index 0 is never used.
    pub fn receivers(&self) -> u16 {
        self.receivers
    }

    fn read(&self, receiver: u16, register: usize) -> u64 {
        debug_assert!(receiver < self.receivers);
        // SAFETY: `new`'s caller promised the registers; `receiver` came from this controller's allocator.
        unsafe { ((self.base + uintc::offset(receiver, register)) as *const u64).read_volatile() }
    }

    fn write(&self, receiver: u16, register: usize, value: u64) {
        debug_assert!(receiver < self.receivers);
        // SAFETY: as in `read`.
        unsafe { ((self.base + uintc::offset(receiver, register)) as *mut u64).write_volatile(value) }
    }

    /// Makes a receiver inactive and empty: before its first use and after its last.
    pub fn reset(&self, receiver: u16) {
        self.write(receiver, uintc::LOW, Low::CLEAR.bits());
        device_fence();
        self.read(receiver, uintc::HIGH);
    }

    /// Posts bits.
    pub fn post(&self, receiver: u16, bits: u64) {
        self.write(receiver, uintc::HIGH, bits);
    }

    /// Takes the pending bits.
    pub fn take(&self, receiver: u16) -> u64 {
        self.read(receiver, uintc::HIGH)
    }

    /// Moves the state of this hart into `state`, and leaves the hart with none.
    fn unload(&self, state: &mut UserInterruptState) {
        csr::write!("0x1b0", 0); // suist
        if state.receiver == 0 {
            return;
        }
        device_fence();
        let low = Low::from_bits(self.read(state.receiver, uintc::LOW));
        self.write(state.receiver, uintc::LOW, Low::new(low.hart(), false).bits());
        device_fence();
        state.active = low.active();
        state.latch = csr::read!("sip") & USI as usize != 0;
        state.enable = csr::read!("0x004");
        state.status = csr::read!("0x000");
        state.vector = csr::read!("0x005");
        state.scratch = csr::read!("0x040");
        state.pc = csr::read!("0x041");
        state.cause = csr::read!("0x042");
        state.value = csr::read!("0x043");
        csr::write!("0x1b1", 0); // suirs
        csr::write!("0x004", 0); // uie
        csr::clear!("sip", USI as usize);
        csr::write!("0x103", 0); // sideleg
        for_all_zero();
    }

    /// Gives this hart the state of the thread that runs next. `hart` is the hardware hart id.
    fn load(&self, state: &UserInterruptState, hart: u16) {
        if let Some(table) = Suist::new(state.sender_table, 1).filter(|_| state.sender_table != 0) {
            csr::write!("0x1b0", table.bits() as usize);
        }
        if state.receiver == 0 {
            return;
        }
        csr::write!("0x103", USI as usize); // sideleg
        csr::write!("0x000", state.status & (USTATUS_UIE | USTATUS_UPIE) as usize);
        csr::write!("0x005", state.vector);
        csr::write!("0x040", state.scratch);
        csr::write!("0x041", state.pc);
        csr::write!("0x042", state.cause);
        csr::write!("0x043", state.value);
        if state.latch {
            csr::set!("sip", USI as usize);
        }
        csr::write!("0x1b1", Suirs::new(state.receiver).bits() as usize);
        csr::write!("0x004", state.enable);
        self.write(state.receiver, uintc::LOW, Low::new(hart, state.active).bits());
    }
}

/// Zero in every CSR that the next thread could read.
fn for_all_zero() {
    csr::write!("0x000", 0);
    csr::write!("0x005", 0);
    csr::write!("0x040", 0);
    csr::write!("0x041", 0);
    csr::write!("0x042", 0);
    csr::write!("0x043", 0);
}

/// Boot state of a hart: nothing delegated, nothing enabled, no receiver, no table.
pub fn init_hart() {
    csr::write!("0x103", USI as usize);
    csr::write!("0x004", 0);
    csr::clear!("sip", USI as usize);
    csr::write!("0x103", 0);
    csr::write!("0x1b0", 0);
    csr::write!("0x1b1", 0);
    for_all_zero();
}
