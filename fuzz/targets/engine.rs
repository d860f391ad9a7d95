//! libFuzzer on `cci_fuzz::engine`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cci_fuzz::engine(bytes));
