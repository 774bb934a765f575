//! `soc::testing::fuzz::dma_descriptors` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| soc::testing::fuzz::dma_descriptors(bytes));
