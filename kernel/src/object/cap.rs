//! Capabilities: two words, and the slot (CTE) of 32 bytes that holds one with its place in the derivation tree.
//!
//! Word 0 holds the type in bits 63:59, type-specific bits in 58:48, and in 47:0 the low bits of the object's kernel address,
//! from which sign extension gives the address back. Word 1 is the type's data word:
//!
//! | type | bits 58:48 of word 0 | word 1 |
//! |---|---|---|
//! | untyped | 48 device | 5:0 size, 63:16 free index in units of 16 bytes |
//! | endpoint, notification | 51:48 rights (`abi::rights`) | badge |
//! | reply | 48 grant, 49 master | - |
//! | CNode | 53:48 radix | guard << 6 \| guard size |
//! | frame | 49:48 rights, 51:50 size, 52 device | 47:0 address where mapped, 63:48 ASID (0 = not mapped) |
//! | page table | 48 mapped | the same |
//! | ASID pool | - | first ASID |
//! | IRQ handler | - | IRQ |
//! | zombie | 53:48 radix, 54 it was a TCB, 55 it was an object with a queue (53:48 its size) | slots left; 1 while threads wait |
//! | SenderTable | - | address of the TCB that it is installed in, or 0 |
//! | SenderTable entry | - | badge |
//!
//! The null capability is two zero words.

use abi::extension::{CAP_ID_SENDER_ENTRY, CAP_ID_SENDER_TABLE, SENDER_TABLE_BITS};
use abi::object::{bits, cap_id};
use abi::rights::Rights;

use super::endpoint::Endpoint;
use super::mdb::Mdb;
use super::notification::Notification;
use super::sender_table::SenderTable;
use super::tcb::{SLOTS_OFFSET, Tcb};
use super::vspace::{AsidPool, PageTable};
use crate::mem::{Kva, Object, Paddr, Ref};

/// Type of a capability; the numbers are those that DebugCapIdentify reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the objects")]
pub enum Kind {
    Null = cap_id::NULL as u8,
    Frame = cap_id::FRAME as u8,
    Untyped = cap_id::UNTYPED as u8,
    PageTable = cap_id::PAGE_TABLE as u8,
    Endpoint = cap_id::ENDPOINT as u8,
    Notification = cap_id::NOTIFICATION as u8,
    Reply = cap_id::REPLY as u8,
    CNode = cap_id::CNODE as u8,
    AsidControl = cap_id::ASID_CONTROL as u8,
    Tcb = cap_id::TCB as u8,
    AsidPool = cap_id::ASID_POOL as u8,
    IrqControl = cap_id::IRQ_CONTROL as u8,
    IrqHandler = cap_id::IRQ_HANDLER as u8,
    Zombie = cap_id::ZOMBIE as u8,
    Domain = cap_id::DOMAIN as u8,
    SenderTable = CAP_ID_SENDER_TABLE as u8,
    SenderEntry = CAP_ID_SENDER_ENTRY as u8,
}

const KINDS: [Kind; 32] = {
    let mut kinds = [Kind::Null; 32];
    let all = [
        Kind::Frame,
        Kind::Untyped,
        Kind::PageTable,
        Kind::Endpoint,
        Kind::Notification,
        Kind::Reply,
        Kind::CNode,
        Kind::AsidControl,
        Kind::Tcb,
        Kind::AsidPool,
        Kind::IrqControl,
        Kind::IrqHandler,
        Kind::Zombie,
        Kind::Domain,
        Kind::SenderTable,
        Kind::SenderEntry,
    ];
    let mut i = 0;
    while i < all.len() {
        kinds[all[i] as usize] = all[i];
        i += 1;
    }
    kinds
};

/// Size of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameSize {
    /// 4 KiB.
    Page = 0,
    /// 2 MiB.
    Mega = 1,
    /// 1 GiB.
    Giga = 2,
}

impl FrameSize {
    /// log2 of the bytes.
    pub const fn bits(self) -> usize {
        match self {
            Self::Page => bits::PAGE_4K,
            Self::Mega => bits::MEGA_PAGE,
            Self::Giga => bits::GIGA_PAGE,
        }
    }
}

/// What a frame capability allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum VmRights {
    /// Nothing for the user.
    KernelOnly = 1,
    /// Loads.
    ReadOnly = 2,
    /// Loads and stores.
    ReadWrite = 3,
}

