//! CSRs, fences, traps and returns.

use soc_guest::entry::{Mode, enter};
use soc_guest::{few, line, measure, read_csr, set_csr, write_csr};

/// Cause of an illegal instruction.
const ILLEGAL: u64 = 2;
/// Illegal instruction and call from U go to S.
const DELEGATED: u64 = 1 << 8;

pub fn registers_and_traps() {
    line!("csrr, three independent", "csrr a3, mscratch\ncsrr a4, mscratch\ncsrr a5, mscratch");
    line!("csrr mcycle and use", "csrr a3, mcycle\nadd a4, a3, a3");
    line!("csrr mip, three independent", "csrr a3, mip\ncsrr a4, mip\ncsrr a5, mip");
    line!("csrr satp, three independent", "csrr a3, satp\ncsrr a4, satp\ncsrr a5, satp");
    line!("csrw sscratch", "csrw sscratch, a1");
    line!("csrw mepc", "csrw mepc, a1");
    line!("csrw scause", "csrw scause, a1");
    line!("csrw stval", "csrw stval, a1");
    line!("csrs mstatus", "li t0, 0", "csrs mstatus, t0", 1, 1);
    line!("csrw sstatus", "csrr t0, sstatus", "csrw sstatus, t0", 1, 1);
    line!("csrw sie", "csrw sie, x0");
    line!("csrc sip", "csrci sip, 2");
    line!("csrw satp", "csrw satp, x0");
    line!("csrw stvec", "csrw stvec, a0");
    line!("csrw fcsr", "csrw fcsr, x0");
    line!("csrrw swap chain", "csrrw a1, sscratch, a1");
    line!("fence", "fence");
    line!("store, fence", "sd a1, 16(a0)\nfence");
    line!("store, fence, load", "sd a1, 16(a0)\nfence\nld a3, 256(a0)");
    line!("load, fence, load", "ld a3, 16(a0)\nfence\nld a4, 256(a0)");
    line!("sfence.vma", "sfence.vma");
    line!("sfence.vma address", "sfence.vma a0");
    line!("sfence.vma address space", "sfence.vma x0, a1");
    // The trap, csrr and its 2 bubbles, addi, csrw, mret: 5 + 3 + 1 + 1 + 5.
    few!("ecall and back", "", "ecall");
    few!("illegal instruction and back", "", ".word 0x0000000b");
    few!("misaligned load and back", "", "ld a3, 1(a0)");
    user_call();
}

core::arch::global_asm!(
    r#"
    .balign 64
    .option push
    .option norvc
    .globl user_call_handler
user_call_handler:
    csrr    t0, sepc
    addi    t0, t0, 4
    csrw    sepc, t0
    sret
    .option pop
"#
);

/// U-mode `ecall`, four instructions in S (csrr, addi, csrw sepc, sret), and back.
fn user_call() {
    unsafe extern "C" {
        fn user_call_handler();
    }
    extern "C" fn body(_: u64) -> u64 {
        let cycles: u64;
        // SAFETY: reads the cycle counter, which `mcounteren` and `scounteren` allow, and calls a handler that only uses t0.
        unsafe {
            core::arch::asm!(
                ".option push", ".option norvc",
                "li t6, 3", ".balign 64",
                "20: csrr a6, cycle", "ecall", "csrr a7, cycle", "addi t6, t6, -1", "bnez t6, 20b",
                "sub a7, a7, a6", ".option pop",
                lateout("a7") cycles, out("a6") _, out("t0") _, out("t6") _,
            );
        }
        // Back to M by an exception that is not delegated.
        // SAFETY: `enter` catches the trap and gives a0.
        unsafe { core::arch::asm!(".word 0", in("a0") cycles, options(noreturn)) }
    }
    let vector = read_csr!("mtvec");
    write_csr!("mtvec", soc_guest::entry::machine_vector());
    write_csr!("stvec", user_call_handler as *const () as u64);
    write_csr!("medeleg", DELEGATED);
    set_csr!("mcounteren", 7);
    set_csr!("scounteren", 7);
    let trap = enter(Mode::User, body, 0);
    write_csr!("medeleg", 0);
    write_csr!("mtvec", vector);
    if trap.cause == ILLEGAL {
        measure::report("U ecall, 4 instructions in S, and back", trap.result, 1);
    } else {
        soc_guest::println!("user call: trap {:#x} at {:#x}", trap.cause, trap.pc);
    }
}
