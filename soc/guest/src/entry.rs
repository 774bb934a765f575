//! Start of all harts, and the way into a lower privilege mode and back.
//!
//! [`enter`] runs a function in U or S. It comes back when that function returns (an `ecall` behind its back) or when anything
//! traps to M; the lower mode's registers are then lost, which a test does not mind.

use core::arch::global_asm;

/// Harts that get a stack.
pub const MAX_HARTS: usize = 4;

global_asm!(
    r#"
    .section .text.entry, "ax"
    .globl _start
_start:
    la      t0, {m_trap}
    csrw    mtvec, t0
    li      t0, -1
    csrw    pmpaddr0, t0
    li      t0, 0x1f
    csrw    pmpcfg0, t0
    csrr    a0, mhartid
    la      sp, __stacks
    addi    t0, a0, 1
    slli    t0, t0, 15
    add     sp, sp, t0
    la      t0, {frames}
    slli    t1, a0, 8
    add     t0, t0, t1
    csrw    mscratch, t0
    call    guest_main
1:  wfi
    j       1b

    // enter(mode, function, argument, stack) -> mcause; the frame holds the rest.
    .globl guest_enter
guest_enter:
    csrr    t0, mscratch
    sd      ra, 0(t0)
    sd      sp, 8(t0)
    sd      s0, 16(t0)
    sd      s1, 24(t0)
    sd      s2, 32(t0)
    sd      s3, 40(t0)
    sd      s4, 48(t0)
    sd      s5, 56(t0)
    sd      s6, 64(t0)
    sd      s7, 72(t0)
    sd      s8, 80(t0)
    sd      s9, 88(t0)
    sd      s10, 96(t0)
    sd      s11, 104(t0)
    sd      gp, 112(t0)
    sd      tp, 120(t0)
    li      t1, 3 << 11
    csrc    mstatus, t1
    slli    a0, a0, 11
    csrs    mstatus, a0
    csrw    mepc, a1
    mv      a0, a2
    mv      sp, a3
    la      ra, 2f
    mret
2:  ecall

    .balign 4
    .globl guest_trap
guest_trap:
    csrrw   t0, mscratch, t0
    csrw    mscratch, t0
    sd      a0, 152(t0)
    csrr    a0, mtval
    sd      a0, 128(t0)
    csrr    a0, mepc
    sd      a0, 136(t0)
    csrr    a0, mcause
    csrr    t1, mstatus
    srli    t1, t1, 11
    andi    t1, t1, 3
    li      t2, 3
    bne     t1, t2, 3f
    tail    {unexpected}
3:
    ld      ra, 0(t0)
    ld      sp, 8(t0)
    ld      s0, 16(t0)
    ld      s1, 24(t0)
    ld      s2, 32(t0)
    ld      s3, 40(t0)
    ld      s4, 48(t0)
    ld      s5, 56(t0)
    ld      s6, 64(t0)
    ld      s7, 72(t0)
    ld      s8, 80(t0)
    ld      s9, 88(t0)
    ld      s10, 96(t0)
    ld      s11, 104(t0)
    ld      gp, 112(t0)
    ld      tp, 120(t0)
    ret

    // Supervisor trap vector: tell M what happened by an ecall with the cause in a0.
    .balign 4
    .globl guest_supervisor_trap
guest_supervisor_trap:
    csrr    a0, scause
    ecall

    .bss
    .balign 256
guest_frames:
    .space  256 * {harts}
"#,
    m_trap = sym guest_trap,
    unexpected = sym unexpected,
    frames = sym guest_frames,
    harts = const MAX_HARTS,
);

unsafe extern "C" {
    fn guest_enter(mode: u64, function: u64, argument: u64, stack: u64) -> u64;
    fn guest_trap();
    fn guest_supervisor_trap();
    static guest_frames: [[u64; 32]; MAX_HARTS];
}

/// Privilege mode to enter.
#[derive(Clone, Copy)]
pub enum Mode {
    /// User.
    User = 0,
    /// Supervisor.
    Supervisor = 1,
}

/// What ended a visit to a lower mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// `mcause`; 8 or 9 if the function returned.
    pub cause: u64,
    /// `mtval`.
    pub value: u64,
    /// `mepc`.
    pub pc: u64,
    /// a0 at the trap: the function's result if it returned.
    pub result: u64,
}

#[repr(C, align(16))]
struct Stack([u8; 8192]);
static STACKS: [Stack; MAX_HARTS] = [const { Stack([0; 8192]) }; MAX_HARTS];

/// Runs `function(argument)` in `mode` on a stack of its own.
pub fn enter(mode: Mode, function: extern "C" fn(u64) -> u64, argument: u64) -> Trap {
    let hart = crate::read_csr!("mhartid") as usize;
    let stack = (&raw const STACKS[hart]).addr() as u64 + size_of::<Stack>() as u64;
    // SAFETY: the frame of this hart is its own (mscratch), the lower mode runs on a stack that nothing else uses, and every
    // way back goes through guest_trap, which restores the callee-saved registers of this call.
    let cause = unsafe { guest_enter(mode as u64, function as *const () as u64, argument, stack) };
    // SAFETY: guest_trap wrote these words of this hart's frame before it returned here; volatile because assembly wrote them.
    let word = |index: usize| unsafe { (&raw const guest_frames[hart][index]).read_volatile() };
    Trap { cause, value: word(16), pc: word(17), result: word(19) }
}

/// Address of a supervisor trap vector that passes `scause` on as the result of a trap with cause 9.
pub fn supervisor_vector() -> u64 {
    guest_supervisor_trap as *const () as u64
}

/// Address of the machine trap vector that [`enter`] relies on.
pub fn machine_vector() -> u64 {
    guest_trap as *const () as u64
}

extern "C" fn unexpected(cause: u64) -> ! {
    let pc = crate::read_csr!("mepc");
    crate::println!("unexpected trap: cause {cause:#x} pc {pc:#x}");
    crate::mmio::exit(1)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    crate::println!("{info}");
    crate::mmio::exit(1)
}
