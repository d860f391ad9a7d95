//! Packages that tests build themselves: libraries and commands of other packages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a package in the profile of the running test, and returns the folder of what cargo made.
/// `tmp` is `CARGO_TARGET_TMPDIR` of that test. An integration test does not make cargo build other
/// packages, nor libraries of its own package without rlib.
///
/// With `TEST_BUILD=done` nothing is built: `ci/test` has built the whole workspace. A package by
/// itself has other features of the crates below it, so each would build them anew.
///
/// # Panics
///
/// It does not build.
#[must_use]
pub fn build(package: &str, tmp: &Path) -> PathBuf {
    build_with(&["--package", package], tmp)
}

/// An example that tests of its package start, built as [`build`] builds packages: cargo builds no
/// examples for a test that is named.
///
/// # Panics
///
/// It does not build.
#[must_use]
pub fn build_example(package: &str, name: &str, tmp: &Path) -> PathBuf {
    build_with(&["--package", package, "--example", name], tmp).join("examples").join(name)
}

fn build_with(what: &[&str], tmp: &Path) -> PathBuf {
    let target = tmp.parent().expect("tmp/ lies in the target directory");
    let test = std::env::current_exe().expect("the path of this test");
    let below = test.strip_prefix(target).expect("this test lies in the target directory");
    let dir = target.join(below.components().next().expect("a test lies in a directory of its profile"));
    let profile = match dir.file_name().and_then(OsStr::to_str) {
        None | Some("debug") => "dev",
        Some(other) => other,
    };
    // Where a target is named, as by `ci/sanitize`, cargo puts everything one directory deeper.
    let depth = if std::env::var_os("CARGO_BUILD_TARGET").is_some() { 2 } else { 1 };
    let target = tmp.ancestors().nth(depth).expect("the target directory");
    if std::env::var("TEST_BUILD").is_ok_and(|state| state == "done") {
        return dir;
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--profile", profile, "--target-dir"]).arg(target).args(what);
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo");
    assert!(status.success(), "{} does not build", what.join(" "));
    dir
}
