//! From the device tree and the boot header to the root task's thread.
//!
//! | file | what |
//! |---|---|
//! | `machine.rs` | device tree -> harts, RAM, controllers |
//! | `regions.rs` | physical ranges, cutting into untypeds |
//! | `layout.rs` | where the root task's objects go |
//! | `root_task.rs` | builds them |
//!
//! Everything here runs once, on core 0, and refuses by [`BootError`] before it builds; the architecture turns that into a panic.

pub mod layout;
pub mod machine;
pub mod regions;
pub mod root_task;

use abi::config::{KERNEL_STACK_BITS, PADDR_USER_DEVICE_TOP};
use abi::image::{
    BootHeader, FLAG_BENCHMARKS, FLAG_ENTRIES, FLAG_FASTPATH, FLAG_PRINTING, FLAG_UTILISATION, KERNEL_PADDR, MAGIC,
    VERSION,
};
use abi::label::Table;

use crate::mem::Ref;
use crate::object::tcb::Tcb;
use crate::state::{Config, Kernel};
use layout::{Image, Layout, LayoutError};
use machine::Machine;
use regions::{Range, RangeList};
use root_task::Untypeds;

/// End of the RAM that the kernel's direct map reaches (254 GiB).
const DIRECT_MAP_END: u64 = 254 << 30;
/// The kernel maps its devices in pages of this size, log2; whole pages are kept from users.
const DEVICE_BITS: u32 = 21;

const _: () = assert!(KERNEL_STACK_BITS >= 13, "BootInfo is built on the stack");

/// Why there is no system to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The boot header was not laid out by this kernel's image builder.
    Header,
    /// The root task does not fit.
    Layout(LayoutError),
    /// More separate ranges of memory than the kernel keeps.
    TooManyRanges,
}

impl From<LayoutError> for BootError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

/// Checks that the header is one of ours.
pub fn check(header: &BootHeader) -> Result<(), BootError> {
    (header.magic == MAGIC && header.version == VERSION).then_some(()).ok_or(BootError::Header)
}

/// The kernel's configuration, as the header says it.
pub fn config(header: &BootHeader) -> Config {
    Config {
        labels: Table::from_word(header.label_table),
        // The fast paths take no time stamps.
        fastpath: header.flags & FLAG_FASTPATH != 0 && header.flags & (FLAG_UTILISATION | FLAG_ENTRIES) == 0,
        printing: header.flags & FLAG_PRINTING != 0,
        benchmarks: header.flags & (FLAG_BENCHMARKS | FLAG_UTILISATION | FLAG_ENTRIES) != 0,
        utilisation: header.flags & FLAG_UTILISATION != 0,
        entries: header.flags & FLAG_ENTRIES != 0,
        time_slice: header.time_slice,
    }
}

/// Physical memory, sorted by use.
struct Memory {
    /// RAM for untypeds and for the root task's objects.
    free: RangeList,
    /// What is neither RAM to hand out nor a device of the user: the kernel, its devices, image and device tree.
    kept: RangeList,
}

impl Memory {
    fn survey(machine: &Machine, kernel: Range, image: Range, tree: Range) -> Result<Self, BootError> {
        let mut free = machine.memory.clone();
        let mut kept = RangeList::default();
        let room = |done: bool| done.then_some(()).ok_or(BootError::TooManyRanges);
        for range in [kernel, image, tree] {
            room(kept.insert(range))?;
        }
        let devices =
            [machine.clint, machine.plic.map(|plic| plic.registers), machine.uintc.map(|uintc| uintc.registers)];
        for device in devices.into_iter().flatten() {
            room(kept.insert(device.align_out(DEVICE_BITS)))?;
        }
        // Below the kernel, in its bank of RAM, lives the firmware.
        if let Some(bank) = machine.memory.iter().find(|bank| (bank.start..bank.end).contains(&kernel.start)) {
            room(free.remove(Range::new(bank.start, kernel.end)))?;
        }
        for range in kept.iter().chain(machine.reserved.iter()) {
            room(free.remove(range))?;
        }
        room(free.remove(Range::new(DIRECT_MAP_END, u64::MAX)))?;
        Ok(Self { free, kept })
    }
}

/// Builds the root task on a kernel that has been started, and gives its thread. `tree_paddr` is where `tree` lies.
pub fn build(
    kernel: &mut Kernel,
    machine: &Machine,
    header: &BootHeader,
    tree: &[u8],
    tree_paddr: u64,
) -> Result<Ref<Tcb>, BootError> {
    let image = Image::new(header.root_start, header.root_end, header.root_pv_offset, header.root_entry)?;
    let kernel_range = Range::from_size(KERNEL_PADDR, header.kernel_size).ok_or(BootError::Header)?;
    let tree_range = Range::from_size(tree_paddr, tree.len() as u64).ok_or(BootError::Header)?;
    let Memory { mut free, mut kept } = Memory::survey(machine, kernel_range, image.memory, tree_range)?;
    let ram = free.clone();
    let layout = Layout::plan(image, tree.len() as u64, header.root_cnode_bits, &mut free)?;
    for range in ram.iter() {
        if !kept.insert(range) {
            return Err(BootError::TooManyRanges);
        }
    }
    let device = kept.gaps(Range::new(0, PADDR_USER_DEVICE_TOP));
    Ok(root_task::build(kernel, &layout, tree, Untypeds { device, ram: free.iter() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &[u8] = include_bytes!("virt-4-harts.dtb");

    fn survey() -> Memory {
        let machine = Machine::parse(TREE, 0, 4).expect("a good tree");
        let kernel = Range::new(KERNEL_PADDR, 0x8023_4000);
        let image = Range::new(0x8040_0000, 0x8041_A000);
        let tree = Range::new(0x87E0_0000, 0x87E0_0000 + TREE.len() as u64);
        Memory::survey(&machine, kernel, image, tree).expect("few ranges")
    }

    #[test]
    fn firmware_kernel_image_and_tree_are_not_free() {
        let free: Vec<_> = survey().free.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(
            free,
            [(0x8023_4000, 0x8040_0000), (0x8041_A000, 0x87E0_0000), (0x87E0_0000 + TREE.len() as u64, 0x8800_0000),],
        );
    }

    #[test]
    fn device_memory_is_what_is_left() {
        let Memory { free, mut kept } = survey();
        assert!(free.iter().all(|range| kept.insert(range)));
        let gaps: Vec<_> = kept.gaps(Range::new(0, 1 << 39)).map(|range| (range.start, range.end)).collect();
        assert_eq!(
            gaps,
            [
                (0, 0x200_0000),
                (0x220_0000, 0xC00_0000),
                (0xC60_0000, 0x8020_0000), // up to the kernel: the firmware's RAM counts as device memory
                (0x8800_0000, 1 << 39),
            ],
        );
    }

    #[test]
    fn a_foreign_header_is_refused() {
        // SAFETY: plain words.
        let mut header: BootHeader = unsafe { core::mem::zeroed() };
        assert_eq!(check(&header), Err(BootError::Header));
        header.magic = MAGIC;
        header.version = VERSION;
        assert_eq!(check(&header), Ok(()));
        assert!(!config(&header).fastpath);
    }
}
