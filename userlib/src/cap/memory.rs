//! Memory: untyped memory, frames, page tables, address spaces and their identifiers.

use super::{CPtr, Cap, Request, Result, Rights, Slot, capability, invoke};
use abi::label::Label;
use abi::{extension, object};

capability! {
    /// Memory that can become objects.
    Untyped
}

/// What untyped memory can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// Smaller untyped memory of 2^n bytes, n from 4 to 38.
    Untyped(u8),
    /// A thread control block.
    Tcb,
    /// An endpoint.
    Endpoint,
    /// A notification.
    Notification,
    /// A CNode of 2^n slots.
    CNode(u8),
    /// A 4 KiB frame.
    Frame,
    /// A 2 MiB frame.
    MegaFrame,
    /// A page table, also the root of an address space.
    PageTable,
    /// A sender table of user interrupts.
    SenderTable,
}

impl ObjectType {
    /// seL4's type number and the size argument of `Untyped_Retype`.
    const fn arguments(self) -> (u64, u64) {
        match self {
            Self::Untyped(bits) => (object::UNTYPED, bits as u64),
            Self::Tcb => (object::TCB, 0),
            Self::Endpoint => (object::ENDPOINT, 0),
            Self::Notification => (object::NOTIFICATION, 0),
            Self::CNode(bits) => (object::CNODE, bits as u64),
            Self::Frame => (object::PAGE_4K, 0),
            Self::MegaFrame => (object::MEGA_PAGE, 0),
            Self::PageTable => (object::PAGE_TABLE, 0),
            Self::SenderTable => (extension::SENDER_TABLE, 0),
        }
    }

    /// log2 of the object's size in bytes.
    pub const fn size_bits(self) -> usize {
        match self {
            Self::Untyped(bits) => bits as usize,
            Self::Tcb => object::bits::TCB,
            Self::Endpoint => object::bits::ENDPOINT,
            Self::Notification => object::bits::NOTIFICATION,
            Self::CNode(bits) => bits as usize + object::bits::SLOT,
            Self::Frame => object::bits::PAGE_4K,
            Self::MegaFrame => object::bits::MEGA_PAGE,
            Self::PageTable => object::bits::PAGE_TABLE,
            Self::SenderTable => extension::SENDER_TABLE_BITS,
        }
    }
}

impl Untyped {
    /// Makes `count` objects, at most 256, in the slots from `first` on. `first` must be a slot of a CNode that is addressed with
    /// all 64 bits, such as the caller's root CNode.
    #[doc(alias = "seL4_Untyped_Retype")]
    pub fn retype(self, object: ObjectType, first: Slot, count: u64) -> Result<()> {
        let (number, size_bits) = object.arguments();
        // Node depth 0: the CNode is the extra capability itself.
        let args = [number, size_bits, 0, 0, first.index, count];
        invoke(self.0, Label::UntypedRetype as u64, args, [first.root.cptr()]).map(drop)
    }
}

capability! {
    /// A piece of physical memory that can be mapped.
    Frame
}

/// How a frame is mapped beyond its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// Instructions may be fetched.
    Executable,
    /// Instructions may not be fetched.
    ExecuteNever,
}

impl Frame {
    /// Maps the frame at `address`; all page tables above it must be there.
    #[doc(alias = "seL4_RISCV_Page_Map")]
    pub fn map(self, vspace: VSpace, address: u64, rights: Rights, attributes: Attributes) -> Result<()> {
        self.to_map(vspace, address, rights, attributes).call().map(drop)
    }

    /// [`Frame::map`] as a value.
    #[inline(always)] // five words
    pub fn to_map(self, vspace: VSpace, address: u64, rights: Rights, attributes: Attributes) -> Request<3, 1> {
        let attributes = matches!(attributes, Attributes::ExecuteNever).into();
        let args = [address, rights.0, attributes];
        Request { target: self.0, label: Label::RISCVPageMap as u64, args, caps: [vspace.cptr()] }
    }

    /// Unmaps the frame.
    #[doc(alias = "seL4_RISCV_Page_Unmap")]
    pub fn unmap(self) -> Result<()> {
        self.to_unmap().call().map(drop)
    }

    /// [`Frame::unmap`] as a value.
    #[inline(always)] // as `to_map`
    pub fn to_unmap(self) -> Request<0, 0> {
        Request { target: self.0, label: Label::RISCVPageUnmap as u64, args: [], caps: [] }
    }

    /// Physical address of the frame.
    #[doc(alias = "seL4_RISCV_Page_GetAddress")]
    pub fn physical_address(self) -> Result<u64> {
        invoke(self.0, Label::RISCVPageGetAddress as u64, [], []).map(|words| words[0])
    }
}

capability! {
    /// A page table.
    PageTable
}

impl PageTable {
    /// Puts the table at the highest level of `address` that has none.
    #[doc(alias = "seL4_RISCV_PageTable_Map")]
    pub fn map(self, vspace: VSpace, address: u64) -> Result<()> {
        invoke(self.0, Label::RISCVPageTableMap as u64, [address, 0], [vspace.cptr()]).map(drop)
    }

    /// Takes the table out of its address space.
    #[doc(alias = "seL4_RISCV_PageTable_Unmap")]
    pub fn unmap(self) -> Result<()> {
        invoke(self.0, Label::RISCVPageTableUnmap as u64, [], []).map(drop)
    }
}

capability! {
    /// A page table that is the root of an address space ([`AsidPool::assign`]).
    VSpace
}

capability! {
    /// The right to make ASID pools.
    AsidControl
}

impl AsidControl {
    /// Makes a pool out of 4 KiB of untyped memory.
    #[doc(alias = "seL4_RISCV_ASIDControl_MakePool")]
    pub fn make_pool(self, untyped: Untyped, destination: Slot) -> Result<()> {
        let args = [destination.index, destination.depth];
        let caps = [untyped.cptr(), destination.root.cptr()];
        invoke(self.0, Label::RISCVASIDControlMakePool as u64, args, caps).map(drop)
    }
}

capability! {
    /// A pool of address-space identifiers.
    AsidPool
}

impl AsidPool {
    /// Makes an address space of a page table.
    #[doc(alias = "seL4_RISCV_ASIDPool_Assign")]
    pub fn assign(self, root: PageTable) -> Result<VSpace> {
        invoke(self.0, Label::RISCVASIDPoolAssign as u64, [], [root.cptr()]).map(|_| VSpace(CPtr(root.0.0)))
    }
}
