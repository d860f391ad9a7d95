//! The Rust sources of the project, for tests that read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The project's directory.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's directory")
}

/// This file, or all files below this directory, without those of tests.
pub(crate) fn parsed(place: &Path) -> BTreeMap<PathBuf, syn::File> {
    if place.is_file() {
        let text = std::fs::read_to_string(place).expect("a source");
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
        return BTreeMap::from([(place.to_owned(), file)]);
    }
    let entries =
        std::fs::read_dir(place).expect("a directory of sources").map(|entry| entry.expect("an entry").path());
    let is_source = |path: &PathBuf| match path.extension() {
        Some(end) => end == "rs" && !path.ends_with("tests.rs"),
        None => path.is_dir() && !path.ends_with("tests"),
    };
    entries.filter(is_source).flat_map(|path| parsed(&path)).collect()
}
