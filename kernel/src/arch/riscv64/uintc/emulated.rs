//! The N extension and the UINTC in software: what hardware would do, as plain state.
//!
//! The registers of a virtual hart are those in the TCB of the thread that runs on it, so nothing is moved when threads are
//! switched; a receiver merely knows which core runs its thread. What a program can observe is what it observes on hardware,
//! with two differences: every such instruction is a trap (and drops an LR reservation), and a thread without a receiver keeps what
//! it writes to `utvec` and the like, where hardware loses it at the next switch.
//!
//! The line of a hart (UINTC) is the condition in [`VirtualHart::line`]. It is looked at whenever a thread returns to U; a bit that
//! is posted to a thread of another core interrupts that core, so that it returns to U.
//!
//! Everything here runs under the kernel lock but [`VirtualHart::take_interrupt`], which a core does for its own thread on the way out.
//! A post that it misses comes later than its look, and finds the core recorded, which was done under the lock.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use uintr::csr::{
    CAUSE_USER_SOFTWARE, UCAUSE, UEPC, UIE, UIP, USCRATCH, USI, USTATUS, USTATUS_UIE, USTATUS_UPIE, UTVAL, UTVEC,
};
use uintr::format::{SenderEntry, Suist, VECTORS};
use uintr::insn::{Operation, URET};

use crate::arch::register::PC;
use crate::arch::riscv64::context::{Context, UserInterruptState};

/// Receivers, as many as a UINTC has.
pub const COUNT: u16 = 512;
/// Bytes of each of these instructions.
const INSTRUCTION_BYTES: u64 = 4;
/// Opcode of the CSR instructions.
const SYSTEM: u32 = 0x73;
/// Bits that `ucause` has.
const CAUSE_BITS: usize = 1 << 63 | 0x1F;
/// Bits that `ustatus` has.
const STATUS_BITS: usize = (USTATUS_UIE | USTATUS_UPIE) as usize;
const USIE: usize = USI as usize;

/// One receiver.
struct Receiver {
    pending: AtomicU64,
    /// One more than the core that runs its thread; 0: none does.
    core: AtomicU8,
}

/// The receivers of the machine.
pub struct Receivers([Receiver; COUNT as usize]);

impl Receivers {
    /// All empty.
    pub const fn new() -> Self {
        Self([const { Receiver { pending: AtomicU64::new(0), core: AtomicU8::new(0) } }; COUNT as usize])
    }

    fn at(&self, receiver: u16) -> &Receiver {
        &self.0[usize::from(receiver)]
    }

    /// The pending bits.
    pub fn pending(&self, receiver: u16) -> u64 {
        self.at(receiver).pending.load(Ordering::Relaxed)
    }

    /// Takes the pending bits.
    pub fn take(&self, receiver: u16) -> u64 {
        self.at(receiver).pending.swap(0, Ordering::Relaxed)
    }

    /// Posts bits. Gives the core that must look, if the first ones came while it runs the thread.
    pub fn post(&self, receiver: u16, bits: u64) -> Option<usize> {
        let receiver = self.at(receiver);
        let before = receiver.pending.fetch_or(bits, Ordering::Relaxed);
        let core = receiver.core.load(Ordering::Relaxed);
        (before == 0 && bits != 0 && core != 0).then(|| usize::from(core) - 1)
    }

    /// The thread of the receiver runs on this core from now on; `None`: on none.
    pub fn set_core(&self, receiver: u16, core: Option<usize>) {
        let word = core.map_or(0, |core| core as u8 + 1);
        self.at(receiver).core.store(word, Ordering::Relaxed);
    }
}

impl Default for Receivers {
    fn default() -> Self {
        Self::new()
    }
}

/// The hart that a thread sees while it runs.
pub struct VirtualHart<'a> {
    /// Its integer registers.
    pub context: &'a mut Context,
    /// Its user-interrupt registers.
    pub state: &'a mut UserInterruptState,
    /// The UINTC.
    pub receivers: &'a Receivers,
}

/// What is left to do after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// This core runs the receiving thread and must look, unless it is the own one.
    pub interrupt: Option<usize>,
}

