//! Random programs on the machine and on a second, straightforward interpreter: registers, data and every trap must agree, in
//! both modes.
//!
//! `DIFFERENTIAL_PROGRAMS=N` runs N programs instead of the few of an ordinary test (`make fuzz-soc`); a failure names its seed, and
//! `DIFFERENTIAL_SEED=S` starts there.

mod program;
mod reference;

use program::{Random, program};
use reference::{RAM, Reference, Trap};
use soc::{Config, End, Machine, Mode};

const MEMORY: usize = 1 << 20;
/// Places in RAM, as offsets.
const HANDLER: usize = 0x1000;
const DATA: usize = 0x2000;
const DATA_BYTES: usize = 0x4000;
const REGISTERS: usize = 0x8000;
const LOG_END: usize = 0x8800;
const LOG: usize = 0x1_0000;
const CODE: usize = 0x8_0000;
/// Bytes of a log entry: two saved registers, cause, pc, value, padding.
const LOG_ENTRY: usize = 48;
const PIECES: usize = 400;

const MSCRATCH: u32 = 0x340;
const MEPC: u32 = 0x341;
const MCAUSE: u32 = 0x342;
const MTVAL: u32 = 0x343;
const MTVEC: u32 = 0x305;

/// The few instructions that the frame of a program needs.
mod asm {
    pub const MRET: u32 = 0x3020_0073;

    pub fn csrrw(rd: u32, csr: u32, rs1: u32) -> u32 {
        0x1073 | rd << 7 | rs1 << 15 | csr << 20
    }
    pub fn csrr(rd: u32, csr: u32) -> u32 {
        0x2073 | rd << 7 | csr << 20
    }
    pub fn sd(rs2: u32, offset: u32, rs1: u32) -> u32 {
        0x3023 | (offset & 31) << 7 | rs1 << 15 | rs2 << 20 | offset >> 5 << 25
    }
    pub fn sw(rs2: u32, rs1: u32) -> u32 {
        0x2023 | rs1 << 15 | rs2 << 20
    }
    pub fn ld(rd: u32, offset: u32, rs1: u32) -> u32 {
        0x3003 | rd << 7 | rs1 << 15 | offset << 20
    }
    pub fn lhu(rd: u32, rs1: u32) -> u32 {
        0x5003 | rd << 7 | rs1 << 15
    }
    pub fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
        0x13 | rd << 7 | rs1 << 15 | (imm as u32) << 20
    }
    pub fn andi(rd: u32, rs1: u32, imm: u32) -> u32 {
        0x7013 | rd << 7 | rs1 << 15 | imm << 20
    }
    pub fn lui(rd: u32, value: u32) -> u32 {
        0x37 | rd << 7 | value & 0xFFFF_F000
    }
    pub fn auipc(rd: u32, value: u32) -> u32 {
        0x17 | rd << 7 | value & 0xFFFF_F000
    }
    /// Over the next instruction if rs1 and rs2 differ.
    pub fn bne_over(rs1: u32, rs2: u32) -> u32 {
        0x1063 | rs1 << 15 | rs2 << 20 | 8 << 7
    }
}

/// Code at a known place.
struct Code {
    at: usize,
    words: Vec<u32>,
}

impl Code {
    fn at(at: usize) -> Self {
        Self { at, words: Vec::new() }
    }

    fn push(&mut self, words: &[u32]) {
        self.words.extend(words);
    }

    /// `auipc` of `rd` such that the result plus the returned offset is `target`.
    fn near(&mut self, rd: u32, target: usize) -> i32 {
        let distance = target as i32 - (self.at + 4 * self.words.len()) as i32;
        let high = (distance + 0x800) & !0xFFF;
        self.words.push(asm::auipc(rd, high as u32));
        distance - high
    }

