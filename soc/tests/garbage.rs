//! Guest misbehaviour never panics the host: random instructions, with registers that point into RAM, devices and nowhere, in
//! all privilege modes, with translation through random page tables.

use soc::{Config, Mode};

const BASE: u64 = 0x8000_0000;
const IMAGE_BYTES: usize = 0x1_0000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// A word that is often an instruction with consequences.
    fn instruction(&mut self) -> u32 {
        const OPCODES: [u32; 13] = [0x03, 0x13, 0x1B, 0x23, 0x2F, 0x33, 0x37, 0x3B, 0x63, 0x67, 0x6F, 0x73, 0x7B];
        const CSRS: [u32; 24] = [
            0x000, 0x004, 0x005, 0x044, 0x100, 0x103, 0x105, 0x141, 0x144, 0x180, 0x1B0, 0x1B1, 0x300, 0x302, 0x303,
            0x304, 0x305, 0x341, 0x344, 0x3A0, 0x3B0, 0x3B1, 0xB00, 0xC01,
        ];
        const SYSTEM: [u32; 8] =
            [0x0000_0073, 0x0010_0073, 0x0020_0073, 0x1020_0073, 0x3020_0073, 0x1200_0073, 0x0000_100F, 0x0FF0_000F];
        let raw = self.next() as u32;
        match self.below(8) {
            0 => raw,
            1 => self.pick(&SYSTEM),
            2 => raw & 0x000F_FF80 | 0x73 | self.pick(&CSRS) << 20,
            3 => raw & 0xFE0F_8F80 | 0x607B,
            _ => raw & !0x7F | self.pick(&OPCODES),
        }
    }

    /// A value for a register: an address of interest, a page table pointer, or anything.
    fn value(&mut self) -> u64 {
        const PLACES: [u64; 12] = [
            0x0010_1000,
            0x0200_4000,
            0x0200_BFF8,
            0x0300_0008,
            0x0C00_1000,
            0x0C20_1004,
            0x1000_0000,
            0x6010_0000,
            0x6014_0000,
            u64::MAX - 7,
            0xFFFF_FFFF_FFFF_F000,
            0x3F_FFFF_F000,
        ];
        match self.below(4) {
            0 => self.pick(&PLACES).wrapping_add(self.below(64) & !7),
            1 => BASE + (self.below(IMAGE_BYTES as u64) & !7),
            2 => (8 << 60) | ((BASE >> 12) + self.below(16)),
            _ => self.next(),
        }
    }
}

/// Registers are loaded from the end of the image, PMP is opened, then random words follow; other words of the image look like
/// page table entries.
fn image(random: &mut Random) -> Vec<u8> {
    let mut words: Vec<u32> = Vec::new();
    // auipc x31, 0xf: x31 = base + 0xF000; then ld x1..x30, and x31 last.
    words.push(0x0000_F000 | 0x17 | 31 << 7);
    words.extend([0x000F_B283, 0x3B02_9073, 0x01F0_0293, 0x3A02_9073]);
    words.extend((1..=30).map(|n: u32| 0x03 | n << 7 | 3 << 12 | 31 << 15 | (8 * n) << 20));
    // csrw mtvec, x30; csrw satp, x29; csrw medeleg, x28; csrw stvec, x27; csrw mepc, x26; mret half of the time
    words.extend([0x305F_1073, 0x180E_9073, 0x302E_1073, 0x105D_9073, 0x341D_1073]);
    if random.below(2) == 0 {
        words.push(0x3020_0073);
    }
    while words.len() < 0xF000 / 4 {
        if words.len() % 1024 >= 512 {
            let entry = ((BASE >> 12) + random.below(16)) << 10 | random.below(256) | 1;
            words.extend([entry as u32, (entry >> 32) as u32]);
        } else {
            words.push(random.instruction());
        }
    }
    let mut bytes: Vec<u8> = words[..0xF000 / 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(u64::MAX.to_le_bytes());
    for register in 1..=30 {
        // x26 to x30 go into mepc, vectors and satp.
        let value = match register {
            26 | 27 | 30 => BASE + (random.below(0xF000) & !3),
            29 => (8 << 60) | ((BASE >> 12) + random.below(15)),
            _ => random.value(),
        };
        bytes.extend(value.to_le_bytes());
    }
    bytes.resize(IMAGE_BYTES, 0);
    bytes
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

#[test]
fn random_programs_end_in_an_orderly_way() {
    let mut instructions = 0;
    for seed in 0..600 {
        let mut random = Random(seed);
        let mode = if seed % 2 == 0 { Mode::Fast } else { Mode::Timed };
        let config = Config { harts: 2, memory_bytes: 1 << 20, mode, max_cycles: Some(20_000), ..Config::default() };
        let file = elf(&image(&mut random));
        let run = || {
            let mut machine = soc::Machine::new(config.clone()).expect("a good configuration");
            machine.load_elf(&file).expect("a good file");
            let outcome = machine.run();
            (outcome, machine.digest())
        };
        let (first, second) = (run(), run());
        assert_eq!(first, second, "seed {seed}");
        instructions += first.0.instructions();
    }
    // The programs must do something: a machine stuck at the first instruction would prove nothing.
    assert!(instructions > 1_000_000, "{instructions}");
}

/// A timer at the last tick, and on with stores to the CLINT and the machine's end behind it.
#[test]
fn a_guest_may_wait_for_the_end_of_time() {
    const LAST_TICK: u64 = u64::MAX / 100_000;
    let words = [
        0x0000_0397u32, // auipc x7, 0
        0x0403_B303,    // ld x6, 64(x7)
        0x0200_42B7,    // lui x5, 0x2004: mtimecmp
        0x0062_B023,    // sd x6, 0(x5)
        0x0800_0413,    // li x8, 0x80
        0x3044_1073,    // csrw mie, x8
        0x1050_0073,    // wfi
        0x0062_B023,    // sd x6, 0(x5)
        0x0062_B023,    // sd x6, 0(x5)
        0x0062_B023,    // sd x6, 0(x5)
        0x0010_02B7,    // lui x5, 0x100: the finisher
        0x0000_5337,    // lui x6, 5
        0x5553_0313,    // addi x6, x6, 0x555
        0x0062_A023,    // sw x6, 0(x5)
        0x0000_006F,    // j .
        0,
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(LAST_TICK.to_le_bytes());
    for mode in [Mode::Fast, Mode::Timed] {
        let config = Config { memory_bytes: 1 << 20, mode, ..Config::default() };
        let mut machine = soc::Machine::new(config).expect("a good configuration");
        machine.load_elf(&elf(&bytes)).expect("a good file");
        let outcome = machine.run();
        assert_eq!(outcome.end, soc::End::Exit(0), "{mode:?}");
        assert_eq!(outcome.time, soc::time::SimTime::END, "{mode:?}");
    }
}
