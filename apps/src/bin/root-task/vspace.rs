//! Mapping frames, and a window of the root task's own address space to read and fill them through.

use crate::failure::{Failure, Result, Step};
use crate::memory::{Memory, PAGE, own};
use core::sync::atomic::{AtomicU32, Ordering};
use userlib::cap::{Attributes, CPtr, Code, Error, Frame, ObjectType, PageTable, Rights, VSpace, slot};

/// Where the root task maps a 4 KiB frame for a moment; far from its image.
const WINDOW: u64 = 64 << 30;
/// Where it maps a 2 MiB frame for a moment.
const MEGA_WINDOW: u64 = WINDOW + MEGA_PAGE;
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

/// New zeroed memory for `size` bytes at `address`, a multiple of [`PAGE`]: in 2 MiB frames where they fit, in 4 KiB frames elsewhere.
pub fn map_new(memory: &mut Memory, vspace: VSpace, address: u64, size: u64, access: Access) -> Result<Area> {
    let mega_count = if address.is_multiple_of(MEGA_PAGE) { size / MEGA_PAGE } else { 0 };
    let small_count = (size - mega_count * MEGA_PAGE).div_ceil(PAGE);
    let mega = memory.objects(ObjectType::MegaFrame, mega_count)?;
    let small = memory.objects(ObjectType::Frame, small_count)?;
    let area = Area { address, mega, mega_count, small, small_count };
    area.each(address).try_for_each(|(frame, address)| map(memory, vspace, frame, address, access))?;
    Ok(area)
}

/// Memory of a program: 2 MiB frames first, then 4 KiB frames, in successive slots. Its bytes are named by their addresses in the program.
#[derive(Clone, Copy)]
pub struct Area {
    address: u64,
    mega: u64,
    mega_count: u64,
    small: u64,
    small_count: u64,
}

impl Area {
    fn each(&self, address: u64) -> impl Iterator<Item = (Frame, u64)> + use<> {
        let Self { mega, mega_count, small, small_count, .. } = *self;
        let small_address = address + mega_count * MEGA_PAGE;
        let mega = (0..mega_count).map(move |index| (Frame(CPtr(mega + index)), address + index * MEGA_PAGE));
        let small = (0..small_count).map(move |index| (Frame(CPtr(small + index)), small_address + index * PAGE));
        mega.chain(small)
    }

    /// Its first byte.
    pub fn start(&self) -> u64 {
        self.address
    }

    /// The first of its 4 KiB frames.
    pub fn first_small(&self) -> Frame {
        Frame(CPtr(self.small))
    }

    /// Maps copies of its frames in another address space. `address` must allow the same page sizes.
    pub fn map_again(&self, memory: &mut Memory, vspace: VSpace, address: u64, access: Access) -> Result<()> {
        self.each(address).try_for_each(|(frame, address)| {
            let frame = memory.copy(frame)?;
            map(memory, vspace, frame, address, access)
        })
    }

    /// Whether it has the byte at `address`.
    pub fn contains(&self, address: u64) -> bool {
        let size = self.mega_count * MEGA_PAGE + self.small_count * PAGE;
        (self.address..self.address + size).contains(&address)
    }

    /// Stores a word at `address`, a multiple of 4, which programs may access meanwhile.
    pub fn store(&self, memory: &mut Memory, address: u64, value: u32) -> Result<()> {
        self.with_copy(memory, address, |word, _| {
            // SAFETY: as `with_copy` says; a frame has whole words. Other programs access the word as an atomic too.
            unsafe { AtomicU32::from_ptr(word.cast()) }.store(value, Ordering::Release);
        })
    }

    /// Sixteen bytes at `address`, a multiple of 16. The program does not run.
    pub fn read(&self, memory: &mut Memory, address: u64) -> Option<[u8; 16]> {
        // SAFETY: as `with_copy` says; a frame has whole sixteens of bytes, and nobody writes them meanwhile.
        self.with_copy(memory, address, |bytes, _| unsafe { bytes.cast::<[u8; 16]>().read() }).ok()
    }

    /// Writes `content` from `start` on, and zeroes behind it up to `end`. The program does not run.
    pub fn write(&self, memory: &mut Memory, start: u64, content: &[u8], end: u64) -> Result<()> {
        let (mut at, mut content) = (start, content);
        while at < end {
            let wanted = (end - at) as usize;
            let (size, copied) = self.with_copy(memory, at, |bytes, room| {
                let size = room.min(wanted);
                // SAFETY: as `with_copy` says; nobody else accesses the bytes meanwhile.
                let bytes = unsafe { core::slice::from_raw_parts_mut(bytes, size) };
                let copied = size.min(content.len());
                bytes[..copied].copy_from_slice(&content[..copied]);
                bytes[copied..].fill(0);
                (size, copied)
            })?;
            at += size as u64;
            content = &content[copied..];
        }
        Ok(())
    }

    /// Maps a copy of the frame of the byte at `address` at a window; `work` gets where the byte is there, and how many bytes of the frame
    /// follow from it on. They stay mapped, readable and writable, until it is done, and nothing else in this program uses them.
    fn with_copy<T>(&self, memory: &mut Memory, address: u64, work: impl FnOnce(*mut u8, usize) -> T) -> Result<T> {
        if !self.contains(address) {
            return Err(Failure::Archive("size of an area"));
        }
        let offset = address - self.address;
        let (frame, window, at, size) = match offset.checked_sub(self.mega_count * MEGA_PAGE) {
            None => (self.mega + offset / MEGA_PAGE, MEGA_WINDOW, offset % MEGA_PAGE, MEGA_PAGE),
            Some(offset) => (self.small + offset / PAGE, WINDOW, offset % PAGE, PAGE),
        };
        let copy = memory.copy(Frame(CPtr(frame)))?;
        map(memory, slot::VSPACE, copy, window, Access::READ_WRITE)?;
        let result = work((window + at) as *mut u8, (size - at) as usize);
        copy.unmap().step("closing the window")?;
        memory.release(own(copy.0.0));
        Ok(result)
    }
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
