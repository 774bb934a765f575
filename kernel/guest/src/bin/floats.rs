//! Floating-point registers stay with their thread.
//!
//! Each thread fills f0 to f31 and `fcsr` with values of its own, gives the hart away in every way there is (yield, system call, timer
//! tick, and for thread 0 a move to another hart), and looks whether they are still there. Guests are built without floating point, so
//! nothing but the assembly below touches the registers.
//!
//! `attempt = "disabled"`: sets the FPU flag of its thread; the next floating-point instruction must be a fault.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::sync::atomic::{AtomicU64, Ordering};

    use userlib::cap::slot;
    use userlib::{Env, println, syscall};

    userlib::program!(main);

    core::arch::global_asm!(
        ".option push",
        ".option arch, +d",
        ".globl fill_registers",
        "fill_registers:", // a0 = value: f<n> = a0 + n, fcsr = low bits of a0
        ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
        r"addi t0, a0, \number",
        r"fmv.d.x f\number, t0",
        ".endr",
        "andi t0, a0, 0x7f",
        "fscsr t0",
        "ret",
        ".globl count_changed",
        "count_changed:", // a0 = value; gives how many of the 33 registers are not as filled
        "mv t2, a0",
        "li a0, 0",
        ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
        r"fmv.x.d t0, f\number",
        r"addi t1, t2, \number",
        "xor t0, t0, t1",
        "snez t0, t0",
        "add a0, a0, t0",
        ".endr",
        "frcsr t0",
        "andi t1, t2, 0x7f",
        "xor t0, t0, t1",
        "snez t0, t0",
        "add a0, a0, t0",
        "ret",
        ".option pop",
    );

    unsafe extern "C" {
        safe fn fill_registers(value: u64);
        safe fn count_changed(value: u64) -> u64;
    }

    /// Registers that were found changed, and threads that are done.
    static CHANGED: AtomicU64 = AtomicU64::new(0);
    static DONE: AtomicU64 = AtomicU64::new(0);

    /// Longer than a tick of 2 ms at 100 million instructions a second.
    const SPINS: u64 = 120_000;

    fn main(env: &'static Env, thread: usize) -> i32 {
        if env.arg("attempt") == Some("disabled") {
            fill_registers(1);
            let flags = slot::TCB.set_flags(0, 1);
            println!("{}: flags {flags:?}", env.name());
            fill_registers(2);
            println!("{}: the flag has no effect", env.name());
            return 1;
        }
        CHANGED.fetch_add(first_registers(), Ordering::Relaxed);
        let rounds: u64 = env.arg_or("rounds", 20);
        for round in 0..rounds {
            let value = (thread as u64 + 1) << 40 | round << 16 | (round * 37 + thread as u64) & 0x7F;
            fill_registers(value);
            if thread == 0 && env.arg("move").is_some() {
                let moved = slot::TCB.set_affinity(round % 2);
                assert!(moved.is_ok(), "{moved:?}");
            }
            (0..3).for_each(|_| syscall::yield_now());
            if round % 4 == 0 {
                (0..SPINS).for_each(|spin| {
                    core::hint::black_box(spin);
                });
            }
            CHANGED.fetch_add(count_changed(value), Ordering::Relaxed);
        }
        DONE.fetch_add(1, Ordering::Release);
        if thread != 0 {
            return 0;
        }
        let threads: u64 = env.arg_or("threads", 1);
        while DONE.load(Ordering::Acquire) != threads {
            syscall::yield_now();
        }
        let changed = CHANGED.load(Ordering::Relaxed);
        println!("{}: {changed} registers changed in {threads} threads, {rounds} rounds each", env.name());
        i32::from(changed != 0)
    }

    /// 1 if some register of a thread that has computed nothing is not zero.
    fn first_registers() -> u64 {
        // Against f<n> = 0 + n: f1 to f31 differ, f0 and fcsr do not.
        u64::from(count_changed(0) != 31)
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("floats is a guest program; run it with `cargo run -p images -- run floats`");
}
