//! Devices of a program: registers, interrupts, and what the program is told about them.

use crate::failure::{Failure, Result, Step};
use crate::machine::Machine;
use crate::memory::{Memory, PAGE, own};
use crate::process::Process;
use crate::vspace::{Access, map};
use alloc::vec::Vec;
use dtoolkit::fdt::FdtNode;
use dtoolkit::fdt_mut::{FdtMut, SliceBuffer};
use dtoolkit::{Node, Property};
use userlib::cap::{CPtr, Cap, IrqControl, IrqHandler, Notification, Rights, slot};
use userlib::tree;

/// Properties of the machine's node that the program must not see as they are: they are about physical addresses and PLIC sources.
const HIDDEN: [&str; 7] =
    ["compatible", "reg", "interrupts", "interrupts-extended", "interrupt-parent", "phandle", "status"];
const IRQ_CONTROL: IrqControl = IrqControl(CPtr(abi::bootinfo::slot::IRQ_CONTROL));

/// Gives a device to a program: `node` is its node of the system description, `told` the program's environment.
pub fn grant(
    memory: &mut Memory,
    machine: &Machine,
    process: &Process,
    node: &FdtNode<'static>,
    told: &mut FdtMut<SliceBuffer<'_>>,
) -> Result<()> {
    let compatible = tree::text(node, "compatible")?;
    let device = match machine.find(memory, compatible)? {
        None if tree::flag(node, "optional") => return Ok(()),
        found => found.ok_or(Failure::Device(compatible))?,
    };
    let [window, room] = tree::pair(node, "window")?;
    let size = device.size.min(room);
    let first_page = device.address / PAGE * PAGE;
    let offset = device.address - first_page;
    for page in 0..(offset + size).div_ceil(PAGE) {
        let page_address = first_page + page * PAGE;
        let frame = match device.frame {
            Some(frame) => frame,
            None => memory.device_frame(page_address)?.ok_or(Failure::Device(compatible))?,
        };
        map(memory, process.vspace, frame, window + page * PAGE, Access::READ_WRITE)?;
    }
    let (slots, bits) = interrupts(memory, process, node, &device.interrupts)?;

    let path = alloc::format!("/devices/{}", node.name());
    let mut told = told.find_node_mut(&path).ok_or(Failure::Archive("environment"))?;
    let mut tell = |name: &str, value: &[u8]| match told.add_property(name, value) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Archive("room in an environment")),
    };
    let register = [window + offset, size].map(u64::to_be_bytes);
    tell("reg", register.as_flattened())?;
    tell("irq-slots", &cells(&slots))?;
    tell("irq-bits", &cells(&bits))?;
    device
        .node
        .properties()
        .filter(|property| !HIDDEN.contains(&property.name()))
        .try_for_each(|property| tell(property.name(), property.value()))
}

/// Makes the handlers of a device's interrupts ring the program's doorbell. Returns their slots and bits.
///
/// The kernel enables a source at the hart that asks for its handler, and the interrupt is to arrive where the driver runs.
fn interrupts(
    memory: &mut Memory,
    process: &Process,
    node: &FdtNode<'static>,
    sources: &[u32],
) -> Result<(Vec<u32>, Vec<u32>)> {
    let [first_slot, room] = tree::pair(node, "slots")?;
    let first_bit: u32 = tree::number(node, "first-bit")?;
    let (mut slots, mut bits) = (Vec::new(), Vec::new());
    if process.hart != 0 {
        move_to(process.hart)?;
    }
    for (index, &source) in (0..room as u32).zip(sources) {
        let bit = first_bit - index;
        let handler = memory.slot()?;
        IRQ_CONTROL.get(source.into(), handler).step("making an interrupt handler")?;
        let doorbell = memory.slot()?;
        doorbell.mint(own(process.doorbell.cptr().0), Rights::WRITE, 1 << bit).step("badging the doorbell")?;
        let doorbell = Notification(CPtr(doorbell.index));
        IrqHandler(CPtr(handler.index)).set_notification(doorbell).step("connecting an interrupt")?;
        let slot = first_slot + u64::from(index);
        process.slot(slot).copy(handler, Rights::ALL).step("granting an interrupt handler")?;
        slots.push(slot as u32);
        bits.push(bit);
    }
    if process.hart != 0 {
        move_to(0)?;
    }
    Ok((slots, bits))
}

/// Moves the root task to a hart.
fn move_to(hart: u64) -> Result<()> {
    slot::TCB.set_affinity(hart).step("moving to the hart of the interrupts")
}

fn cells(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}
