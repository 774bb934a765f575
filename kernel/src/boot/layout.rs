//! Where the objects of the root task go: physical block and virtual addresses, before anything is built.
//!
//! The objects are one block at the top of the last free range that fits, largest first, aligned to the largest (seL4
//! `create_rootserver_objects`). In the address space the image comes first, then, from the page behind it, IPC buffer,
//! BootInfo and the extra BootInfo, whose size is rounded up to a power of two.

use abi::bootinfo::ExtraHeader;
use abi::object::USER_TOP;
use abi::object::bits::{PAGE_4K, SLOT, TCB};

use super::regions::{Range, RangeList};

const PAGE: u64 = 1 << PAGE_4K;
const MEGA_BITS: u32 = 21;
const GIGA_BITS: u32 = 30;

/// The root task's image, as the boot header names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Physical memory of the image, whole pages.
    pub memory: Range,
    /// Virtual address of its first byte.
    pub vaddr: u64,
    /// First instruction.
    pub entry: u64,
}

/// Why the root task cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The boot header names no image, or one that is not whole pages, wraps, or reaches beyond user addresses.
    Image,
    /// The root CNode's radix is not between 4 and 27.
    CNodeBits,
    /// No free range holds the root task's objects.
    Memory,
}

impl Image {
    /// Checks the words of the boot header.
    pub fn new(start: u64, end: u64, pv_offset: u64, entry: u64) -> Result<Self, LayoutError> {
        let vaddr = start.wrapping_sub(pv_offset);
        let aligned = [start, end, vaddr].iter().all(|word| word.is_multiple_of(PAGE));
        let fits = start < end && vaddr.checked_add(end - start).is_some_and(|end| end < USER_TOP);
        if !aligned || !fits {
            return Err(LayoutError::Image);
        }
        Ok(Self { memory: Range::new(start, end), vaddr, entry })
    }

    /// One past its last virtual address.
    pub fn vaddr_end(&self) -> u64 {
        self.vaddr + self.memory.len()
    }
}

/// Addresses of everything that boot builds for the root task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The image.
    pub image: Image,
    /// Virtual address of the IPC buffer; BootInfo and extra BootInfo follow.
    pub ipc_buffer_vaddr: u64,
    /// Bytes of extra BootInfo in use: chunk header and device tree.
    pub extra_len: u64,
    /// log2 of the memory for the extra BootInfo.
    pub extra_bits: u32,
    /// Radix of the root CNode.
    pub cnode_bits: u32,
    /// Physical block of all objects.
    pub block: Range,
    /// Physical addresses inside the block.
    pub cnode: u64,
    /// Extra BootInfo.
    pub extra: u64,
    /// Root page table.
    pub vspace: u64,
    /// First of `table_count` page tables, in the order of [`Layout::tables`].
    pub tables: u64,
    /// Page tables below the root.
    pub table_count: u64,
    /// BootInfo page.
    pub boot_info: u64,
    /// IPC buffer page.
    pub ipc_buffer: u64,
    /// ASID pool.
    pub asid_pool: u64,
    /// TCB.
    pub tcb: u64,
}

impl Layout {
    /// Plans the root task and takes the block out of `free`.
    pub fn plan(image: Image, tree_bytes: u64, cnode_bits: u32, free: &mut RangeList) -> Result<Self, LayoutError> {
        if !(4..=27).contains(&cnode_bits) {
            return Err(LayoutError::CNodeBits);
        }
        let extra_len = size_of::<ExtraHeader>() as u64 + tree_bytes;
        let extra_bits = extra_len.next_power_of_two().ilog2().max(PAGE_4K as u32);
        let ipc_buffer_vaddr = image.vaddr_end();
        let vaddr_end = ipc_buffer_vaddr + 2 * PAGE + (1 << extra_bits);
        if vaddr_end > USER_TOP {
            return Err(LayoutError::Image);
        }
        let table_count = blocks(image.vaddr, vaddr_end, GIGA_BITS) + blocks(image.vaddr, vaddr_end, MEGA_BITS);
        let cnode_bytes = 1 << (cnode_bits + SLOT as u32);
        let extra_bytes = 1 << extra_bits;
        let small_bytes = (4 + table_count) * PAGE + (1 << TCB);
        let size = cnode_bytes + extra_bytes + small_bytes;
        let align = (cnode_bits + SLOT as u32).max(extra_bits);
        let start = free.take_top(size, align).ok_or(LayoutError::Memory)?;
        let (cnode, extra) =
            if cnode_bytes >= extra_bytes { (start, start + cnode_bytes) } else { (start + extra_bytes, start) };
        let vspace = start + cnode_bytes + extra_bytes;
        let tables = vspace + PAGE;
        let boot_info = tables + table_count * PAGE;
        Ok(Self {
            image,
            ipc_buffer_vaddr,
            extra_len,
            extra_bits,
            cnode_bits,
            block: Range::new(start, start + size),
            cnode,
            extra,
            vspace,
            tables,
            table_count,
            boot_info,
            ipc_buffer: boot_info + PAGE,
            asid_pool: boot_info + 2 * PAGE,
            tcb: boot_info + 3 * PAGE,
        })
    }

