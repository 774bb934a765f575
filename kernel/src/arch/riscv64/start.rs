//! The boot of each core: page tables and stacks for entry.S, the machine, then the portable boot code.

use core::arch::global_asm;
use core::cell::UnsafeCell;

use abi::config::{KERNEL_STACK_BITS, MAX_NUM_NODES, ROOT_CNODE_SIZE_BITS, TIME_SLICE, TIMER_TICK_MS};
use abi::image::{BootHeader, FLAG_FASTPATH, FLAG_PRINTING, KERNEL_PADDR, KERNEL_VADDR, MAGIC, VERSION};
use abi::label::Table as Labels;

use super::context::{Context, offset};
use super::csr::{self, status};
use super::plic::Plic;
use super::port::Riscv64;
use super::sv39::{ENTRIES, KERNEL_HALF, Pte};
use super::uintc::Uintc;
use super::{DEVICES, DIRECT_MAP, core_number, mmu, panic, smp, timer, trap, uintc};
use crate::alarm;
use crate::boot::machine::{Machine, MachineError};
use crate::boot::regions::Range;
use crate::boot::{self, BootError};
use crate::mem::Paddr;
use crate::sched;
use crate::state::OWN_OBJECTS_BITS;

const STACK_BYTES: usize = 1 << KERNEL_STACK_BITS;
/// The core number lies in the top 16 bytes (16: the stack stays aligned).
const STACK_RESERVED: usize = 16;
/// log2 of a page of the kernel's device window.
const DEVICE_PAGE_BITS: u32 = 21;
/// Largest device tree that is believed.
const MAX_TREE_BYTES: u32 = 2 << 20;

#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; ENTRIES]>);
// SAFETY: filled by core 0 before any other core runs; only read, by hardware, afterwards.
unsafe impl Sync for Table {}

impl Table {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; ENTRIES]))
    }
}

#[unsafe(link_section = ".bss.pages")]
static ROOT_TABLE: Table = Table::new();
#[unsafe(link_section = ".bss.pages")]
static KERNEL_TABLE: Table = Table::new();
#[unsafe(link_section = ".bss.pages")]
static DEVICE_TABLE: Table = Table::new();

#[repr(C, align(4096))]
struct Stacks(UnsafeCell<[[u8; STACK_BYTES]; MAX_NUM_NODES]>);
// SAFETY: each core uses its own stack only, through sp.
unsafe impl Sync for Stacks {}
#[unsafe(link_section = ".stacks")]
static STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK_BYTES]; MAX_NUM_NODES]));

global_asm!(
    include_str!("entry.S"),
    kernel_vaddr = const KERNEL_VADDR,
    kernel_paddr = const KERNEL_PADDR,
    magic = const MAGIC,
    version = const VERSION,
    flags = const FLAG_FASTPATH | FLAG_PRINTING,
    label_table = const Labels::Up as u32,
    root_cnode_bits = const ROOT_CNODE_SIZE_BITS,
    timer_tick_ms = const TIMER_TICK_MS,
    time_slice = const TIME_SLICE,
    root_table = sym ROOT_TABLE,
    kernel_table = sym KERNEL_TABLE,
    device_table = sym DEVICE_TABLE,
    stacks = sym STACKS,
    stack_bytes = const STACK_BYTES,
    kernel_stack = const offset::KERNEL_STACK,
    next_pc = const offset::NEXT_PC,
    call = sym trap::call,
    reply_recv = sym trap::reply_recv,
    send = sym trap::send,
    system_call = sym trap::system_call,
    trap = sym trap::trap,
    system_call_emulating = sym trap::system_call_emulating,
    trap_emulating = sym trap::trap_emulating,
    kernel_trap = sym panic::kernel_trap,
    boot_first = sym boot_first,
    boot_other = sym boot_other,
);

