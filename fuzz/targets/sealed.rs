//! libFuzzer on `cci_fuzz::sealed`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cci_fuzz::sealed(bytes));
