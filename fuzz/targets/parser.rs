//! libFuzzer on one of `cci_fuzz::PARSERS`, which `FUZZ_PARSER` names.

#![no_main]

use std::sync::LazyLock;

static PARSER: LazyLock<cci_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_PARSER").unwrap_or_default();
    cci_fuzz::parser(&name).unwrap_or_else(|| panic!("FUZZ_PARSER is '{name}', no parser; see fuzz/src/lib.rs"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| PARSER(bytes));
