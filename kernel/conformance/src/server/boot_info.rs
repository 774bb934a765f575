//! `seL4_BootInfo` as libsel4 16.0.0 declares it for RISC-V.

/// `seL4_SlotRegion`: slots from `start` up to and without `end`.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names are libsel4's")]
#[repr(C)]
pub struct SlotRegion {
    pub start: u64,
    pub end: u64,
}

/// `seL4_UntypedDesc`.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names are libsel4's")]
#[repr(C)]
pub struct UntypedDesc {
    pub paddr: u64,
    pub size_bits: u8,
    pub is_device: u8,
    padding: [u8; 6],
}

/// `CONFIG_MAX_NUM_BOOTINFO_UNTYPED_CAPS`.
pub const UNTYPEDS: usize = 230;

/// `seL4_BootInfo`.
#[allow(missing_docs, reason = "the names are libsel4's")]
#[repr(C)]
pub struct BootInfo {
    pub extra_len: u64,
    pub node_id: u64,
    pub num_nodes: u64,
    pub num_io_pt_levels: u64,
    pub ipc_buffer: u64,
    pub empty: SlotRegion,
    pub shared_frames: SlotRegion,
    pub user_image_frames: SlotRegion,
    pub user_image_paging: SlotRegion,
    pub io_space_caps: SlotRegion,
    pub extra_bi_pages: SlotRegion,
    pub cnode_size_bits: u64,
    pub domain: u64,
    pub untyped: SlotRegion,
    pub untyped_list: [UntypedDesc; UNTYPEDS],
}

const _: () = assert!(size_of::<BootInfo>() == 3848);

impl BootInfo {
    /// The untypeds that there are, with their slots.
    pub fn untypeds(&self) -> impl Iterator<Item = (u64, UntypedDesc)> {
        (self.untyped.start..self.untyped.end).zip(self.untyped_list)
    }
}

/// `seL4_BootInfoHeader`, before each chunk of the extra BootInfo.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names are libsel4's")]
#[repr(C)]
pub struct ExtraHeader {
    pub id: u64,
    pub len: u64,
}

/// `SEL4_BOOTINFO_HEADER_FDT`.
pub const EXTRA_FDT: u64 = 6;