impl VmRights {
    /// The rights kept when masked with `rights`; write without read is not supported and keeps nothing.
    pub const fn mask(self, rights: Rights) -> Self {
        if matches!(self, Self::KernelOnly) || !rights.contains(Rights::READ) {
            Self::KernelOnly
        } else if matches!(self, Self::ReadWrite) && rights.contains(Rights::WRITE) {
            Self::ReadWrite
        } else {
            Self::ReadOnly
        }
    }
}

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Cap {
    word0: u64,
    word1: u64,
}

const KIND_SHIFT: u32 = 59;
const FIELD: u32 = 48;
const ADDRESS_MASK: u64 = (1 << FIELD) - 1;

impl Cap {
    /// No capability.
    pub const NULL: Self = Self { word0: 0, word1: 0 };

    const fn new(kind: Kind, address: Kva, fields: u64, word1: u64) -> Self {
        Self { word0: (kind as u64) << KIND_SHIFT | fields << FIELD | address.0 & ADDRESS_MASK, word1 }
    }

    /// Untyped memory; `free` is the offset of the first free byte, a multiple of 16.
    pub const fn untyped(address: Kva, size_bits: usize, device: bool, free: u64) -> Self {
        Self::new(Kind::Untyped, address, device as u64, size_bits as u64 | (free >> 4) << 16)
    }
    /// An endpoint.
    pub const fn endpoint(endpoint: Ref<Endpoint>, rights: Rights, badge: u64) -> Self {
        Self::new(Kind::Endpoint, endpoint.kva(), rights.0 & 15, badge)
    }
    /// A notification.
    pub const fn notification(notification: Ref<Notification>, rights: Rights, badge: u64) -> Self {
        Self::new(Kind::Notification, notification.kva(), rights.0 & 15, badge)
    }
    /// The right to reply to `caller`.
    pub const fn reply(caller: Ref<Tcb>, grant: bool, master: bool) -> Self {
        Self::new(Kind::Reply, caller.kva(), grant as u64 | (master as u64) << 1, 0)
    }
    /// A CNode of `1 << radix` slots. `guard` is the data word: value << 6 | size.
    pub const fn cnode(slots: Ref<Cte>, radix: usize, guard: u64) -> Self {
        Self::new(Kind::CNode, slots.kva(), radix as u64, guard)
    }
    /// A thread.
    pub const fn tcb(tcb: Ref<Tcb>) -> Self {
        Self::new(Kind::Tcb, tcb.kva(), 0, 0)
    }
    /// A frame that is not mapped.
    pub const fn frame(address: Kva, size: FrameSize, rights: VmRights, device: bool) -> Self {
        Self::new(Kind::Frame, address, rights as u64 | (size as u64) << 2 | (device as u64) << 4, 0)
    }
    /// A page table that is not mapped.
    pub const fn page_table(table: Ref<PageTable>) -> Self {
        Self::new(Kind::PageTable, table.kva(), 0, 0)
    }
    /// A pool of ASIDs from `first`.
    pub const fn asid_pool(pool: Ref<AsidPool>, first: u16) -> Self {
        Self::new(Kind::AsidPool, pool.kva(), 0, first as u64)
    }
    /// The right to make ASID pools.
    pub const fn asid_control() -> Self {
        Self::new(Kind::AsidControl, Kva(0), 0, 0)
    }
    /// The right to make interrupt handlers.
    pub const fn irq_control() -> Self {
        Self::new(Kind::IrqControl, Kva(0), 0, 0)
    }
    /// An interrupt.
    pub const fn irq_handler(irq: usize) -> Self {
        Self::new(Kind::IrqHandler, Kva(0), 0, irq as u64)
    }
    /// The domain schedule.
    pub const fn domain() -> Self {
        Self::new(Kind::Domain, Kva(0), 0, 0)
    }
    /// A sender table that no thread uses through this capability.
    pub const fn sender_table(table: Ref<SenderTable>) -> Self {
        Self::new(Kind::SenderTable, table.kva(), 0, 0)
    }
    /// What stands behind an entry of a sender table.
    pub const fn sender_entry(notification: Ref<Notification>, badge: u64) -> Self {
        Self::new(Kind::SenderEntry, notification.kva(), 0, badge)
    }
    /// A CNode whose slots are being deleted.
    pub const fn zombie_cnode(address: Kva, radix: usize) -> Self {
        Self::new(Kind::Zombie, address, radix as u64, 1 << radix)
    }
    /// A TCB whose slots are being deleted.
    pub const fn zombie_tcb(address: Kva, slots: u64) -> Self {
        Self::new(Kind::Zombie, address, 1 << 6, slots)
    }

