//! CSR instructions, fields that do not keep what is written, traps and their registers, and what lower modes may not do.

use super::case::{NONE, check, check_trap};
use soc_guest::entry::{Mode, enter, machine_vector, supervisor_vector};
use soc_guest::{read_csr, write_csr};

const ILLEGAL: u64 = 2;
const BREAKPOINT: u64 = 3;
const USER_CALL: u64 = 8;
const SUPERVISOR_CALL: u64 = 9;
const MACHINE_CALL: u64 = 11;
const MPP: u64 = 3 << 11;
const MPIE: u64 = 1 << 7;

pub fn registers() {
    gives!("csrr t0, mscratch\ncsrw mscratch, a1\ncsrrw a0, mscratch, a2\ncsrw mscratch, t0", 3, 5 => 3);
    gives!("csrw sscratch, a1\ncsrrs a0, sscratch, a2\ncsrr a0, sscratch", 3, 4 => 7);
    gives!("csrw sscratch, a1\ncsrrc a0, sscratch, a2\ncsrr a0, sscratch", 7, 2 => 5);
    gives!("csrw sscratch, a1\ncsrrwi a0, sscratch, 31\ncsrr a0, sscratch", 0, 0 => 31);
    gives!("csrw sscratch, a1\ncsrrsi x0, sscratch, 16\ncsrr a0, sscratch", 1, 0 => 17);
    gives!("csrw sscratch, a1\ncsrrci x0, sscratch, 1\ncsrr a0, sscratch", 3, 0 => 2);
    // Fields that hold legal values only.
    gives!("csrw mepc, a1\ncsrr a0, mepc", 0x8000_0003, 0 => 0x8000_0002);
    gives!("csrw sepc, a1\ncsrr a0, sepc", 0x8000_0003, 0 => 0x8000_0002);
    gives!("csrw medeleg, a1\ncsrr a0, medeleg\ncsrw medeleg, x0", 1 << 11, 0 => 0);
    gives!("csrr t0, satp\ncsrw satp, a1\ncsrr a0, satp\ncsrw satp, t0", 5 << 60, 0 => 0);
    // sstatus is a part of mstatus.
    gives!("csrr t0, mstatus\ncsrw sstatus, a1\ncsrr a0, mstatus\nand a0, a0, a2\ncsrw mstatus, t0", 1 << 18, 1 << 18 => 1 << 18);
    gives!("csrr t0, mstatus\ncsrw sstatus, a1\ncsrr a0, mstatus\nand a0, a0, a2\ncsrw mstatus, t0", 1 << 17, 1 << 17 => 0);
    check_trap("write of a read-only CSR", traps!("csrw mhartid, a1", 0, 0), ILLEGAL, 0xF145_9073);
    check_trap("read of a read-only CSR", traps!("csrrs a0, mhartid, x0", 0, 0), NONE, 0);
    check_trap("a CSR that is not there", traps!("csrr a0, 0x5c0", 0, 0), ILLEGAL, 0x5C00_2573);
}

pub fn traps() {
    check_trap("ecall in M", traps!("ecall", 0, 0), MACHINE_CALL, 0);
    check_trap("zeros", traps!(".word 0", 0, 0), ILLEGAL, 0);
    check_trap("custom-0", traps!(".word 0x0000000b", 0, 0), ILLEGAL, 0xB);
    check("ebreak in M", traps!("ebreak", 0, 0).cause, BREAKPOINT);
    // With C, every even address is a target, and bit 0 of `jalr`'s is cleared.
    check("jalr to an odd address", traps!("auipc a1, 0\njalr x0, 9(a1)", 0, 0).cause, NONE);
    // A trap keeps MIE and the mode in MPIE and MPP, mret brings them back and leaves MPP the least mode.
    write_csr!("mstatus", 1 << 13 | 0x8);
    traps!("ecall", 0, 0);
    check("mstatus in a handler", read_csr!("mstatus") & (MPP | MPIE | 0x8), MPP | MPIE);
    gives!("la t0, 2f\ncsrw mepc, t0\nmret\n2: csrr a0, mstatus\nand a0, a0, a1", MPP | MPIE | 8, 0 => MPIE | 8);
    write_csr!("mstatus", 1 << 13);
    lower_modes();
}

