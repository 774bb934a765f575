//! Entering and leaving traps: destination, order and state of exceptions and interrupts, and the three returns.

use super::block::Way;
use super::csr::{irq, status};
use super::{Exception, Hart};
use crate::memory::Memory;
use crate::outcome::Privilege;

const INTERRUPT: u64 = 1 << 63;
/// Inside one destination: external, software, timer; machine before supervisor before user.
const ORDER: [u32; 9] = [irq::MEI, irq::MSI, irq::MTI, irq::SEI, irq::SSI, irq::STI, irq::UEI, irq::USI, irq::UTI];

impl Hart {
    /// Takes `exception` of the instruction at `self.pc`.
    pub fn take_exception(&mut self, ram: &mut Memory, exception: Exception) {
        self.statistics.exceptions += 1;
        let delegated = self.privilege != Privilege::M && self.csrs.medeleg >> exception.cause & 1 != 0;
        let to = if delegated { Privilege::S } else { Privilege::M };
        self.enter(ram, to, exception.cause, exception.tval);
    }

    /// Takes the most urgent interrupt that is pending, enabled and not masked. True if there was one.
    #[inline(always)]
    pub fn take_interrupt(&mut self, ram: &mut Memory, lines: u64) -> bool {
        let ready = (self.csrs.latches | lines) & self.csrs.mie;
        ready != 0 && self.take_one_of(ram, ready)
    }

    fn take_one_of(&mut self, ram: &mut Memory, ready: u64) -> bool {
        let (mideleg, sideleg) = (self.csrs.mideleg, self.csrs.sideleg() & irq::USER);
        let on = |bit| self.csrs.mstatus & bit != 0;
        let to_m = ready & !mideleg;
        let to_s = ready & mideleg & !sideleg;
        let to_u = ready & mideleg & sideleg;
        let (bits, to) = if to_m != 0 && (self.privilege < Privilege::M || on(status::MIE)) {
            (to_m, Privilege::M)
        } else if to_s != 0 && (self.privilege == Privilege::U || (self.privilege == Privilege::S && on(status::SIE))) {
            (to_s, Privilege::S)
        } else if to_u != 0 && self.privilege == Privilege::U && on(status::UIE) {
            (to_u, Privilege::U)
        } else {
            return false;
        };
        let Some(code) = ORDER.into_iter().find(|&code| bits >> code & 1 != 0) else { return false };
        if to == Privilege::U {
            self.statistics.user_interrupts += 1;
        } else {
            self.statistics.interrupts += 1;
        }
        self.enter(ram, to, INTERRUPT | u64::from(code), 0);
        true
    }

    /// True if `wfi` would end.
    pub fn wakes(&self, lines: u64) -> bool {
        (self.csrs.latches | lines) & self.csrs.mie != 0
    }

    fn enter(&mut self, ram: &mut Memory, to: Privilege, cause: u64, tval: u64) {
        ram.unreserve(self.id);
        let csrs = &mut self.csrs;
        let from = self.privilege as u64;
        let vector = match to {
            Privilege::M => {
                csrs.mepc = self.pc;
                csrs.mcause = cause;
                csrs.mtval = tval;
                csrs.mstatus = moved(csrs.mstatus, status::MIE, status::MPIE) & !status::MIE & !status::MPP
                    | from << status::MPP_SHIFT;
                csrs.mtvec
            }
            Privilege::S => {
                csrs.sepc = self.pc;
                csrs.scause = cause;
                csrs.stval = tval;
                csrs.mstatus = moved(csrs.mstatus, status::SIE, status::SPIE) & !status::SIE & !status::SPP
                    | if from != 0 { status::SPP } else { 0 };
                csrs.stvec
            }
            Privilege::U => {
                csrs.uepc = self.pc;
                csrs.ucause = cause;
                csrs.utval = tval;
                csrs.mstatus = moved(csrs.mstatus, status::UIE, status::UPIE) & !status::UIE;
                csrs.utvec
            }
        };
        let vectored = vector & 1 != 0 && cause & INTERRUPT != 0;
        self.way = Way::UNKNOWN;
        self.pc = (vector & !3).wrapping_add(if vectored { 4 * (cause & 0x3F) } else { 0 });
        self.privilege = to;
        self.update_contexts();
    }

    /// `mret`; the caller has checked that it is legal.
    pub fn return_from_machine(&mut self, ram: &mut Memory) {
        ram.unreserve(self.id);
        self.privilege = self.mpp();
        let mstatus = moved(self.csrs.mstatus, status::MPIE, status::MIE) | status::MPIE;
        self.csrs.mstatus = mstatus & !status::MPP;
        if self.privilege != Privilege::M {
            self.csrs.mstatus &= !status::MPRV;
        }
        self.pc = self.csrs.mepc;
        self.update_contexts();
    }

    /// `sret`.
    pub fn return_from_supervisor(&mut self, ram: &mut Memory) {
        ram.unreserve(self.id);
        self.privilege = if self.csrs.mstatus & status::SPP != 0 { Privilege::S } else { Privilege::U };
        let mstatus = moved(self.csrs.mstatus, status::SPIE, status::SIE) | status::SPIE;
        self.csrs.mstatus = mstatus & !status::SPP & !status::MPRV;
        self.pc = self.csrs.sepc;
        self.update_contexts();
    }