    /// Virtual address of the BootInfo page.
    pub fn boot_info_vaddr(&self) -> u64 {
        self.ipc_buffer_vaddr + PAGE
    }

    /// Virtual address of the extra BootInfo.
    pub fn extra_vaddr(&self) -> u64 {
        self.ipc_buffer_vaddr + 2 * PAGE
    }

    /// The page tables below the root, in the order of their slots: those for 1 GiB first, then those for 2 MiB.
    pub fn tables(&self) -> impl Iterator<Item = TablePlace> {
        let (start, end) = (self.image.vaddr, self.extra_vaddr() + (1 << self.extra_bits));
        let at = move |bits: u32, level: u32| {
            ((start >> bits)..blocks(start, end, bits) + (start >> bits)).map(move |index| TablePlace {
                vaddr: index << bits,
                level,
                paddr: 0,
            })
        };
        let first = self.tables;
        at(GIGA_BITS, 0)
            .chain(at(MEGA_BITS, 1))
            .zip(0u64..)
            .map(move |(place, index)| TablePlace { paddr: first + index * PAGE, ..place })
    }
}

/// One page table of the root task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePlace {
    /// First virtual address that it covers.
    pub vaddr: u64,
    /// Level of the table that points to it: 0 = the root.
    pub level: u32,
    /// Its page.
    pub paddr: u64,
}

/// How many blocks of `1 << bits` bytes `start..end` touches.
fn blocks(start: u64, end: u64, bits: u32) -> u64 {
    ((end - 1) >> bits) - (start >> bits) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> RangeList {
        let mut free = RangeList::default();
        assert!(free.insert(Range::new(0x8060_0000, 0x8800_0000)));
        free
    }

    #[test]
    fn objects_follow_each_other_largest_first() {
        let image = Image::new(0x8040_0000, 0x8041_A000, 0x803F_0000, 0x1_0000).expect("good words");
        let mut free = free();
        let layout = Layout::plan(image, 0x144B, 13, &mut free).expect("there is room");
        assert_eq!((image.vaddr, image.vaddr_end()), (0x1_0000, 0x2_A000));
        assert_eq!(layout.ipc_buffer_vaddr, 0x2_A000);
        assert_eq!((layout.boot_info_vaddr(), layout.extra_vaddr()), (0x2_B000, 0x2_C000));
        assert_eq!((layout.extra_len, layout.extra_bits), (0x145B, 13));
        assert_eq!(layout.table_count, 2);
        assert!(layout.block.start.is_multiple_of(1 << 18));
        assert_eq!(layout.cnode, layout.block.start);
        assert_eq!(layout.extra, layout.cnode + (1 << 18));
        assert_eq!(layout.tcb + (1 << TCB), layout.block.end);
        assert!(free.iter().all(|range| range.end <= layout.block.start || range.start >= layout.block.end));
    }

    #[test]
    fn tables_come_level_by_level() {
        // Crosses a 2 MiB and a 1 GiB border.
        let image = Image::new(0x8040_0000, 0x8080_0000, 0x4060_0000_u64.wrapping_neg(), 0).map(|image| image.vaddr);
        assert_eq!(image, Ok(0xC0A0_0000));
        let image = Image::new(0x8040_0000, 0x8080_0000, 0x4060_0000, 0x3FE0_0000).expect("good words");
        let layout = Layout::plan(image, 100, 12, &mut free()).expect("there is room");
        let places: Vec<_> = layout.tables().map(|table| (table.level, table.vaddr)).collect();
        assert_eq!(places, [(0, 0), (0, 0x4000_0000), (1, 0x3FE0_0000), (1, 0x4000_0000), (1, 0x4020_0000)],);
        assert_eq!(layout.table_count, places.len() as u64);
        assert!(layout.tables().zip(0..).all(|(table, index)| table.paddr == layout.tables + index * PAGE));
    }

    #[test]
    fn refuses_a_bad_header() {
        assert_eq!(Image::new(0, 0, 0, 0), Err(LayoutError::Image));
        assert_eq!(Image::new(0x8040_0800, 0x8041_0000, 0x803F_0000, 0), Err(LayoutError::Image));
        assert_eq!(Image::new(0x8040_0000, 0x8041_0000, 0x8050_0000, 0), Err(LayoutError::Image));
        let image = Image::new(0x8040_0000, 0x8041_0000, 0x8000_0000, 0x40_0000).expect("good words");
        assert_eq!(Layout::plan(image, 0, 3, &mut free()), Err(LayoutError::CNodeBits));
        assert_eq!(Layout::plan(image, 0, 27, &mut free()), Err(LayoutError::Memory));
    }
}
