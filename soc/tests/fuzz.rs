//! The entry points of `soc::testing::fuzz` with random bytes: what `soc/fuzz` does under libFuzzer for as long as one likes, done
//! shortly. `FUZZ_CASES=N` for more.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};
use soc::testing::fuzz;

/// `cases` inputs, or as many as asked for, the same on every run.
fn run(cases: u32, entry: fn(&[u8]), input: impl Strategy<Value = Vec<u8>>) {
    let asked = std::env::var("FUZZ_CASES").ok();
    let cases = asked.map_or(cases, |text| text.parse().unwrap_or_else(|_| panic!("FUZZ_CASES={text} is no number")));
    let config = Config {
        cases,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(1),
        max_shrink_iters: 500,
        ..Config::default()
    };
    let outcome = proptest::test_runner::TestRunner::new(config).run(&input, |bytes| {
        entry(&bytes);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

/// A good executable: header, one program header, code, section headers, symbols.
fn good_elf() -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    out.extend(0x8000_0000u64.to_le_bytes());
    // Program headers at 64, section headers behind the segment: .symtab, .strtab.
    out.extend(64u64.to_le_bytes());
    out.extend(200u64.to_le_bytes());
    out.extend([0; 4]);
    out.extend([64, 0, 56, 0, 1, 0, 64, 0, 3, 0, 2, 0]);
    out.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    for word in [120u64, 0x8000_0000, 0x8000_0000, 16, 64, 4] {
        out.extend(word.to_le_bytes());
    }
    // Two `wfi`, and a jump back.
    out.extend([0x73, 0, 0x50, 0x10, 0x73, 0, 0x50, 0x10, 0x6F, 0xF0, 0x9F, 0xFF, 0, 0, 0, 0]);
    // Strings at 136, symbols at 152.
    out.extend(*b"\0tohost\0.stab\0\0\0");
    for (name, value) in [(0u32, 0u64), (1, 0x8000_0020)] {
        out.extend(name.to_le_bytes());
        out.extend([0x10, 0, 1, 0]);
        out.extend(value.to_le_bytes());
        out.extend(8u64.to_le_bytes());
    }
    let mut section = |kind: u32, offset: u64, size: u64, link: u32, entry: u64| {
        out.extend(8u32.to_le_bytes());
        out.extend(kind.to_le_bytes());
        for word in [0, 0, offset, size] {
            out.extend(word.to_le_bytes());
        }
        out.extend(link.to_le_bytes());
        out.extend(1u32.to_le_bytes());
        out.extend(1u64.to_le_bytes());
        out.extend(entry.to_le_bytes());
    };
    section(0, 0, 0, 0, 0);
    section(2, 152, 48, 2, 24);
    section(3, 136, 16, 0, 0);
    out
}

#[test]
fn elf_loader() {
    let good = good_elf();
    let mut machine = soc::Machine::new(soc::Config { memory_bytes: 1 << 20, ..soc::Config::default() })
        .expect("a good configuration");
    machine.load_elf(&good).expect("the file that is damaged below is good");
    // Bytes are replaced, mostly in the headers, and the end may be missing.
    let place = prop_oneof![0..good.len(), 0..136usize];
    let damage = prop::collection::vec((place, prop_oneof![any::<u8>(), Just(0), Just(0xFF)]), 0..8);
    let keep = prop_oneof![4 => Just(good.len()), 1 => 0..good.len()];
    run(
        2_000,
        fuzz::elf_loader,
        (damage, keep).prop_map(move |(damage, keep)| {
            let mut file = good.clone();
            for (at, byte) in damage {
                file[at] = byte;
            }
            file.truncate(keep);
            file
        }),
    );
}

#[test]
fn device_registers() {
    run(3_000, fuzz::device_registers, bytes(3_000));
}

#[test]
fn dma_descriptors() {
    run(100, fuzz::dma_descriptors, bytes(3_000));
}

#[test]
fn frames() {
    run(600, fuzz::frames, bytes(6_000));
}
