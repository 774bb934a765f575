//! Builds the root task: its objects, its address space, its CSpace in seL4's slot order, BootInfo, and its thread.
//!
//! Runs once, on core 0, before any thread exists. The memory that it turns into objects comes from [`Layout`], which took it out
//! of the free ranges; so each `Ref` made here names memory that nothing else uses.

use abi::bootinfo::{BootInfo, EXTRA_FDT, ExtraHeader, SlotRegion, UntypedDesc, slot};
use abi::config::MAX_NUM_BOOTINFO_UNTYPED_CAPS;
use abi::object::bits::PAGE_4K;

use super::layout::Layout;
use super::regions::{Piece, Range};
use crate::arch::sv39::{self, Pte};
use crate::arch::{Arch, register};
use crate::mem::{Paddr, Ref};
use crate::object::cap::{Cap, Cte, FrameSize, VmRights};
use crate::object::mdb::Mdb;
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::object::vspace::{AsidPool, PageTable, asid};
use crate::state::Kernel;
use crate::thread;

const PAGE: u64 = 1 << PAGE_4K;
/// ASID of the root task (0 is never used).
const ROOT_ASID: u16 = 1;
/// Priority and maximum controlled priority of the root task.
const ROOT_PRIORITY: u8 = 255;
/// Everything that the root task is given in memory, it may also execute.
const RWX: sv39::Rights = sv39::Rights { read: true, write: true, execute: true };

/// Physical memory for untypeds, in the order of the list.
pub struct Untypeds<D, R> {
    /// Device memory.
    pub device: D,
    /// RAM.
    pub ram: R,
}

/// Builds the root task that `layout` describes, and gives its thread. The untypeds that do not fit the BootInfo are lost.
pub fn build(
    kernel: &mut Kernel,
    layout: &Layout,
    tree: &[u8],
    untypeds: Untypeds<impl Iterator<Item = Range>, impl Iterator<Item = Range>>,
) -> Ref<Tcb> {
    let mut builder = Builder::new(kernel, layout);
    builder.fixed_slots();
    let mut info = builder.address_space(tree);
    builder.untypeds(&mut info, untypeds);
    info.empty = SlotRegion { start: builder.next_slot, end: 1 << layout.cnode_bits };
    builder.write(layout.boot_info, &info);
    builder.thread()
}

struct Builder<'a> {
    kernel: &'a mut Kernel,
    layout: &'a Layout,
    next_slot: u64,
}

impl<'a> Builder<'a> {
    fn new(kernel: &'a mut Kernel, layout: &'a Layout) -> Self {
        let block = layout.block;
        // SAFETY: the block was taken out of the free ranges for the root task's objects; none exists yet.
        unsafe { kernel.zero(Paddr(block.start).kva(), block.len() as usize) };
        Self { kernel, layout, next_slot: slot::NUM_INITIAL }
    }

    fn object<T>(&self, paddr: u64) -> Ref<T> {
        debug_assert!((self.layout.block.start..self.layout.block.end).contains(&paddr));
        // SAFETY: `Layout` gives each object its own part of the block, which is zero; zero is valid for every object.
        unsafe { Ref::assume(Paddr(paddr).kva()) }
    }

    fn cnode(&self) -> Cap {
        Cap::cnode(self.object(self.layout.cnode), self.layout.cnode_bits as usize, self.guard())
    }

    /// Guard value 0, as many bits as make a CPtr of 64 bits.
    fn guard(&self) -> u64 {
        64 - u64::from(self.layout.cnode_bits)
    }

    fn slot(&self, index: u64) -> Ref<Cte> {
        self.cnode().slot(index as usize)
    }

    fn provide(&mut self, index: u64, cap: Cap) {
        let slot = self.slot(index);
        *self.kernel.get_mut(slot) = Cte { cap, mdb: Mdb::ALONE };
    }

    /// Whether the CNode has room for one more capability.
    fn has_slot(&self) -> bool {
        self.next_slot < 1 << self.layout.cnode_bits
    }

    /// # Panics
    /// If the CNode is full: the image asks for a radix that cannot hold its own frames.
    fn provide_next(&mut self, cap: Cap) {
        assert!(self.has_slot(), "the root CNode is too small for the root task");
        self.provide(self.next_slot, cap);
        self.next_slot += 1;
    }

    fn fixed_slots(&mut self) {
        let layout = self.layout;
        self.provide(slot::TCB, Cap::tcb(self.object(layout.tcb)));
        self.provide(slot::CNODE, self.cnode());
        self.provide(slot::IRQ_CONTROL, Cap::irq_control());
        self.provide(slot::ASID_CONTROL, Cap::asid_control());
        self.provide(slot::ASID_POOL, Cap::asid_pool(self.object(layout.asid_pool), 0));
        self.provide(slot::DOMAIN, Cap::domain());
    }

