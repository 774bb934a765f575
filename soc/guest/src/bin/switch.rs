//! The smallest address-space switch: two user programs in different Sv39 spaces call into a supervisor that saves all
//! registers, changes `satp` and returns into the other one. Prints the cycles of a round trip (two switches).
//!
//! The supervisor runs on one 1 GiB page, the users on 4 KiB pages. The published count of the same sequence on Rocket RTL is
//! in `bench/published/rocket.csv`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare switch --mode timed");
}

#[cfg(target_os = "none")]
mod program {
    use core::arch::global_asm;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use soc_guest::entry::{Mode, enter};
    use soc_guest::measure::report;
    use soc_guest::{mmio, println, set_csr, write_csr};

    /// Enough for the host's clock, too: this is also the workload `switch` of `make bench-soc`.
    const ROUND_TRIPS: u64 = 32_768;
    const ILLEGAL: u64 = 2;
    /// Where both users see their code.
    const USER_AT: u64 = 0x1_0000;
    const VALID: u64 = 1;
    const READ_WRITE_EXECUTE: u64 = 7 << 1;
    const USER: u64 = 1 << 4;
    const ACCESSED_DIRTY: u64 = 3 << 6;
    const SV39: u64 = 8 << 60;

    #[repr(C, align(4096))]
    struct Table([AtomicU64; 512]);
    static ROOTS: [Table; 2] = [const { Table([const { AtomicU64::new(0) }; 512]) }; 2];
    static MIDDLES: [Table; 2] = [const { Table([const { AtomicU64::new(0) }; 512]) }; 2];
    static LEAVES: [Table; 2] = [const { Table([const { AtomicU64::new(0) }; 512]) }; 2];

    /// Saved state of a user: x1 to x31, sepc, sstatus, then the other user's frame and this one's satp.
    #[repr(C, align(64))]
    struct Frame([AtomicU64; 40]);
    static FRAMES: [Frame; 2] = [const { Frame([const { AtomicU64::new(0) }; 40]) }; 2];
    const SEPC: usize = 32;
    const SSTATUS: usize = 33;
    const NEXT: usize = 34;
    const SATP: usize = 35;

    global_asm!(
        r#"
    .macro all_registers op
    .irp n, 1,2,3,4,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \op     x\n, 8*\n(a0)
    .endr
    .endm

    .macro switch_code name, flush
    .balign 64
    .globl \name
\name:
    csrrw   a0, sscratch, a0
    all_registers sd
    csrr    t0, sscratch
    sd      t0, 80(a0)
    csrr    t0, sepc
    csrr    t1, sstatus
    addi    t0, t0, 4
    sd      t0, 256(a0)
    sd      t1, 264(a0)
    csrr    t2, scause
    ld      a0, 272(a0)
    ld      t3, 280(a0)
    csrw    satp, t3
    \flush
    ld      t0, 256(a0)
    ld      t1, 264(a0)
    csrw    sepc, t0
    csrw    sstatus, t1
    csrw    sscratch, a0
    all_registers ld
    ld      a0, 80(a0)
    sret
    .endm

    .text
    switch_code switch_plain, nop
    switch_code switch_flushing, sfence.vma

    // Leaves S for the first user: a0 = its frame, s0 = what it is to run is in the frame.
    .globl start_users
start_users:
    csrw    sscratch, a0
    ld      t3, 280(a0)
    csrw    satp, t3
    sfence.vma
    ld      t0, 256(a0)
    csrw    sepc, t0
    ld      t1, 264(a0)
    csrw    sstatus, t1
    sret

    .balign 4096
    .globl first_user
first_user:
    li      s0, {count}
1:  ecall
    addi    s0, s0, -1
    bnez    s0, 1b
    li      s0, {count}
    csrr    s1, cycle
2:  ecall
    addi    s0, s0, -1
    bnez    s0, 2b
    csrr    a0, cycle
    sub     a0, a0, s1
    .half   0
    .balign 4096
    .globl second_user
second_user:
3:  ecall
    j       3b
    .balign 4096
"#,
        count = const ROUND_TRIPS,
    );

    unsafe extern "C" {
        fn switch_plain();
        fn switch_flushing();
        fn first_user();
        fn second_user();
        safe fn start_users(frame: u64) -> u64;
    }

    fn page(table: &Table) -> u64 {
        (&raw const *table).addr() as u64 >> 12
    }

    fn frame(which: usize) -> u64 {
        (&raw const FRAMES[which]).addr() as u64
    }

    fn build_space(which: usize, code: u64) {
        let (root, middle, leaf) = (&ROOTS[which], &MIDDLES[which], &LEAVES[which]);
        let kernel = (0x8000_0000 >> 12) << 10 | VALID | READ_WRITE_EXECUTE | ACCESSED_DIRTY;
        root.0[2].store(kernel, Relaxed);
        root.0[0].store(page(middle) << 10 | VALID, Relaxed);
        middle.0[0].store(page(leaf) << 10 | VALID, Relaxed);
        let user = code >> 12 << 10 | VALID | READ_WRITE_EXECUTE | USER | ACCESSED_DIRTY;
        leaf.0[(USER_AT >> 12) as usize].store(user, Relaxed);
        let words = &FRAMES[which].0;
        words[SEPC].store(USER_AT, Relaxed);
        words[SSTATUS].store(0, Relaxed);
        words[NEXT].store(frame(1 - which), Relaxed);
        words[SATP].store(SV39 | page(root), Relaxed);
    }

    extern "C" fn go(frame: u64) -> u64 {
        start_users(frame)
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart != 0 {
            return;
        }
        set_csr!("medeleg", 1 << 8);
        set_csr!("mcounteren", 7);
        set_csr!("scounteren", 7);
        let mut code = 0;
        for (name, vector) in [
            ("switch without sfence.vma", switch_plain as *const ()),
            ("switch with sfence.vma", switch_flushing as *const ()),
        ] {
            build_space(0, first_user as *const () as u64);
            build_space(1, second_user as *const () as u64);
            write_csr!("stvec", vector as u64);
            let trap = enter(Mode::Supervisor, go, frame(0));
            if trap.cause != ILLEGAL {
                println!("{name}: trap {:#x} at {:#x}", trap.cause, trap.pc);
                code = 1;
            }
            report(name, trap.result, ROUND_TRIPS);
            write_csr!("satp", 0);
        }
        mmio::exit(code);
    }
}
