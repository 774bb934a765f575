//! Capability rights (`seL4_CapRights_t`): the low four bits of a word, the rest is ignored.

/// A set of rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Rights(pub u64);

impl Rights {
    /// Send, signal, store.
    pub const WRITE: Rights = Rights(1);
    /// Receive, wait, load.
    pub const READ: Rights = Rights(2);
    /// Transfer capabilities.
    pub const GRANT: Rights = Rights(4);
    /// Be replied to.
    pub const GRANT_REPLY: Rights = Rights(8);
    /// Read and write.
    pub const READ_WRITE: Rights = Rights(3);
    /// All four.
    pub const ALL: Rights = Rights(15);
    /// None.
    pub const NONE: Rights = Rights(0);

    /// Whether every right of `other` is in `self`.
    pub const fn contains(self, other: Rights) -> bool {
        self.0 & other.0 & 15 == other.0 & 15
    }
    /// The union.
    pub const fn with(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}