    /// rd = address of `target`
    fn address(&mut self, rd: u32, target: usize) {
        let low = self.near(rd, target);
        self.words.push(asm::addi(rd, rd, low));
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Loads all registers and jumps to the program, through a register that is loaded last.
fn prologue() -> Vec<u8> {
    let mut code = Code::at(0);
    for (csr, target) in [(MTVEC, HANDLER), (MSCRATCH, LOG)] {
        code.address(1, target);
        code.push(&[asm::csrrw(0, csr, 1)]);
    }
    code.address(31, REGISTERS);
    for register in (1..31).chain([31]) {
        code.push(&[asm::ld(register, 8 * register, 31)]);
    }
    let at = code.words.len() * 4;
    code.push(&[jal(CODE - at)]);
    code.bytes()
}

/// `j` forward.
fn jal(distance: usize) -> u32 {
    let distance = distance as u32;
    0x6F | (distance >> 1 & 0x3FF) << 21 | (distance >> 11 & 1) << 20 | (distance >> 12 & 0xFF) << 12
}

/// Writes down a trap and passes over the instruction.
fn handler() -> Vec<u8> {
    let mut code = Code::at(HANDLER);
    code.push(&[asm::csrrw(31, MSCRATCH, 31), asm::sd(30, 0, 31), asm::sd(29, 8, 31)]);
    code.push(&[asm::csrr(30, MCAUSE), asm::sd(30, 16, 31), asm::csrr(29, MTVAL), asm::sd(29, 32, 31)]);
    code.push(&[asm::csrr(30, MEPC), asm::sd(30, 24, 31), asm::lhu(29, 30), asm::andi(29, 29, 3)]);
    code.push(&[asm::addi(30, 30, 2), asm::addi(29, 29, -3), asm::bne_over(29, 0), asm::addi(30, 30, 2)]);
    code.push(&[asm::csrrw(0, MEPC, 30), asm::ld(30, 0, 31), asm::ld(29, 8, 31)]);
    code.push(&[asm::addi(31, 31, LOG_ENTRY as i32), asm::csrrw(31, MSCRATCH, 31), asm::MRET]);
    code.bytes()
}

/// Stores all registers behind the log, the end of the log at `LOG_END`, and ends the machine.
fn epilogue(at: usize) -> Vec<u8> {
    let mut code = Code::at(at);
    code.push(&[asm::csrrw(31, MSCRATCH, 31)]);
    for register in 1..31 {
        code.push(&[asm::sd(register, 8 * register, 31)]);
    }
    code.push(&[asm::csrr(1, MSCRATCH), asm::sd(1, 8 * 31, 31)]);
    code.address(1, LOG_END);
    code.push(&[asm::sd(31, 0, 1)]);
    // The test finisher's "pass".
    code.push(&[asm::lui(1, 0x10_0000), asm::lui(2, 0x5000), asm::addi(2, 2, 0x555), asm::sw(2, 1)]);
    code.push(&[0x6F]);
    code.bytes()
}

/// A program in its frame, as it lies in RAM, and the address behind its code.
fn image(seed: u64) -> (Vec<u8>, u64) {
    let mut random = Random(seed);
    let code = program(&mut random, PIECES);
    let end = CODE + code.len();
    let mut image = vec![0; end];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &prologue());
    put(HANDLER, &handler());
    for at in (DATA..DATA + DATA_BYTES).step_by(8) {
        put(at, &random.value().to_le_bytes());
    }
    for register in 1..32 {
        let pointer = RAM + DATA as u64;
        let value = match register {
            2 => pointer + 0x1000,
            8 => pointer + 0x2000,
            // A quarter of the programs has a pointer that is aligned for nothing.
            9 => pointer + 0x3000 + if random.below(4) == 0 { 1 + random.below(7) } else { 0 },
            _ => random.value(),
        };
        put(REGISTERS + 8 * register, &value.to_le_bytes());
    }
    put(CODE, &code);
    image.extend(epilogue(end));
    (image, RAM + end as u64)
}

fn word(memory: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(memory[at..at + 8].try_into().expect("eight bytes"))
}

/// What a run left: registers, traps with their places, data.
#[derive(PartialEq, Eq)]
struct Result {
    x: [u64; 32],
    traps: Vec<(u64, Trap)>,
    data: Vec<u8>,
}

fn on_machine(image: &[u8], mode: Mode) -> (Vec<u8>, Result) {
    let mut machine =
        Machine::new(Config { mode, memory_bytes: MEMORY as u64, ..Config::default() }).expect("a machine");
    let guest = soc::boot::Guest { firmware: image, kernel: None, initrd: None };
    machine.load_guest(&guest).expect("it fits");
    let memory = |machine: &Machine| machine.memory(RAM, MEMORY).expect("all of it is RAM").to_vec();
    let before = memory(&machine);
    assert_eq!(machine.run().end, End::Exit(0));
    let after = memory(&machine);
    let log_end = (word(&after, LOG_END) - RAM) as usize;
    let register = |index: usize| if index == 0 { 0 } else { word(&after, log_end + 8 * index) };
    let trap = |at: usize| (word(&after, at + 24), Trap { cause: word(&after, at + 16), value: word(&after, at + 32) });
    let result = Result {
        x: std::array::from_fn(register),
        traps: (LOG..log_end).step_by(LOG_ENTRY).map(trap).collect(),
        data: after[DATA..DATA + DATA_BYTES].to_vec(),
    };
    (before, result)
}

fn on_reference(ram: Vec<u8>, end: u64) -> Result {
    let mut reference = Reference::new(ram);
    reference.pc = RAM + CODE as u64;
    for register in 1..32 {
        reference.x[register] = word(&reference.ram, REGISTERS + 8 * register);
    }
    let mut traps = Vec::new();
    while reference.pc != end {
        assert!(reference.pc < end, "the program ran away: the generator is wrong");
        if let Err(trap) = reference.step() {
            traps.push((reference.pc, trap));
            let length = if reference.ram[(reference.pc - RAM) as usize] & 3 == 3 { 4 } else { 2 };
            reference.pc += length;
        }
    }
    Result { x: reference.x, traps, data: reference.ram[DATA..DATA + DATA_BYTES].to_vec() }
}

/// The first difference, in words.
fn difference(machine: &Result, reference: &Result) -> Option<String> {
    let traps = machine.traps.iter().zip(&reference.traps).position(|(ours, theirs)| ours != theirs);
    if let Some(index) = traps {
        let [ours, theirs] = [&machine.traps[index], &reference.traps[index]];
        return Some(format!("trap {index}: the machine has {ours:x?}, the reference {theirs:x?}"));
    }
    if machine.traps.len() != reference.traps.len() {
        return Some(format!(
            "{} traps on the machine, {} on the reference",
            machine.traps.len(),
            reference.traps.len()
        ));
    }
    if let Some(index) = (0..32).find(|&index| machine.x[index] != reference.x[index]) {
        return Some(format!(
            "x{index}: {:#x} on the machine, {:#x} on the reference",
            machine.x[index], reference.x[index]
        ));
    }
    let byte = (0..DATA_BYTES).find(|&at| machine.data[at] != reference.data[at])?;
    Some(format!(
        "data at +{byte:#x}: {:#x} on the machine, {:#x} on the reference",
        machine.data[byte], reference.data[byte]
    ))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn random_programs_agree_with_the_reference() {
    let first = setting("DIFFERENTIAL_SEED", 1);
    let mut causes = std::collections::BTreeMap::new();
    for seed in first..first + setting("DIFFERENTIAL_PROGRAMS", 60) {
        let (image, end) = image(seed);
        for mode in [Mode::Fast, Mode::Timed] {
            let (ram, machine) = on_machine(&image, mode);
            let reference = on_reference(ram, end);
            if let Some(difference) = difference(&machine, &reference) {
                panic!("DIFFERENTIAL_SEED={seed}, {mode:?}: {difference}");
            }
            for (_, trap) in reference.traps {
                *causes.entry(trap.cause).or_insert(0) += 1;
            }
        }
    }
    // Illegal instructions, misaligned and unmapped loads, misaligned atomics: all of them happened.
    for cause in [2, 4, 5, 6] {
        assert!(causes.contains_key(&cause), "no trap with cause {cause}: {causes:?}");
    }
}
