//! Control and status registers: storage, WARL rules, views.
//!
//! Numbers and layouts: privileged manual 1.12; the user-interrupt registers as the N extension (version 1.1) with
//! `suist` and `suirs` of the UINTC design. ASID has 0 bits, as on Rocket. `mstatus.FS` follows the f-registers exactly: any
//! write to them or to `fcsr` makes it Dirty.

use super::pmp::Pmp;
use crate::config::Isa;
use crate::outcome::Privilege;
use serde::{Deserialize, Serialize};

/// `mstatus` bits.
pub mod status {
    #![allow(missing_docs)] // the manual's field names
    pub const UIE: u64 = 1;
    pub const SIE: u64 = 1 << 1;
    pub const MIE: u64 = 1 << 3;
    pub const UPIE: u64 = 1 << 4;
    pub const SPIE: u64 = 1 << 5;
    pub const MPIE: u64 = 1 << 7;
    pub const SPP: u64 = 1 << 8;
    pub const MPP: u64 = 3 << 11;
    pub const MPP_SHIFT: u32 = 11;
    /// State of the f-registers: 0 is Off, all ones Dirty.
    pub const FS: u64 = 3 << 13;
    /// `FS` is Dirty; not stored but derived.
    pub const SD: u64 = 1 << 63;
    pub const MPRV: u64 = 1 << 17;
    pub const SUM: u64 = 1 << 18;
    pub const MXR: u64 = 1 << 19;
    pub const TVM: u64 = 1 << 20;
    pub const TW: u64 = 1 << 21;
    pub const TSR: u64 = 1 << 22;
    pub const UXL_SXL_64: u64 = 2 << 32 | 2 << 34;
    pub const M_WRITABLE: u64 =
        UIE | SIE | MIE | UPIE | SPIE | MPIE | SPP | MPP | FS | MPRV | SUM | MXR | TVM | TW | TSR;
    pub const S_WRITABLE: u64 = UIE | SIE | UPIE | SPIE | SPP | FS | SUM | MXR;
    pub const S_VISIBLE: u64 = S_WRITABLE | SD | 3 << 32;
    pub const U_WRITABLE: u64 = UIE | UPIE;
}

/// Interrupt bits (`mip`, `mie`).
pub mod irq {
    #![allow(missing_docs)] // the manual's names
    pub const USI: u32 = 0;
    pub const SSI: u32 = 1;
    pub const MSI: u32 = 3;
    pub const UTI: u32 = 4;
    pub const STI: u32 = 5;
    pub const MTI: u32 = 7;
    pub const UEI: u32 = 8;
    pub const SEI: u32 = 9;
    pub const MEI: u32 = 11;
    /// All three user interrupts.
    pub const USER: u64 = 1 << USI | 1 << UTI | 1 << UEI;
    /// Bits that `mideleg` can delegate.
    pub const DELEGABLE: u64 = USER | 1 << SSI | 1 << STI | 1 << SEI;
    /// Bits that `mie` holds.
    pub const ALL: u64 = DELEGABLE | 1 << MSI | 1 << MTI | 1 << MEI;
    /// Software latches that M may write in `mip`.
    pub const LATCHES: u64 = DELEGABLE;
}

/// Exceptions that `medeleg` can delegate: 0..9, 12, 13, 15.
const DELEGABLE_EXCEPTIONS: u64 = 0xB3FF;
/// `misa`: RV64, A C D F I M S U.
const MISA: u64 = 2 << 62 | 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 8 | 1 << 12 | 1 << 18 | 1 << 20;
/// `misa`: N.
const MISA_N: u64 = 1 << 13;
/// `marchid` of Rocket (RISC-V architecture id registry: 1).
const MARCHID: u64 = 1;
const CAUSE_BITS: u64 = 1 << 63 | 0x1F;
const COUNTERS: u64 = 7;
/// Enable bit of `suist` and `suirs`.
pub const ENABLE: u64 = 1 << 63;
/// `suist`: EN, SIZE, PPN.
const SUIST_BITS: u64 = ENABLE | 0xFFF << 44 | ((1 << 44) - 1);
/// `suirs`: EN, INDEX.
const SUIRS_BITS: u64 = ENABLE | 0xFFFF;
/// `menvcfg`: `stimecmp` is there for S, and STIP is its comparison.
const STCE: u64 = 1 << 63;
const SATP_SV39: u64 = 8;
const SATP_PPN: u64 = (1 << 44) - 1;

