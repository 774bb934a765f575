//! The UINTC's register file: one 32-byte block for each receiver. Only aligned 8-byte accesses are allowed.
//!
//! | offset | name   | read                              | write                                      |
//! |-------:|--------|-----------------------------------|--------------------------------------------|
//! |   0x00 | SEND   | 0                                 | sets pending bit `value`, if below 64      |
//! |   0x08 | LOW    | [`Low`]                           | replaces [`Low`]; pending bits stay        |
//! |   0x10 | HIGH   | pending bits, clearing them       | ORs into the pending bits                  |
//! |   0x18 | ACTIVE | bit 0: active                     | sets active to bit 0                       |
//!
//! The line of a hart is up while any active receiver that names the hart has a pending bit.

/// `compatible` of the device-tree node.
pub const COMPATIBLE: &str = "riscv,uintc0";
/// Bytes of one receiver's block; receivers of a UINTC = size of its `reg` / `RECEIVER_BYTES`.
pub const RECEIVER_BYTES: usize = 32;
/// Write a vector number: sets that pending bit.
pub const SEND: usize = 0x00;
/// [`Low`].
pub const LOW: usize = 0x08;
/// Pending bits; a read clears them, a write ORs.
pub const HIGH: usize = 0x10;
/// Bit 0: active.
pub const ACTIVE: usize = 0x18;

/// Offset of `register` of receiver `index` from the base of the UINTC.
pub const fn offset(index: u16, register: usize) -> usize {
    index as usize * RECEIVER_BYTES + register
}

/// The LOW word of a receiver.
///
/// | bits  | 0      | 1                  | 15:2 | 31:16 | 63:32 |
/// |-------|--------|--------------------|------|-------|-------|
/// | field | active | mode (written as 1)| 0    | hart  | 0     |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Low(u64);

impl Low {
    const ACTIVE: u64 = 1;
    const MODE: u64 = 1 << 1;
    const HART_SHIFT: u32 = 16;

    /// The free receiver: inactive, hart 0.
    pub const CLEAR: Self = Self(0);

    /// A receiver whose thread runs on `hart`; an inactive one collects bits silently.
    pub const fn new(hart: u16, active: bool) -> Self {
        Self((hart as u64) << Self::HART_SHIFT | Self::MODE | active as u64)
    }

    /// The word as read from the register.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word to write to the register.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether pending bits raise the line of [`hart`](Self::hart).
    pub const fn active(self) -> bool {
        self.0 & Self::ACTIVE != 0
    }

    /// The hart whose line the receiver raises.
    pub const fn hart(self) -> u16 {
        (self.0 >> Self::HART_SHIFT) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_a_receiver() {
        assert_eq!(offset(0, SEND), 0);
        assert_eq!(offset(3, HIGH), 0x70);
        assert_eq!(offset(511, ACTIVE), 0x3FF8);
    }

    #[test]
    fn low_round_trip() {
        let low = Low::new(3, true);
        assert_eq!(low.bits(), 0x3_0003);
        assert_eq!((low.hart(), low.active()), (3, true));
        assert_eq!(Low::new(3, false).bits(), 0x3_0002);
        assert!(!Low::CLEAR.active());
    }
}
