//! Test programs of the instruction set, one per group: what each instruction gives for chosen operands, which traps it takes with
//! which `mtval`, what it leaves in CSRs. Expected values are those of the unprivileged and privileged manuals; where these leave
//! a choice, Rocket's. The program also runs on Rocket RTL (`bench/rtl`), which is how the table itself was checked.
//!
//! F and D are tested by `soc/tests/float.rs`, user interrupts by `conformance`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare isa");
}

#[cfg(target_os = "none")]
#[macro_use]
mod case;
#[cfg(target_os = "none")]
mod integer;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod multiply;
#[cfg(target_os = "none")]
mod privilege;
#[cfg(target_os = "none")]
mod protection;
#[cfg(target_os = "none")]
mod translation;

#[cfg(target_os = "none")]
mod program {
    use super::{case, integer, memory, multiply, privilege, protection, translation};
    use soc_guest::mmio;

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart != 0 {
            return;
        }
        case::group("I", integer::base);
        case::group("C", integer::compressed);
        case::group("M", multiply::all);
        case::group("loads and stores", memory::plain);
        case::group("A", memory::atomic);
        case::group("Zicsr", privilege::registers);
        case::group("traps", privilege::traps);
        case::group("Sv39", translation::all);
        case::group("PMP", protection::all);
        mmio::exit(u32::from(case::failed()));
    }
}
