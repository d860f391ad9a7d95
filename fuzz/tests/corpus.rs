//! The corpus is replayed: what the fuzzer has found interesting, and what was once a fault.

use std::path::Path;

/// Runs a target on every file of its corpus.
fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the corpus").map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() > 10, "{} files in {}", files.len(), folder.display());
    for file in files {
        let bytes = std::fs::read(&file).expect("a file that can be read");
        let outcome = std::panic::catch_unwind(|| target(&bytes));
        assert!(outcome.is_ok(), "{} fails on {}", name, file.display());
    }
}

#[test]
fn wire_parse_holds_for_its_corpus() {
    replay("wire_parse", cci_fuzz::wire_parse);
}

#[test]
fn engine_holds_for_its_corpus() {
    replay("engine", cci_fuzz::engine);
}

#[test]
fn sealed_holds_for_its_corpus() {
    replay("sealed", cci_fuzz::sealed);
}

#[test]
fn tcp_holds_for_its_corpus() {
    replay("tcp", cci_fuzz::tcp);
}
