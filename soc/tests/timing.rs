//! The timing model measured from inside, the way the RTL was: N copies of a construct in a straight line between two reads of
//! `mcycle`, caches warm, and the slope between N = 8 and N = 16, so that start-up cost cancels.
//! Lines of at most 64 instructions: a late result two instructions behind the end of a block is not modelled.
//!
//! Expected values: cycle counts of generated Rocket RTL (see `src/timing/params.rs`, source M1).

use soc::{Config, End, Machine, Mode};

const BASE: u64 = 0x8000_0000;
const DATA: u64 = BASE + 0x1_0000;
/// Offset of the result in the data page.
const RESULT: u32 = 0x7F8;

const ZERO: u32 = 0;
const T0: u32 = 5;
const A0: u32 = 10;
const A1: u32 = 11;
const A2: u32 = 12;
const A3: u32 = 13;
const S0: u32 = 8;
const S1: u32 = 9;
const S2: u32 = 18;
const S10: u32 = 26;
const S11: u32 = 27;
const MCYCLE: u32 = 0xB00;
const MSCRATCH: u32 = 0x340;
const MEPC: u32 = 0x341;
const MTVEC: u32 = 0x305;
const SSTATUS: u32 = 0x100;

fn r(opcode: u32, funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25
}
fn i(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | imm << 20
}
fn add(rd: u32, a: u32, b: u32) -> u32 {
    r(0x33, 0, 0, rd, a, b)
}
fn addi(rd: u32, a: u32, imm: u32) -> u32 {
    i(0x13, 0, rd, a, imm)
}
fn load(funct3: u32, rd: u32, base: u32, offset: u32) -> u32 {
    i(0x03, funct3, rd, base, offset)
}
fn sd(source: u32, base: u32, offset: u32) -> u32 {
    0x23 | (offset & 31) << 7 | 3 << 12 | base << 15 | source << 20 | (offset >> 5) << 25
}
fn m(funct3: u32, rd: u32, a: u32, b: u32) -> u32 {
    r(0x33, 1, funct3, rd, a, b)
}
fn amoadd(rd: u32, source: u32, base: u32, ordering: u32) -> u32 {
    r(0x2F, ordering, 3, rd, base, source)
}
fn csrrw(rd: u32, csr: u32, source: u32) -> u32 {
    i(0x73, 1, rd, source, csr)
}
fn csrr(rd: u32, csr: u32) -> u32 {
    i(0x73, 2, rd, ZERO, csr)
}
const FENCE: u32 = 0x0FF0_000F;
const SFENCE: u32 = 0x1200_0073;
const ECALL: u32 = 0x73;
const MRET: u32 = 0x3020_0073;
const LD: u32 = 3;
const LW: u32 = 2;
const LB: u32 = 0;

/// Cycles between the two reads of `mcycle` around `body`, the third time round. `a0` = data, `a1` and `a2` from the data page.
fn cycles(body: &[u32], operands: [u64; 2], config: &Config) -> u64 {
    let mut code = vec![
        0x0001_0000 | 0x17 | S11 << 7, // auipc s11, 0x10
        add(A0, S11, ZERO),
        load(LD, A1, S11, 0x7E8),
        load(LD, A2, S11, 0x7F0),
        0x17 | T0 << 7, // auipc t0, 0: the trap handler follows the jump
        addi(T0, T0, 12),
        0x0140_006F, // j over the handler
    ];
    // Handler: skip the trapping instruction.
    code.extend([csrr(T0, MEPC), addi(T0, T0, 4), csrrw(ZERO, MEPC, T0), MRET]);
    code.extend([csrrw(ZERO, MTVEC, T0), addi(S10, ZERO, 3)]);
    let head = code.len();
    code.push(csrr(S0, MCYCLE));
    code.extend(body);
    code.extend([csrr(S1, MCYCLE), r(0x33, 0x20, 0, S2, S1, S0), sd(S2, S11, RESULT), addi(S10, S10, 0xFFF)]);
    // beqz s10 over the jump back: bodies may be larger than a branch reaches.
    code.push(0x63 | 4 << 8 | S10 << 15);
    let back = (head as i32 - code.len() as i32) * 4;
    let b = back as u32;
    code.push(0x6F | (b & 0xF_F000) | (b >> 11 & 1) << 20 | (b >> 1 & 0x3FF) << 21 | (b >> 20 & 1) << 31);
    // lui a0, 0x100; lui a1, 5; addi a1, a1, 0x555; sw a1, 0(a0)
    code.extend([0x0010_0537, 0x0000_55b7, addi(A1, A1, 0x555), 0x00b5_2023]);

    let mut machine = Machine::new(config.clone()).expect("a good configuration");
    machine.load_elf(&elf(&code, operands)).expect("a good program");
    assert_eq!(machine.run().end, End::Exit(0));
    let word = machine.memory(DATA + u64::from(RESULT), 8).expect("RAM");
    u64::from_le_bytes(word.try_into().expect("8 bytes"))
}

