//! The riscv64 half of the kernel: one file per mechanism of the privileged architecture, and this list of its memory.
//!
//! Memory as the kernel maps it (Sv39; the same in every address space, global):
//!
//! | virtual | physical |
//! |---|---|
//! | `DIRECT_MAP` + p | p, below 254 GiB: 1 GiB pages; the kernel's own GiB in 2 MiB pages |
//! | `abi::image::KERNEL_VADDR` | `KERNEL_PADDR`: the kernel image, same table as above |
//! | `DEVICES` | CLINT, PLIC, UINTC: 2 MiB pages, filled in at boot |
//!
//! The kernel's GiB is not one page, because the firmware closes its part of it: hardware caches a page that is not uniformly
//! accessible in 4 KiB pieces (Rocket's TLB).

pub mod attention;
#[cfg(target_arch = "riscv64")]
pub mod console;
pub mod context;
#[cfg(target_arch = "riscv64")]
mod csr;
#[cfg(target_arch = "riscv64")]
mod fpu;
#[cfg(target_arch = "riscv64")]
pub mod irq;
pub mod lock;
#[cfg(target_arch = "riscv64")]
pub mod mmu;
pub mod once;
#[cfg(target_arch = "riscv64")]
mod panic;
pub mod plic;
#[cfg(target_arch = "riscv64")]
mod port;
#[cfg(target_arch = "riscv64")]
pub mod sbi;
#[cfg(target_arch = "riscv64")]
pub mod smp;
#[cfg(target_arch = "riscv64")]
mod stall;
#[cfg(target_arch = "riscv64")]
pub mod start;
pub mod sv39;
#[cfg(target_arch = "riscv64")]
pub mod timer;
#[cfg(target_arch = "riscv64")]
pub mod trap;
pub mod uintc;

#[cfg(target_arch = "riscv64")]
pub use port::Riscv64;
#[cfg(target_arch = "riscv64")]
pub use start::{kernel_root, prepare_stack, secondary_entry, stack_range};

/// Kernel address of physical address 0.
pub const DIRECT_MAP: usize = 0xFFFF_FFC0_0000_0000;
/// Kernel address of the device window.
pub const DEVICES: usize = 0xFFFF_FFFF_C000_0000;

/// The core that executes this: 0 is the one that booted.
#[cfg(target_arch = "riscv64")]
#[inline(always)]
pub fn core_number() -> usize {
    let core: usize;
    // SAFETY: entry.S keeps the core number in tp for as long as the kernel runs; compiled code does not use tp.
    unsafe { core::arch::asm!("mv {}, tp", out(reg) core, options(pure, nomem, nostack, preserves_flags)) }
    core
}
