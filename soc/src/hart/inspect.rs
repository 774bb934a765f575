//! Looking at a hart without touching it: for debuggers. Nothing here marks pages, fills a TLB or asks a device.

use super::Hart;
use super::compressed::expand;
use crate::board::RAM_BASE;
use crate::bus::Lines;
use crate::memory::Memory;
use crate::outcome::Privilege;

/// What the instruction at a hart's pc would do to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub address: u64,
    pub bytes: u64,
    pub reads: bool,
    pub writes: bool,
}

impl Hart {
    /// RAM offset of virtual address `va` as this hart's instructions see it; permissions are not asked.
    pub fn look(&self, ram: &Memory, va: u64) -> Option<u64> {
        let physical = match self.fetch_space.root {
            None => va,
            Some(root) => super::mmu::look(ram, root, va)?,
        };
        let offset = physical.wrapping_sub(RAM_BASE);
        (offset < ram.size()).then_some(offset)
    }

    /// The memory operand of the instruction at the pc; none if it has none or cannot be fetched.
    pub fn memory_operand(&self, ram: &Memory) -> Option<Operand> {
        let half = |va: u64| {
            let bytes = ram.get(self.look(ram, va)?, 2)?;
            Some(u16::from_le_bytes([bytes[0], bytes[1]]))
        };
        let low = half(self.pc)?;
        let raw = match low & 3 {
            3 => u32::from(low) | u32::from(half(self.pc.wrapping_add(2))?) << 16,
            _ => expand(low)?,
        };
        let base = self.x[(raw >> 15 & 31) as usize];
        let at = |offset: i32| base.wrapping_add(i64::from(offset) as u64);
        let bytes = 1 << (raw >> 12 & 3);
        let load = Operand { address: at(raw as i32 >> 20), bytes, reads: true, writes: false };
        // Major opcodes of the unprivileged manual, table "RISC-V base opcode map".
        Some(match raw & 0x7F {
            0x03 | 0x07 => load,
            0x23 | 0x27 => {
                let offset = raw as i32 >> 25 << 5 | (raw >> 7 & 31) as i32;
                Operand { address: at(offset), reads: false, writes: true, ..load }
            }
            0x2F => match raw >> 27 {
                0b00010 => Operand { address: base, ..load },
                0b00011 => Operand { address: base, reads: false, writes: true, ..load },
                _ => Operand { address: base, writes: true, ..load },
            },
            _ => return None,
        })
    }

    /// The `satp` that instructions are fetched through; 0 without translation.
    pub fn space_in_use(&self) -> u64 {
        if self.fetch_space.root.is_some() { self.csrs.satp } else { 0 }
    }

    /// CSR `number` as machine mode would read it now; none if there is no such register.
    pub fn csr_now(&self, number: u32, lines: &Lines) -> Option<u64> {
        let around = self.surroundings(lines.of(self.id), self.clock, self.instructions);
        self.csrs.read(number, Privilege::M, false, &around)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::hart::Build;

    fn operand(raw: u32) -> Option<Operand> {
        let mut ram = Memory::new(4096);
        ram.write(0, raw.to_le_bytes());
        let mut hart = Hart::new(0, RAM_BASE, 0, Build::of(&Config::default()));
        hart.x[11] = 0x1000;
        hart.memory_operand(&ram)
    }

    #[test]
    fn operands() {
        let load = Operand { address: 0xFF8, bytes: 8, reads: true, writes: false };
        assert_eq!(operand(0xff85_b503), Some(load), "ld a0, -8(a1)");
        let store = Operand { address: 0xFFC, bytes: 4, reads: false, writes: true };
        assert_eq!(operand(0xfea5_ae23), Some(store), "sw a0, -4(a1)");
        let swap = Operand { address: 0x1000, bytes: 4, reads: true, writes: true };
        assert_eq!(operand(0x08a5_a52f), Some(swap), "amoswap.w a0, a0, (a1)");
        let compressed = Operand { address: 0x1008, bytes: 8, reads: true, writes: false };
        assert_eq!(operand(0x6588), Some(compressed), "c.ld a0, 8(a1)");
        assert_eq!(operand(0x0000_0013), None, "nop");
    }
}
