//! Uncached accesses and interrupts: CLINT and PLIC.

use core::arch::{asm, global_asm};
use soc_guest::measure::report;
use soc_guest::{few, read_csr, write_csr};

pub fn accesses() {
    few!("CLINT mtime, read to use", "li a1, 0x0200bff8", "ld a3, 0(a1)\nadd a4, a3, a3");
    few!("CLINT msip, read to use", "li a1, 0x02000000", "lw a3, 0(a1)\nadd a4, a3, a3");
    few!("PLIC priority, read to use", "li a1, 0x0c000004", "lw a3, 0(a1)\nadd a4, a3, a3");
    few!("PLIC claim, read to use", "li a1, 0x0c200004", "lw a3, 0(a1)\nadd a4, a3, a3");
    few!(
        "CLINT mtime, read, 12 stores, use",
        "li a1, 0x0200bff8",
        "ld a3, 0(a1)\n.rept 12\nsd a2, 16(a0)\n.endr\nadd a4, a3, a3"
    );
    few!("CLINT, writes in a row", "li a1, 0x02004000\nli a2, -1", "sd a2, 0(a1)");
    few!("PLIC, writes in a row", "li a1, 0x0c000004", "sw x0, 0(a1)");
    few!("CLINT write, 12 alu", "li a1, 0x02004000\nli a2, -1", "sd a2, 0(a1)\n.rept 12\nadd a3, a2, a2\n.endr");
    few!(
        "CLINT write, cached load",
        "li a1, 0x02004000\nli a2, -1",
        "sd a2, 0(a1)\nld a3, 16(a0)\n.rept 12\nadd a4, a2, a2\n.endr"
    );
    few!(
        "CLINT write, fence, read, use",
        "li a1, 0x02004000\nli a2, -1",
        "sd a2, 0(a1)\nfence\nld a3, 0(a1)\nadd a4, a3, a3"
    );
    few!("PLIC write, fence, read, use", "li a1, 0x0c000004", "sw x0, 0(a1)\nfence\nlw a3, 0(a1)\nadd a4, a3, a3");
}

global_asm!(
    r#"
    // Reads the cycle counter first and leaves to t4.
    .balign 64
    .option push
    .option norvc
    .globl rocket_interrupted
rocket_interrupted:
    csrr    a7, mcycle
    csrw    mie, x0
    csrw    mepc, t4
    mret
    .option pop
"#
);

unsafe extern "C" {
    fn rocket_interrupted();
}

const MSIE: u64 = 1 << 3;
const SSIE: u64 = 1 << 1;
const MEIE: u64 = 1 << 11;

/// Cycles from a read of the counter right before `$raise` to the first instruction of the handler, the third time.
macro_rules! interrupted {
    ($name:literal, $enable:expr, $address:expr, $raise:literal, $clear:literal) => {{
        let mut cycles = 0u64;
        for _ in 0..3 {
            // SAFETY: the handler uses a7 and leaves to label 3.
            unsafe {
                asm!(
                    ".option push", ".option norvc", "la t4, 3f", "csrw mie, {enable}", "csrsi mstatus, 8",
                    "li t0, 1", "li t1, 2", ".balign 64",
                    "csrr a6, mcycle", $raise, "2: j 2b", ".balign 64", "3:",
                    "csrci mstatus, 8", $clear, "sub a7, a7, a6", ".option pop",
                    enable = in(reg) $enable, in("a1") $address, out("a6") _, lateout("a7") cycles,
                    out("t0") _, out("t1") _, out("t4") _,
                );
            }
        }
        report($name, cycles - 1, 1);
    }};
}

pub fn interrupts() {
    let (vector, status) = (read_csr!("mtvec"), read_csr!("mstatus"));
    write_csr!("mtvec", rocket_interrupted as *const () as u64);
    let msip = 0x0200_0000u64;
    interrupted!("own msip to handler", MSIE, msip, "sw t0, 0(a1)", "sw x0, 0(a1)\nfence");
    interrupted!("own msip to handler, in wfi", MSIE, msip, "sw t0, 0(a1)\nwfi", "sw x0, 0(a1)\nfence");
    interrupted!("own SSIP to handler", SSIE, 0u64, "csrs mip, t1", "csrw mip, x0");
    // UART: transmitter empty interrupt, context 0. It is source 10 of the board, and 8 of the RTL, which has no more.
    let uart_enable = 0x1000_0001u64;
    // SAFETY: PLIC registers of the board: priorities of both sources, enables and threshold of hart 0's machine context.
    unsafe {
        (0x0C00_0020 as *mut u32).write_volatile(1);
        (0x0C00_0028 as *mut u32).write_volatile(1);
        (0x0C00_2000 as *mut u32).write_volatile(1 << 10 | 1 << 8);
        (0x0C20_0000 as *mut u32).write_volatile(0);
    }
    interrupted!(
        "device register to handler, through the PLIC",
        MEIE,
        uart_enable,
        "sb t1, 0(a1)",
        "sb x0, 0(a1)\nli t0, 0x0c200004\nlw t1, 0(t0)\nsw t1, 0(t0)\nfence\nli t1, 2"
    );
    write_csr!("mtvec", vector);
    write_csr!("mstatus", status);
}
