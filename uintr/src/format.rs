//! The words that hardware and kernel exchange: `suist`, `suirs` and the sender table entry.
//!
//! Each is a transparent `u64` with the bits exactly as the hardware sees them, made by `new` from named parts and read
//! back by name. What a field cannot hold is refused when the word is made; so nothing here masks silently.

/// Bytes of a page, the unit of [`Suist`].
pub const PAGE_BYTES: usize = 4096;
/// Bytes of one sender table entry.
pub const ENTRY_BYTES: usize = 8;
/// Entries in one page of a sender table.
pub const ENTRIES_PER_PAGE: usize = PAGE_BYTES / ENTRY_BYTES;
/// Vectors of a receiver: one pending bit each.
pub const VECTORS: u8 = 64;

const ENABLE: u64 = 1 << 63;

/// `suist`: the sender table of the thread that runs on this hart. Zero: `uipi.send` has no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Suist(u64);

impl Suist {
    const SIZE_SHIFT: u32 = 44;
    const SIZE_MASK: u64 = 0xFFF;
    const PPN_MASK: u64 = (1 << 44) - 1;

    /// No table: `uipi.send` has no effect.
    pub const DISABLED: Self = Self(0);

    /// A table of `pages` contiguous pages at the physical address `base`. `None` if `base` is not the start of a page
    /// below 2^56, or `pages` exceeds the 12 bits of its field.
    pub const fn new(base: u64, pages: u64) -> Option<Self> {
        let ppn = base / PAGE_BYTES as u64;
        if !base.is_multiple_of(PAGE_BYTES as u64) || ppn > Self::PPN_MASK || pages > Self::SIZE_MASK {
            return None;
        }
        Some(Self(ENABLE | pages << Self::SIZE_SHIFT | ppn))
    }

    /// The word read from the CSR; reserved bits are dropped.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & (ENABLE | Self::SIZE_MASK << Self::SIZE_SHIFT | Self::PPN_MASK))
    }

    /// The word to write to the CSR.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `uipi.send` looks at the table at all.
    pub const fn enabled(self) -> bool {
        self.0 & ENABLE != 0
    }

    /// Pages of the table.
    pub const fn pages(self) -> u64 {
        self.0 >> Self::SIZE_SHIFT & Self::SIZE_MASK
    }

    /// Physical address of the table.
    pub const fn base(self) -> u64 {
        (self.0 & Self::PPN_MASK) * PAGE_BYTES as u64
    }

    /// Physical address of entry `index`, or `None` where `uipi.send` would have no effect.
    pub const fn entry_address(self, index: u64) -> Option<u64> {
        if self.enabled() && index < self.pages() * ENTRIES_PER_PAGE as u64 {
            Some(self.base() + index * ENTRY_BYTES as u64)
        } else {
            None
        }
    }
}

/// `suirs`: the receiver of the thread that runs on this hart. Zero: `uipi.read` gives 0, the others have no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Suirs(u64);

impl Suirs {
    const INDEX_MASK: u64 = 0xFFFF;

    /// No receiver.
    pub const DISABLED: Self = Self(0);

    /// Receiver `index` of the UINTC.
    pub const fn new(index: u16) -> Self {
        Self(ENABLE | index as u64)
    }

    /// The word read from the CSR; reserved bits are dropped.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & (ENABLE | Self::INDEX_MASK))
    }

    /// The word to write to the CSR.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether the hart has a receiver.
    pub const fn enabled(self) -> bool {
        self.0 & ENABLE != 0
    }

    /// The receiver's number in the UINTC.
    pub const fn index(self) -> u16 {
        (self.0 & Self::INDEX_MASK) as u16
    }
}

/// One entry of a sender table, as `uipi.send` reads it.
///
/// | bits  | 0     | 15:1    | 31:16  | 47:32   | 63:48    |
/// |-------|-------|---------|--------|---------|----------|
/// | field | valid | ignored | vector | ignored | receiver |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct SenderEntry(u64);

