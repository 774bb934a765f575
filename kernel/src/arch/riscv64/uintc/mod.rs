//! User interrupts of a core: receivers, and the switch of the user-interrupt state of its hart.
//!
//! | file | what |
//! |---|---|
//! | `hardware.rs` | harts with the N extension and a UINTC |
//! | `emulated.rs` | any other machine: receivers in memory, and what the instructions and CSRs do to a thread |
//! | `virtual_hart.rs` | how an emulated instruction gets from the trap to there, and an interrupt to its handler |
//!
//! Boot decides: all harts have N and the device tree names a UINTC, or everything is emulated. The functions here ask whether
//! the hardware controller was set, which they must do anyway; so emulation costs nothing where there is hardware. Its own code
//! is reached by another trap vector (entry.S, `trap_entry_emulating`).

pub mod emulated;
#[cfg(target_arch = "riscv64")]
mod hardware;
#[cfg(target_arch = "riscv64")]
pub mod virtual_hart;

#[cfg(target_arch = "riscv64")]
pub use hardware::{Uintc, init};
#[cfg(target_arch = "riscv64")]
pub use seam::*;

#[cfg(target_arch = "riscv64")]
mod seam {
    use super::super::context::UserInterruptState;
    use super::{emulated, hardware, virtual_hart};

    /// Whether this machine's user interrupts are emulated. Meaningful once boot has looked for a UINTC.
    pub fn is_emulated() -> bool {
        hardware::get().is_none()
    }

    /// Boot state of a hart that has the N extension: nothing delegated, nothing enabled, no receiver, no table.
    pub fn init_hart() {
        hardware::init_hart();
    }

    /// Receivers with number 0, which is never used.
    #[inline]
    pub fn receivers() -> u16 {
        hardware::get().map_or(emulated::COUNT, |uintc| uintc.receivers())
    }

    /// Makes a receiver inactive and empty: before its first use and after its last.
    pub fn reset(receiver: u16) {
        match hardware::get() {
            Some(uintc) => uintc.reset(receiver),
            None => virtual_hart::reset(receiver),
        }
    }

    /// Posts bits.
    pub fn post(receiver: u16, bits: u64) {
        match hardware::get() {
            Some(uintc) => uintc.post(receiver, bits),
            None => virtual_hart::post(receiver, bits),
        }
    }

    /// Takes the pending bits.
    pub fn take(receiver: u16) -> u64 {
        match hardware::get() {
            Some(uintc) => uintc.take(receiver),
            None => virtual_hart::take(receiver),
        }
    }

    /// Moves the state of this core into `state`.
    pub fn unload(state: &mut UserInterruptState) {
        match hardware::get() {
            Some(uintc) => hardware::unload(uintc, state),
            None => virtual_hart::unload_core(),
        }
    }

    /// Gives this core the state of the thread that runs next.
    pub fn load(state: &mut UserInterruptState) {
        match hardware::get() {
            Some(uintc) => hardware::load(uintc, state),
            None => virtual_hart::load(state),
        }
    }

    /// Moves the state of this core back to the thread that it belongs to. The holder of the kernel lock waits for it.
    pub fn unload_core() {
        match hardware::get() {
            Some(uintc) => hardware::unload_core(uintc),
            None => virtual_hart::unload_core(),
        }
    }
}
