//! F and D as a program sees them: traps with `mstatus.FS` off, flags, rounding modes, boxing, compressed loads and stores,
//! and what the FPU costs. Encodings were made with the GNU assembler.

use soc::{Config, End, Machine, Mode};

const BASE: u64 = 0x8000_0000;
const DATA: u64 = BASE + 0x1000;
const LINE: usize = 0x1000;

/// Runs `code` in M-mode, then stops the machine; `s0` points to the data page, which starts with `data`. Gives the page's words.
fn run(code: &[u32], data: &[u64], mode: Mode) -> Vec<u64> {
    // auipc s0, 1
    let mut words = vec![0x0000_1417];
    words.extend(code);
    // lui a0, 0x100; lui a1, 5; addi a1, a1, 0x555; sw a1, 0(a0)
    words.extend([0x0010_0537, 0x0000_55b7, 0x5555_8593, 0x00b5_2023]);
    let mut segment: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(segment.len() <= LINE);
    segment.resize(2 * LINE, 0);
    for (at, word) in data.iter().enumerate() {
        segment[LINE + 8 * at..][..8].copy_from_slice(&word.to_le_bytes());
    }
    let config = Config { mode, rl: 1, wl: 1, max_cycles: Some(1_000_000), ..Config::default() };
    let mut machine = Machine::new(config).expect("a good configuration");
    machine.load_elf(&elf(&segment)).expect("a good program");
    assert_eq!(machine.run().end, End::Exit(0));
    let page = machine.memory(DATA, LINE).expect("RAM");
    page.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect()
}

