//! The system under test as its root task sees it: slots, memory, calls, console, end.

use core::fmt::{self, Write};

use super::boot_info::BootInfo;
use super::start::{Buffer, CALL, CAPS, DEBUG_HALT, DEBUG_PUT_CHAR, MESSAGE, syscall};
use crate::number::{Invocation::*, error, object, slot};
use crate::row::MAX_WORDS;
use crate::{Answer, Outcome, System};

/// log2 of the block that each table gets.
const BLOCK_BITS: u64 = 22;
/// log2 of the least device untyped that the tables need.
const DEVICE_BITS: u8 = 16;
/// Physical address of the test finisher of qemu-riscv-virt (`sifive,test0`), and what a store to it means.
const FINISHER: u64 = 0x10_0000;
const FINISHER_PASS: u32 = 0x5555;
const FINISHER_FAIL: u32 = 0x3333;
/// Where its register is mapped.
const WINDOW: u64 = 0x30_0000_0000;

/// The machine.
pub struct Machine {
    /// The BootInfo page.
    pub info: &'static BootInfo,
    /// The root task's IPC buffer.
    pub buffer: Buffer,
    smp: bool,
    /// Boot untyped that blocks come from.
    source: u64,
    /// First slot that no table has used yet.
    next: u64,
    device: u64,
    rows: usize,
    failed: usize,
}

impl Machine {
    /// The machine of a BootInfo page.
    ///
    /// # Panics
    /// If there is no untyped of 4 MiB, or no device untyped.
    pub fn new(info: &'static BootInfo) -> Self {
        // SAFETY: the kernel has mapped the root task's IPC buffer where BootInfo says.
        let buffer = unsafe { Buffer::at(info.ipc_buffer as *mut u64) };
        let ram = info.untypeds().filter(|(_, desc)| desc.is_device == 0 && u64::from(desc.size_bits) >= BLOCK_BITS);
        let (source, _) = ram.min_by_key(|(_, desc)| desc.size_bits).expect("an untyped of 4 MiB");
        let mut devices = info.untypeds().filter(|(_, desc)| desc.is_device != 0 && desc.size_bits >= DEVICE_BITS);
        let (device, _) = devices.next().expect("a device untyped of 64 KiB");
        let mut machine = Self { info, buffer, smp: false, source, next: info.empty.start, device, rows: 0, failed: 0 };
        // The last label of an SMP kernel is one that a UP kernel does not know; without a message it does nothing.
        let label = RISCVIRQIssueIRQHandlerTrigger.number(true);
        machine.smp = machine.call(slot::IRQ_CONTROL, label, &[], &[]).error == error::TRUNCATED;
        machine
    }

    /// Reports one observation that is no answer of an invocation.
    pub fn expect(&mut self, table: &str, row: &str, expected: (u64, &[u64]), got: (u64, &[u64])) {
        self.report(&Outcome { table, row, expected, got });
    }

    /// A system call whose message words beyond four are in the buffer already.
    pub fn send(&mut self, number: i64, capability: u64, info: u64, words: [u64; 4]) -> [u64; 6] {
        let [w0, w1, w2, w3] = words;
        syscall(number, [capability, info, w0, w1, w2, w3])
    }

    /// Gives back all that the tables have made.
    fn clean(&mut self) {
        self.prepare(slot::CNODE, CNodeRevoke, &[self.source, 64], &[]);
        for used in self.info.empty.start..self.next {
            self.prepare(slot::CNODE, CNodeDelete, &[used, 64], &[]);
        }
        self.next = self.info.empty.start;
    }

    /// Rows so far, and how many of them failed.
    pub fn count(&self) -> (usize, usize) {
        (self.rows, self.failed)
    }

    /// Ends the machine by its finisher; without one, by DebugHalt. A code of 0 is success.
    pub fn end(mut self, code: u16) -> ! {
        self.clean();
        let word = if code == 0 { FINISHER_PASS } else { FINISHER_FAIL | u32::from(code) << 16 };
        if let Some(register) = self.finisher() {
            // SAFETY: the frame of the finisher is mapped there; a store to it touches no memory.
            unsafe { register.write_volatile(word) };
        }
        syscall(DEBUG_HALT, [0; 6]);
        unreachable!("DebugHalt returns")
    }

