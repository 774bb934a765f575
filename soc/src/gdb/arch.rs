//! The registers that gdb is told of, with the numbers that gdb gives them (`gdb/riscv-tdep.h`): x0 to x31, pc, f0 to f31,
//! CSRs from 65, privilege.

use gdbstub::arch::{Arch, RegId, Registers};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

const PC: usize = 32;
const FIRST_FLOAT: usize = 33;
const FIRST_CSR: usize = 65;
const PRIVILEGE: usize = FIRST_CSR + 4096;
const BYTES: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not 0");

/// Those of the floating-point feature.
const FLOAT_CSRS: [(u16, &str); 3] = [(0x001, "fflags"), (0x002, "frm"), (0x003, "fcsr")];

/// CSRs by name. The PMP registers are left out: a window full of zeros hides the rest.
const CSRS: [(u16, &str); 43] = [
    (0x000, "ustatus"),
    (0x004, "uie"),
    (0x005, "utvec"),
    (0x040, "uscratch"),
    (0x041, "uepc"),
    (0x042, "ucause"),
    (0x043, "utval"),
    (0x044, "uip"),
    (0x100, "sstatus"),
    (0x102, "sedeleg"),
    (0x103, "sideleg"),
    (0x104, "sie"),
    (0x105, "stvec"),
    (0x106, "scounteren"),
    (0x140, "sscratch"),
    (0x141, "sepc"),
    (0x142, "scause"),
    (0x143, "stval"),
    (0x144, "sip"),
    (0x180, "satp"),
    (0x1B0, "suist"),
    (0x1B1, "suirs"),
    (0x300, "mstatus"),
    (0x301, "misa"),
    (0x302, "medeleg"),
    (0x303, "mideleg"),
    (0x304, "mie"),
    (0x305, "mtvec"),
    (0x306, "mcounteren"),
    (0x340, "mscratch"),
    (0x341, "mepc"),
    (0x342, "mcause"),
    (0x343, "mtval"),
    (0x344, "mip"),
    (0xB00, "mcycle"),
    (0xB02, "minstret"),
    (0xC00, "cycle"),
    (0xC01, "time"),
    (0xC02, "instret"),
    (0xF11, "mvendorid"),
    (0xF12, "marchid"),
    (0xF13, "mimpid"),
    (0xF14, "mhartid"),
];

static DESCRIPTION: LazyLock<String> = LazyLock::new(describe);

fn describe() -> String {
    const X: [&str; 32] = [
        "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
        "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
    ];
    const F: [&str; 32] = [
        "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5",
        "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10",
        "ft11",
    ];
    let mut xml = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">\
         <architecture>riscv:rv64</architecture>",
    );
    let mut feature = |name: &str, registers: &mut dyn Iterator<Item = (usize, &str, &str)>| {
        // Writing to a String cannot fail.
        let _ = write!(xml, "<feature name=\"org.gnu.gdb.riscv.{name}\">");
        for (number, register, kind) in registers {
            let _ = write!(xml, "<reg name=\"{register}\" bitsize=\"64\" type=\"{kind}\" regnum=\"{number}\"/>");
        }
        xml.push_str("</feature>");
    };
    let kind = |number| match number {
        1 => "code_ptr",
        2..=4 | 8 => "data_ptr",
        _ => "int",
    };
    let x = X.iter().enumerate().map(|(number, name)| (number, *name, kind(number)));
    feature("cpu", &mut x.chain([(PC, "pc", "code_ptr")]));
    let f = F.iter().enumerate().map(|(number, name)| (FIRST_FLOAT + number, *name, "ieee_double"));
    let float_csrs = FLOAT_CSRS.iter().map(|&(number, name)| (FIRST_CSR + usize::from(number), name, "int"));
    feature("fpu", &mut f.chain(float_csrs));
    feature("csr", &mut CSRS.iter().map(|&(number, name)| (FIRST_CSR + usize::from(number), name, "int")));
    feature("virtual", &mut [(PRIVILEGE, "priv", "int")].into_iter());
    xml.push_str("</target>");
    xml
}

/// rv64 with this machine's CSRs.
pub(super) enum Riscv {}

impl Arch for Riscv {
    type Usize = u64;
    type Registers = General;
    type BreakpointKind = usize;
    type RegId = Register;

    fn target_description_xml() -> Option<&'static str> {
        Some(&DESCRIPTION)
    }
}

/// What gdb reads and writes as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct General {
    pub x: [u64; 32],
    pub pc: u64,
}

impl Registers for General {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        for word in self.x.iter().chain([&self.pc]) {
            word.to_le_bytes().into_iter().for_each(|byte| write_byte(Some(byte)));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, _) = bytes.as_chunks::<8>();
        let (pc, x) = words.get(..33).and_then(<[_]>::split_last).ok_or(())?;
        for (register, word) in self.x.iter_mut().zip(x) {
            *register = u64::from_le_bytes(*word);
        }
        self.pc = u64::from_le_bytes(*pc);
        Ok(())
    }
}

/// One register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    X(usize),
    Pc,
    F(usize),
    Csr(u32),
    Privilege,
}

impl RegId for Register {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        let register = match id {
            0..PC => Self::X(id),
            PC => Self::Pc,
            FIRST_FLOAT..FIRST_CSR => Self::F(id - FIRST_FLOAT),
            FIRST_CSR..PRIVILEGE => Self::Csr((id - FIRST_CSR) as u32),
            PRIVILEGE => Self::Privilege,
            _ => return None,
        };
        Some((register, Some(BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_registers_survive_the_wire() {
        let general = General { x: std::array::from_fn(|i| i as u64 * 0x0101_0101), pc: 0x8000_0000 };
        let mut bytes = Vec::new();
        general.gdb_serialize(|byte| bytes.extend(byte));
        let mut back = General::default();
        assert_eq!(back.gdb_deserialize(&bytes), Ok(()));
        assert_eq!(back, general);
        assert!(back.gdb_deserialize(&bytes[1..]).is_err());
    }
}
