//! The machine, as its device tree tells it.

use crate::failure::{Failure, Result};
use crate::memory::{Memory, PAGE};
use crate::vspace::{self, Access, map};
use abi::bootinfo::{BootInfo, EXTRA_FDT, ExtraHeader};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use dtoolkit::Node;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::standard::NodeStandard;
use userlib::cap::{Frame, slot};
use userlib::syscall;
use userlib::tree;

/// Words that end the machine (`sifive,test0`): success, and failure with a code in the upper half.
const FINISHER_PASS: u32 = 0x5555;
const FINISHER_FAIL: u32 = 0x3333;

/// The machine.
pub struct Machine {
    tree: Fdt<'static>,
    /// Harts that the kernel runs on.
    pub harts: u32,
    /// Rate of `rdtime`.
    pub timebase: u32,
    /// The virtio devices that were found, with their types, once one was asked for.
    virtio: RefCell<Option<Vec<(u32, Device)>>>,
}

/// Where the test finisher is mapped; 0 before, and on a machine without one.
static FINISHER: AtomicUsize = AtomicUsize::new(0);

/// A device of the machine.
pub struct Device {
    /// Its node.
    pub node: FdtNode<'static>,
    /// Physical address of its registers.
    pub address: u64,
    /// Their size.
    pub size: u64,
    /// PLIC sources.
    pub interrupts: Vec<u32>,
    /// Frame of the registers, if one was made to look at them.
    pub frame: Option<Frame>,
}

impl Machine {
    /// Reads the device tree that the kernel hands on.
    pub fn new(boot_info: &'static BootInfo, memory: &mut Memory) -> Result<Self> {
        let tree = Fdt::new(extra(boot_info).ok_or(Failure::Archive("machine device tree"))?)
            .map_err(|_| Failure::Archive("machine device tree"))?;
        let cpus = tree.find_node("/cpus").ok_or(Failure::Device("cpus"))?;
        let machine = Self {
            tree,
            harts: boot_info.num_nodes as u32,
            timebase: tree::number(&cpus, "timebase-frequency")?,
            virtio: RefCell::new(None),
        };
        if let Some(finisher) = machine.device("sifive,test1")
            && let Some(frame) = memory.device_frame(finisher.address / PAGE * PAGE)?
        {
            map(memory, slot::VSPACE, frame, vspace::DEVICES, Access::READ_WRITE)?;
            FINISHER.store((vspace::DEVICES + finisher.address % PAGE) as usize, Ordering::Relaxed);
        }
        Ok(machine)
    }

    /// The device that a manifest names: by a compatible string, or `virtio,device` and a type in hexadecimal (the binding's name for
    /// what is behind a virtio transport), which no device tree tells: the slots are looked at. Each of these is given once.
    pub fn find(&self, memory: &mut Memory, name: &'static str) -> Result<Option<Device>> {
        let Some(kind) = name.strip_prefix("virtio,device").and_then(|kind| u32::from_str_radix(kind, 16).ok()) else {
            return Ok(self.device(name));
        };
        let mut found = self.virtio.borrow_mut();
        let devices = match &mut *found {
            Some(devices) => devices,
            empty => empty.insert(self.probe_virtio(memory)?),
        };
        let place = devices.iter().position(|(other, _)| *other == kind);
        Ok(place.map(|place| devices.remove(place).1))
    }

    fn probe_virtio(&self, memory: &mut Memory) -> Result<Vec<(u32, Device)>> {
        const MAGIC: u32 = 0x7472_6976;
        let mut devices = Vec::new();
        let mut nodes = Vec::new();
        find_all(&self.tree.root(), "virtio,mmio", &mut nodes);
        for node in nodes {
            let Some(mut device) = device(node) else { continue };
            let Some(frame) = memory.device_frame(device.address / PAGE * PAGE)? else { continue };
            let offset = (device.address % PAGE) as usize;
            // MagicValue and DeviceID (VIRTIO 1.2, section 4.2.2); 0 is an empty slot.
            let (magic, kind) = vspace::with_registers(memory, frame, |read| (read(offset), read(offset + 8)))?;
            if magic == MAGIC && kind != 0 {
                device.frame = Some(frame);
                devices.push((kind, device));
            }
        }
        Ok(devices)
    }

    /// The first device of this compatible string.
    fn device(&self, compatible: &str) -> Option<Device> {
        device(find(&self.tree.root(), compatible)?)
    }
}

fn device(node: FdtNode<'static>) -> Option<Device> {
    let register = node.reg().ok()??.next()?;
    Some(Device {
        node,
        address: register.address().ok()?,
        size: register.size().ok()?,
        interrupts: tree::numbers(&node, "interrupts").collect(),
        frame: None,
    })
}

fn find_all(node: &FdtNode<'static>, compatible: &str, found: &mut Vec<FdtNode<'static>>) {
    if node.is_compatible(compatible) {
        found.push(*node);
    }
    node.children().for_each(|child| find_all(&child, compatible, found));
}

/// Ends the machine.
pub fn end(code: u32) -> ! {
    let finisher = FINISHER.load(Ordering::Relaxed) as *mut u32;
    if !finisher.is_null() {
        let word = if code == 0 { FINISHER_PASS } else { code << 16 | FINISHER_FAIL };
        // SAFETY: the finisher's register is mapped there for good, and a store to it touches no memory.
        unsafe { finisher.write_volatile(word) };
    }
    // A machine without that device, or one that goes on for some cycles after the store.
    syscall::debug_halt()
}

/// Depth first.
fn find(node: &FdtNode<'static>, compatible: &str) -> Option<FdtNode<'static>> {
    if node.is_compatible(compatible) {
        return Some(*node);
    }
    node.children().find_map(|child| find(&child, compatible))
}

/// The device tree among the extra pages behind BootInfo.
fn extra(boot_info: &'static BootInfo) -> Option<&'static [u8]> {
    let header_size = size_of::<ExtraHeader>() as u64;
    let start = core::ptr::from_ref(boot_info) as u64 + PAGE;
    let mut offset = 0;
    while offset + header_size <= boot_info.extra_len {
        // SAFETY: the kernel maps `extra_len` bytes of chunks behind the BootInfo page and does not touch them again; each starts with
        // a header, and chunks are a multiple of neither size nor alignment, hence the unaligned read.
        let header = unsafe { ((start + offset) as *const ExtraHeader).read_unaligned() };
        if header.len < header_size || header.len > boot_info.extra_len - offset {
            return None;
        }
        if header.id == EXTRA_FDT {
            let (data, size) = (start + offset + header_size, header.len - header_size);
            // SAFETY: as above; the chunk was just checked to lie within `extra_len`.
            return Some(unsafe { core::slice::from_raw_parts(data as *const u8, size as usize) });
        }
        offset += header.len;
    }
    None
}