    /// Maps the finisher: a device untyped of BootInfo leads to it.
    fn finisher(&mut self) -> Option<*mut u32> {
        let covers = |paddr: u64, bits: u8| (paddr..paddr + (1 << bits)).contains(&FINISHER);
        let mut all = self.info.untypeds().filter(|(_, desc)| desc.is_device != 0);
        let (untyped, desc) = all.find(|(_, desc)| covers(desc.paddr, desc.size_bits))?;
        // What lies below the register is skipped: an untyped of each size that fits.
        let mut at = desc.paddr;
        while at < FINISHER {
            let bits = (FINISHER - at).ilog2().min(at.trailing_zeros()).min(u32::from(desc.size_bits) - 1);
            self.make(untyped, object::UNTYPED, u64::from(bits));
            at += 1 << bits;
        }
        let frame = self.make(untyped, object::PAGE, 0);
        let block = self.block_of(16);
        for _ in 0..2 {
            let table = self.make(block, object::PAGE_TABLE, 0);
            self.prepare(table, RISCVPageTableMap, &[WINDOW, 0], &[slot::VSPACE]);
        }
        let mapped = self.invoke(frame, RISCVPageMap, &[WINDOW, 3, 1], &[slot::VSPACE]);
        (mapped.error == 0).then_some(WINDOW as *mut u32)
    }

    fn block_of(&mut self, bits: u64) -> u64 {
        self.make(self.source, object::UNTYPED, bits)
    }
}

impl System for Machine {
    fn smp(&self) -> bool {
        self.smp
    }

    fn cores(&self) -> u64 {
        self.info.num_nodes
    }

    fn call(&mut self, capability: u64, label: u64, words: &[u64], extra: &[u64]) -> Answer {
        let mut registers = [0; 4];
        for (index, &word) in words.iter().enumerate() {
            match registers.get_mut(index) {
                Some(register) => *register = word,
                None => self.buffer.set(MESSAGE + index, word),
            }
        }
        extra.iter().enumerate().for_each(|(index, &cap)| self.buffer.set(CAPS + index, cap));
        let info = label << 12 | (extra.len() as u64) << 7 | words.len() as u64;
        let [badge, info, first @ ..] = self.send(CALL, capability, info, registers);
        assert_eq!(badge, 0, "an answer of the kernel has no badge");
        let length = (info & 0x7F) as usize;
        let mut words = [0; MAX_WORDS];
        for (index, word) in words.iter_mut().enumerate().take(length) {
            *word = first.get(index).copied().unwrap_or_else(|| self.buffer.get(MESSAGE + index));
        }
        Answer { error: info >> 12, words, length }
    }

    fn block(&mut self) -> u64 {
        self.clean();
        self.block_of(BLOCK_BITS)
    }

    fn device(&self) -> u64 {
        self.device
    }

    fn fresh(&mut self) -> u64 {
        assert!(self.next < self.info.empty.end, "the root CNode is full");
        self.next += 1;
        self.next - 1
    }

    fn report(&mut self, outcome: &Outcome<'_>) {
        self.rows += 1;
        if !outcome.good() {
            self.failed += 1;
            let Outcome { table, row, expected, got } = outcome;
            print(format_args!(
                "{table}: {row}: expected {:x} {:x?}, got {:x} {:x?}\n",
                expected.0, expected.1, got.0, got.1
            ));
        }
    }
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| {
            syscall(DEBUG_PUT_CHAR, [u64::from(byte), 0, 0, 0, 0, 0]);
        });
        Ok(())
    }
}

/// Prints by DebugPutChar: no device, no capability.
pub fn print(text: fmt::Arguments<'_>) {
    // The console takes every byte.
    let _ = Console.write_fmt(text);
}