/// All registers of a hart apart from x0..x31, f0..f31 and the counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // the manual's names
pub struct Csrs {
    /// Which registers and bits exist.
    pub isa: Isa,
    pub mstatus: u64,
    /// Accrued floating-point exceptions.
    pub fflags: u8,
    /// Dynamic rounding mode; all eight values can be held.
    pub frm: u8,
    pub medeleg: u64,
    pub mideleg: u64,
    pub mie: u64,
    /// Software latches of `mip`, without the device lines.
    pub latches: u64,
    pub mtvec: u64,
    pub mcounteren: u64,
    pub mscratch: u64,
    pub mepc: u64,
    pub mcause: u64,
    pub mtval: u64,
    pub stvec: u64,
    pub scounteren: u64,
    pub sscratch: u64,
    pub sepc: u64,
    pub scause: u64,
    pub stval: u64,
    pub satp: u64,
    sideleg: u64,
    pub suist: u64,
    pub suirs: u64,
    pub utvec: u64,
    pub uscratch: u64,
    pub uepc: u64,
    pub ucause: u64,
    pub utval: u64,
    pub pmp: Pmp,
    cycle_offset: u64,
    instret_offset: u64,
    /// There is Sstc, and with it the registers of version 1.12 that switch it on.
    sstc: bool,
    menvcfg: u64,
    stimecmp: u64,
}

/// What a CSR access sees besides the registers.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Device lines of this hart in `mip` positions.
    pub lines: u64,
    /// The hart's cycle count at the access.
    pub cycles: u64,
    /// Instructions retired before the access.
    pub instructions: u64,
    /// `mtime`.
    pub time: u64,
    /// The hart's id.
    pub hart: u64,
}

impl Csrs {
    /// Register values at reset.
    pub fn reset(sstc: bool) -> Self {
        Self { mstatus: status::UXL_SXL_64 | status::MPP, sstc, ..Self::default() }
    }

    /// What the supervisor timer compares with; none while `menvcfg` has it off.
    pub fn supervisor_compare(&self) -> Option<u64> {
        (self.menvcfg & STCE != 0).then_some(self.stimecmp)
    }

    /// Sets software latches of `mip`.
    #[inline]
    pub fn latch(&mut self, bits: u64) {
        self.latches |= bits;
    }

    /// False if `mstatus.FS` is Off: no f-register, no instruction of F and D, no `fcsr`.
    #[inline]
    pub fn has_float(&self) -> bool {
        self.mstatus & status::FS != 0
    }

    /// The floating-point state was written.
    #[inline]
    pub fn float_written(&mut self) {
        self.mstatus |= status::FS;
    }

    /// Bits of `mip` that M may write.
    fn latch_mask(&self) -> u64 {
        if self.menvcfg & STCE != 0 { irq::LATCHES & !(1 << irq::STI) } else { irq::LATCHES }
    }

    /// `mstatus` as software reads it.
    fn mstatus_view(&self) -> u64 {
        self.mstatus | if self.mstatus & status::FS == status::FS { status::SD } else { 0 }
    }

    /// `sideleg` as software and the interrupt logic see it: never more than `mideleg`.
    pub fn sideleg(&self) -> u64 {
        self.sideleg & self.mideleg
    }

