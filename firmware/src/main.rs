//! Entry of the firmware: the crate's library holds what a host can test, this binary what only the machine can run.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod machine;

#[cfg(not(target_os = "none"))]
fn main() {
    println!(
        "the firmware runs on the machine only: cargo build -p firmware --release --target riscv64imac-unknown-none-elf"
    );
}