    /// An endpoint or notification of `1 << size_bits` bytes whose waiters are being restarted.
    pub const fn zombie_queue(address: Kva, size_bits: usize) -> Self {
        Self::new(Kind::Zombie, address, size_bits as u64 | 1 << 7, 1)
    }

    /// The two words.
    pub const fn words(self) -> [u64; 2] {
        [self.word0, self.word1]
    }

    /// The type.
    #[inline(always)]
    pub const fn kind(self) -> Kind {
        KINDS[(self.word0 >> KIND_SHIFT) as usize]
    }
    /// Whether it is of `kind`; one shift and one comparison.
    #[inline(always)]
    pub const fn is(self, kind: Kind) -> bool {
        self.word0 >> KIND_SHIFT == kind as u64
    }
    /// Whether the slot is empty.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.is(Kind::Null)
    }
    const fn field(self, shift: u32, width: u32) -> u64 {
        self.word0 >> (FIELD + shift) & ((1 << width) - 1)
    }
    const fn with_field(self, shift: u32, width: u32, value: u64) -> Self {
        let mask = ((1u64 << width) - 1) << (FIELD + shift);
        Self { word0: self.word0 & !mask | value << (FIELD + shift) & mask, word1: self.word1 }
    }

    /// Address of the object.
    #[inline(always)]
    pub const fn address(self) -> Kva {
        Kva(((self.word0 << (64 - FIELD)) as i64 >> (64 - FIELD)) as u64)
    }
    /// Physical address of the object.
    pub const fn paddr(self) -> Paddr {
        self.address().paddr()
    }
    /// The object, if the capability is of T's type.
    #[inline(always)]
    pub fn object<T: CapObject>(self) -> Option<Ref<T>> {
        // SAFETY: a capability of this type exists only over memory that holds a T (mem.rs).
        self.is(T::KIND).then(|| unsafe { Ref::assume(self.address()) })
    }

    /// Endpoint, notification: the rights.
    #[inline(always)]
    pub const fn rights(self) -> Rights {
        Rights(self.field(0, 4))
    }
    /// Endpoint, notification, table entry: the badge.
    #[inline(always)]
    pub const fn badge(self) -> u64 {
        self.word1
    }
    const fn with_rights(self, rights: Rights) -> Self {
        self.with_field(0, 4, rights.0)
    }

    /// Reply: the thread that waits.
    pub fn reply_caller(self) -> Ref<Tcb> {
        debug_assert!(self.is(Kind::Reply));
        // SAFETY: a reply capability names a TCB.
        unsafe { Ref::assume(self.address()) }
    }
    /// Reply: whether the reply may carry capabilities.
    #[inline(always)]
    pub const fn reply_grant(self) -> bool {
        self.field(0, 1) != 0
    }
    /// Reply: whether it is the one in the TCB from which the others descend.
    #[inline(always)]
    pub const fn reply_master(self) -> bool {
        self.field(1, 1) != 0
    }

    /// CNode, zombie: log2 of the slots.
    #[inline(always)]
    pub const fn radix(self) -> usize {
        self.field(0, 6) as usize
    }
    /// CNode: bits of the guard.
    #[inline(always)]
    pub const fn guard_size(self) -> usize {
        (self.word1 & 63) as usize
    }
    /// CNode: the guard.
    #[inline(always)]
    pub const fn guard(self) -> u64 {
        self.word1 >> 6
    }
    /// CNode, TCB zombie: slot `index`. The caller checked `index` against the number of slots.
    pub fn slot(self, index: usize) -> Ref<Cte> {
        debug_assert!(self.is(Kind::CNode) && index < 1 << self.radix());
        // SAFETY: a CNode of this radix has that slot; the index comes from `radix` bits.
        unsafe { Ref::assume(self.address().offset((index * size_of::<Cte>()) as u64)) }
    }

    /// Untyped, frame: device memory.
    pub const fn is_device(self) -> bool {
        if self.is(Kind::Frame) { self.field(4, 1) != 0 } else { self.field(0, 1) != 0 }
    }
    /// Untyped: log2 of the bytes.
    pub const fn untyped_bits(self) -> usize {
        (self.word1 & 63) as usize
    }
    /// Untyped: offset of the first free byte.
    pub const fn untyped_free(self) -> u64 {
        (self.word1 >> 16) << 4
    }
    /// Untyped: the same with another offset.
    pub const fn with_untyped_free(self, free: u64) -> Self {
        Self { word0: self.word0, word1: self.word1 & 63 | (free >> 4) << 16 }
    }

    /// Frame: its size.
    pub const fn frame_size(self) -> FrameSize {
        match self.field(2, 2) {
            0 => FrameSize::Page,
            1 => FrameSize::Mega,
            _ => FrameSize::Giga,
        }
    }
    /// Frame: its rights.
    pub const fn vm_rights(self) -> VmRights {
        match self.field(0, 2) {
            3 => VmRights::ReadWrite,
            2 => VmRights::ReadOnly,
            _ => VmRights::KernelOnly,
        }
    }
    /// Frame, page table: ASID where it is mapped, 0 if it is not.
    #[inline(always)]
    pub const fn mapped_asid(self) -> u16 {
        (self.word1 >> FIELD) as u16
    }
    /// Frame, page table: address where it is mapped.
    pub const fn mapped_address(self) -> u64 {
        self.word1 & ADDRESS_MASK
    }
    /// Page table: whether it is mapped or a root. Other types: false.
    #[inline(always)]
    pub const fn is_mapped_table(self) -> bool {
        self.is(Kind::PageTable) && self.field(0, 1) != 0
    }
    /// Page table: its table, if it is mapped or a root; one comparison.
    #[inline(always)]
    pub fn mapped_table(self) -> Option<Ref<PageTable>> {
        const MAPPED: u64 = (Kind::PageTable as u64) << (KIND_SHIFT - FIELD) | 1;
        // SAFETY: as in `object`.
        (self.word0 >> FIELD == MAPPED).then(|| unsafe { Ref::assume(self.address()) })
    }
    /// Frame, page table: mapped there.
    pub const fn mapped_at(self, asid: u16, vaddr: u64) -> Self {
        let mapped = Self { word0: self.word0, word1: (asid as u64) << FIELD | vaddr & ADDRESS_MASK };
        if self.is(Kind::PageTable) { mapped.with_field(0, 1, 1) } else { mapped }
    }
    /// Frame, page table: not mapped.
    pub const fn unmapped(self) -> Self {
        let unmapped = Self { word0: self.word0, word1: 0 };
        if self.is(Kind::PageTable) { unmapped.with_field(0, 1, 0) } else { unmapped }
    }

    /// ASID pool: its first ASID.
    pub const fn asid_base(self) -> u16 {
        self.word1 as u16
    }
    /// IRQ handler: its number.
    pub const fn irq(self) -> usize {
        self.word1 as usize
    }

    /// Zombie: slots left.
    pub const fn zombie_slots(self) -> u64 {
        self.word1
    }
    /// Zombie: the same with `left` slots left.
    pub const fn with_zombie_slots(self, left: u64) -> Self {
        Self { word0: self.word0, word1: left }
    }
    /// Zombie: whether it was a TCB.
    pub const fn zombie_is_tcb(self) -> bool {
        self.field(6, 1) != 0
    }
    /// Zombie: whether it was an endpoint or a notification, and has no slots.
    pub const fn zombie_is_queue(self) -> bool {
        self.field(7, 1) != 0
    }
    /// Zombie: slot `index` of the dying object.
    pub fn zombie_slot(self, index: u64) -> Ref<Cte> {
        let offset = if self.zombie_is_tcb() { SLOTS_OFFSET as u64 } else { 0 };
        // SAFETY: the object of a zombie keeps its slots until the zombie is gone; `index` is below the original count.
        unsafe { Ref::assume(self.address().offset(offset + index * size_of::<Cte>() as u64)) }
    }

    /// Queue zombie: the dying object; its queue is where endpoints and notifications have theirs.
    pub fn zombie_queue_object(self) -> Ref<Endpoint> {
        debug_assert!(self.zombie_is_queue());
        // SAFETY: the object of a zombie keeps its memory until the zombie is gone, and a notification starts as an endpoint does.
        unsafe { Ref::assume(self.address()) }
    }

    /// SenderTable: the thread that uses it through this capability.
    pub fn installed_in(self) -> Option<Ref<Tcb>> {
        // SAFETY: the capability lies in a slot of that TCB, so the TCB exists.
        (self.is(Kind::SenderTable) && self.word1 != 0).then(|| unsafe { Ref::assume(Kva(self.word1)) })
    }
    /// SenderTable: used by `tcb`, in whose slot the result goes.
    pub const fn installed(self, tcb: Ref<Tcb>) -> Self {
        Self { word0: self.word0, word1: tcb.word() }
    }
    /// SenderTable: as a copy outside any TCB.
    pub const fn uninstalled(self) -> Self {
        Self { word0: self.word0, word1: 0 }
    }
    /// SenderTable entry: the notification.
    pub fn entry_notification(self) -> Ref<Notification> {
        debug_assert!(self.is(Kind::SenderEntry));
        // SAFETY: deleting the last capability to a notification deletes the entries first.
        unsafe { Ref::assume(self.address()) }
    }

    /// Start and log2 size of the object's memory; `None` for capabilities without storage.
    pub const fn region(self) -> Option<(Kva, usize)> {
        let size = match self.kind() {
            Kind::Untyped => self.untyped_bits(),
            Kind::Endpoint => bits::ENDPOINT,
            Kind::Notification => bits::NOTIFICATION,
            Kind::CNode => self.radix() + bits::SLOT,
            Kind::Tcb => bits::TCB,
            Kind::Frame => self.frame_size().bits(),
            Kind::PageTable => bits::PAGE_TABLE,
            Kind::AsidPool => bits::ASID_POOL,
            Kind::SenderTable => SENDER_TABLE_BITS,
            Kind::Zombie if self.zombie_is_tcb() => bits::TCB,
            Kind::Zombie if self.zombie_is_queue() => self.radix(),
            Kind::Zombie => self.radix() + bits::SLOT,
            Kind::SenderEntry => bits::NOTIFICATION,
            Kind::Null | Kind::Reply | Kind::AsidControl | Kind::IrqControl | Kind::IrqHandler | Kind::Domain => {
                return None;
            }
        };
        Some((self.address(), size))
    }

    /// The capability with at most `rights` (Copy, Mint).
    pub const fn masked(self, rights: Rights) -> Self {
        match self.kind() {
            Kind::Endpoint | Kind::Notification => self.with_rights(Rights(self.rights().0 & rights.0)),
            Kind::Reply => self.with_field(0, 1, (self.reply_grant() && rights.contains(Rights::GRANT)) as u64),
            Kind::Frame => self.with_field(0, 2, self.vm_rights().mask(rights) as u64),
            _ => self,
        }
    }

    /// The capability with a new data word; null if that is not allowed. `preserve`: an existing badge must stay (Mutate, Rotate).
    pub const fn with_data(self, preserve: bool, data: u64) -> Self {
        match self.kind() {
            Kind::Endpoint | Kind::Notification => {
                if preserve || self.word1 != 0 {
                    Self::NULL
                } else {
                    Self { word0: self.word0, word1: data }
                }
            }
            Kind::CNode => {
                let size = data & 63;
                if size as usize + self.radix() > 64 {
                    return Self::NULL;
                }
                let guard = data >> 6 & ((1 << size) - 1);
                Self { word0: self.word0, word1: guard << 6 | size }
            }
            _ => self,
        }
    }
}

/// Object types that a capability can name.
pub trait CapObject: Object {
    /// Type of the capabilities.
    const KIND: Kind;
}

macro_rules! objects {
    ($($kind:ident),*) => {$(
        impl CapObject for $kind {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}
objects!(Endpoint, Notification, Tcb, PageTable, AsidPool, SenderTable);

/// A capability slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Cte {
    /// The capability.
    pub cap: Cap,
    /// Its place in the derivation tree.
    pub mdb: Mdb,
}

const _: () = assert!(size_of::<Cte>() == 1 << bits::SLOT);

// SAFETY: plain words, any value will do.
unsafe impl Object for Cte {
    #[cfg(debug_assertions)]
    fn note_opened(&self, place: Ref<Self>, journal: &mut crate::invariants::Journal) {
        journal.slot_opened(place, self.cap.kind());
    }
}
