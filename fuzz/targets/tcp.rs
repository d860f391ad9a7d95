//! libFuzzer on `cci_fuzz::tcp`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cci_fuzz::tcp(bytes));
