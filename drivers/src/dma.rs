//! Memory that a device reads and writes: regions, buffers carved from them, and the fences that order them with registers.
//!
//! Ownership is the protection. A [`DmaRegion`] is carved into [`DmaBuffer`]s that do not overlap; a buffer is a plain owned
//! value, and whoever holds it may look at its bytes. To let a device at it the driver moves it into a ring slot and gives
//! its physical address away; it moves out only when the device has said that it is done. So no slice of a buffer exists while
//! a device owns it. Descriptors, which both sides read and write, are accessed by volatile words only.
//!
//! There is no way to give memory back: rings and pools are carved once at start and live as long as the driver.
//!
//! The machines we run on keep DMA coherent with the caches, so the fences order and need not flush.

#![allow(unsafe_code)]

use core::sync::atomic::{Ordering, fence};

/// Orders memory writes (descriptors, payload) before a following register write that lets the device look at them.
/// The device's partner is its fetch after the doorbell. RISC-V: `fence rw, ow` or stronger.
pub fn before_doorbell() {
    device_fence();
}

/// Orders the read of a descriptor's done bit before the reads of what the device wrote earlier (length, payload).
/// The device's partner is that it writes the done bit last.
pub fn after_done() {
    fence(Ordering::Acquire);
}

/// A fence between memory and device accesses in both directions (`fence iorw, iorw`). Rust's own fences order memory with
/// memory only: `fence rw, rw` leaves a later register write free to pass an earlier store.
fn device_fence() {
    #[cfg(target_arch = "riscv64")]
    // SAFETY: a fence has no operands and no effect on memory or registers. Without `nomem` the compiler also keeps
    // memory accesses on their side of it.
    unsafe {
        core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "riscv64"))]
    fence(Ordering::SeqCst);
}

/// Physically contiguous memory, mapped contiguously, from which [`DmaBuffer`]s are carved front to back.
pub struct DmaRegion {
    cpu: *mut u8,
    physical: u64,
    size: usize,
    used: usize,
}

impl DmaRegion {
    /// The region of `size` bytes whose first byte is at virtual address `address` and physical address `physical`.
    ///
    /// # Panics
    /// If virtual and physical address differ in their lowest three bits: words aligned in one would not be in the other.
    ///
    /// # Safety
    /// `[address, address + size)` is mapped, readable and writable normal memory that is physically contiguous from `physical`,
    /// stays so for the rest of the program and is used by nothing else.
    pub unsafe fn new(address: usize, physical: u64, size: usize) -> Self {
        assert!((address as u64 ^ physical).is_multiple_of(8), "virtual and physical alignment differ");
        Self { cpu: core::ptr::with_exposed_provenance_mut(address), physical, size, used: 0 }
    }

    /// Physical address just past the region.
    pub fn physical_end(&self) -> u64 {
        self.physical + self.size as u64
    }

    /// Takes the next `size` bytes whose physical address is a multiple of `align`, zeroed. `None` if the region is used up.
    ///
    /// # Panics
    /// If `align` is not a power of two of at least 8, the unit of the word accessors.
    pub fn carve(&mut self, size: usize, align: usize) -> Option<DmaBuffer> {
        assert!(align.is_power_of_two() && align >= 8, "bad alignment");
        let padding = (self.physical + self.used as u64).wrapping_neg() as usize & (align - 1);
        let start = self.used.checked_add(padding)?;
        let end = start.checked_add(size).filter(|&end| end <= self.size)?;
        self.used = end;
        let mut buffer = DmaBuffer { cpu: self.cpu.wrapping_add(start), physical: self.physical + start as u64, size };
        buffer.bytes_mut().fill(0);
        Some(buffer)
    }
}

/// A piece of a [`DmaRegion`]. Holding it is the right to its bytes: see the head of this module.
pub struct DmaBuffer {
    cpu: *mut u8,
    physical: u64,
    size: usize,
}

impl core::fmt::Debug for DmaBuffer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "DmaBuffer({:#x}, {} bytes)", self.physical, self.size)
    }
}

impl DmaBuffer {
    /// Physical address of the first byte.
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All bytes. Not for memory that a device owns at this time.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies in the region (`carve`), which is mapped and ours (`DmaRegion::new`); no other buffer
        // overlaps it; a device writes only to buffers that were moved into its ring.
        unsafe { core::slice::from_raw_parts(self.cpu, self.size) }
    }

    /// All bytes, to change. Not for memory that a device owns at this time.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the exclusive borrow of the only handle makes the slice exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.cpu, self.size) }
    }

    /// Reads the little-endian word at byte offset `offset`, which a device may write at any time.
    ///
    /// # Panics
    /// If the word is unaligned or not inside the buffer: offsets come from the driver, not from the device.
    pub fn read_word(&self, offset: usize) -> u32 {
        let word = self.word(offset);
        // SAFETY: `word` checked bounds and alignment; volatile, so a device's write at the same time is not assumed away.
        u32::from_le(unsafe { word.read_volatile() })
    }

    /// Writes the little-endian word at byte offset `offset`, which a device may read at any time. Panics as [`Self::read_word`].
    pub fn write_word(&mut self, offset: usize, value: u32) {
        let word = self.word(offset);
        // SAFETY: as in `read_word`.
        unsafe { word.write_volatile(value.to_le()) }
    }

    fn word(&self, offset: usize) -> *mut u32 {
        assert!(offset.is_multiple_of(4) && offset < self.size && self.size - offset >= 4, "word outside the buffer");
        self.cpu.wrapping_add(offset).cast()
    }
}

