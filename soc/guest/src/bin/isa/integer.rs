//! RV64I's register instructions and jumps, and their compressed forms.

const MIN: u64 = 1 << 63;
const MINUS: u64 = u64::MAX;

pub fn base() {
    gives!("add a0, a1, a2", MINUS, 2 => 1);
    gives!("sub a0, a1, a2", 1, 2 => MINUS);
    gives!("addw a0, a1, a2", 0x7FFF_FFFF, 1 => 0xFFFF_FFFF_8000_0000);
    gives!("subw a0, a1, a2", 0x1_0000_0000, 1 => MINUS);
    gives!("addi a0, a1, -2048", 0, 0 => -2048i64 as u64);
    gives!("addiw a0, a1, -1", 0x8000_0000, 0 => 0x7FFF_FFFF);
    gives!("slt a0, a1, a2", MIN, 1 => 1);
    gives!("slt a0, a1, a2", 1, MIN => 0);
    gives!("sltu a0, a1, a2", MIN, 1 => 0);
    gives!("sltu a0, a1, a2", 1, MIN => 1);
    gives!("slti a0, a1, -1", -2i64 as u64, 0 => 1);
    gives!("sltiu a0, a1, -1", 5, 0 => 1);
    gives!("xor a0, a1, a2", 0xFF00, 0x0FF0 => 0xF0F0);
    gives!("or a0, a1, a2", 0xFF00, 0x0FF0 => 0xFFF0);
    gives!("and a0, a1, a2", 0xFF00, 0x0FF0 => 0x0F00);
    gives!("xori a0, a1, -1", 0, 0 => MINUS);
    gives!("ori a0, a1, -2048", 1, 0 => -2047i64 as u64);
    gives!("andi a0, a1, -2048", MINUS, 0 => -2048i64 as u64);
    gives!("sll a0, a1, a2", 1, 63 => MIN);
    gives!("sll a0, a1, a2", 1, 64 => 1);
    gives!("srl a0, a1, a2", MIN, 63 => 1);
    gives!("sra a0, a1, a2", MIN, 63 => MINUS);
    gives!("sllw a0, a1, a2", 1, 31 => 0xFFFF_FFFF_8000_0000);
    gives!("sllw a0, a1, a2", 1, 32 => 1);
    gives!("srlw a0, a1, a2", 0xFFFF_FFFF_8000_0000, 31 => 1);
    gives!("sraw a0, a1, a2", 0x8000_0000, 31 => MINUS);
    gives!("slli a0, a1, 63", 3, 0 => MIN);
    gives!("srli a0, a1, 63", MIN, 0 => 1);
    gives!("srai a0, a1, 1", MIN, 0 => 3 << 62);
    gives!("slliw a0, a1, 31", 1, 0 => 0xFFFF_FFFF_8000_0000);
    gives!("srliw a0, a1, 1", MINUS, 0 => 0x7FFF_FFFF);
    gives!("sraiw a0, a1, 1", 0x8000_0000, 0 => 0xFFFF_FFFF_C000_0000);
    gives!("lui a0, 0x80000", 0, 0 => 0xFFFF_FFFF_8000_0000);
    gives!("auipc a0, 0\nauipc a1, 1\nsub a0, a1, a0", 0, 0 => 4 + 4096);
    gives!("add x0, a1, a2\nmv a0, x0", 1, 2 => 0);
    gives!("jal a0, 2f\n2: auipc a1, 0\nsub a0, a1, a0", 0, 0 => 0);
    gives!("auipc a1, 0\njalr a0, 9(a1)\nsub a0, a0, a1", 0, 0 => 8);
    branches();
}

/// a0 = 1 if a branch is taken: for each kind with less, equal and greater, signed and unsigned.
fn branches() {
    macro_rules! taken {
        ($branch:literal, $($a:expr, $b:expr => $taken:expr);*) => {
            $(gives!(concat!($branch, " a1, a2, 2f\nli a0, 0\nj 3f\n2: li a0, 1\n3:"), $a, $b => $taken);)*
        };
    }
    taken!("beq", 1, 1 => 1; 1, 2 => 0);
    taken!("bne", 1, 1 => 0; 1, MIN => 1);
    taken!("blt", MINUS, 0 => 1; 0, MINUS => 0; 3, 3 => 0);
    taken!("bge", MINUS, 0 => 0; 0, MINUS => 1; 3, 3 => 1);
    taken!("bltu", MINUS, 0 => 0; 0, MINUS => 1; 3, 3 => 0);
    taken!("bgeu", MINUS, 0 => 1; 0, MINUS => 0; 3, 3 => 1);
}

/// Each compressed form against what it stands for.
pub fn compressed() {
    macro_rules! short {
        ($insn:literal, $a:expr, $b:expr => $expected:expr) => {
            gives!(concat!(".option rvc\n", $insn, "\n.option norvc"), $a, $b => $expected)
        };
    }
    short!("c.li a0, -32", 0, 0 => -32i64 as u64);
    short!("c.lui a0, 0xfffe1", 0, 0 => -0x1F000i64 as u64);
    short!("c.mv a0, a1", 7, 0 => 7);
    short!("c.addi a1, -32\nc.mv a0, a1", 1, 0 => -31i64 as u64);
    short!("c.addiw a1, 1\nc.mv a0, a1", 0x7FFF_FFFF, 0 => 0xFFFF_FFFF_8000_0000);
    short!("c.add a1, a2\nc.mv a0, a1", MINUS, 3 => 2);
    short!("c.sub a1, a2\nc.mv a0, a1", 1, 2 => MINUS);
    short!("c.addw a1, a2\nc.mv a0, a1", 0x7FFF_FFFF, 1 => 0xFFFF_FFFF_8000_0000);
    short!("c.subw a1, a2\nc.mv a0, a1", 0x1_0000_0000, 1 => MINUS);
    short!("c.and a1, a2\nc.mv a0, a1", 6, 3 => 2);
    short!("c.or a1, a2\nc.mv a0, a1", 6, 3 => 7);
    short!("c.xor a1, a2\nc.mv a0, a1", 6, 3 => 5);
    short!("c.andi a1, -2\nc.mv a0, a1", 7, 0 => 6);
    short!("c.slli a1, 63\nc.mv a0, a1", 3, 0 => MIN);
    short!("c.srli a1, 63\nc.mv a0, a1", MIN, 0 => 1);
    short!("c.srai a1, 63\nc.mv a0, a1", MIN, 0 => MINUS);
    short!("c.addi4spn a0, sp, 1020\nsub a0, a0, sp", 0, 0 => 1020);
    short!("c.j 2f\nc.li a0, 0\n2: c.nop", 0, 0 => MINUS);
    short!("c.beqz a1, 2f\nc.li a0, 0\n2: c.nop", 0, 0 => MINUS);
    short!("c.bnez a1, 2f\nc.li a0, 0\n2: c.nop", 0, 0 => 0);
    short!("auipc a1, 0\naddi a1, a1, 12\nc.jr a1\nc.li a0, 0\nc.nop", 0, 0 => MINUS);
}
