//! Device registers: 32-bit volatile access within a known window.
//!
//! A driver is written against [`Registers`], so that it runs on the mapped device of a guest ([`Mmio`]) and, in tests, on a
//! model of the device without any CPU. Offsets are constants of the driver, never data, so an offset outside the window is
//! a bug of the driver and panics; nothing a device says can reach that panic.

/// A window of 32-bit little-endian device registers.
///
/// Both methods take the window mutably: reading a register may have effects (counters that latch, status that clears).
pub trait Registers {
    /// Reads the register at byte offset `offset`.
    fn read(&mut self, offset: usize) -> u32;
    /// Writes the register at byte offset `offset`.
    fn write(&mut self, offset: usize, value: u32);

    /// Reads the register at `offset` until `ready` accepts the value, at most `tries` times.
    /// Returns the accepted value, or `None` if the device never got there.
    fn poll(&mut self, offset: usize, tries: u32, ready: impl Fn(u32) -> bool) -> Option<u32> {
        (0..tries).map(|_| self.read(offset)).find(|&value| ready(value))
    }
}

/// The registers of a device that is mapped, uncached, into this address space.
pub struct Mmio {
    base: *mut u32,
    size: usize,
}

#[allow(unsafe_code)]
impl Mmio {
    /// The window of `size` bytes at virtual address `address`.
    ///
    /// # Panics
    /// If `address` is not a multiple of 4.
    ///
    /// # Safety
    /// `[address, address + size)` is mapped device memory as long as the value lives, its 32-bit registers take aligned
    /// reads and writes without a fault, and nothing else in this program accesses it.
    pub unsafe fn new(address: usize, size: usize) -> Self {
        assert!(address.is_multiple_of(4), "register window must be word aligned");
        Self { base: core::ptr::with_exposed_provenance_mut(address), size }
    }

    /// Address of a register, after the check that it lies in the window.
    fn register(&self, offset: usize) -> *mut u32 {
        assert!(
            offset.is_multiple_of(4) && offset < self.size && self.size - offset >= 4,
            "register outside its window"
        );
        self.base.wrapping_byte_add(offset)
    }
}

#[allow(unsafe_code)]
impl Registers for Mmio {
    fn read(&mut self, offset: usize) -> u32 {
        let register = self.register(offset);
        // SAFETY: `register` checked offset and alignment; `new`'s caller promised that the window is mapped and ours.
        u32::from_le(unsafe { register.read_volatile() })
    }

    fn write(&mut self, offset: usize, value: u32) {
        let register = self.register(offset);
        // SAFETY: as in `read`.
        unsafe { register.write_volatile(value.to_le()) }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    fn window(memory: &mut [u32; 4]) -> Mmio {
        let address = memory.as_mut_ptr().expose_provenance();
        // SAFETY: plain memory stands in for the device; it outlives the window in every test below.
        unsafe { Mmio::new(address, 16) }
    }

    #[test]
    fn reads_back_what_was_written_at_the_offset() {
        let mut memory = [0u32; 4];
        let mut registers = window(&mut memory);
        registers.write(8, 0x1234_5678);
        assert_eq!(registers.read(8), 0x1234_5678);
        assert_eq!(registers.read(4), 0);
        assert_eq!(memory[2].to_le(), 0x1234_5678);
    }

    #[test]
    fn poll_gives_up_after_the_given_tries() {
        let mut memory = [0u32, 1, 2, 3];
        let mut registers = window(&mut memory);
        assert_eq!(registers.poll(4, 3, |value| value == 1), Some(1));
        assert_eq!(registers.poll(4, 3, |value| value == 2), None);
    }

    #[test]
    #[should_panic(expected = "outside its window")]
    fn refuses_an_offset_past_the_end() {
        let mut memory = [0u32; 4];
        window(&mut memory).read(16);
    }

    #[test]
    #[should_panic(expected = "outside its window")]
    fn refuses_an_unaligned_offset() {
        let mut memory = [0u32; 4];
        window(&mut memory).read(2);
    }
}
