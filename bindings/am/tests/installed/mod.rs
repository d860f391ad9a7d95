//! The library as it is installed, and C programs that use it.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) use cci_conformance::installed::{command, end};

use cci_conformance::installed::{Installed, compiler};
use std::path::Path;
use std::sync::LazyLock;

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) static INSTALLED: LazyLock<Installed> =
    LazyLock::new(|| Installed::new("cci-am-c", "am", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR")));

/// Builds a C program; its sources are below the project's directory.
pub(crate) fn build(sources: &[&str], flags: &[&str], name: &str, target: &Path) {
    let sources: Vec<_> = sources.iter().map(|source| here().join("../..").join(source)).collect();
    INSTALLED.compile_by(compiler("c"), name, &sources, flags, target);
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}
