//! Invocation labels. One enumeration names them; their numbers come from a table, because seL4 numbers them by configuration:
//! an SMP kernel has `TCBSetAffinity` in the middle, a UP kernel has not, and everything behind it shifts.

/// Which numbering an image uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Table {
    /// `MAX_NUM_NODES` = 1.
    Up = 0,
    /// `ENABLE_SMP_SUPPORT`.
    Smp = 1,
}

impl Table {
    /// From the word of the boot header; anything but 0 is SMP.
    pub const fn from_word(word: u32) -> Self {
        if word == 0 { Self::Up } else { Self::Smp }
    }
}

/// The invocations of seL4 16.0.0 on RISC-V, in its order. The discriminants are the SMP numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are seL4's invocation names")]
pub enum Label {
    UntypedRetype = 1,
    TCBReadRegisters = 2,
    TCBWriteRegisters = 3,
    TCBCopyRegisters = 4,
    TCBConfigure = 5,
    TCBSetPriority = 6,
    TCBSetMCPriority = 7,
    TCBSetSchedParams = 8,
    TCBSetIPCBuffer = 9,
    TCBSetSpace = 10,
    TCBSuspend = 11,
    TCBResume = 12,
    TCBBindNotification = 13,
    TCBUnbindNotification = 14,
    TCBSetAffinity = 15,
    TCBSetTLSBase = 16,
    TCBSetFlags = 17,
    CNodeRevoke = 18,
    CNodeDelete = 19,
    CNodeCancelBadgedSends = 20,
    CNodeCopy = 21,
    CNodeMint = 22,
    CNodeMove = 23,
    CNodeMutate = 24,
    CNodeRotate = 25,
    CNodeSaveCaller = 26,
    IRQIssueIRQHandler = 27,
    IRQAckIRQ = 28,
    IRQSetIRQHandler = 29,
    IRQClearIRQHandler = 30,
    DomainSetSet = 31,
    DomainScheduleConfigure = 32,
    DomainScheduleSetStart = 33,
    RISCVPageTableMap = 34,
    RISCVPageTableUnmap = 35,
    RISCVPageMap = 36,
    RISCVPageUnmap = 37,
    RISCVPageGetAddress = 38,
    RISCVASIDControlMakePool = 39,
    RISCVASIDPoolAssign = 40,
    RISCVIRQIssueIRQHandlerTrigger = 41,
}

/// Number of invocations in the SMP numbering.
pub const COUNT: u64 = 41;

const ALL: [Label; COUNT as usize] = [
    Label::UntypedRetype,
    Label::TCBReadRegisters,
    Label::TCBWriteRegisters,
    Label::TCBCopyRegisters,
    Label::TCBConfigure,
    Label::TCBSetPriority,
    Label::TCBSetMCPriority,
    Label::TCBSetSchedParams,
    Label::TCBSetIPCBuffer,
    Label::TCBSetSpace,
    Label::TCBSuspend,
    Label::TCBResume,
    Label::TCBBindNotification,
    Label::TCBUnbindNotification,
    Label::TCBSetAffinity,
    Label::TCBSetTLSBase,
    Label::TCBSetFlags,
    Label::CNodeRevoke,
    Label::CNodeDelete,
    Label::CNodeCancelBadgedSends,
    Label::CNodeCopy,
    Label::CNodeMint,
    Label::CNodeMove,
    Label::CNodeMutate,
    Label::CNodeRotate,
    Label::CNodeSaveCaller,
    Label::IRQIssueIRQHandler,
    Label::IRQAckIRQ,
    Label::IRQSetIRQHandler,
    Label::IRQClearIRQHandler,
    Label::DomainSetSet,
    Label::DomainScheduleConfigure,
    Label::DomainScheduleSetStart,
    Label::RISCVPageTableMap,
    Label::RISCVPageTableUnmap,
    Label::RISCVPageMap,
    Label::RISCVPageUnmap,
    Label::RISCVPageGetAddress,
    Label::RISCVASIDControlMakePool,
    Label::RISCVASIDPoolAssign,
    Label::RISCVIRQIssueIRQHandlerTrigger,
];

impl Label {
    /// The number under `table`; `None` for `TCBSetAffinity` under UP.
    pub const fn number(self, table: Table) -> Option<u64> {
        let smp = self as u64;
        let affinity = Label::TCBSetAffinity as u64;
        match table {
            Table::Smp => Some(smp),
            Table::Up if smp < affinity => Some(smp),
            Table::Up if smp > affinity => Some(smp - 1),
            Table::Up => None,
        }
    }

    /// What `number` means under `table`; `None` for 0 and unknown numbers.
    pub const fn from_number(number: u64, table: Table) -> Option<Label> {
        let smp = match table {
            Table::Up if number >= Label::TCBSetAffinity as u64 => number.wrapping_add(1),
            _ => number,
        };
        if smp >= 1 && smp <= COUNT { Some(ALL[(smp - 1) as usize]) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_two_builds() {
        // Both columns as seL4 16.0.0 emits them for a UP and an SMP configuration.
        for (label, up, smp) in [
            (Label::UntypedRetype, Some(1), 1),
            (Label::TCBUnbindNotification, Some(14), 14),
            (Label::TCBSetAffinity, None, 15),
            (Label::TCBSetTLSBase, Some(15), 16),
            (Label::CNodeRevoke, Some(17), 18),
            (Label::CNodeSaveCaller, Some(25), 26),
            (Label::IRQIssueIRQHandler, Some(26), 27),
            (Label::DomainSetSet, Some(30), 31),
            (Label::RISCVPageTableMap, Some(33), 34),
            (Label::RISCVIRQIssueIRQHandlerTrigger, Some(40), 41),
        ] {
            assert_eq!(label.number(Table::Up), up);
            assert_eq!(label.number(Table::Smp), Some(smp));
        }
    }

    #[test]
    fn a_number_and_its_label_are_inverse() {
        for table in [Table::Up, Table::Smp] {
            for number in 0..60 {
                match Label::from_number(number, table) {
                    Some(label) => assert_eq!(label.number(table), Some(number)),
                    None => assert!(number == 0 || number > COUNT - (table == Table::Up) as u64),
                }
            }
        }
        assert_eq!(Label::from_number(u64::MAX, Table::Up), None);
    }
}
