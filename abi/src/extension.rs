//! What Wakeline adds behind seL4's numbers (docs/architecture.md, section 5).

/// Object type SenderTable: one hardware table page and its capability slots.
pub const SENDER_TABLE: u64 = 0x40;
/// Its size: 8 KiB, log2.
pub const SENDER_TABLE_BITS: usize = 13;
/// Usable entries of a SenderTable.
pub const SENDER_TABLE_ENTRIES: usize = 128;

/// Label: TCB, x0 = Notification.
pub const TCB_BIND_USER_INTERRUPT: u64 = 0x100;
/// Label: TCB.
pub const TCB_UNBIND_USER_INTERRUPT: u64 = 0x101;
/// Label: TCB, x0 = SenderTable or null.
pub const TCB_SET_SENDER_TABLE: u64 = 0x102;
/// Label: SenderTable, x0 = Notification; MR0 of the reply = index.
pub const SENDER_TABLE_REGISTER: u64 = 0x103;
/// Label: SenderTable, MR0 = index.
pub const SENDER_TABLE_UNREGISTER: u64 = 0x104;
/// Label: TCB, x0 = Frame or null, x1 = Notification or null: the ring of the thread ([`crate::syscall_ring`]).
pub const TCB_SET_SYSCALL_RING: u64 = 0x106;

/// System call: signals a notification, then receives. a0 = endpoint or notification to receive from (as Recv), a6 = notification
/// to signal.
pub const SIGNAL_RECV: isize = -0x100;
/// System call: as Recv on a0, until a time at most. a2 = that time, in ticks of the `time` CSR; a6 = notification to signal first, as
/// SignalRecv, or 0. When the time has come the badge is 0.
pub const WAIT_UNTIL: isize = -0x101;
/// System call RingEnter: carries out what the ring of the caller holds. a0 = 0 or [`crate::syscall_ring::HAND_OVER`]; result in a0.
pub const RING_ENTER: isize = -0x102;

/// `DebugCapIdentify` of a SenderTable.
pub const CAP_ID_SENDER_TABLE: u64 = 22;
/// The capability behind an entry of a SenderTable; never in a user-visible slot.
pub const CAP_ID_SENDER_ENTRY: u64 = 24;
