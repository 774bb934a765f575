//! Boot on QEMU's virt board: what the root task finds, as seL4 lays it out.

use abi::bootinfo::{BootInfo, EXTRA_FDT, ExtraHeader, SlotRegion, slot};
use abi::image::{BootHeader, KERNEL_PADDR, MAGIC, VERSION};

use super::world::check_invariants;
use crate::arch::host::{ARENA, Host};
use crate::arch::register::A0;
use crate::arch::sv39::{self, Pte};
use crate::boot::machine::Machine;
use crate::boot::{self, BootError};
use crate::mem::{Paddr, Ref};
use crate::object::cap::{Cap, Kind};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::object::vspace::{PageTable, find_root};
use crate::sched;
use crate::state::{Kernel, Next};

const TREE: &[u8] = include_bytes!("../boot/virt-4-harts.dtb");
const TREE_PADDR: u64 = 0x87E0_0000;
const RAM: usize = 128 << 20;
/// The kernel's own objects, in the part of RAM that boot leaves to the firmware.
const OWN_OBJECTS: u64 = ARENA.0 + 0x10_0000;
const ENTRY: u64 = 0x1_0000;
const IMAGE_PAGES: u64 = 26;

fn header() -> BootHeader {
    BootHeader {
        code: [0; 2],
        magic: MAGIC,
        version: VERSION,
        flags: 0,
        kernel_size: 0x3_4000,
        root_start: 0x8040_0000,
        root_end: 0x8040_0000 + IMAGE_PAGES * 4096,
        root_pv_offset: 0x8040_0000 - ENTRY,
        root_entry: ENTRY,
        label_table: 0,
        root_cnode_bits: 13,
        timer_tick_ms: 2,
        time_slice: 5,
        max_nodes: 1,
        reserved: 0,
    }
}

fn boot(header: &BootHeader) -> (Kernel, Result<Ref<Tcb>, BootError>) {
    let mut k = Kernel::new(Host::new(RAM));
    // SAFETY: zeroed memory of the arena that nothing else uses.
    unsafe { k.start(boot::config(header), Paddr(OWN_OBJECTS).kva()) };
    let machine = Machine::parse(TREE, 0, 1).expect("a good tree");
    let root = boot::build(&mut k, &machine, header, TREE, TREE_PADDR);
    (k, root)
}

