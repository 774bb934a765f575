//! What can be wrong with a machine's input. Each message says what to do about it.

use crate::config::{MAX_HARTS, MAX_MEMORY_BYTES, MIN_MEMORY_BYTES};
use thiserror::Error;

/// A refused configuration or image.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SocError {
    /// Number of harts out of range.
    #[error("{asked} harts: a machine has 1 to {MAX_HARTS}")]
    Harts {
        /// The number asked for.
        asked: usize,
    },
    /// RAM size out of range or not whole pages.
    #[error("{asked} bytes of memory: choose a multiple of 4096 from {MIN_MEMORY_BYTES} to {MAX_MEMORY_BYTES}")]
    Memory {
        /// The size asked for, in bytes.
        asked: u64,
    },
    /// Memory latency out of range.
    #[error("memory latency: choose at most 10000 cycles")]
    Latency,
    /// Not a size.
    #[error("\"{text}\" is not a size: write it as 4096, 64K, 128M or 1G")]
    Size {
        /// What was given.
        text: String,
    },
    /// The file is not a well-formed ELF.
    #[error("not a readable ELF file ({reason}): give an image from `images build` or a RISC-V executable")]
    NotElf {
        /// The parser's words.
        reason: String,
    },
    /// The ELF is for another machine.
    #[error("an ELF for another machine ({found}): build it for 64-bit little-endian RISC-V")]
    WrongMachine {
        /// What the header says.
        found: String,
    },
    /// The ELF is not an executable with something to load.
    #[error("the ELF has no loadable segment: give a linked executable")]
    NothingToLoad,
    /// A segment does not fit in RAM.
    #[error(
        "segment {start:#x}..{end:#x} lies outside RAM {ram_start:#x}..{ram_end:#x}: link it there or use --memory"
    )]
    SegmentOutside {
        /// First physical address of the segment.
        start: u64,
        /// One past its last.
        end: u64,
        /// First address of RAM.
        ram_start: u64,
        /// One past the last.
        ram_end: u64,
    },
    /// There is no room for the device tree at the end of RAM.
    #[error("no room for the device tree behind the image: use a larger --memory")]
    NoRoomForDeviceTree,
    /// There is no room for the initial RAM disk below the device tree.
    #[error("no room for an initial RAM disk of {bytes} bytes: use a larger --memory")]
    NoRoomForInitrd {
        /// Its size.
        bytes: u64,
    },
    /// Two of the files would lie in one place.
    #[error("a file reaches to {first_end:#x}, the next one starts at {second_start:#x}: link them apart")]
    Overlap {
        /// One past the last address of the lower one.
        first_end: u64,
        /// First address of the upper one.
        second_start: u64,
    },
    /// The image's `.wakeline.machine` section is wrong.
    #[error("the image's machine defaults cannot be read ({reason}): rebuild the image")]
    MachineSection {
        /// The parser's words.
        reason: String,
    },
    /// More disks than there are slots for them.
    #[error("{asked} disks: at most {most} can be attached")]
    Disks {
        /// The number asked for.
        asked: usize,
        /// Slots for disks.
        most: usize,
    },
    /// The file of a disk cannot be used.
    #[error("disk {path}: {reason}")]
    Disk {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// gdb cannot be served.
    #[error("gdb: {reason}")]
    Debugger {
        /// What went wrong.
        reason: String,
    },
    /// A machine cannot be saved, or a file is no snapshot of one.
    #[error("snapshot: {reason}")]
    Snapshot {
        /// What is wrong and what to do.
        reason: String,
    },
    /// A network description was refused.
    #[error("network: {reason}")]
    Network {
        /// What is wrong and what to do.
        reason: String,
    },
}
