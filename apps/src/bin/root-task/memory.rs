//! Objects out of untyped memory.
//!
//! The kernel hands the root task its free memory as untyped capabilities of descending use: this keeps, for each, how far it is used
//! (the kernel's own rule: objects follow each other, each aligned to its size) and takes the smallest that still has room. Small ones
//! first, because the kernel clears the whole of an untyped when it is first used.
//!
//! Device memory is different: a frame at one given address is wanted. There the untyped that contains it is halved until what is left
//! is the frame; the other halves stay for later.

use crate::failure::{Failure, Result, Step};
use abi::bootinfo::{BootInfo, UntypedDesc};
use abi::config::RETYPE_FAN_OUT_LIMIT;
use alloc::vec::Vec;
use userlib::cap::{CPtr, Frame, ObjectType, Slot, Untyped, slot};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A piece of untyped memory.
struct Block {
    untyped: Untyped,
    start: u64,
    bits: u8,
    used: u64,
}

impl Block {
    fn contains(&self, address: u64) -> bool {
        address >> self.bits == self.start >> self.bits
    }

    /// How many objects of 2^bits bytes still fit.
    fn room(&self, bits: usize) -> u64 {
        let used = self.used.next_multiple_of(1 << bits);
        (1u64 << self.bits).saturating_sub(used) >> bits
    }
}

/// Free memory and free slots.
pub struct Memory {
    next_slot: u64,
    end_slot: u64,
    free: Vec<Block>,
    device: Vec<Block>,
}

impl Memory {
    /// Everything that the kernel hands over.
    pub fn new(boot_info: &BootInfo) -> Self {
        let block = |(index, described): (u64, &UntypedDesc)| Block {
            untyped: Untyped(CPtr(boot_info.untyped.start + index)),
            start: described.paddr,
            bits: described.size_bits,
            used: 0,
        };
        let count = (boot_info.untyped.end - boot_info.untyped.start) as usize;
        let list = (0..).zip(boot_info.untyped_list.iter().take(count));
        let (device, mut free): (Vec<_>, Vec<_>) = list.partition(|(_, described)| described.is_device != 0);
        free.sort_by_key(|(_, described)| described.size_bits);
        Self {
            next_slot: boot_info.empty.start,
            end_slot: boot_info.empty.end,
            free: free.into_iter().map(block).collect(),
            device: device.into_iter().map(block).collect(),
        }
    }

    /// `count` free slots of the own CNode; the number of the first.
    pub fn slots(&mut self, count: u64) -> Result<u64> {
        let first = self.next_slot;
        if count > self.end_slot - first {
            return Err(Failure::Slots);
        }
        self.next_slot += count;
        Ok(first)
    }

    /// A free slot.
    pub fn slot(&mut self) -> Result<Slot> {
        Ok(own(self.slots(1)?))
    }

    /// A new object.
    pub fn object(&mut self, object: ObjectType) -> Result<CPtr> {
        self.objects(object, 1).map(CPtr)
    }

    /// `count` new objects in successive slots; the number of the first. Objects of one retype lie one after the other in memory.
    pub fn objects(&mut self, object: ObjectType, count: u64) -> Result<u64> {
        let first = self.slots(count)?;
        let mut done = 0;
        while done < count {
            let batch = (count - done).min(RETYPE_FAN_OUT_LIMIT);
            done += self.retype(object, first + done, batch)?;
        }
        Ok(first)
    }

    /// `count` new objects that lie one after the other in memory, in successive slots.
    pub fn contiguous(&mut self, object: ObjectType, count: u64) -> Result<u64> {
        let bits = object.size_bits();
        if count == 0 {
            return self.slots(0);
        }
        let first = self.slots(count)?;
        let block = self.free.iter_mut().find(|block| block.room(bits) >= count).ok_or(Failure::Memory(bits))?;
        let mut done = 0;
        while done < count {
            let batch = (count - done).min(RETYPE_FAN_OUT_LIMIT);
            block.untyped.retype(object, own(first + done), batch).step("making contiguous frames")?;
            done += batch;
        }
        block.used = block.used.next_multiple_of(1 << bits) + (count << bits);
        Ok(first)
    }

    /// Makes up to `count` objects in one block; returns how many.
    fn retype(&mut self, object: ObjectType, first: u64, count: u64) -> Result<u64> {
        let bits = object.size_bits();
        let block = self.free.iter_mut().find(|block| block.room(bits) > 0).ok_or(Failure::Memory(bits))?;
        let count = count.min(block.room(bits));
        block.untyped.retype(object, own(first), count).step("making an object")?;
        block.used = block.used.next_multiple_of(1 << bits) + (count << bits);
        Ok(count)
    }

    /// The frame of device memory at `address`, a multiple of [`PAGE`]. `None` if it is nobody's to give, or given already.
    pub fn device_frame(&mut self, address: u64) -> Result<Option<Frame>> {
        loop {
            let Some(index) = self.device.iter().position(|block| block.contains(address)) else { return Ok(None) };
            let Block { untyped, start, bits, .. } = self.device[index];
            match bits {
                0..12 => return Ok(None),
                12 => {
                    let slot = self.slot()?;
                    untyped.retype(ObjectType::Frame, slot, 1).step("making a device frame")?;
                    self.device.swap_remove(index);
                    return Ok(Some(Frame(CPtr(slot.index))));
                }
                _ => {
                    let bits = bits - 1;
                    let first = self.slots(2)?;
                    untyped.retype(ObjectType::Untyped(bits), own(first), 2).step("halving device memory")?;
                    let half = |index| Block {
                        untyped: Untyped(CPtr(first + index)),
                        start: start + (index << bits),
                        bits,
                        used: 0,
                    };
                    self.device[index] = half(0);
                    self.device.push(half(1));
                }
            }
        }
    }

    /// A copy of a frame's capability, to map it a second time.
    pub fn copy(&mut self, frame: Frame) -> Result<Frame> {
        let slot = self.slot()?;
        slot.copy(own(frame.0.0), userlib::cap::Rights::ALL).step("copying a frame")?;
        Ok(Frame(CPtr(slot.index)))
    }

    /// Gives up the capability in a slot of the root task. The slot is free again if it was the last one taken.
    pub fn release(&mut self, slot: Slot) {
        if slot.delete().is_ok() && slot.index + 1 == self.next_slot {
            self.next_slot = slot.index;
        }
    }
}

/// A slot of the root task's own CNode, by number.
pub fn own(index: u64) -> Slot {
    slot::CNODE.slot(index)
}