fn at<T: Copy>(k: &Kernel, paddr: u64) -> T {
    let bytes = &k.arch.memory()[(paddr - ARENA.0) as usize..][..size_of::<T>()];
    // SAFETY: plain words inside the arena.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// Where the root task's address space maps `vaddr`, with the entry.
fn walk(k: &Kernel, vaddr: u64) -> Pte {
    let mut table: Ref<PageTable> = find_root(k, 1).expect("ASID 1 is the root task's");
    for level in 0..2 {
        let entry = k.get(table).0[sv39::index(vaddr, level)];
        assert!(entry.is_table(), "no table at level {level} for {vaddr:#x}");
        // SAFETY: a page table of the root task.
        table = unsafe { Ref::assume(Paddr(entry.paddr()).kva()) };
    }
    k.get(table).0[sv39::index(vaddr, 2)]
}

fn cnode(k: &Kernel, root: Ref<Tcb>) -> Cap {
    k.get(root).cap(Slot::CSpace)
}

fn cap(k: &Kernel, root: Ref<Tcb>, index: u64) -> Cap {
    k.cap(cnode(k, root).slot(index as usize))
}

#[test]
fn slots_and_boot_info_are_where_a_root_task_looks() {
    let (k, root) = boot(&header());
    let root = root.expect("there is room");
    let expected = [
        (slot::NULL, Kind::Null),
        (slot::TCB, Kind::Tcb),
        (slot::CNODE, Kind::CNode),
        (slot::VSPACE, Kind::PageTable),
        (slot::IRQ_CONTROL, Kind::IrqControl),
        (slot::ASID_CONTROL, Kind::AsidControl),
        (slot::ASID_POOL, Kind::AsidPool),
        (7, Kind::Null),
        (8, Kind::Null),
        (slot::BOOT_INFO_FRAME, Kind::Frame),
        (slot::IPC_BUFFER_FRAME, Kind::Frame),
        (slot::DOMAIN, Kind::Domain),
        (12, Kind::Null),
        (15, Kind::Null),
    ];
    for (index, kind) in expected {
        assert_eq!(cap(&k, root, index).kind(), kind, "slot {index}");
    }

    let info: BootInfo = at(&k, cap(&k, root, slot::BOOT_INFO_FRAME).paddr().0);
    let ipc_buffer = ENTRY + IMAGE_PAGES * 4096;
    assert_eq!((info.num_nodes, info.ipc_buffer, info.extra_len), (1, ipc_buffer, 16 + TREE.len() as u64));
    // The order seen on seL4: page tables, extra BootInfo, image, untypeds.
    assert_eq!(info.user_image_paging, SlotRegion { start: 16, end: 18 });
    assert_eq!(info.extra_bi_pages, SlotRegion { start: 18, end: 20 });
    assert_eq!(info.user_image_frames, SlotRegion { start: 20, end: 20 + IMAGE_PAGES });
    assert_eq!(info.untyped.start, 20 + IMAGE_PAGES);
    assert_eq!(info.empty, SlotRegion { start: info.untyped.end, end: 1 << 13 });
    assert!(cap(&k, root, info.empty.start).is_null());
}

#[test]
fn every_untyped_is_described_and_overlaps_nothing_in_use() {
    let (k, root) = boot(&header());
    let root = root.expect("there is room");
    let info: BootInfo = at(&k, cap(&k, root, slot::BOOT_INFO_FRAME).paddr().0);
    let count = (info.untyped.end - info.untyped.start) as usize;
    let mut end_of_last = 0;
    let mut device = true;
    for (index, desc) in info.untyped_list[..count].iter().enumerate() {
        let cap = cap(&k, root, info.untyped.start + index as u64);
        assert!(cap.is(Kind::Untyped));
        assert_eq!((cap.paddr().0, cap.untyped_bits()), (desc.paddr, usize::from(desc.size_bits)));
        assert_eq!(cap.is_device(), desc.is_device != 0);
        if device && !cap.is_device() {
            (device, end_of_last) = (false, 0);
        }
        assert!(!cap.is_device() || device, "device memory comes first");
        assert!(desc.paddr >= end_of_last, "ascending, without overlap");
        end_of_last = desc.paddr + (1 << desc.size_bits);
        let used = [
            (KERNEL_PADDR, KERNEL_PADDR + 0x3_4000),
            (0x8040_0000, 0x8040_0000 + IMAGE_PAGES * 4096),
            (TREE_PADDR, TREE_PADDR + TREE.len() as u64),
            (0x200_0000, 0x201_0000),
            (0xC00_0000, 0xC60_0000),
        ];
        assert!(used.iter().all(|&(start, end)| end_of_last <= start || desc.paddr >= end), "{desc:x?}");
    }
    assert!(info.untyped_list[count..].iter().all(|desc| desc.size_bits == 0));
    assert!(!device, "there is RAM");
}

#[test]
fn the_address_space_holds_image_buffer_and_boot_info() {
    let (k, root) = boot(&header());
    let root = root.expect("there is room");
    for page in 0..IMAGE_PAGES {
        let entry = walk(&k, ENTRY + page * 4096);
        assert_eq!(entry.paddr(), 0x8040_0000 + page * 4096);
        assert_eq!(entry.bits() & 0xff, 0xdf, "user, all rights, accessed, dirty");
    }
    let end = ENTRY + IMAGE_PAGES * 4096;
    assert_eq!(walk(&k, end).paddr(), cap(&k, root, slot::IPC_BUFFER_FRAME).paddr().0);
    assert_eq!(walk(&k, end + 0x1000).paddr(), cap(&k, root, slot::BOOT_INFO_FRAME).paddr().0);
    let extra: ExtraHeader = at(&k, walk(&k, end + 0x2000).paddr());
    assert_eq!(extra, ExtraHeader { id: EXTRA_FDT, len: 16 + TREE.len() as u64 });
    assert!(!walk(&k, end + 0x4000).is_valid());
}

#[test]
fn the_thread_starts_at_the_entry_with_boot_info_in_a0() {
    let (mut k, root) = boot(&header());
    let root = root.expect("there is room");
    let tcb = k.get(root);
    assert_eq!((tcb.state, tcb.priority, tcb.mcp, tcb.core), (ThreadState::Running, 255, 255, 0));
    assert_eq!(tcb.context.next_pc, ENTRY);
    for (index, &word) in tcb.context.x.iter().enumerate() {
        let expected = if index == A0 { ENTRY + IMAGE_PAGES * 4096 + 0x1000 } else { 0 };
        assert_eq!(word, expected, "x{index}");
    }
    sched::possible_switch_to(&mut k, root);
    assert_eq!(sched::leave(&mut k), Next::Run(root));
    check_invariants(&k);
}

#[test]
fn a_header_without_root_task_is_refused() {
    let mut header = header();
    header.root_end = header.root_start;
    let (_, root) = boot(&header);
    assert_eq!(root, Err(BootError::Layout(boot::layout::LayoutError::Image)));
}
