//! The boot header: first bytes of the kernel image, filled in by the image builder. It carries what seL4's elfloader passes in
//! registers, and the configuration of this image.

/// "WAKELINE", little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WAKELINE");
/// Version of the header's layout.
pub const VERSION: u32 = 1;
/// Physical address of the kernel image.
pub const KERNEL_PADDR: u64 = 0x8020_0000;
/// Virtual address of the kernel image.
pub const KERNEL_VADDR: u64 = 0xFFFF_FFFF_8020_0000;

/// Kernel flags: IPC fast path on.
pub const FLAG_FASTPATH: u32 = 1;
/// Kernel flags: debug printing system calls exist (`CONFIG_PRINTING`, `CONFIG_DEBUG_BUILD`).
pub const FLAG_PRINTING: u32 = 2;
/// Kernel flags: benchmark system calls exist (`CONFIG_ENABLE_BENCHMARKS`).
pub const FLAG_BENCHMARKS: u32 = 4;
/// Kernel flags: the benchmark calls, and the kernel tracks who uses the cores (`CONFIG_BENCHMARK_TRACK_UTILISATION`).
pub const FLAG_UTILISATION: u32 = 8;
/// Kernel flags: the benchmark calls, and the kernel logs its entries (`CONFIG_BENCHMARK_TRACK_KERNEL_ENTRIES`).
pub const FLAG_ENTRIES: u32 = 16;

/// Layout at the start of the kernel image. All little endian, offsets pinned below.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BootHeader {
    /// Jump to the entry code and padding; not to be changed by the builder.
    pub code: [u32; 2],
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// `FLAG_*`.
    pub flags: u32,
    /// Size of the kernel in memory including its bss, bytes; set by the linker.
    pub kernel_size: u64,
    /// Root task image, physical start.
    pub root_start: u64,
    /// Root task image, physical end, a multiple of 4 KiB.
    pub root_end: u64,
    /// Physical minus virtual address of the root task image.
    pub root_pv_offset: u64,
    /// Virtual entry of the root task.
    pub root_entry: u64,
    /// Invocation labels: 0 UP, 1 SMP ([`crate::label::Table`]).
    pub label_table: u32,
    /// Radix of the root CNode.
    pub root_cnode_bits: u32,
    /// Milliseconds per timer tick.
    pub timer_tick_ms: u32,
    /// Ticks per time slice.
    pub time_slice: u32,
    /// Most harts to use; 0 = all that the device tree names, up to [`crate::config::MAX_NUM_NODES`].
    pub max_nodes: u32,
    /// Zero.
    pub reserved: u32,
}

/// Byte offsets for those who write the header without the type (entry code, image builder).
pub mod offset {
    #![allow(missing_docs, reason = "named as the fields")]
    pub const MAGIC: usize = 8;
    pub const VERSION: usize = 16;
    pub const FLAGS: usize = 20;
    pub const KERNEL_SIZE: usize = 24;
    pub const ROOT_START: usize = 32;
    pub const ROOT_END: usize = 40;
    pub const ROOT_PV_OFFSET: usize = 48;
    pub const ROOT_ENTRY: usize = 56;
    pub const LABEL_TABLE: usize = 64;
    pub const ROOT_CNODE_BITS: usize = 68;
    pub const TIMER_TICK_MS: usize = 72;
    pub const TIME_SLICE: usize = 76;
    pub const MAX_NODES: usize = 80;
    pub const SIZE: usize = 88;
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<BootHeader>() == offset::SIZE);
    assert!(offset_of!(BootHeader, magic) == offset::MAGIC);
    assert!(offset_of!(BootHeader, version) == offset::VERSION);
    assert!(offset_of!(BootHeader, flags) == offset::FLAGS);
    assert!(offset_of!(BootHeader, kernel_size) == offset::KERNEL_SIZE);
    assert!(offset_of!(BootHeader, root_start) == offset::ROOT_START);
    assert!(offset_of!(BootHeader, root_end) == offset::ROOT_END);
    assert!(offset_of!(BootHeader, root_pv_offset) == offset::ROOT_PV_OFFSET);
    assert!(offset_of!(BootHeader, root_entry) == offset::ROOT_ENTRY);
    assert!(offset_of!(BootHeader, label_table) == offset::LABEL_TABLE);
    assert!(offset_of!(BootHeader, root_cnode_bits) == offset::ROOT_CNODE_BITS);
    assert!(offset_of!(BootHeader, timer_tick_ms) == offset::TIMER_TICK_MS);
    assert!(offset_of!(BootHeader, time_slice) == offset::TIME_SLICE);
    assert!(offset_of!(BootHeader, max_nodes) == offset::MAX_NODES);
};