/// One segment: code at the base, the data page 64 KiB behind. Its first word points to itself, for pointer chases.
fn elf(code: &[u32], operands: [u64; 2]) -> Vec<u8> {
    let mut segment: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    segment.resize(0x1_1000, 0);
    let mut put = |offset: usize, value: u64| segment[0x1_0000 + offset..][..8].copy_from_slice(&value.to_le_bytes());
    put(0, DATA);
    put(0x7E8, operands[0]);
    put(0x7F0, operands[1]);
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    out.extend(BASE.to_le_bytes());
    out.extend(64u64.to_le_bytes());
    out.extend([0; 12]);
    out.extend([64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    out.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    for word in [120, BASE, BASE, segment.len() as u64, segment.len() as u64, 4] {
        out.extend(word.to_le_bytes());
    }
    out.extend(segment);
    out
}

/// Cycles per copy of `construct`, times 8.
fn slope(construct: &[u32], operands: [u64; 2]) -> u64 {
    let config = Config { mode: Mode::Timed, rl: 1, wl: 1, max_cycles: Some(1_000_000), ..Config::default() };
    cycles(&construct.repeat(16), operands, &config) - cycles(&construct.repeat(8), operands, &config)
}

#[track_caller]
fn row(name: &str, construct: &[u32], per_copy: u64) {
    row_with(name, construct, [1, 1], per_copy);
}

#[track_caller]
fn row_with(name: &str, construct: &[u32], operands: [u64; 2], per_copy: u64) {
    assert_eq!(slope(construct, operands), 8 * per_copy, "{name}: cycles for 8 copies");
}

#[test]
fn integer_and_memory() {
    row("dependent add", &[add(A1, A1, A1)], 1);
    row("independent add", &[add(A3, A1, A2)], 1);
    row("ld chain", &[load(LD, A0, A0, 0)], 2);
    row("ld and dependent add", &[load(LD, A1, A0, 8), add(A2, A1, A1)], 3);
    row("ld, independent, dependent", &[load(LD, A1, A0, 8), add(A3, A2, A2), add(T0, A1, A1)], 3);
    row("lw and dependent add", &[load(LW, A1, A0, 8), add(A2, A1, A1)], 3);
    row("lb and dependent add", &[load(LB, A1, A0, 8), add(A2, A1, A1)], 4);
    row("lb, independent, dependent", &[load(LB, A1, A0, 8), add(A3, A2, A2), add(T0, A1, A1)], 4);
    row("independent loads", &[load(LD, A1, A0, 8)], 1);
    row("stores", &[sd(A1, A0, 16)], 1);
    row("store, overlapping load", &[sd(A1, A0, 16), load(LD, A2, A0, 16)], 7);
    row("store, other, overlapping load", &[sd(A1, A0, 16), add(A3, A2, A2), load(LD, T0, A0, 16)], 8);
    row("store, other line's load", &[sd(A1, A0, 16), load(LD, A2, A0, 256)], 2);
}

#[test]
fn multiply_and_divide() {
    let ones = |bits: u32| (1u64 << bits) - 1;
    for (bits, cycles) in [(2, 4), (13, 5), (29, 7), (45, 9), (61, 10)] {
        row_with(&format!("mul {bits} bits"), &[m(0, A1, A1, A2)], [ones(bits), 1], cycles);
    }
    row_with("mulhu", &[m(3, A3, A1, A2)], [7, 7], 10);
    for (a, b, cycles) in
        [(7, 3, 6), (1000, 1000, 5), (1000, 10, 11), (1_000_000_000, 1000, 25), (0, 3, 67), (3, 1000, 61)]
    {
        row_with(&format!("div {a} / {b}"), &[m(4, A3, A1, A2)], [a, b], cycles);
    }
}

#[test]
fn atomics() {
    row("amoadd, result unused", &[amoadd(ZERO, A1, A0, 0)], 6);
    row("amoadd, result used", &[amoadd(A2, A1, A0, 0), add(A3, A2, A2)], 8);
    row("amoadd.aq and use", &[amoadd(A2, A1, A0, 2), add(A3, A2, A2)], 4);
    let alu = add(A3, A1, A1);
    row(
        "amoadd, four others, load",
        &[amoadd(ZERO, A1, A0, 0), alu, alu, alu, alu, load(LD, T0, A0, 256), alu, alu, alu, alu],
        10,
    );
    let lr = r(0x2F, 0x08, 3, A2, A0, ZERO);
    row("lr and use", &[lr, add(A3, A2, A2)], 3);
    row("lr, sc, use", &[lr, r(0x2F, 0x0C, 3, A3, A0, A2), add(T0, A3, A3)], 6);
    row("failing sc and use", &[r(0x2F, 0x0C, 3, A3, A0, A1), add(T0, A3, A3)], 4);
}

#[test]
fn system() {
    row("csrr", &[csrr(A2, MSCRATCH), csrr(A3, MSCRATCH)], 2);
    row("csrw mscratch", &[csrrw(ZERO, MSCRATCH, A1)], 1);
    row("csrw sstatus", &[csrrw(ZERO, SSTATUS, ZERO)], 5);
    row("swap chain", &[csrrw(A1, MSCRATCH, A1)], 3);
    row("fence", &[FENCE], 1);
    row("store, fence", &[sd(A1, A0, 16), FENCE], 4);
    row("store, fence, load", &[sd(A1, A0, 16), FENCE, load(LD, A2, A0, 256)], 5);
    row("sfence.vma", &[SFENCE], 5);
    // Trap 5, csrr 1 + 2 bubbles, addi, csrw, mret 5.
    row("ecall and back", &[ECALL], 15);
}

#[test]
fn devices() {
    // t0 = CLINT mtime; the read is used at once.
    let mtime = [0x0200_C2B7, load(LD, A1, T0, 0xFF8), add(A2, A1, A1)];
    row("mtime, read to use", &mtime, 1 + 9 + 1);
    // t0 = PLIC priority of source 1.
    row("PLIC, read to use", &[0x0C00_02B7, load(LW, A1, T0, 4), add(A2, A1, A1)], 1 + 10 + 1);
}
