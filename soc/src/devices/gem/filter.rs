//! Which frames the MAC accepts, in this order: all (NWCFG copy-all); broadcast, unless switched off; the four specific addresses;
//! the hash table, for groups and for single addresses separately. A specific address counts from the write of its upper half on.

use super::registers::config;
use serde::{Deserialize, Serialize};

/// Specific addresses.
const ADDRESSES: usize = 4;

/// Why a frame was accepted, as bits of the receive descriptor's word 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    All,
    Broadcast,
    /// Number of the address.
    Specific(u32),
    MulticastHash,
    UnicastHash,
}

impl Match {
    /// Bits of word 1.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::All => 0,
            Self::Broadcast => 1 << 31,
            Self::Specific(number) => 1 << 27 | number << 25,
            Self::MulticastHash => 1 << 30,
            Self::UnicastHash => 1 << 29,
        }
    }
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Address {
    low: u32,
    high: u32,
    active: bool,
}

/// The filter's registers.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Filter {
    hash: [u32; 2],
    addresses: [Address; ADDRESSES],
}

impl Filter {
    /// Reads the register at `offset` from the lower hash word.
    pub(super) fn read(&self, offset: u64) -> u32 {
        match (offset / 4) as usize {
            index @ 0..2 => self.hash[index],
            index => {
                let address = self.addresses[(index - 2) / 2];
                if index.is_multiple_of(2) { address.low } else { address.high }
            }
        }
    }

    /// Writes the register at `offset` from the lower hash word.
    pub(super) fn write(&mut self, offset: u64, value: u32) {
        match (offset / 4) as usize {
            index @ 0..2 => self.hash[index] = value,
            index => {
                let address = &mut self.addresses[(index - 2) / 2];
                let upper = !index.is_multiple_of(2);
                if upper {
                    address.high = value & 0xFFFF;
                } else {
                    address.low = value;
                }
                address.active = upper;
            }
        }
    }

    /// Whether and why `frame`, at least a header long, passes under NWCFG `configuration`.
    pub(super) fn accepts(&self, frame: &[u8], configuration: u32) -> Option<Match> {
        let on = |bit| configuration & bit != 0;
        let [a, b, c, d, e, f, ..] = *frame else { return None };
        let (low, high) = (u32::from_le_bytes([a, b, c, d]), u32::from(u16::from_le_bytes([e, f])));
        let group = a & 1 != 0;
        let broadcast = low == u32::MAX && high == 0xFFFF;
        let specific = self.addresses.iter().position(|own| own.active && (own.low, own.high) == (low, high));
        let hash = hash_index(u64::from(high) << 32 | u64::from(low));
        let hashed = self.hash[hash / 32] >> (hash % 32) & 1 != 0;
        if broadcast {
            return (!on(config::NO_BROADCAST)).then_some(Match::Broadcast);
        }
        // At most three.
        specific
            .map(|number| Match::Specific(number as u32))
            .or((hashed && group && on(config::MULTICAST_HASH)).then_some(Match::MulticastHash))
            .or((hashed && !group && on(config::UNICAST_HASH)).then_some(Match::UnicastHash))
            .or(on(config::COPY_ALL).then_some(Match::All))
    }
}

/// Bit i of the index is the parity of the address bits i, i + 6, i + 12, ... (hash register description).
fn hash_index(address: u64) -> usize {
    (0..8).fold(0, |index, step| index ^ (address >> (6 * step)) as usize & 0x3F)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(destination: [u8; 6]) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&destination);
        frame
    }

    #[test]
    fn an_address_counts_once_both_halves_are_written() {
        let mut filter = Filter::default();
        let frame = to([2, 0, 0, 0, 0, 9]);
        filter.write(0x10, 2);
        assert_eq!(filter.accepts(&frame, 0), None);
        filter.write(0x14, 0x0900);
        assert_eq!(filter.accepts(&frame, 0), Some(Match::Specific(1)));
        assert_eq!((filter.read(0x10), filter.read(0x14)), (2, 0x0900));
        filter.write(0x10, 2);
        assert_eq!(filter.accepts(&frame, 0), None, "the lower half switches it off");
        assert_eq!(filter.accepts(&frame, config::COPY_ALL), Some(Match::All));
    }

    #[test]
    fn broadcast_has_its_own_switch() {
        let filter = Filter::default();
        assert_eq!(filter.accepts(&to([0xFF; 6]), 0), Some(Match::Broadcast));
        assert_eq!(filter.accepts(&to([0xFF; 6]), config::NO_BROADCAST), None);
    }

    #[test]
    fn the_hash_is_a_parity_of_every_sixth_bit() {
        // 01:00:5E:00:00:01: bits 0, 17 to 20, 22 and 40 are set; modulo 6 that is 0, 5, 0, 1, 2, 4, 4, so 1, 2 and 5 remain.
        assert_eq!(hash_index(0x0100_005E_0001), 0b10_0110);
        let mut filter = Filter::default();
        filter.write(4, 1 << (0b10_0110 - 32));
        let group = to([0x01, 0, 0x5E, 0, 0, 1]);
        assert_eq!(filter.accepts(&group, config::MULTICAST_HASH), Some(Match::MulticastHash));
        assert_eq!(filter.accepts(&group, config::UNICAST_HASH), None);
        assert_eq!(filter.accepts(&to([0x01, 0, 0x5E, 0, 0, 2]), config::MULTICAST_HASH), None);
    }
}