    /// `uret`.
    pub fn return_from_user(&mut self, ram: &mut Memory) {
        ram.unreserve(self.id);
        self.csrs.mstatus = moved(self.csrs.mstatus, status::UPIE, status::UIE) | status::UPIE;
        self.pc = self.csrs.uepc;
    }
}

/// `word` with bit `to` made equal to bit `from`.
fn moved(word: u64, from: u64, to: u64) -> u64 {
    if word & from != 0 { word | to } else { word & !to }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::hart::Build;

    fn hart(privilege: Privilege) -> (Hart, Memory) {
        let mut hart = Hart::new(0, 0x8000_0000, 0, Build::of(&Config::default()));
        hart.privilege = privilege;
        hart.csrs.mtvec = 0x1000;
        hart.csrs.stvec = 0x2000;
        hart.csrs.utvec = 0x3001;
        hart.csrs.mie = irq::ALL;
        (hart, Memory::new(4096))
    }

    fn delegate(hart: &mut Hart, mideleg: u64, sideleg: u64) {
        let around = hart.surroundings(0, 0, 0);
        hart.csrs.write(0x303, mideleg, &around);
        hart.csrs.write(0x103, sideleg, &around);
    }

    #[test]
    fn machine_before_supervisor_before_user() {
        let (mut hart, mut ram) = hart(Privilege::U);
        delegate(&mut hart, 0x333, 0x111);
        hart.csrs.mstatus |= status::UIE;
        assert!(hart.take_interrupt(&mut ram, 1 << irq::MTI | 1 << irq::SEI | 1));
        assert_eq!((hart.privilege, hart.csrs.mcause), (Privilege::M, INTERRUPT | 7));
        assert!(!hart.take_interrupt(&mut ram, 1 << irq::SEI | 1), "M masks everything below");
    }

    #[test]
    fn external_before_software_before_timer() {
        let (mut hart, mut ram) = hart(Privilege::S);
        delegate(&mut hart, 0x333, 0x111);
        assert!(!hart.take_interrupt(&mut ram, 1 << irq::SEI), "SIE is off");
        hart.csrs.mstatus |= status::SIE;
        assert!(hart.take_interrupt(&mut ram, 1 << irq::SEI | 1 << irq::SSI | 1 << irq::STI));
        assert_eq!(hart.csrs.scause, INTERRUPT | 9);
        assert_eq!(hart.csrs.mstatus & (status::SIE | status::SPIE | status::SPP), status::SPIE | status::SPP);
    }

    #[test]
    fn user_interrupt_entry_and_return() {
        let (mut hart, mut ram) = hart(Privilege::U);
        delegate(&mut hart, 0x333, 1);
        hart.pc = 0x5000;
        assert!(!hart.take_interrupt(&mut ram, 1), "UIE is off");
        hart.csrs.mstatus |= status::UIE;
        assert!(hart.take_interrupt(&mut ram, 1));
        assert_eq!((hart.pc, hart.csrs.uepc, hart.csrs.ucause), (0x3000, 0x5000, INTERRUPT));
        assert_eq!(hart.csrs.mstatus & 0x11, 0x10);
        hart.return_from_user(&mut ram);
        assert_eq!((hart.pc, hart.csrs.mstatus & 0x11), (0x5000, 0x11));
        let (mut supervisor, mut ram) = self::hart(Privilege::S);
        delegate(&mut supervisor, 0x333, 1);
        supervisor.csrs.mstatus |= status::UIE | status::SIE;
        assert!(!supervisor.take_interrupt(&mut ram, 1), "never taken in S");
    }

    #[test]
    fn undelegated_user_interrupt_goes_to_supervisor_or_machine() {
        let (mut hart, mut ram) = hart(Privilege::U);
        delegate(&mut hart, 1, 0);
        assert!(hart.take_interrupt(&mut ram, 1));
        assert_eq!((hart.privilege, hart.csrs.scause), (Privilege::S, INTERRUPT));
        let (mut machine, mut ram) = self::hart(Privilege::U);
        assert!(machine.take_interrupt(&mut ram, 1));
        assert_eq!((machine.privilege, machine.csrs.mcause), (Privilege::M, INTERRUPT));
    }

    #[test]
    fn exceptions_follow_medeleg_except_from_machine() {
        let (mut hart, mut ram) = hart(Privilege::U);
        hart.csrs.medeleg = 1 << 8;
        hart.take_exception(&mut ram, Exception { cause: 8, tval: 0 });
        assert_eq!((hart.privilege, hart.pc), (Privilege::S, 0x2000));
        hart.return_from_supervisor(&mut ram);
        assert_eq!(hart.privilege, Privilege::U);
        hart.take_exception(&mut ram, Exception { cause: 2, tval: 7 });
        assert_eq!((hart.privilege, hart.csrs.mtval), (Privilege::M, 7));
        hart.return_from_machine(&mut ram);
        assert_eq!(hart.privilege, Privilege::U);
    }
}
