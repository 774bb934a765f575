//! CNodes, and the slots in them. The operations sit on [`Slot`], because a slot is what they act on.

use super::{CPtr, Cap, Result, Rights, capability, invoke};
use abi::label::Label;

capability! {
    /// A table of capability slots.
    CNode
}

impl CNode {
    /// The slot `index`, addressed with all 64 bits: for a root CNode whose guard fills the address, that is the slot's number.
    #[inline(always)]
    pub const fn slot(self, index: u64) -> Slot {
        Slot { root: self, index, depth: 64 }
    }
}

/// One slot, addressed from a CNode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where the address starts.
    pub root: CNode,
    /// The address.
    pub index: u64,
    /// How many bits of the address count, 1 to 64.
    pub depth: u64,
}

impl Slot {
    /// Puts a copy of `source` here, with at most `rights`.
    #[doc(alias = "seL4_CNode_Copy")]
    pub fn copy(self, source: Slot, rights: Rights) -> Result<()> {
        self.from(Label::CNodeCopy, source, [rights.0])
    }

    /// Puts a copy of `source` here, with at most `rights` and the data word `badge` (a CNode: its guard).
    #[doc(alias = "seL4_CNode_Mint")]
    pub fn mint(self, source: Slot, rights: Rights, badge: u64) -> Result<()> {
        self.from(Label::CNodeMint, source, [rights.0, badge])
    }

    /// Moves the capability of `source` here.
    #[doc(alias = "seL4_CNode_Move")]
    pub fn take(self, source: Slot) -> Result<()> {
        self.from(Label::CNodeMove, source, [])
    }

    /// Moves the capability of `source` here and changes its data word.
    #[doc(alias = "seL4_CNode_Mutate")]
    pub fn mutate(self, source: Slot, badge: u64) -> Result<()> {
        self.from(Label::CNodeMutate, source, [badge])
    }

    /// Deletes the capability here; an empty slot stays empty.
    #[doc(alias = "seL4_CNode_Delete")]
    pub fn delete(self) -> Result<()> {
        self.here(Label::CNodeDelete)
    }

    /// Deletes all descendants of the capability here.
    #[doc(alias = "seL4_CNode_Revoke")]
    pub fn revoke(self) -> Result<()> {
        self.here(Label::CNodeRevoke)
    }

    /// Restarts the senders that wait on the endpoint here with the badge of this capability.
    #[doc(alias = "seL4_CNode_CancelBadgedSends")]
    pub fn cancel_badged_sends(self) -> Result<()> {
        self.here(Label::CNodeCancelBadgedSends)
    }

    /// Moves the reply capability of the last receive here, to answer it later.
    #[doc(alias = "seL4_CNode_SaveCaller")]
    pub fn save_caller(self) -> Result<()> {
        self.here(Label::CNodeSaveCaller)
    }

    fn here(self, label: Label) -> Result<()> {
        invoke(self.root.cptr(), label as u64, [self.index, self.depth], []).map(drop)
    }

    fn from<const N: usize>(self, label: Label, source: Slot, more: [u64; N]) -> Result<()> {
        // The kernel takes the length of each operation as a minimum, so that two spare words do no harm.
        let [first, second] = core::array::from_fn(|index| more.get(index).copied().unwrap_or(0));
        let args = [self.index, self.depth, source.index, source.depth, first, second];
        invoke::<6, 1>(self.root.cptr(), label as u64, args, [source.root.cptr()]).map(drop)
    }
}

impl From<CNode> for CPtr {
    fn from(cnode: CNode) -> CPtr {
        cnode.0
    }
}
