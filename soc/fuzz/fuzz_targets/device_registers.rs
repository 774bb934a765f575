//! `soc::testing::fuzz::device_registers` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| soc::testing::fuzz::device_registers(bytes));