unsafe extern "C" {
    static boot_header: BootHeader;
    fn secondary_start();
    /// Where traps go if user interrupts are emulated.
    fn trap_entry_emulating();
    /// Gives the hart to the thread of `context`; `stack` is this core's empty stack.
    fn enter_user(context: *mut Context, stack: usize) -> !;
}

/// Physical address of the root table that maps the kernel only.
pub fn kernel_root() -> u64 {
    image_paddr(ROOT_TABLE.0.get() as usize)
}

/// The kernel half of every address space: entries 256 to 511 of a root.
pub fn kernel_half() -> [Pte; ENTRIES / 2] {
    // SAFETY: nobody writes the table after boot.
    let root = unsafe { &*ROOT_TABLE.0.get() };
    core::array::from_fn(|index| Pte::from_bits(root[KERNEL_HALF + index]))
}

/// Physical address of something inside the kernel image.
fn image_paddr(vaddr: usize) -> u64 {
    vaddr as u64 - KERNEL_VADDR + KERNEL_PADDR
}

/// Where a stack pointer of `core` starts.
pub fn stack_start(core: usize) -> usize {
    STACKS.0.get() as usize + (core + 1) * STACK_BYTES - STACK_RESERVED
}

/// All kernel stacks.
pub fn stack_range() -> core::ops::Range<usize> {
    let base = STACKS.0.get() as usize;
    base..base + MAX_NUM_NODES * STACK_BYTES
}

/// Writes the core number into the stack of `core`, which does not run yet.
pub fn prepare_stack(core: usize) -> usize {
    let top = stack_start(core);
    // SAFETY: inside the stack of a core that has not been started.
    unsafe { (top as *mut usize).write_volatile(core) };
    top
}

/// Physical entry for a hart that the firmware starts.
pub fn secondary_entry() -> usize {
    image_paddr(secondary_start as *const () as usize) as usize
}

/// The configuration that the image builder wrote into the first bytes of the kernel.
fn header() -> BootHeader {
    // SAFETY: entry.S lays the header out; volatile, because the builder changed it after compilation.
    unsafe { (&raw const boot_header).read_volatile() }
}

/// Maps a device into the kernel's device window and gives its address there.
///
/// # Panics
/// If the window is full, which the boot map of two or three controllers cannot reach.
fn map_device(device: Range, next: &mut usize) -> usize {
    let pages = device.align_out(DEVICE_PAGE_BITS);
    let first = *next;
    for page in (pages.start..pages.end).step_by(1 << DEVICE_PAGE_BITS) {
        assert!(*next < ENTRIES, "device window full");
        // SAFETY: boot of core 0; the entries were invalid, so no hart caches them.
        unsafe { (*DEVICE_TABLE.0.get())[*next] = Pte::kernel_device(page).bits() };
        *next += 1;
    }
    // SAFETY: a fence: the walks that follow see the entries.
    unsafe { core::arch::asm!("sfence.vma", options(nostack)) };
    DEVICES + (first << DEVICE_PAGE_BITS) + (device.start - pages.start) as usize
}

/// The device tree at the physical address that the firmware passed.
///
/// # Panics
/// If there is none.
fn device_tree(paddr: usize) -> &'static [u8] {
    const MAGIC: u32 = 0xd00d_feed;
    assert!(paddr != 0 && paddr.is_multiple_of(4), "no device tree");
    let header = (DIRECT_MAP + paddr) as *const u32;
    // SAFETY: the firmware's contract: a1 is the address of a device tree; the direct map covers all RAM.
    let (magic, bytes) = unsafe { (u32::from_be(header.read()), u32::from_be(header.add(1).read())) };
    assert!(magic == MAGIC && bytes <= MAX_TREE_BYTES, "no device tree at {paddr:#x}");
    // SAFETY: the tree says that it has this many bytes; the memory is reserved, so nobody writes it.
    unsafe { core::slice::from_raw_parts(header.cast::<u8>(), bytes as usize) }
}

