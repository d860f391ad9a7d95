//! Each parser's corpus, changed at random, and that of `sealed`: the same inputs each time. A
//! parser that takes a length from outside without a check fails here, without a fuzzer.

#![forbid(unsafe_code)]

use std::panic::catch_unwind;
use std::path::Path;

/// Inputs of a parser; `FUZZ_INPUTS` and `FUZZ_SEED` change them.
const INPUTS: usize = 3_000;
const SEED: u64 = 1;

fn from_environment<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the corpus").map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).expect("a file that can be read")).collect()
}

#[test]
fn no_change_of_the_corpus_makes_a_target_panic() {
    let (seed, inputs) = (from_environment("FUZZ_SEED", SEED), from_environment("FUZZ_INPUTS", INPUTS));
    let only = std::env::var("FUZZ_PARSER").ok();
    let mut broken = Vec::new();
    let sealed: (_, cci_fuzz::Target) = ("sealed", cci_fuzz::sealed);
    for (name, target) in cci_fuzz::PARSERS.into_iter().chain([sealed]) {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let corpus = corpus(name);
        let inputs = cci_fuzz::mutations(seed, &corpus, inputs);
        broken.extend(corpus.iter().cloned().chain(inputs).find_map(|input| {
            let fails = catch_unwind(|| target(&input)).is_err();
            fails.then(|| format!("{name} fails on {}", input.escape_ascii()))
        }));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn each_parser_has_a_corpus_and_each_corpus_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("a folder").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let parsers = cci_fuzz::PARSERS.iter().map(|(name, _)| *name);
    let mut known: Vec<_> = parsers.chain(["engine", "sealed", "tcp", "wire_parse"]).collect();
    known.sort_unstable();
    assert_eq!(found, known);
    assert!(cci_fuzz::PARSERS.iter().all(|(name, _)| corpus(name).len() > 1));
}

#[test]
fn inputs_are_the_same_for_the_same_seed() {
    let corpus = [b"one input".to_vec(), b"another".to_vec()];
    let inputs = |seed| cci_fuzz::mutations(seed, &corpus, 50).collect::<Vec<_>>();
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
}