impl VirtualHart<'_> {
    /// Executes the instruction that trapped at word [`PC`] of the context, if the extension has it for U: the registers change and
    /// `next_pc` is where the thread goes on. Otherwise `None`, and nothing has changed. `load` reads a physical address inside the
    /// thread's sender table.
    pub fn execute(&mut self, instruction: u32, load: impl FnOnce(u64) -> u64) -> Option<Executed> {
        let mut next = self.context.x[PC] + INSTRUCTION_BYTES;
        let mut interrupt = None;
        if let Some((operation, rd, rs1)) = Operation::decode(instruction) {
            interrupt = self.uipi(operation, rd, self.register(rs1), load);
        } else if instruction == URET {
            let upie = self.state.status & USTATUS_UPIE as usize != 0;
            self.state.status = USTATUS_UPIE as usize | if upie { USTATUS_UIE as usize } else { 0 };
            next = self.state.pc as u64;
        } else {
            self.access_csr(instruction)?;
        }
        self.context.next_pc = next;
        Some(Executed { interrupt })
    }

    /// Takes the user interrupt if one is due: the thread goes on in its handler.
    pub fn take_interrupt(&mut self) {
        let state = &self.state;
        let open = state.status & USTATUS_UIE as usize != 0 && state.enable & self.user_bits() != 0;
        if !open || !(state.latch || self.line()) {
            return;
        }
        self.state.pc = self.context.next_pc as usize;
        self.state.cause = CAUSE_USER_SOFTWARE as usize;
        self.state.value = 0;
        self.state.status = USTATUS_UPIE as usize;
        // Vectored: base + 4 * code, and the code is 0.
        self.context.next_pc = self.state.vector as u64 & !3;
    }

    /// Whether the UINTC raises the line of this hart.
    fn line(&self) -> bool {
        self.state.receiver != 0 && self.state.active && self.receivers.pending(self.state.receiver) != 0
    }

    /// Interrupts delegated to U (`sideleg`): only a thread with a receiver has any.
    fn user_bits(&self) -> usize {
        if self.state.receiver != 0 { USIE } else { 0 }
    }

    fn register(&self, number: u32) -> u64 {
        if number == 0 { 0 } else { self.context.x[number as usize] }
    }

    fn set_register(&mut self, number: u32, value: u64) {
        if number != 0 {
            self.context.x[number as usize] = value;
        }
    }

    /// One of the five `uipi`; gives the core to interrupt.
    fn uipi(&mut self, operation: Operation, rd: u32, operand: u64, load: impl FnOnce(u64) -> u64) -> Option<usize> {
        let receiver = self.state.receiver;
        match operation {
            Operation::Send => return self.send(operand, load),
            Operation::Read => {
                let bits = if receiver == 0 { 0 } else { self.receivers.take(receiver) };
                self.set_register(rd, bits);
            }
            _ if receiver == 0 => {}
            Operation::Write => return self.receivers.post(receiver, operand),
            Operation::Activate => self.state.active = true,
            Operation::Deactivate => self.state.active = false,
        }
        None
    }

    fn send(&self, index: u64, load: impl FnOnce(u64) -> u64) -> Option<usize> {
        let table = Suist::new(self.state.sender_table, 1).filter(|_| self.state.sender_table != 0)?;
        let entry = SenderEntry::from_bits(load(table.entry_address(index)?));
        let effective = entry.valid() && entry.receiver() < COUNT && entry.vector() < u16::from(VECTORS);
        if effective { self.receivers.post(entry.receiver(), 1 << entry.vector()) } else { None }
    }

    /// `csrrw` and its relatives on the registers of U.
    fn access_csr(&mut self, instruction: u32) -> Option<()> {
        let (number, rs1) = ((instruction >> 20) as u16, instruction >> 15 & 31);
        let (funct3, rd) = (instruction >> 12 & 7, instruction >> 7 & 31);
        if instruction & 0x7F != SYSTEM || funct3 & 3 == 0 {
            return None;
        }
        let operand = if funct3 & 4 != 0 { u64::from(rs1) } else { self.register(rs1) } as usize;
        let old = self.read_csr(number)?;
        // Read-modify-write works on the software latch, never on the line.
        let base = if number == UIP { self.latch() } else { old };
        match funct3 & 3 {
            1 => self.write_csr(number, operand),
            _ if rs1 == 0 => {}
            2 => self.write_csr(number, base | operand),
            _ => self.write_csr(number, base & !operand),
        }
        self.set_register(rd, old as u64);
        Some(())
    }

    fn latch(&self) -> usize {
        if self.state.latch { self.user_bits() } else { 0 }
    }

    fn read_csr(&self, number: u16) -> Option<usize> {
        let state = &self.state;
        Some(match number {
            USTATUS => state.status,
            UIE => state.enable & self.user_bits(),
            UTVEC => state.vector,
            USCRATCH => state.scratch,
            UEPC => state.pc,
            UCAUSE => state.cause,
            UTVAL => state.value,
            UIP if self.line() => USIE,
            UIP => self.latch(),
            _ => return None,
        })
    }

    fn write_csr(&mut self, number: u16, value: usize) {
        let user_bits = self.user_bits();
        let state = &mut *self.state;
        match number {
            USTATUS => state.status = value & STATUS_BITS,
            UIE => state.enable = value & user_bits,
            UTVEC => match value & 3 {
                0 => state.vector = value,
                // A vectored base is 256-byte aligned; the other modes are reserved and not stored.
                1 => state.vector = value & !0xFF | 1,
                _ => {}
            },
            USCRATCH => state.scratch = value,
            UEPC => state.pc = value & !1,
            UCAUSE => state.cause = value & CAUSE_BITS,
            UTVAL => state.value = value,
            _ => state.latch = value & user_bits != 0,
        }
    }
}

#[cfg(test)]
#[path = "emulated_tests.rs"]
mod tests;