    /// Page tables, frames and BootInfo, in the order of their slots.
    fn address_space(&mut self, tree: &[u8]) -> BootInfo {
        let layout = self.layout;
        let root: Ref<PageTable> = self.object(layout.vspace);
        let pool: Ref<AsidPool> = self.object(layout.asid_pool);
        self.kernel.asid_pools[0] = Some(pool);
        asid::assign(self.kernel, pool, ROOT_ASID, root);
        self.provide(slot::VSPACE, Cap::page_table(root).mapped_at(ROOT_ASID, 0));

        let paging = self.next_slot;
        for table in layout.tables() {
            let object: Ref<PageTable> = self.object(table.paddr);
            self.provide_next(Cap::page_table(object).mapped_at(ROOT_ASID, table.vaddr));
            self.enter(table.vaddr, table.level, Pte::table(table.paddr));
        }
        let extra = self.next_slot;
        for offset in (0..1 << layout.extra_bits).step_by(PAGE as usize) {
            let cap = self.map(layout.extra + offset, layout.extra_vaddr() + offset);
            self.provide_next(cap);
        }
        let image = self.next_slot;
        for offset in (0..layout.image.memory.len()).step_by(PAGE as usize) {
            let cap = self.map(layout.image.memory.start + offset, layout.image.vaddr + offset);
            self.provide_next(cap);
        }
        let cap = self.map(layout.ipc_buffer, layout.ipc_buffer_vaddr);
        self.provide(slot::IPC_BUFFER_FRAME, cap);
        let cap = self.map(layout.boot_info, layout.boot_info_vaddr());
        self.provide(slot::BOOT_INFO_FRAME, cap);

        self.write(layout.extra, &ExtraHeader { id: EXTRA_FDT, len: layout.extra_len });
        self.write_bytes(layout.extra + size_of::<ExtraHeader>() as u64, tree);
        BootInfo {
            extra_len: layout.extra_len,
            node_id: 0,
            num_nodes: self.kernel.arch.cores() as u64,
            num_io_pt_levels: 0,
            ipc_buffer: layout.ipc_buffer_vaddr,
            empty: SlotRegion::default(),
            shared_frames: SlotRegion::default(),
            user_image_frames: SlotRegion { start: image, end: self.next_slot },
            user_image_paging: SlotRegion { start: paging, end: extra },
            io_space_caps: SlotRegion::default(),
            extra_bi_pages: SlotRegion { start: extra, end: image },
            init_thread_cnode_size_bits: u64::from(layout.cnode_bits),
            init_thread_domain: 0,
            untyped: SlotRegion::default(),
            untyped_list: [UntypedDesc::default(); MAX_NUM_BOOTINFO_UNTYPED_CAPS],
        }
    }

    /// Writes an entry of the table at `level` that the tables built so far lead to.
    fn enter(&mut self, vaddr: u64, level: u32, entry: Pte) {
        let mut table: Ref<PageTable> = self.object(self.layout.vspace);
        for above in 0..level {
            let next = self.kernel.get(table).0[sv39::index(vaddr, above)];
            debug_assert!(next.is_table());
            table = self.object(next.paddr());
        }
        self.kernel.get_mut(table).0[sv39::index(vaddr, level)] = entry;
    }

    /// Maps a page and gives the capability of its frame.
    fn map(&mut self, paddr: u64, vaddr: u64) -> Cap {
        self.enter(vaddr, 2, Pte::user(paddr, RWX));
        let frame = Cap::frame(Paddr(paddr).kva(), FrameSize::Page, VmRights::ReadWrite, false);
        frame.mapped_at(ROOT_ASID, vaddr)
    }

    fn untypeds(
        &mut self,
        info: &mut BootInfo,
        untypeds: Untypeds<impl Iterator<Item = Range>, impl Iterator<Item = Range>>,
    ) {
        info.untyped.start = self.next_slot;
        let device = untypeds.device.flat_map(super::regions::pieces).map(|piece| (piece, true));
        let ram = untypeds.ram.flat_map(super::regions::pieces).map(|piece| (piece, false));
        for (desc, (Piece { paddr, size_bits }, device)) in info.untyped_list.iter_mut().zip(device.chain(ram)) {
            if !self.has_slot() {
                break;
            }
            *desc = UntypedDesc { paddr, size_bits, is_device: u8::from(device), padding: [0; 6] };
            // It counts as used, so that its first use zeroes it: what lies there is older than the kernel.
            self.provide_next(Cap::untyped(Paddr(paddr).kva(), usize::from(size_bits), device, 1 << size_bits));
        }
        info.untyped.end = self.next_slot;
    }

    fn thread(&mut self) -> Ref<Tcb> {
        let layout = self.layout;
        let tcb: Ref<Tcb> = self.object(layout.tcb);
        let copies =
            [(slot::CNODE, Slot::CSpace), (slot::VSPACE, Slot::VSpace), (slot::IPC_BUFFER_FRAME, Slot::Buffer)];
        for (from, to) in copies {
            let source = self.slot(from);
            let cap = self.kernel.cap(source);
            let cap = if to == Slot::Buffer { cap.unmapped() } else { cap };
            self.kernel.insert(cap, source, tcb.slot(to));
        }
        thread::enlist(self.kernel, tcb);
        thread::set_up_reply_master(self.kernel, tcb);
        let time_slice = self.kernel.config.time_slice;
        let thread = self.kernel.get_mut(tcb);
        thread.priority = ROOT_PRIORITY;
        thread.mcp = ROOT_PRIORITY;
        thread.time_slice = time_slice;
        thread.buffer_address = layout.ipc_buffer_vaddr;
        thread.context.x[register::A0] = layout.boot_info_vaddr();
        thread.context.next_pc = layout.image.entry;
        thread.state = ThreadState::Running;
        tcb
    }

    fn write<T>(&mut self, paddr: u64, value: &T) {
        let to = self.kernel.arch.pointer(Paddr(paddr).kva(), size_of::<T>());
        // SAFETY: a page of the block that boot fills for the user; not an object, aligned to a page or chunk.
        unsafe { to.cast::<T>().copy_from_nonoverlapping(value, 1) }
    }

    fn write_bytes(&mut self, paddr: u64, bytes: &[u8]) {
        let to = self.kernel.arch.pointer(Paddr(paddr).kva(), bytes.len());
        // SAFETY: the extra BootInfo has room: its size was computed from this length.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }
}
