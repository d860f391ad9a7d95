//! The transport `mx` keeps every rule of the API, over our own library.

use crate::EXCEPTIONS;
use cci::Device;
use cci_conformance::{build, device_of};
use std::path::Path;
use std::sync::LazyLock;

/// Our own library, of the profile of this test.
static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let dir = build("cci-myriexpress", Path::new(env!("CARGO_TARGET_TMPDIR")));
    dir.join("libcci_myriexpress.so").display().to_string()
});

fn device() -> Device {
    device_of("mx", &[("library", &LIBRARY)])
}

cci_conformance::conformance!(mx, device, except: EXCEPTIONS);
