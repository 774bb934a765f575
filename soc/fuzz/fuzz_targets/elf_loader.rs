//! `soc::testing::fuzz::elf_loader` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| soc::testing::fuzz::elf_loader(bytes));
