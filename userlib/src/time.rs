//! Counters of the hart. The firmware and the kernel open all three to programs (`mcounteren`, `scounteren`).

/// Core clock cycles of this hart since reset (`rdcycle`). Counters of two harts are not comparable.
#[inline(always)]
pub fn cycles() -> u64 {
    counter::cycles()
}

/// Ticks of the time base since reset (`rdtime`), the same on every hart; [`crate::Env::timebase_hz`] gives their rate.
#[inline(always)]
pub fn ticks() -> u64 {
    counter::ticks()
}

/// Instructions that this hart has retired (`rdinstret`).
#[inline(always)]
pub fn instructions() -> u64 {
    counter::instructions()
}

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
mod counter {
    macro_rules! counter {
        ($name:ident, $instruction:literal) => {
            #[inline(always)]
            pub fn $name() -> u64 {
                let value: u64;
                // SAFETY: reads a counter. Not `nomem`: two readings must not be merged or moved over the work between them.
                unsafe { core::arch::asm!(concat!($instruction, " {}"), out(reg) value, options(nostack)) };
                value
            }
        };
    }
    counter!(cycles, "rdcycle");
    counter!(ticks, "rdtime");
    counter!(instructions, "rdinstret");
}

/// A host has no such counter; a test must not get here.
#[cfg(not(all(target_arch = "riscv64", target_os = "none")))]
mod counter {
    pub fn cycles() -> u64 {
        panic!("rdcycle on a host")
    }
    pub fn ticks() -> u64 {
        panic!("rdtime on a host")
    }
    pub fn instructions() -> u64 {
        panic!("rdinstret on a host")
    }
}
