//! `soc::testing::fuzz::frames` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| soc::testing::fuzz::frames(bytes));
