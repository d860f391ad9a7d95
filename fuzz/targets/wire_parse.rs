//! libFuzzer on `cci_fuzz::wire_parse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cci_fuzz::wire_parse(bytes));
