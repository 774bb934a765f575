//! Mapping frames, and a window of the root task's own address space to read and fill them through.

use crate::failure::{Result, Step};
use crate::memory::{Memory, PAGE};
use core::sync::atomic::{AtomicU32, Ordering};
use userlib::cap::{Attributes, CPtr, Code, Error, Frame, ObjectType, PageTable, Rights, VSpace, slot};

/// Where the root task maps a frame for a moment; far from its image.
const WINDOW: u64 = 64 << 30;
/// Where the root task maps device registers for good.
pub const DEVICES: u64 = WINDOW + (1 << 30);
const MEGA_PAGE: u64 = 2 << 20;
/// Second word of a failed lookup that stopped at an empty place (`abi::error::LookupFailure`).
const MISSING: u64 = 2;

/// How memory is mapped.
#[derive(Clone, Copy)]
pub struct Access {
    /// Read, or read and write.
    pub rights: Rights,
    /// Executable or not.
    pub attributes: Attributes,
}

impl Access {
    /// Constants.
    pub const READ: Self = Self { rights: Rights::READ, attributes: Attributes::ExecuteNever };
    /// Data.
    pub const READ_WRITE: Self = Self { rights: Rights::READ_WRITE, attributes: Attributes::ExecuteNever };
    /// Code.
    pub const EXECUTE: Self = Self { rights: Rights::READ, attributes: Attributes::Executable };
}

/// Maps one frame, and the page tables above it where they are missing.
pub fn map(memory: &mut Memory, vspace: VSpace, frame: Frame, address: u64, access: Access) -> Result<()> {
    loop {
        match frame.map(vspace, address, access.rights, access.attributes) {
            Err(Error { code: Code::FailedLookup, words: [_, MISSING, ..] }) => {
                let table = PageTable(memory.object(ObjectType::PageTable)?);
                table.map(vspace, address).step("mapping a page table")?;
            }
            mapped => return mapped.step("mapping a frame"),
        }
    }
}

/// New zeroed memory at `address`: 2 MiB frames where they fit, 4 KiB frames elsewhere. Returns its frames.
pub fn map_new(memory: &mut Memory, vspace: VSpace, address: u64, size: u64, access: Access) -> Result<Frames> {
    let mega = if address.is_multiple_of(MEGA_PAGE) { size / MEGA_PAGE } else { 0 };
    let small = (size - mega * MEGA_PAGE).div_ceil(PAGE);
    let frames = Frames {
        mega: memory.objects(ObjectType::MegaFrame, mega)?,
        mega_count: mega,
        small: memory.objects(ObjectType::Frame, small)?,
        small_count: small,
    };
    frames.map(memory, vspace, address, access)?;
    Ok(frames)
}

/// New zeroed memory at `address` in 4 KiB frames only.
pub fn map_small(memory: &mut Memory, vspace: VSpace, address: u64, size: u64, access: Access) -> Result<Frames> {
    let count = size.div_ceil(PAGE);
    let frames =
        Frames { mega: 0, mega_count: 0, small: memory.objects(ObjectType::Frame, count)?, small_count: count };
    frames.map(memory, vspace, address, access)?;
    Ok(frames)
}

/// The frames of an area: 2 MiB frames first, then 4 KiB frames, in successive slots.
#[derive(Clone, Copy)]
pub struct Frames {
    mega: u64,
    mega_count: u64,
    small: u64,
    small_count: u64,
}

impl Frames {
    fn each(&self, address: u64) -> impl Iterator<Item = (Frame, u64)> + use<> {
        let Self { mega, mega_count, small, small_count } = *self;
        let small_address = address + mega_count * MEGA_PAGE;
        let mega = (0..mega_count).map(move |index| (Frame(CPtr(mega + index)), address + index * MEGA_PAGE));
        let small = (0..small_count).map(move |index| (Frame(CPtr(small + index)), small_address + index * PAGE));
        mega.chain(small)
    }

    /// Maps all of them from `address` on.
    fn map(&self, memory: &mut Memory, vspace: VSpace, address: u64, access: Access) -> Result<()> {
        self.each(address).try_for_each(|(frame, address)| map(memory, vspace, frame, address, access))
    }

    /// Maps copies of all of them in another address space. `address` must allow the same page sizes.
    pub fn map_again(&self, memory: &mut Memory, vspace: VSpace, address: u64, access: Access) -> Result<()> {
        self.each(address).try_for_each(|(frame, address)| {
            let frame = memory.copy(frame)?;
            map(memory, vspace, frame, address, access)
        })
    }

    /// Writes a word at `offset`, a multiple of 4, of an area of [`map_small`] that programs may access meanwhile.
    pub fn store(&self, memory: &mut Memory, offset: usize, value: u32) -> Result<()> {
        debug_assert!(offset as u64 / PAGE < self.small_count);
        let copy = memory.copy(Frame(CPtr(self.small + offset as u64 / PAGE)))?;
        map(memory, slot::VSPACE, copy, WINDOW, Access::READ_WRITE)?;
        let word = (WINDOW as usize + offset % PAGE as usize) as *mut u32;
        // SAFETY: a 4 KiB frame is mapped at the window, which nothing else uses, and the offset was reduced to it. Other programs
        // access the word as an atomic too.
        unsafe { AtomicU32::from_ptr(word) }.store(value, Ordering::Release);
        copy.unmap().step("closing the window")?;
        memory.release(copy);
        Ok(())
    }

    /// Sixteen bytes at `offset`, a multiple of 16, of an area of [`map_small`] whose program does not run.
    pub fn read(&self, memory: &mut Memory, offset: u64) -> Option<[u8; 16]> {
        let page = offset / PAGE;
        let frame = (page < self.small_count).then(|| Frame(CPtr(self.small + page)))?;
        let copy = memory.copy(frame).ok()?;
        let at = (offset % PAGE) as usize;
        let read = with_frame(memory, copy, |bytes| bytes[at..].first_chunk().copied());
        memory.release(copy);
        read.ok()?
    }
}

/// Shows a 4 KiB frame that is mapped nowhere.
pub fn with_frame<T>(memory: &mut Memory, frame: Frame, work: impl FnOnce(&mut [u8; PAGE as usize]) -> T) -> Result<T> {
    map(memory, slot::VSPACE, frame, WINDOW, Access::READ_WRITE)?;
    // SAFETY: a 4 KiB frame is mapped at the window, which nothing else uses, and stays until the closure is done. No other program
    // writes it: callers pass frames that are not mapped elsewhere, or copies of frames of threads that are stopped.
    let result = work(unsafe { &mut *(WINDOW as *mut [u8; PAGE as usize]) });
    frame.unmap().step("closing the window")?;
    Ok(result)
}

/// Shows the registers of a device that nobody drives yet: the closure reads words at offsets into its frame.
///
/// # Panics
/// In the closure, at an offset that is no word of the frame.
pub fn with_registers<T>(
    memory: &mut Memory,
    frame: Frame,
    work: impl FnOnce(&dyn Fn(usize) -> u32) -> T,
) -> Result<T> {
    map(memory, slot::VSPACE, frame, WINDOW, Access::READ_WRITE)?;
    let result = work(&|offset| {
        assert!(offset.is_multiple_of(4) && offset < PAGE as usize);
        // SAFETY: the frame is mapped at the window until the closure is done; its words are registers, which take 32-bit reads.
        unsafe { ((WINDOW as usize + offset) as *const u32).read_volatile() }
    });
    frame.unmap().step("closing the window")?;
    Ok(result)
}