fn elf(segment: &[u8]) -> Vec<u8> {
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

const T0: u32 = 5;
const T1: u32 = 6;
const S0: u32 = 8;
const A0: u32 = 10;
const MSTATUS: u32 = 0x300;
const MCYCLE: u32 = 0xB00;
const FFLAGS: u32 = 1;
const FRM: u32 = 2;
const FCSR: u32 = 3;

fn csrr(rd: u32, number: u32) -> u32 {
    0x73 | rd << 7 | 2 << 12 | number << 20
}
fn csrw(number: u32, rs1: u32) -> u32 {
    0x73 | 1 << 12 | rs1 << 15 | number << 20
}
fn csrwi(number: u32, value: u32) -> u32 {
    0x73 | 5 << 12 | value << 15 | number << 20
}
fn lui(rd: u32, value: u32) -> u32 {
    0x37 | rd << 7 | value << 12
}
/// Store `rs2` to word `at` of the data page: integer register, single, double.
fn sd(rs2: u32, at: u32) -> u32 {
    store(0x23, 3, rs2, 8 * at)
}
fn fsw(rs2: u32, at: u32) -> u32 {
    store(0x27, 2, rs2, 8 * at)
}
fn fsd(rs2: u32, at: u32) -> u32 {
    store(0x27, 3, rs2, 8 * at)
}
fn store(opcode: u32, funct3: u32, rs2: u32, imm: u32) -> u32 {
    opcode | (imm & 31) << 7 | funct3 << 12 | S0 << 15 | rs2 << 20 | (imm >> 5) << 25
}
fn fld(rd: u32, at: u32) -> u32 {
    0x07 | rd << 7 | 3 << 12 | S0 << 15 | (8 * at) << 20
}
fn flw(rd: u32, at: u32) -> u32 {
    0x07 | rd << 7 | 2 << 12 | S0 << 15 | (8 * at) << 20
}
/// An `OP-FP` instruction.
fn fp(funct7: u32, rm: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    0x53 | rd << 7 | rm << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25
}
const DYNAMIC: u32 = 7;
const ADD_D: u32 = 1;
const MUL_D: u32 = 9;
const DIV_D: u32 = 0xD;
const ADD_S: u32 = 0;
const CVT_S_D: u32 = 0x20;

/// `mstatus.FS` becomes Initial.
fn float_on() -> [u32; 2] {
    [lui(T0, 2), csrw(MSTATUS, T0)]
}

/// Every kind of access with FS off is an illegal instruction with the instruction's bits in `mtval`, and changes nothing.
#[test]
fn off_is_illegal() {
    let probes = [
        fp(ADD_D, DYNAMIC, 0, 0, 0),
        fld(0, 0),
        flw(0, 0),
        fsd(0, 0),
        fsw(0, 0),
        csrr(A0, FCSR),
        csrwi(FFLAGS, 1),
        csrr(A0, FRM),
    ];
    // Handler at the fourth word after the jump: stores mcause and mtval, skips 4 bytes.
    let mut code = vec![0x0000_0297, 0x00c2_8293, 0x0280_006f]; // auipc t0, 0; addi t0, t0, 12; j +40
    code.extend([csrr(T1, 0x342), 0x0064_b023, csrr(T1, 0x343), 0x0064_b423, 0x0104_8493]); // to 0(s1), 8(s1); s1 += 16
    code.extend([csrr(T1, 0x341), 0x0043_0313, csrw(0x341, T1), 0x3020_0073]); // mepc += 4; mret
    code.extend([csrw(0x305, T0), 0x1004_0493]); // mtvec = t0; addi s1, s0, 256
    code.extend(probes);
    // c.fld fa0, 0(s0) and c.nop in one word: its exception skips both.
    code.push(0x0001_2008);
    for mode in [Mode::Fast, Mode::Timed] {
        let page = run(&code, &[42], mode);
        for (at, &raw) in probes.iter().enumerate() {
            assert_eq!(page[32 + 2 * at..][..2], [2, u64::from(raw)], "probe {at} in {mode:?}");
        }
        let last = 32 + 2 * probes.len();
        assert_eq!(page[last..][..4], [2, 0x2008, 0, 0], "compressed, {mode:?}");
        assert_eq!(page[0], 42);
    }
}

#[test]
fn flags_rounding_and_state() {
    let one = 1.0f64.to_bits();
    let three = 3.0f64.to_bits();
    let mut code = float_on().to_vec();
    code.extend([csrr(A0, MSTATUS), sd(A0, 16)]);
    code.extend([fld(0, 0), fld(1, 1), csrr(A0, MSTATUS), sd(A0, 17)]);
    // 1/3 downwards by the static mode, upwards by frm.
    code.extend([fp(DIV_D, 2, 2, 0, 1), fsd(2, 18), csrr(A0, FFLAGS), sd(A0, 19)]);
    code.extend([csrwi(FRM, 3), fp(DIV_D, DYNAMIC, 3, 0, 1), fsd(3, 20), csrr(A0, FCSR), sd(A0, 21)]);
    // Flags accrue: 1/0 adds DZ.
    code.extend([fp(0x79, 0, 4, 0, 0), fp(DIV_D, 0, 5, 0, 4), csrr(A0, FFLAGS), sd(A0, 22)]); // fmv.d.x f4, x0
    // fcvt.w.d a0, f0 and feq.d a0, f0, f0 and fmadd.d f6 = f1 * f1 + f0
    code.extend([fp(0x61, 1, A0, 1, 0), sd(A0, 23), fp(0x51, 2, A0, 0, 0), sd(A0, 24)]);
    code.extend([0x0210_8343 | 7 << 12, fsd(6, 25)]);
    for mode in [Mode::Fast, Mode::Timed] {
        let page = run(&code, &[one, three], mode);
        const FS: u64 = 3 << 13 | 1 << 63;
        assert_eq!(page[16] & FS, 1 << 13, "initial");
        assert_eq!(page[17] & FS, FS, "a load makes it dirty");
        assert_eq!(page[18..23], [0x3FD5_5555_5555_5555, 1, 0x3FD5_5555_5555_5556, 3 << 5 | 1, 1 | 8]);
        assert_eq!(page[23..26], [3, 1, 10.0f64.to_bits()], "{mode:?}");
    }
}

#[test]
fn boxing() {
    let single = |value: f32| u64::from(value.to_bits());
    let mut code = float_on().to_vec();
    code.extend([flw(0, 0), fsd(0, 16), fld(1, 1)]);
    // Not boxed: reads as the canonical NaN in arithmetic; a store takes the bits.
    code.extend([fp(ADD_S, 0, 2, 0, 1), fsd(2, 17), fsw(1, 18), fp(0x70, 0, A0, 1, 0), sd(A0, 19)]); // fmv.x.w
    code.extend([fld(3, 2), fp(CVT_S_D, 0, 4, 3, 1), fsd(4, 20), csrr(A0, FFLAGS), sd(A0, 21)]);
    // c.fld fa0, 24(s0); c.fsd fa0, 240(s0)
    code.push(0x2C08 | 0xB868 << 16);
    let page = run(&code, &[single(1.5), single(-2.0), 1.0f64.to_bits(), 77], Mode::Fast);
    let high = 0xFFFF_FFFF_0000_0000;
    assert_eq!(page[16], high | single(1.5));
    assert_eq!(page[17], high | 0x7FC0_0000);
    assert_eq!(page[18], single(-2.0));
    assert_eq!(page[19], single(-2.0) | high, "sign-extended");
    assert_eq!(page[20..22], [high | single(1.0), 0]);
    assert_eq!(page[30], 77, "c.fld and c.fsd");
}

/// Cycles per copy of `construct`, times 4; f1 = 7, f2 = 3.
fn slope(construct: &[u32]) -> u64 {
    let cycles = |copies| {
        let mut code = float_on().to_vec();
        code.extend([fld(1, 0), fld(2, 1), lui(S0 + 1, 0)]);
        // Three rounds, so that the caches are warm: the last one counts. s1 counts them.
        let head = code.len();
        code.push(csrr(T0, MCYCLE));
        code.extend(construct.repeat(copies));
        code.extend([csrr(T1, MCYCLE), 0x4053_0333, sd(T1, 16), 0x0014_8493]); // sub t1, t1, t0; addi s1, s1, 1
        code.push(0x0034_B293); // sltiu t0, s1, 3
        code.push(0x0002_8463); // beqz t0, +8
        let b = ((head as i32 - code.len() as i32) * 4) as u32;
        code.push(0x6F | (b & 0xF_F000) | (b >> 11 & 1) << 20 | (b >> 1 & 0x3FF) << 21 | (b >> 20 & 1) << 31);
        run(&code, &[7.0f64.to_bits(), 3.0f64.to_bits()], Mode::Timed)[16]
    };
    cycles(8) - cycles(4)
}

#[track_caller]
fn row(name: &str, construct: &[u32], per_copy: u64) {
    assert_eq!(slope(construct), 4 * per_copy, "{name}: cycles for 4 copies");
}

/// The rows of the RTL's measurement (`src/timing/params.rs`, M1).
#[test]
fn costs() {
    row("fadd.s chain", &[fp(ADD_S, 0, 1, 1, 2)], 4);
    row("fadd.d chain", &[fp(ADD_D, 0, 1, 1, 2)], 6);
    row("fmul.d chain", &[fp(MUL_D, 0, 1, 1, 2)], 6);
    let independent: Vec<u32> = (10..16).map(|rd| fp(ADD_D, 0, rd, 1, 2)).collect();
    row("six independent fadd.d", &independent, 6);
    row("fsgnj.d chain", &[fp(0x11, 0, 1, 1, 2)], 4);
    row("flt.d and integer use", &[fp(0x51, 1, T1, 1, 2), 0x0063_0E33], 1 + 2 + 1);
    row("fcvt.d.l and back", &[fp(0x69, 0, 3, T1, 2), fp(0x61, 0, T1, 3, 2)], 7);
    row("fmv.d.x and back", &[fp(0x79, 0, 3, T1, 0), fp(0x71, 0, T1, 3, 0)], 7);
    row("fld and store of it", &[fld(3, 0), fsd(3, 20)], 5);
    row("fdiv.d, independent destinations", &[fp(DIV_D, 0, 3, 1, 2)], 58);
    row("fsqrt.d", &[fp(0x2D, 0, 3, 1, 0)], 57);
    row("fdiv.s", &[fp(0xC, 0, 3, 1, 2)], 28);
}
