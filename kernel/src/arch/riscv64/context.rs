//! The registers of a thread while it does not run, and the layout that entry.S knows.
//!
//! Word *n* of `x` is the hardware register x*n*; the place of x0 holds the program counter of the trap (seL4's FaultIP),
//! so that `abi::register::X` maps every position of `seL4_UserContext` to its word. `next_pc` is where the thread goes on
//! (seL4's NextIP). `sstatus` is not saved: the kernel never changes the bits that a return to U uses, except those of the
//! special registers (uintc.rs, fpu.rs), which are switched with them.
//!
//! While the thread runs, `sscratch` points here. `kernel_stack` is written on the way out: the stack of the hart that
//! runs the thread, so that the entry needs one load to find it.

use core::mem::offset_of;

/// Byte offsets for entry.S.
pub mod offset {
    /// `next_pc`.
    pub const NEXT_PC: usize = 256;
    /// `kernel_stack`.
    pub const KERNEL_STACK: usize = 264;
}

/// User registers.
#[derive(Clone, Debug)]
#[repr(C, align(16))]
pub struct Context {
    /// x1..x31 at their number; word 0 is the program counter of the last trap.
    pub x: [u64; 32],
    /// Where the thread continues.
    pub next_pc: u64,
    kernel_stack: u64,
}

const _: () = {
    assert!(offset_of!(Context, x) == 0);
    assert!(offset_of!(Context, next_pc) == offset::NEXT_PC);
    assert!(offset_of!(Context, kernel_stack) == offset::KERNEL_STACK);
};

impl Context {
    /// All registers zero.
    pub const fn new() -> Self {
        Self { x: [0; 32], next_pc: 0, kernel_stack: 0 }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

/// The floating-point registers of a thread that does not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FpuState {
    /// f0..f31, as bits.
    pub f: [u64; 32],
    /// Rounding mode and flags.
    pub fcsr: u64,
}

impl FpuState {
    /// Where `fcsr` is, for the moves of fpu.rs.
    pub const FCSR_OFFSET: usize = offset_of!(FpuState, fcsr);
}

const _: () = assert!(offset_of!(FpuState, f) == 0);

/// What a thread's user-interrupt state consists of while another thread has the hart.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct UserInterruptState {
    /// Receiver index in the UINTC; 0 = none.
    pub receiver: u16,
    /// The receiver's active bit.
    pub active: bool,
    /// The software latch `uip.USIP`.
    pub latch: bool,
    /// Physical address of the sender table page; 0 = none.
    pub sender_table: u64,
    /// `ustatus`: UIE and UPIE.
    pub status: usize,
    /// `uie`.
    pub enable: usize,
    /// `utvec`.
    pub vector: usize,
    /// `uscratch`.
    pub scratch: usize,
    /// `uepc`.
    pub pc: usize,
    /// `ucause`.
    pub cause: usize,
    /// `utval`.
    pub value: usize,
}

impl UserInterruptState {
    /// Whether there is anything to move.
    pub fn in_use(&self) -> bool {
        self.receiver != 0 || self.sender_table != 0
    }
}
