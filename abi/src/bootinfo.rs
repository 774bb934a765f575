//! `seL4_BootInfo`: one page for the root task, its fixed slots, and the extra chunks behind it.

use crate::config::MAX_NUM_BOOTINFO_UNTYPED_CAPS;

/// Fixed slots of the root CNode.
pub mod slot {
    #![allow(missing_docs, reason = "named as the capabilities")]
    pub const NULL: u64 = 0;
    pub const TCB: u64 = 1;
    pub const CNODE: u64 = 2;
    pub const VSPACE: u64 = 3;
    pub const IRQ_CONTROL: u64 = 4;
    pub const ASID_CONTROL: u64 = 5;
    pub const ASID_POOL: u64 = 6;
    pub const BOOT_INFO_FRAME: u64 = 9;
    pub const IPC_BUFFER_FRAME: u64 = 10;
    pub const DOMAIN: u64 = 11;
    /// First dynamic slot (`seL4_NumInitialCaps`).
    pub const NUM_INITIAL: u64 = 16;
}

/// Slots `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SlotRegion {
    /// First slot.
    pub start: u64,
    /// One past the last slot.
    pub end: u64,
}

/// One untyped of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct UntypedDesc {
    /// Physical address.
    pub paddr: u64,
    /// log2 of the size in bytes.
    pub size_bits: u8,
    /// 1 for device memory.
    pub is_device: u8,
    /// Zero.
    pub padding: [u8; 6],
}

/// The BootInfo page.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BootInfo {
    /// Bytes of extra BootInfo in use.
    pub extra_len: u64,
    /// 0.
    pub node_id: u64,
    /// Harts that the kernel runs on.
    pub num_nodes: u64,
    /// 0.
    pub num_io_pt_levels: u64,
    /// Virtual address of the IPC buffer.
    pub ipc_buffer: u64,
    /// Free slots.
    pub empty: SlotRegion,
    /// 0, 0.
    pub shared_frames: SlotRegion,
    /// Frames of the root task's image.
    pub user_image_frames: SlotRegion,
    /// Page tables of the root task's image.
    pub user_image_paging: SlotRegion,
    /// 0, 0.
    pub io_space_caps: SlotRegion,
    /// Frames of the extra BootInfo.
    pub extra_bi_pages: SlotRegion,
    /// Radix of the root CNode.
    pub init_thread_cnode_size_bits: u64,
    /// 0.
    pub init_thread_domain: u64,
    /// Untyped capabilities; slot `untyped.start + i` is described by `untyped_list[i]`.
    pub untyped: SlotRegion,
    /// Their descriptions.
    pub untyped_list: [UntypedDesc; MAX_NUM_BOOTINFO_UNTYPED_CAPS],
}

/// Header of a chunk of extra BootInfo; `len` includes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ExtraHeader {
    /// Kind of the chunk.
    pub id: u64,
    /// Bytes including this header.
    pub len: u64,
}

/// Chunk id of the device tree (`SEL4_BOOTINFO_HEADER_FDT`).
pub const EXTRA_FDT: u64 = 6;

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<BootInfo>() == 3848);
    assert!(offset_of!(BootInfo, ipc_buffer) == 32);
    assert!(offset_of!(BootInfo, empty) == 40);
    assert!(offset_of!(BootInfo, user_image_frames) == 72);
    assert!(offset_of!(BootInfo, extra_bi_pages) == 120);
    assert!(offset_of!(BootInfo, untyped) == 152);
    assert!(offset_of!(BootInfo, untyped_list) == 168);
};