/// Runs one instruction in a lower mode and returns.
macro_rules! lower {
    ($insn:literal) => {{
        extern "C" fn body(argument: u64) -> u64 {
            // SAFETY: the instruction traps, or changes a register that nothing relies on.
            unsafe { core::arch::asm!(".option push", ".option norvc", $insn, ".option pop", in("a0") argument, out("a1") _) };
            argument
        }
        body
    }};
}

fn lower_modes() {
    write_csr!("mtvec", machine_vector());
    write_csr!("mcounteren", 0);
    write_csr!("scounteren", 0);
    let trap = |name: &str, mode, body: extern "C" fn(u64) -> u64, cause: u64, value: u64| {
        let trap = enter(mode, body, 0);
        check(name, trap.cause, cause);
        check(name, trap.value, value);
    };
    trap("return from U", Mode::User, lower!("nop"), USER_CALL, 0);
    trap("return from S", Mode::Supervisor, lower!("nop"), SUPERVISOR_CALL, 0);
    trap("mret in S", Mode::Supervisor, lower!("mret"), ILLEGAL, 0x3020_0073);
    trap("sret in U", Mode::User, lower!("sret"), ILLEGAL, 0x1020_0073);
    trap("sfence.vma in U", Mode::User, lower!("sfence.vma"), ILLEGAL, 0x1200_0073);
    trap("sscratch in U", Mode::User, lower!("csrr a1, sscratch"), ILLEGAL, 0x1400_25F3);
    trap("mscratch in S", Mode::Supervisor, lower!("csrr a1, mscratch"), ILLEGAL, 0x3400_25F3);
    trap("cycle in U, closed", Mode::User, lower!("csrr a1, cycle"), ILLEGAL, 0xC000_25F3);
    write_csr!("mcounteren", 1);
    trap("cycle in U, closed by S", Mode::User, lower!("csrr a1, cycle"), ILLEGAL, 0xC000_25F3);
    trap("cycle in S", Mode::Supervisor, lower!("csrr a1, cycle"), SUPERVISOR_CALL, 0);
    write_csr!("scounteren", 1);
    trap("cycle in U, open", Mode::User, lower!("csrr a1, cycle"), USER_CALL, 0);
    // TVM and TSR: S loses satp, sfence.vma and sret.
    write_csr!("mstatus", 1 << 13 | 1 << 20 | 1 << 22);
    trap("satp in S under TVM", Mode::Supervisor, lower!("csrr a1, satp"), ILLEGAL, 0x1800_25F3);
    trap("sfence.vma in S under TVM", Mode::Supervisor, lower!("sfence.vma"), ILLEGAL, 0x1200_0073);
    trap("sret in S under TSR", Mode::Supervisor, lower!("sret"), ILLEGAL, 0x1020_0073);
    write_csr!("mstatus", 1 << 13);
    // A delegated trap of U goes to S, whose vector passes its cause on; one of M stays in M.
    write_csr!("medeleg", 1 << ILLEGAL);
    write_csr!("stvec", supervisor_vector());
    let delegated = enter(Mode::User, lower!(".word 0x0000000b"), 0);
    check("delegated: through S", delegated.cause, SUPERVISOR_CALL);
    check("delegated: scause", delegated.result, ILLEGAL);
    check("delegated: stval", read_csr!("stval"), 0xB);
    check("delegated: SPP", read_csr!("mstatus") & 1 << 8, 0);
    check("M keeps its own", traps!(".word 0x0000000b", 0, 0).cause, ILLEGAL);
    write_csr!("medeleg", 0);
}