    /// True if an access to `number` from `privilege` exists at all; `write` adds the read-only rule.
    fn allowed(&self, number: u32, privilege: Privilege, write: bool) -> bool {
        if (privilege as u32) < (number >> 8 & 3) || (write && number >> 10 == 3) {
            return false;
        }
        match number {
            0x001..=0x003 => self.has_float(),
            0x000 | 0x004 | 0x005 | 0x040..=0x044 | 0x102 | 0x103 | 0x1B0 | 0x1B1 => self.isa.has_user_interrupts(),
            0xC00..=0xC1F => {
                let bit = 1 << (number & 31);
                (privilege == Privilege::M || self.mcounteren & bit != 0)
                    && (privilege != Privilege::U || self.scounteren & bit != 0)
            }
            0x180 => privilege != Privilege::S || self.mstatus & status::TVM == 0,
            0x10A | 0x30A | 0x320 => self.sstc,
            // Privileged manual, "Sstc": both permissions are needed below M.
            0x14D => {
                let open = self.menvcfg & STCE != 0 && self.mcounteren & 2 != 0;
                self.sstc && (privilege == Privilege::M || open)
            }
            _ => true,
        }
    }

    /// Scratch, epc, cause and tval of S and M, which always exist there, and the bits that a write changes. Nothing else in
    /// the hart depends on them.
    #[inline(always)]
    pub fn trap_register(&mut self, number: u32) -> Option<(&mut u64, u64)> {
        Some(match number {
            0x140 => (&mut self.sscratch, u64::MAX),
            0x141 => (&mut self.sepc, !1),
            0x142 => (&mut self.scause, CAUSE_BITS),
            0x143 => (&mut self.stval, u64::MAX),
            0x340 => (&mut self.mscratch, u64::MAX),
            0x341 => (&mut self.mepc, !1),
            0x342 => (&mut self.mcause, CAUSE_BITS),
            0x343 => (&mut self.mtval, u64::MAX),
            _ => return None,
        })
    }

    /// Reads CSR `number`; none if it does not exist or is out of reach.
    pub fn read(&self, number: u32, privilege: Privilege, write: bool, around: &Surroundings) -> Option<u64> {
        if !self.allowed(number, privilege, write) {
            return None;
        }
        let mip = self.latches | around.lines;
        let user = self.sideleg() & irq::USER;
        Some(match number {
            0x000 => self.mstatus & status::U_WRITABLE,
            0x001 => self.fflags.into(),
            0x002 => self.frm.into(),
            0x003 => u64::from(self.frm) << 5 | u64::from(self.fflags),
            0x004 => self.mie & user,
            0x005 => self.utvec,
            0x040 => self.uscratch,
            0x041 => self.uepc,
            0x042 => self.ucause,
            0x043 => self.utval,
            0x044 => mip & user,
            0x100 => self.mstatus_view() & status::S_VISIBLE,
            0x102 => 0,
            0x103 => self.sideleg(),
            0x104 => self.mie & self.mideleg,
            0x105 => self.stvec,
            0x106 => self.scounteren,
            0x140 => self.sscratch,
            0x141 => self.sepc,
            0x142 => self.scause,
            0x143 => self.stval,
            0x144 => mip & self.mideleg,
            0x10A | 0x320 => 0,
            0x14D => self.stimecmp,
            0x30A => self.menvcfg,
            0x180 => self.satp,
            0x1B0 => self.suist,
            0x1B1 => self.suirs,
            0x300 => self.mstatus_view(),
            0x301 => MISA | if self.isa.has_user_interrupts() { MISA_N } else { 0 },
            0x302 => self.medeleg,
            0x303 => self.mideleg,
            0x304 => self.mie,
            0x305 => self.mtvec,
            0x306 => self.mcounteren,
            0x323..=0x33F => 0,
            0x340 => self.mscratch,
            0x341 => self.mepc,
            0x342 => self.mcause,
            0x343 => self.mtval,
            0x344 => mip,
            0x3A0..=0x3A3 => self.pmp.read_config(number & 3)?,
            0x3B0..=0x3BF => self.pmp.read_address(number as usize & 15),
            0xB00 | 0xC00 => around.cycles.wrapping_add(self.cycle_offset),
            0xC01 => around.time,
            0xB02 | 0xC02 => around.instructions.wrapping_add(self.instret_offset),
            0xB03..=0xB1F | 0xC03..=0xC1F => 0,
            0xF11 | 0xF13 => 0,
            0xF12 => MARCHID,
            0xF14 => around.hart,
            _ => return None,
        })
    }