/// Regions of ordinary memory, for tests that run a driver against a device model.
#[cfg(not(target_os = "none"))]
pub mod host {
    use super::DmaRegion;

    /// What the device model sees of a region: its bytes by physical address.
    #[derive(Clone, Copy)]
    pub struct DeviceView {
        cpu: *mut u8,
        physical: u64,
        size: usize,
    }

    /// A zeroed region of `size` bytes at the invented physical address `physical`, and the device's view of it.
    /// The memory is never freed.
    pub fn region(physical: u64, size: usize) -> (DmaRegion, DeviceView) {
        // Words of 8 bytes, so that whatever alignment is asked of the physical address, word accesses are aligned.
        let memory = alloc::vec![0u64; size.div_ceil(8)].leak();
        let cpu: *mut u8 = memory.as_mut_ptr().cast();
        // SAFETY: the leaked allocation covers `size` bytes, is never freed and is reachable through this region only,
        // and through the view, which keeps to volatile accesses on the same thread (it is not `Send`).
        let region = unsafe { DmaRegion::new(cpu.expose_provenance(), physical, size) };
        (region, DeviceView { cpu, physical, size })
    }

    impl DeviceView {
        fn offset(&self, paddr: u64, len: usize) -> Option<usize> {
            let offset = usize::try_from(paddr.checked_sub(self.physical)?).ok()?;
            (offset.checked_add(len)? <= self.size).then_some(offset)
        }

        /// Copies memory at `paddr` to `buf`; `None` (and `buf` untouched) if any byte lies outside the region.
        pub fn read(&self, paddr: u64, buf: &mut [u8]) -> Option<()> {
            let offset = self.offset(paddr, buf.len())?;
            for (i, byte) in buf.iter_mut().enumerate() {
                // SAFETY: `offset` checked that all of `buf.len()` bytes lie in the leaked allocation.
                *byte = unsafe { self.cpu.add(offset + i).read_volatile() };
            }
            Some(())
        }

        /// Copies `bytes` to memory at `paddr`; `None` (and memory untouched) if any byte lies outside the region.
        pub fn write(&self, paddr: u64, bytes: &[u8]) -> Option<()> {
            let offset = self.offset(paddr, bytes.len())?;
            for (i, &byte) in bytes.iter().enumerate() {
                // SAFETY: as in `read`.
                unsafe { self.cpu.add(offset + i).write_volatile(byte) };
            }
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carves_aligned_pieces_that_do_not_overlap_until_used_up() {
        let (mut region, _) = host::region(0x8000_0010, 0x200);
        let a = region.carve(100, 64).unwrap();
        let b = region.carve(64, 64).unwrap();
        assert_eq!(a.physical(), 0x8000_0040);
        assert_eq!(b.physical(), 0x8000_00C0);
        assert!(region.carve(0x200, 8).is_none());
        assert!(region.carve(usize::MAX, 8).is_none());
        assert_eq!(region.physical_end(), 0x8000_0210);
        assert_eq!(region.carve(0x110, 8).unwrap().physical(), 0x8000_0100);
        assert!(region.carve(1, 8).is_none());
    }

    #[test]
    fn the_device_sees_what_the_driver_writes_and_the_other_way_round() {
        let (mut region, device) = host::region(0x1000, 0x100);
        let mut buffer = region.carve(0x40, 64).unwrap();
        buffer.write_word(4, 0xAABB_CCDD);
        let mut seen = [0; 4];
        device.read(0x1004, &mut seen).unwrap();
        assert_eq!(seen, [0xDD, 0xCC, 0xBB, 0xAA]);
        device.write(0x1008, &[1, 0, 0, 0]).unwrap();
        assert_eq!(buffer.read_word(8), 1);
        assert!(device.read(0xFFF, &mut seen).is_none());
        assert!(device.write(0x10FD, &seen).is_none());
    }

    #[test]
    #[should_panic(expected = "outside the buffer")]
    fn word_access_stays_in_the_buffer() {
        let (mut region, _) = host::region(0x1000, 0x100);
        region.carve(64, 64).unwrap().read_word(64);
    }
}
