//! A system call with any number and any registers: what `userlib` does not let one do.

/// a0 to a7: what a system call reads, and a0 to a5 what it may change.
pub type Registers = [u64; 8];

/// Executes an `ecall` with these registers, and with `seed` in t5 and `number` in t6, where the report of a kernel panic shows them.
/// Gives the registers afterwards.
#[cfg(all(target_arch = "riscv64", target_os = "none"))]
#[inline(always)]
pub fn system_call(mut registers: Registers, seed: u64, number: u64) -> Registers {
    let [a0, a1, a2, a3, a4, a5, a6, a7] = &mut registers;
    // SAFETY: the kernel changes no register but those that are outputs, and no memory of this thread but its IPC buffer, which is
    // reached by volatile accesses only. A reply to a fault may change a6, and the place where the thread goes on: who sends random
    // calls has a thread that may go astray, in an address space of its own.
    unsafe {
        core::arch::asm!(
            "ecall",
            inlateout("a0") *a0, inlateout("a1") *a1, inlateout("a2") *a2, inlateout("a3") *a3,
            inlateout("a4") *a4, inlateout("a5") *a5, inlateout("a6") *a6, inlateout("a7") *a7,
            in("t5") seed, in("t6") number,
            options(nostack)
        );
    }
    registers
}

/// On a host there is no kernel below.
#[cfg(not(all(target_arch = "riscv64", target_os = "none")))]
pub fn system_call(_: Registers, _: u64, number: u64) -> Registers {
    panic!("system call {number} on a host")
}
