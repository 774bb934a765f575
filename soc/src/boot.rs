//! Where firmware, kernel and initial RAM disk go, and what firmware is told about them.
//!
//! ```text
//! 0x8000_0000 firmware ─ 0x8020_0000 kernel ─ … ─ initial RAM disk ─ fw_dynamic information ─ device tree ─ end of RAM
//! ```
//!
//! A file that starts with the ELF magic is loaded at its own physical addresses, any other file as it is at the address above;
//! it is the placement of QEMU's `virt` board, which foreign software is linked for. The machine knows none of that software.

use crate::board::RAM_BASE;
use crate::elf::{Executable, Segment, check_fit};
use crate::error::SocError;

/// Where a kernel that is not an ELF goes: OpenSBI's `fw_jump` jumps there.
pub const KERNEL_BASE: u64 = RAM_BASE + 0x20_0000;
/// "OSBI": first word of the information for OpenSBI's `fw_dynamic`.
const DYNAMIC_MAGIC: u64 = 0x4942_534F;
const DYNAMIC_VERSION: u64 = 2;
const NEXT_MODE_SUPERVISOR: u64 = 1;
/// Bytes of [`Plan::dynamic_information`].
const DYNAMIC_BYTES: u64 = 48;
const PAGE: u64 = 4096;
/// Room behind the device tree: firmware makes it longer where it lies (OpenSBI reserves its own memory in it).
const DEVICE_TREE_GROWTH: u64 = 16 << 10;

/// The files of a guest that is not one image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guest<'a> {
    /// Runs first, in M-mode.
    pub firmware: &'a [u8],
    /// What the firmware starts.
    pub kernel: Option<&'a [u8]>,
    /// Initial RAM disk for the kernel.
    pub initrd: Option<&'a [u8]>,
}

/// Checked placement of a guest.
pub(crate) struct Plan<'a> {
    /// Everything to load apart from the device tree and the information for the firmware.
    pub segments: Vec<Segment<'a>>,
    /// Where all harts start.
    pub entry: u64,
    /// Where the kernel starts; 0 without one.
    kernel_entry: u64,
    /// First and one past the last address of the initial RAM disk.
    pub initrd: Option<(u64, u64)>,
    /// Address of the information for the firmware.
    pub dynamic: u64,
    /// Address of the device tree.
    pub device_tree: u64,
}

impl<'a> Plan<'a> {
    /// Places `guest` in RAM of `memory_bytes` with a device tree of `device_tree_bytes`.
    ///
    /// Errors: a file's own faults, a piece outside RAM, or two pieces in one place.
    pub fn new(guest: &Guest<'a>, memory_bytes: u64, device_tree_bytes: u64) -> Result<Self, SocError> {
        let ram_end = RAM_BASE + memory_bytes;
        let (mut segments, entry) = file(guest.firmware, RAM_BASE)?;
        let mut kernel_entry = 0;
        if let Some(kernel) = guest.kernel {
            let (pieces, start) = file(kernel, KERNEL_BASE)?;
            segments.extend(pieces);
            kernel_entry = start;
        }
        let top = check_fit(&segments, memory_bytes)?;
        let initrd_bytes = guest.initrd.map_or(0, |initrd| initrd.len() as u64);
        // Sizes are checked one by one: a large file must not wrap the subtraction.
        let below = |end: u64, bytes: u64| {
            end.checked_sub(bytes).map(|start| start & !(PAGE - 1)).filter(|&start| start >= top)
        };
        let device_tree =
            below(ram_end, device_tree_bytes + DEVICE_TREE_GROWTH).ok_or(SocError::NoRoomForDeviceTree)?;
        let dynamic = below(device_tree, DYNAMIC_BYTES).ok_or(SocError::NoRoomForDeviceTree)?;
        let mut initrd = None;
        if let Some(bytes) = guest.initrd {
            let start = below(dynamic, initrd_bytes).ok_or(SocError::NoRoomForInitrd { bytes: initrd_bytes })?;
            segments.push(Segment { address: start, bytes, size: initrd_bytes });
            initrd = Some((start, start + initrd_bytes));
        }
        check_apart(&segments)?;
        Ok(Self { segments, entry, kernel_entry, initrd, dynamic, device_tree })
    }

    /// What OpenSBI's `fw_dynamic` finds through a2: magic, version, next address, next mode, options, boot hart.
    pub fn dynamic_information(&self) -> [u8; DYNAMIC_BYTES as usize] {
        let mut bytes = [0; DYNAMIC_BYTES as usize];
        let words = [DYNAMIC_MAGIC, DYNAMIC_VERSION, self.kernel_entry, NEXT_MODE_SUPERVISOR, 0, 0];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Segments and entry of one file; a raw one lies at `base` and starts there.
fn file(data: &[u8], base: u64) -> Result<(Vec<Segment<'_>>, u64), SocError> {
    if !data.starts_with(b"\x7fELF") {
        if data.is_empty() {
            return Err(SocError::NothingToLoad);
        }
        return Ok((vec![Segment { address: base, bytes: data, size: data.len() as u64 }], base));
    }
    let executable = Executable::parse(data)?;
    Ok((executable.segments()?, executable.entry()))
}

fn check_apart(segments: &[Segment]) -> Result<(), SocError> {
    let mut ranges: Vec<(u64, u64)> = segments.iter().map(|s| (s.address, s.address + s.size)).collect();
    ranges.sort_unstable();
    match ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        Some(pair) => Err(SocError::Overlap { first_end: pair[0].1, second_start: pair[1].0 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 8 << 20;

    #[test]
    fn raw_files_lie_where_the_virt_board_has_them() {
        let guest = Guest { firmware: &[1; 64], kernel: Some(&[2; 64]), initrd: Some(&[3; 5000]) };
        let plan = Plan::new(&guest, MEMORY, 6000).unwrap();
        let addresses: Vec<u64> = plan.segments.iter().map(|segment| segment.address).collect();
        assert_eq!(addresses, [0x8000_0000, 0x8020_0000, 0x807F_7000]);
        assert_eq!((plan.entry, plan.device_tree, plan.dynamic), (0x8000_0000, 0x807F_A000, 0x807F_9000));
        assert_eq!(plan.initrd, Some((0x807F_7000, 0x807F_7000 + 5000)));
        let words: Vec<u64> = plan
            .dynamic_information()
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of 8")))
            .collect();
        assert_eq!(words, [0x4942_534F, 2, 0x8020_0000, 1, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let large = vec![0; 3 << 20];
        let overlap = Guest { firmware: &large, kernel: Some(&[1]), initrd: None };
        assert!(matches!(Plan::new(&overlap, MEMORY, 4096), Err(SocError::Overlap { .. })));
        let initrd = vec![0; MEMORY as usize];
        let crowded = Guest { firmware: &[1], kernel: None, initrd: Some(&initrd) };
        assert!(matches!(Plan::new(&crowded, MEMORY, 4096), Err(SocError::NoRoomForInitrd { .. })));
        let kernel = Guest { firmware: &[1], kernel: Some(&large), initrd: None };
        assert!(matches!(Plan::new(&kernel, 4 << 20, 4096), Err(SocError::SegmentOutside { .. })));
        assert_eq!(Plan::new(&Guest::default(), MEMORY, 4096).err(), Some(SocError::NothingToLoad));
    }
}