/// Memory of the kernel's own objects (`Kernel::start`).
#[repr(C, align(4096))]
struct OwnObjects(UnsafeCell<[u8; 1 << OWN_OBJECTS_BITS]>);
// SAFETY: handed to the kernel state, which reaches it by the token only.
unsafe impl Sync for OwnObjects {}
#[unsafe(link_section = ".bss.pages")]
static OWN_OBJECTS: OwnObjects = OwnObjects(UnsafeCell::new([0; 1 << OWN_OBJECTS_BITS]));

/// Core 0, from entry.S: `tree` is the physical address of the device tree. It builds the system alone; then the others come.
extern "C" fn boot_first(hart: usize, tree: usize) -> ! {
    if let Err(error) = boot_system(hart, tree) {
        panic!("{error:?}");
    }
    smp::start_others();
    start_core();
    smp::open();
    enter()
}

#[derive(Debug)]
#[allow(dead_code, reason = "read by Debug, in the panic message")]
enum Error {
    Machine(MachineError),
    Boot(BootError),
}

fn boot_system(hart: usize, tree: usize) -> Result<(), Error> {
    let header = header();
    boot::check(&header).map_err(Error::Boot)?;
    let max_cores = if header.max_nodes == 0 { MAX_NUM_NODES } else { header.max_nodes as usize };
    let bytes = device_tree(tree);
    let machine = Machine::parse(bytes, hart as u16, max_cores).map_err(Error::Machine)?;
    smp::init(machine.harts);
    let mut next_page = 0;
    let plic = machine.plic.map(|place| {
        let base = map_device(place.registers, &mut next_page);
        // SAFETY: the device tree names the range as a PLIC with these contexts; the mapping stays.
        unsafe { Plic::new(base, place.contexts) }
    });
    if let Some(plic) = &plic {
        plic.init();
    }
    if let Some(place) = machine.uintc {
        let base = map_device(place.registers, &mut next_page);
        // SAFETY: the device tree names the range as a UINTC and says that all harts have the N extension; the mapping stays.
        uintc::init(unsafe { Uintc::new(base, place.receivers) });
    }
    timer::set_tick(machine.timebase_frequency, header.timer_tick_ms);
    trap::with_kernel(|kernel| {
        kernel.arch = Riscv64::new(plic, machine.fpu);
        let objects = Paddr(image_paddr(OWN_OBJECTS.0.get() as usize)).kva();
        // SAFETY: that many zeroed bytes of the kernel's image, for nothing else.
        unsafe { kernel.start(boot::config(&header), objects) };
        let root_task = boot::build(kernel, &machine, &header, bytes, tree as u64).map_err(Error::Boot)?;
        sched::possible_switch_to(kernel, root_task);
        Ok(())
    })
}

/// A core that is not core 0, from entry.S.
extern "C" fn boot_other() -> ! {
    smp::wait_for_boot();
    start_core();
    enter()
}

/// What each core does for itself before its first thread.
fn start_core() {
    // What `sret` returns to, from now on: U, as every trap out of U leaves it. (The first trap, which turned translation on,
    // came out of S.)
    csr::clear!("sstatus", status::SPP | status::FS | status::SUM | status::MXR | status::USER_INTERRUPTS);
    csr::set!("sstatus", status::SPIE);
    mmu::init_core();
    if uintc::is_emulated() {
        csr::write!("stvec", trap_entry_emulating as *const () as usize);
    } else {
        uintc::init_hart();
    }
    trap::with_kernel(|kernel| {
        kernel.arch.init_core();
        alarm::start_core(kernel);
    });
}

fn enter() -> ! {
    let mut context = trap::first();
    if uintc::is_emulated() {
        // SAFETY: entered below.
        context = unsafe { uintc::virtual_hart::take_interrupt(context) };
    }
    // SAFETY: the context of a thread that this core now runs; the stack of this core is not used any more.
    unsafe { enter_user(context, stack_start(core_number())) }
}
