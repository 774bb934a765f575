//! Which frames the MAC accepts (PG138, "Receive Address Filtering"; the frame filter is PG051's).
//!
//! Order: promiscuous; the station address; broadcast, unless rejected; a frame filter that matches, unless the frame is multicast and
//! multicast is rejected. Extended multicast filtering (the table at 0x20000) is not modelled.

use crate::snapshot::array;
use serde::{Deserialize, Serialize};

/// Frame filters of the build.
const FILTERS: usize = 4;
/// Bytes that a filter compares.
const FILTER_BYTES: usize = 64;
/// FMI: promiscuous.
const FMI_PROMISCUOUS: u32 = 1 << 31;
/// FMI: promiscuous and filter index.
const FMI_WRITABLE: u32 = FMI_PROMISCUOUS | 0xFF;
/// RAF: drop multicast.
const RAF_MULTICAST_REJECT: u32 = 1 << 1;
/// RAF: drop broadcast.
const RAF_BROADCAST_REJECT: u32 = 1 << 2;

#[derive(Clone, Copy, Serialize, Deserialize)]
struct FrameFilter {
    enabled: bool,
    #[serde(with = "array")]
    value: [u8; FILTER_BYTES],
    #[serde(with = "array")]
    mask: [u8; FILTER_BYTES],
}

impl FrameFilter {
    /// Compares the broadcast address; disabled.
    fn after_reset() -> Self {
        let mut bytes = [0; FILTER_BYTES];
        bytes[..6].fill(0xFF);
        Self { enabled: false, value: bytes, mask: bytes }
    }

    fn matches(&self, frame: &[u8]) -> bool {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        self.enabled && (0..FILTER_BYTES).all(|at| (byte(at) ^ self.value[at]) & self.mask[at] == 0)
    }
}

/// The filter registers UAW0 to AM15.
#[derive(Serialize, Deserialize)]
pub(super) struct Filter {
    station: [u8; 6],
    control: u32,
    filters: [FrameFilter; FILTERS],
}

impl Default for Filter {
    fn default() -> Self {
        Self { station: [0; 6], control: 0, filters: [FrameFilter::after_reset(); FILTERS] }
    }
}

impl Filter {
    /// Whether `frame` passes; `raf` is the RAF register.
    pub(super) fn accepts(&self, frame: &[u8], raf: u32) -> bool {
        let broadcast = frame.starts_with(&[0xFF; 6]);
        let group = frame.first().is_some_and(|first| first & 1 != 0);
        if self.control & FMI_PROMISCUOUS != 0 || frame.starts_with(&self.station) {
            return true;
        }
        if broadcast {
            return raf & RAF_BROADCAST_REJECT == 0;
        }
        let rejected = group && raf & RAF_MULTICAST_REJECT != 0;
        !rejected && self.filters.iter().any(|filter| filter.matches(frame))
    }

    fn selected(&self) -> Option<usize> {
        let index = (self.control & 0xFF) as usize;
        (index < FILTERS).then_some(index)
    }

    /// Reads the register at `offset` from UAW0.
    pub(super) fn read(&self, offset: u64) -> u32 {
        let filter = self.selected().map(|index| &self.filters[index]);
        match offset {
            0x00 => word(&self.station, 0),
            0x04 => word(&self.station, 4),
            0x08 => self.control,
            0x0C => filter.map_or(0, |filter| u32::from(filter.enabled)),
            0x10..0x50 => filter.map_or(0, |filter| word(&filter.value, offset as usize - 0x10)),
            0x50..0x90 => filter.map_or(0, |filter| word(&filter.mask, offset as usize - 0x50)),
            _ => 0,
        }
    }

    /// Writes the register at `offset` from UAW0. Writes to a filter that the build has not are ignored.
    pub(super) fn write(&mut self, offset: u64, value: u32) {
        let selected = self.selected();
        let filter = selected.map(|index| &mut self.filters[index]);
        match (offset, filter) {
            (0x00, _) => set_word(&mut self.station, 0, value),
            (0x04, _) => set_word(&mut self.station, 4, value),
            (0x08, _) => self.control = value & FMI_WRITABLE,
            (0x0C, Some(filter)) => filter.enabled = value & 1 != 0,
            (0x10..0x50, Some(filter)) => set_word(&mut filter.value, offset as usize - 0x10, value),
            (0x50..0x90, Some(filter)) => set_word(&mut filter.mask, offset as usize - 0x50, value),
            _ => {}
        }
    }
}

/// Bytes `at`.. of `bytes`, the first one lowest.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].iter().take(4).rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

fn set_word(bytes: &mut [u8], at: usize, value: u32) {
    for (byte, new) in bytes[at..].iter_mut().zip(value.to_le_bytes()) {
        *byte = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: [u8; 6] = [0x02, 1, 2, 3, 4, 5];

    fn filter() -> Filter {
        let mut filter = Filter::default();
        filter.write(0x00, 0x0302_0102);
        filter.write(0x04, 0xFFFF_0504);
        assert_eq!((filter.read(0x00), filter.read(0x04)), (0x0302_0102, 0x0504));
        filter
    }

    fn to(destination: [u8; 6]) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&destination);
        frame
    }

    #[test]
    fn station_broadcast_and_nothing_else() {
        let filter = filter();
        assert!(filter.accepts(&to(STATION), 0));
        assert!(filter.accepts(&to([0xFF; 6]), 0));
        assert!(!filter.accepts(&to([0xFF; 6]), RAF_BROADCAST_REJECT));
        assert!(!filter.accepts(&to([0x02, 1, 2, 3, 4, 6]), 0));
        assert!(!filter.accepts(&to([0x01, 0, 0x5E, 0, 0, 1]), 0));
    }

    #[test]
    fn promiscuous_takes_all() {
        let mut filter = filter();
        filter.write(0x08, FMI_PROMISCUOUS);
        for destination in [[9, 9, 9, 9, 9, 9], [0x01, 0, 0x5E, 0, 0, 1], [0xFF; 6]] {
            assert!(filter.accepts(&to(destination), RAF_BROADCAST_REJECT | RAF_MULTICAST_REJECT));
        }
    }

    #[test]
    fn one_group_by_a_frame_filter_and_all_groups_by_the_group_bit() {
        let (mine, other) = ([0x01, 0, 0x5E, 0, 0, 1], [0x01, 0, 0x5E, 0, 0, 2]);
        let mut filter = filter();
        filter.write(0x08, 2);
        filter.write(0x10, 0x005E_0001);
        filter.write(0x14, 0x0100);
        filter.write(0x0C, 1);
        assert!(filter.accepts(&to(mine), 0) && !filter.accepts(&to(other), 0));
        assert!(!filter.accepts(&to(mine), RAF_MULTICAST_REJECT));
        // The way of Linux' all-multicast: value 1, mask 1.
        filter.write(0x10, 1);
        filter.write(0x14, 0);
        filter.write(0x50, 1);
        filter.write(0x54, 0);
        assert!(filter.accepts(&to(other), 0) && !filter.accepts(&to([0x02, 9, 9, 9, 9, 9]), 0));
        filter.write(0x0C, 0);
        assert!(!filter.accepts(&to(other), 0));
    }

    #[test]
    fn filters_beyond_the_build_do_not_exist() {
        let mut filter = filter();
        filter.write(0x08, FILTERS as u32);
        filter.write(0x0C, 1);
        filter.write(0x50, 0);
        assert_eq!((filter.read(0x0C), filter.read(0x50)), (0, 0));
        assert!(!filter.accepts(&to([0x02, 9, 9, 9, 9, 9]), 0));
    }
}