    /// The value that a read-modify-write instruction modifies: for the pending registers the software latches alone,
    /// never the value ORed with a device line.
    pub fn modify_base(&self, number: u32, read: u64) -> u64 {
        match number {
            0x344 => self.latches,
            0x144 => self.latches & self.mideleg,
            0x044 => self.latches & self.sideleg() & irq::USER,
            _ => read,
        }
    }

    /// Writes CSR `number`, which [`Csrs::read`] has found to exist and be writable.
    pub fn write(&mut self, number: u32, value: u64, around: &Surroundings) {
        let user = self.sideleg() & irq::USER;
        let n = self.isa.has_user_interrupts();
        let writable = |bits| if n { bits } else { bits & !status::U_WRITABLE };
        let interrupts = |bits| if n { bits } else { bits & !irq::USER };
        if let Some((register, writable)) = self.trap_register(number) {
            *register = value & writable;
            return;
        }
        if matches!(number, 0x001..=0x003) {
            self.float_written();
        }
        match number {
            0x000 => put(&mut self.mstatus, value, status::U_WRITABLE),
            0x001 => self.fflags = value as u8 & 0x1F,
            0x002 => self.frm = value as u8 & 7,
            0x003 => (self.fflags, self.frm) = (value as u8 & 0x1F, value as u8 >> 5),
            0x004 => put(&mut self.mie, value, user),
            0x005 => match value & 3 {
                0 => self.utvec = value,
                1 => self.utvec = value & !0xFF | 1,
                _ => {}
            },
            0x040 => self.uscratch = value,
            0x041 => self.uepc = value & !1,
            0x042 => self.ucause = value & CAUSE_BITS,
            0x043 => self.utval = value,
            0x044 => put(&mut self.latches, value, user & 1 << irq::USI),
            0x100 => put(&mut self.mstatus, value, writable(status::S_WRITABLE)),
            0x103 => self.sideleg = value & irq::USER & self.mideleg,
            0x104 => put(&mut self.mie, value, self.mideleg),
            0x105 => self.stvec = trap_vector(value),
            0x106 => self.scounteren = value & COUNTERS,
            0x144 => put(&mut self.latches, value, (irq::USER | 1 << irq::SSI) & self.mideleg),
            0x180 => {
                // Writing an unsupported mode has no effect on the whole register (privileged manual, satp).
                if matches!(value >> 60, 0 | SATP_SV39) {
                    self.satp = value & (0xF << 60 | SATP_PPN);
                }
            }
            0x14D => self.stimecmp = value,
            0x30A => {
                self.menvcfg = value & STCE;
                // STIP is the timer's then, and no longer a latch.
                self.latches &= self.latch_mask();
            }
            0x1B0 => self.suist = value & SUIST_BITS,
            0x1B1 => self.suirs = value & SUIRS_BITS,
            0x300 => {
                put(&mut self.mstatus, value, writable(status::M_WRITABLE));
                if self.mstatus & status::MPP == 2 << status::MPP_SHIFT {
                    self.mstatus &= !status::MPP;
                }
            }
            0x302 => self.medeleg = value & DELEGABLE_EXCEPTIONS,
            0x303 => self.mideleg = value & interrupts(irq::DELEGABLE),
            0x304 => self.mie = value & interrupts(irq::ALL),
            0x305 => self.mtvec = trap_vector(value),
            0x306 => self.mcounteren = value & COUNTERS,
            0x344 => {
                let mask = interrupts(self.latch_mask());
                put(&mut self.latches, value, mask);
            }
            0x3A0..=0x3A3 => self.pmp.write_config(number & 3, value),
            0x3B0..=0x3BF => self.pmp.write_address(number as usize & 15, value),
            0xB00 => self.cycle_offset = value.wrapping_sub(around.cycles),
            0xB02 => self.instret_offset = value.wrapping_sub(around.instructions).wrapping_sub(1),
            // `sedeleg`, `misa` and the event counters are hardwired.
            _ => {}
        }
    }
}

