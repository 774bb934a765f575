//! seL4's numbers as libsel4 16.0.0 has them for RISC-V (RV64, Sv39, non-MCS). They are written down here a second time, and not taken
//! from the crate that the kernel takes them from: two readings of one interface catch a mistake in either.

/// Invocations. [`Invocation::number`] has their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are seL4's invocation names")]
pub enum Invocation {
    UntypedRetype,
    TCBReadRegisters,
    TCBWriteRegisters,
    TCBCopyRegisters,
    TCBConfigure,
    TCBSetPriority,
    TCBSetMCPriority,
    TCBSetSchedParams,
    TCBSetIPCBuffer,
    TCBSetSpace,
    TCBSuspend,
    TCBResume,
    TCBBindNotification,
    TCBUnbindNotification,
    TCBSetAffinity,
    TCBSetTLSBase,
    TCBSetFlags,
    CNodeRevoke,
    CNodeDelete,
    CNodeCancelBadgedSends,
    CNodeCopy,
    CNodeMint,
    CNodeMove,
    CNodeMutate,
    CNodeRotate,
    CNodeSaveCaller,
    IRQIssueIRQHandler,
    IRQAckIRQ,
    IRQSetIRQHandler,
    IRQClearIRQHandler,
    DomainSetSet,
    DomainScheduleConfigure,
    DomainScheduleSetStart,
    RISCVPageTableMap,
    RISCVPageTableUnmap,
    RISCVPageMap,
    RISCVPageUnmap,
    RISCVPageGetAddress,
    RISCVASIDControlMakePool,
    RISCVASIDPoolAssign,
    RISCVIRQIssueIRQHandlerTrigger,
    /// No invocation: a label that has no meaning for any object.
    Unknown,
}

impl Invocation {
    /// The label in a UP or an SMP build of libsel4 (`sel4/invocation.h`, generated). `TCBSetAffinity` does not exist in the first;
    /// it has the label 0 there, which no object knows.
    pub const fn number(self, smp: bool) -> u64 {
        use Invocation::*;
        let (up, many) = match self {
            UntypedRetype => (1, 1),
            TCBReadRegisters => (2, 2),
            TCBWriteRegisters => (3, 3),
            TCBCopyRegisters => (4, 4),
            TCBConfigure => (5, 5),
            TCBSetPriority => (6, 6),
            TCBSetMCPriority => (7, 7),
            TCBSetSchedParams => (8, 8),
            TCBSetIPCBuffer => (9, 9),
            TCBSetSpace => (10, 10),
            TCBSuspend => (11, 11),
            TCBResume => (12, 12),
            TCBBindNotification => (13, 13),
            TCBUnbindNotification => (14, 14),
            TCBSetAffinity => (0, 15),
            TCBSetTLSBase => (15, 16),
            TCBSetFlags => (16, 17),
            CNodeRevoke => (17, 18),
            CNodeDelete => (18, 19),
            CNodeCancelBadgedSends => (19, 20),
            CNodeCopy => (20, 21),
            CNodeMint => (21, 22),
            CNodeMove => (22, 23),
            CNodeMutate => (23, 24),
            CNodeRotate => (24, 25),
            CNodeSaveCaller => (25, 26),
            IRQIssueIRQHandler => (26, 27),
            IRQAckIRQ => (27, 28),
            IRQSetIRQHandler => (28, 29),
            IRQClearIRQHandler => (29, 30),
            DomainSetSet => (30, 31),
            DomainScheduleConfigure => (31, 32),
            DomainScheduleSetStart => (32, 33),
            RISCVPageTableMap => (33, 34),
            RISCVPageTableUnmap => (34, 35),
            RISCVPageMap => (35, 36),
            RISCVPageUnmap => (36, 37),
            RISCVPageGetAddress => (37, 38),
            RISCVASIDControlMakePool => (38, 39),
            RISCVASIDPoolAssign => (39, 40),
            RISCVIRQIssueIRQHandlerTrigger => (40, 41),
            Unknown => (99, 99),
        };
        if smp { many } else { up }
    }
}

/// Object types of Untyped_Retype.
#[allow(missing_docs, reason = "the names are seL4's object types")]
pub mod object {
    pub const UNTYPED: u64 = 0;
    pub const TCB: u64 = 1;
    pub const ENDPOINT: u64 = 2;
    pub const NOTIFICATION: u64 = 3;
    pub const CNODE: u64 = 4;
    pub const GIGA_PAGE: u64 = 5;
    pub const PAGE: u64 = 6;
    pub const MEGA_PAGE: u64 = 7;
    pub const PAGE_TABLE: u64 = 8;
}

/// Rights of a capability.
#[allow(missing_docs, reason = "the names are seL4's rights")]
pub mod rights {
    pub const WRITE: u64 = 1;
    pub const READ: u64 = 2;
    pub const ALL: u64 = 15;
    /// All but Grant and GrantReply.
    pub const READ_WRITE: u64 = 3;
}

/// Slots of the root CNode.
#[allow(missing_docs, reason = "named as the capabilities")]
pub mod slot {
    pub const NULL: u64 = 0;
    pub const TCB: u64 = 1;
    pub const CNODE: u64 = 2;
    pub const VSPACE: u64 = 3;
    pub const IRQ_CONTROL: u64 = 4;
    pub const ASID_CONTROL: u64 = 5;
    pub const ASID_POOL: u64 = 6;
    pub const IO_PORT: u64 = 7;
    pub const BOOT_INFO_FRAME: u64 = 9;
    pub const IPC_BUFFER_FRAME: u64 = 10;
    pub const DOMAIN: u64 = 11;
    pub const FIRST_DYNAMIC: u64 = 16;
}

/// `seL4_Error`: the label of an answer.
#[allow(missing_docs, reason = "the names are seL4's errors")]
pub mod error {
    pub const NONE: u64 = 0;
    pub const INVALID_ARGUMENT: u64 = 1;
    pub const INVALID_CAPABILITY: u64 = 2;
    pub const ILLEGAL_OPERATION: u64 = 3;
    pub const RANGE: u64 = 4;
    pub const ALIGNMENT: u64 = 5;
    pub const FAILED_LOOKUP: u64 = 6;
    pub const TRUNCATED: u64 = 7;
    pub const DELETE_FIRST: u64 = 8;
    pub const REVOKE_FIRST: u64 = 9;
    pub const NOT_ENOUGH_MEMORY: u64 = 10;
}

/// Radix of the root CNode that the tables expect (sel4test's `KernelRootCNodeSizeBits`); its guard has the rest of 64 bits.
pub const ROOT_BITS: u64 = 13;
/// Size of the root CNode's guard in bits, 0x33.
pub const ROOT_GUARD: u64 = 64 - ROOT_BITS;
/// End of user addresses, exclusive (`seL4_UserTop`).
pub const USER_TOP: u64 = 0x3F_FFFF_F000;
/// Greatest PLIC source of qemu-riscv-virt. Above it the kernel has two numbers for other cores (SMP only) and one for the timer.
pub const MAX_PLIC_IRQ: u64 = 95;
