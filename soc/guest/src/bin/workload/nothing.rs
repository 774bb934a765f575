//! Speed workload that ends at once: what starting and ending a machine takes.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare nothing");
}

#[cfg(target_os = "none")]
mod program {
    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        soc_guest::together::run(hart, || true);
    }
}
