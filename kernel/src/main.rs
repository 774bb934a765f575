//! Entry of the kernel: everything is in the library; the linker script and the boot header make the binary.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use kernel as _;

#[cfg(not(target_os = "none"))]
fn main() {
    println!(
        "the kernel runs on the machine only: cargo build -p kernel --release --target riscv64imac-unknown-none-elf"
    );
}
