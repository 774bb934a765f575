//! Object types of `Untyped_Retype` and their sizes.

/// Untyped memory; size_bits 4 to 38.
pub const UNTYPED: u64 = 0;
/// Thread control block.
pub const TCB: u64 = 1;
/// Endpoint.
pub const ENDPOINT: u64 = 2;
/// Notification.
pub const NOTIFICATION: u64 = 3;
/// CNode (`CapTable`); size_bits = radix.
pub const CNODE: u64 = 4;
/// 1 GiB page.
pub const GIGA_PAGE: u64 = 5;
/// 4 KiB page.
pub const PAGE_4K: u64 = 6;
/// 2 MiB page.
pub const MEGA_PAGE: u64 = 7;
/// Page table, also root of a VSpace.
pub const PAGE_TABLE: u64 = 8;
/// First number that is no seL4 object.
pub const COUNT: u64 = 9;

/// Sizes, log2 of bytes.
pub mod bits {
    /// TCB with room for the FPU context (`HAVE_FPU`).
    pub const TCB: usize = 11;
    /// Endpoint.
    pub const ENDPOINT: usize = 4;
    /// Notification (non-MCS).
    pub const NOTIFICATION: usize = 5;
    /// One capability slot.
    pub const SLOT: usize = 5;
    /// 4 KiB page.
    pub const PAGE_4K: usize = 12;
    /// 2 MiB page.
    pub const MEGA_PAGE: usize = 21;
    /// 1 GiB page.
    pub const GIGA_PAGE: usize = 30;
    /// Page table.
    pub const PAGE_TABLE: usize = 12;
    /// ASID pool.
    pub const ASID_POOL: usize = 12;
    /// Smallest untyped.
    pub const MIN_UNTYPED: usize = 4;
    /// Largest untyped.
    pub const MAX_UNTYPED: usize = 38;
}

/// End of user addresses, exclusive: `seL4_UserTop`.
pub const USER_TOP: u64 = 0x3F_FFFF_F000;

/// Numbers that `DebugCapIdentify` reports (the kernel's type tags).
pub mod cap_id {
    #![allow(missing_docs, reason = "the names are seL4's and say it all")]
    pub const NULL: u64 = 0;
    pub const FRAME: u64 = 1;
    pub const UNTYPED: u64 = 2;
    pub const PAGE_TABLE: u64 = 3;
    pub const ENDPOINT: u64 = 4;
    pub const NOTIFICATION: u64 = 6;
    pub const REPLY: u64 = 8;
    pub const CNODE: u64 = 10;
    pub const ASID_CONTROL: u64 = 11;
    pub const TCB: u64 = 12;
    pub const ASID_POOL: u64 = 13;
    pub const IRQ_CONTROL: u64 = 14;
    pub const IRQ_HANDLER: u64 = 16;
    pub const ZOMBIE: u64 = 18;
    pub const DOMAIN: u64 = 20;
}
