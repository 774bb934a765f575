//! The microbenchmarks behind `soc`'s timing model: constructs whose cycles were measured on generated Rocket RTL, measured here
//! the same way. One hart, M-mode, warm caches unless a point says otherwise. Every line printed is one point; the published
//! values are in `bench/published/rocket.csv`, `make calibrate` compares.
//!
//! The program uses nothing of the board beyond UART, CLINT, PLIC and finisher, so that it also runs on the RTL.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare rocket --mode timed --rl 1 --wl 1");
}

#[cfg(target_os = "none")]
mod branches;
#[cfg(target_os = "none")]
mod caches;
#[cfg(target_os = "none")]
mod devices;
#[cfg(target_os = "none")]
mod pipeline;
#[cfg(target_os = "none")]
mod system;
#[cfg(target_os = "none")]
mod translation;

#[cfg(target_os = "none")]
mod program {
    use super::{branches, caches, devices, pipeline, system, translation};
    use soc_guest::{measure, mmio, set_csr, write_csr};

    /// `mstatus.FS` = Initial: the FPU may be used.
    const FS_INITIAL: u64 = 1 << 13;

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart != 0 {
            return;
        }
        write_csr!("mtvec", measure::skip());
        set_csr!("mstatus", FS_INITIAL);
        pipeline::integer();
        pipeline::multiply_and_divide();
        pipeline::floating_point();
        pipeline::atomics();
        system::registers_and_traps();
        branches::loops_and_jumps();
        branches::patterns();
        caches::misses();
        caches::streams();
        translation::misses();
        devices::accesses();
        devices::interrupts();
        mmio::exit(0);
    }
}