fn put(register: &mut u64, value: u64, mask: u64) {
    *register = *register & !mask | value & mask;
}

/// `mtvec`, `stvec`: bit 1 reads 0; a vectored base is 256-byte aligned (Rocket, CSR.scala).
fn trap_vector(value: u64) -> u64 {
    if value & 1 != 0 { value & !0xFE } else { value & !3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AROUND: Surroundings = Surroundings { lines: 0, cycles: 0, instructions: 0, time: 0, hart: 0 };

    fn read(csrs: &Csrs, number: u32) -> u64 {
        csrs.read(number, Privilege::M, false, &AROUND).unwrap()
    }

    fn written(csrs: &mut Csrs, number: u32, value: u64) -> u64 {
        csrs.write(number, value, &AROUND);
        read(csrs, number)
    }

    #[test]
    fn all_ones() {
        let mut csrs = Csrs::reset(false);
        assert_eq!(written(&mut csrs, 0x303, u64::MAX), 0x333);
        assert_eq!(written(&mut csrs, 0x302, u64::MAX), 0xB3FF);
        assert_eq!(written(&mut csrs, 0x103, u64::MAX), 0x111);
        assert_eq!(written(&mut csrs, 0x102, u64::MAX), 0);
        assert_eq!(written(&mut csrs, 0x1B0, u64::MAX), 0x80FF_FFFF_FFFF_FFFF);
        assert_eq!(written(&mut csrs, 0x1B1, u64::MAX), 0x8000_0000_0000_FFFF);
        assert_eq!(written(&mut csrs, 0x304, u64::MAX), 0xBBB);
        assert_eq!(written(&mut csrs, 0x042, u64::MAX), 0x8000_0000_0000_001F);
        assert_eq!(written(&mut csrs, 0x041, u64::MAX), u64::MAX - 1);
        assert_eq!(written(&mut csrs, 0x306, u64::MAX), 7);
        assert_eq!(written(&mut csrs, 0x000, u64::MAX), 0x11);
        assert_eq!(written(&mut csrs, 0x301, 0), MISA | MISA_N);
    }

    #[test]
    fn without_user_interrupts() {
        let mut csrs = Csrs { isa: Isa::Rv64imafdc, ..Csrs::reset(false) };
        for number in [0x000, 0x004, 0x005, 0x040, 0x041, 0x042, 0x043, 0x044, 0x102, 0x103, 0x1B0, 0x1B1] {
            assert_eq!(csrs.read(number, Privilege::M, false, &AROUND), None, "{number:#x}");
        }
        for (number, held) in [(0x303, 0x222), (0x304, 0xAAA), (0x344, 0x222), (0x301, MISA)] {
            assert_eq!(written(&mut csrs, number, u64::MAX), held, "{number:#x}");
        }
        for number in [0x100, 0x300] {
            assert_eq!(written(&mut csrs, number, u64::MAX) & status::U_WRITABLE, 0, "{number:#x}");
        }
    }

    #[test]
    fn floating_point_state() {
        let mut csrs = Csrs::reset(false);
        for number in [1, 2, 3] {
            assert_eq!(csrs.read(number, Privilege::M, false, &AROUND), None, "off");
        }
        for (fs, seen) in [(1, 1 << 13), (2, 2 << 13), (3, status::SD | 3 << 13), (0, 0)] {
            assert_eq!(written(&mut csrs, 0x100, fs << 13) & (status::FS | status::SD), seen);
        }
        csrs.write(0x300, 1 << 13, &AROUND);
        assert_eq!(written(&mut csrs, 0x003, u64::MAX), 0xFF);
        assert_eq!((read(&csrs, 0x001), read(&csrs, 0x002)), (0x1F, 7));
        assert_eq!(read(&csrs, 0x300) & (status::FS | status::SD), status::FS | status::SD);
        assert_eq!(written(&mut csrs, 0x001, 0x21), 1);
        assert_eq!(written(&mut csrs, 0x002, 0xA), 2);
        assert_eq!(read(&csrs, 0x003), 2 << 5 | 1);
        csrs.write(0x300, status::SD, &AROUND);
        assert_eq!(read(&csrs, 0x300) & status::SD, 0, "SD cannot be written");
    }

    #[test]
    fn the_supervisor_timer_is_there_if_it_is_built_and_open() {
        for number in [0x14D, 0x30A, 0x10A, 0x320] {
            assert_eq!(Csrs::reset(false).read(number, Privilege::M, true, &AROUND), None, "{number:#x}");
        }
        let mut csrs = Csrs::reset(true);
        let visible = |csrs: &Csrs| csrs.read(0x14D, Privilege::S, true, &AROUND).is_some();
        assert_eq!((written(&mut csrs, 0x14D, 77), visible(&csrs), csrs.supervisor_compare()), (77, false, None));
        csrs.write(0x344, 1 << irq::STI, &AROUND);
        assert_eq!(read(&csrs, 0x344), 1 << irq::STI, "a latch without STCE");
        assert_eq!(written(&mut csrs, 0x30A, u64::MAX), STCE);
        assert_eq!((read(&csrs, 0x344), visible(&csrs), csrs.supervisor_compare()), (0, false, Some(77)));
        csrs.write(0x344, 1 << irq::STI, &AROUND);
        assert_eq!(read(&csrs, 0x344), 0);
        csrs.write(0x306, 2, &AROUND);
        assert!(visible(&csrs) && csrs.read(0x14D, Privilege::U, false, &AROUND).is_none());
    }

    #[test]
    fn sideleg_follows_mideleg() {
        let mut csrs = Csrs::reset(false);
        assert_eq!(written(&mut csrs, 0x103, 1), 0);
        csrs.write(0x303, 0x333, &AROUND);
        assert_eq!(written(&mut csrs, 0x103, 1), 1);
        csrs.write(0x303, 0x222, &AROUND);
        assert_eq!(read(&csrs, 0x103), 0);
    }

    #[test]
    fn reserved_modes() {
        let mut csrs = Csrs::reset(false);
        assert_eq!(written(&mut csrs, 0x005, 0x1000), 0x1000);
        assert_eq!(written(&mut csrs, 0x005, 0x2002), 0x1000);
        assert_eq!(written(&mut csrs, 0x005, 0x2001), 0x2001);
        assert_eq!(written(&mut csrs, 0x180, 8 << 60 | 5), 8 << 60 | 5);
        assert_eq!(written(&mut csrs, 0x180, 9 << 60 | 7), 8 << 60 | 5);
        csrs.write(0x300, 2 << 11, &AROUND);
        assert_eq!(csrs.mstatus & status::MPP, 0);
    }

    #[test]
    fn pending_lines_are_not_latched() {
        let mut csrs = Csrs::reset(false);
        csrs.write(0x303, 0x333, &AROUND);
        csrs.write(0x103, 1, &AROUND);
        let around = Surroundings { lines: 1, ..AROUND };
        let seen = csrs.read(0x144, Privilege::S, true, &around).unwrap();
        assert_eq!(seen, 1);
        assert_eq!(csrs.modify_base(0x144, seen), 0);
        csrs.write(0x044, 0x111, &around);
        assert_eq!(csrs.latches, 1, "only USIP is writable from U");
    }

    #[test]
    fn reach() {
        let csrs = Csrs::reset(false);
        for number in [0x1B0, 0x1B1, 0x103, 0x100, 0x300, 0xC00, 0x1B2] {
            assert_eq!(csrs.read(number, Privilege::U, false, &AROUND), None, "{number:#x}");
        }
        assert_eq!(csrs.read(0x1B2, Privilege::M, false, &AROUND), None);
        assert_eq!(csrs.read(0xF14, Privilege::M, true, &AROUND), None);
    }
}
