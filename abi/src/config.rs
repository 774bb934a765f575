//! Configuration constants of the kernel: seL4's names and defaults (its `config.cmake`, seL4 16.0.0). Those of the first group are
//! only the defaults of an image: the boot header says what holds for it (`images build --root-server`, `[kernel]` of a manifest).

/// `CONFIG_ROOT_CNODE_SIZE_BITS`.
pub const ROOT_CNODE_SIZE_BITS: u32 = 12;
/// `CONFIG_TIMER_TICK_MS`.
pub const TIMER_TICK_MS: u32 = 2;
/// `CONFIG_TIME_SLICE`, in ticks.
pub const TIME_SLICE: u32 = 5;
/// `CONFIG_FASTPATH`.
pub const FASTPATH: bool = true;
/// `CONFIG_PRINTING` and `CONFIG_DEBUG_BUILD`: the debug system calls.
pub const PRINTING: bool = true;
/// `CONFIG_ENABLE_BENCHMARKS`: the benchmark system calls.
pub const BENCHMARKS: bool = false;

/// `CONFIG_MAX_NUM_NODES`: most harts that the kernel runs on; how many it finds, the device tree says.
pub const MAX_NUM_NODES: usize = 8;
/// `CONFIG_NUM_DOMAINS`.
pub const NUM_DOMAINS: usize = 1;
/// `CONFIG_NUM_PRIORITIES`.
pub const NUM_PRIORITIES: usize = 256;
/// `CONFIG_MAX_NUM_BOOTINFO_UNTYPED_CAPS`.
pub const MAX_NUM_BOOTINFO_UNTYPED_CAPS: usize = 230;
/// `CONFIG_RETYPE_FAN_OUT_LIMIT`.
pub const RETYPE_FAN_OUT_LIMIT: u64 = 256;
/// `CONFIG_MAX_NUM_WORK_UNITS_PER_PREEMPTION`.
pub const MAX_NUM_WORK_UNITS_PER_PREEMPTION: usize = 100;
/// `CONFIG_RESET_CHUNK_BITS`.
pub const RESET_CHUNK_BITS: usize = 8;
/// `CONFIG_KERNEL_STACK_BITS`.
pub const KERNEL_STACK_BITS: usize = 14;
/// Greatest PLIC source (`MAX_IRQ` of qemu-riscv-virt).
pub const MAX_PLIC_IRQ: u64 = 95;
/// End of the addresses for which device untypeds are made (`PADDR_USER_DEVICE_TOP`).
pub const PADDR_USER_DEVICE_TOP: u64 = 1 << 39;