const _: () = assert!(size_of::<SenderEntry>() == ENTRY_BYTES && align_of::<SenderEntry>() == ENTRY_BYTES);

impl SenderEntry {
    const VALID: u64 = 1;
    const VECTOR_SHIFT: u32 = 16;
    const RECEIVER_SHIFT: u32 = 48;

    /// An entry through which nothing is sent.
    pub const INVALID: Self = Self(0);

    /// A valid entry that posts `vector` to `receiver`. `None` if there is no such vector.
    pub const fn new(receiver: u16, vector: u8) -> Option<Self> {
        if vector >= VECTORS {
            return None;
        }
        Some(Self((receiver as u64) << Self::RECEIVER_SHIFT | (vector as u64) << Self::VECTOR_SHIFT | Self::VALID))
    }

    /// The word as it stands in memory.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word to store, in one 8-byte store.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `uipi.send` uses the entry.
    pub const fn valid(self) -> bool {
        self.0 & Self::VALID != 0
    }

    /// The vector field, all 16 bits: values from 64 up make the send have no effect.
    pub const fn vector(self) -> u16 {
        (self.0 >> Self::VECTOR_SHIFT) as u16
    }

    /// The receiver's number in the UINTC.
    pub const fn receiver(self) -> u16 {
        (self.0 >> Self::RECEIVER_SHIFT) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suist_holds_page_number_and_size_where_the_hardware_looks() {
        let table = Suist::new(0x8765_4000, 2).unwrap();
        assert_eq!(table.bits(), 0x8000_2000_0008_7654);
        assert_eq!((table.base(), table.pages(), table.enabled()), (0x8765_4000, 2, true));
    }

    #[test]
    fn suist_refuses_what_its_fields_cannot_hold() {
        assert_eq!(Suist::new(0x8765_4008, 1), None);
        assert_eq!(Suist::new(0x1000, 0x1000), None);
        assert_eq!(Suist::new(1 << 56, 1), None);
        assert!(Suist::new((1 << 56) - 4096, 0xFFF).is_some());
    }

    #[test]
    fn suist_index_limit_is_compared_in_64_bits() {
        let table = Suist::new(0x8000_0000, 1).unwrap();
        assert_eq!(table.entry_address(511), Some(0x8000_0FF8));
        assert_eq!(table.entry_address(512), None);
        assert_eq!(table.entry_address(1 << 61), None);
        assert_eq!(Suist::DISABLED.entry_address(0), None);
        assert_eq!(Suist::new(0x8000_0000, 0).unwrap().entry_address(0), None);
    }

    #[test]
    fn reserved_bits_read_as_zero() {
        assert_eq!(Suist::from_bits(u64::MAX).bits(), 0x80FF_FFFF_FFFF_FFFF);
        assert_eq!(Suirs::from_bits(u64::MAX).bits(), 0x8000_0000_0000_FFFF);
    }

    #[test]
    fn suirs_round_trip() {
        let receiver = Suirs::new(511);
        assert_eq!(receiver.bits(), 0x8000_0000_0000_01FF);
        assert_eq!((receiver.index(), receiver.enabled()), (511, true));
        assert!(!Suirs::DISABLED.enabled());
    }

    #[test]
    fn sender_entry_round_trip() {
        let entry = SenderEntry::new(0x1234, 63).unwrap();
        assert_eq!(entry.bits(), 0x1234_0000_003F_0001);
        assert_eq!((entry.receiver(), entry.vector(), entry.valid()), (0x1234, 63, true));
        assert_eq!(SenderEntry::new(1, 64), None);
        assert!(!SenderEntry::INVALID.valid());
        // Ignored bits do not change what the entry says.
        let noisy = SenderEntry::from_bits(entry.bits() | 0x0000_FFFF_0000_FFFE);
        assert_eq!((noisy.receiver(), noisy.vector(), noisy.valid()), (0x1234, 63, true));
    }
}
