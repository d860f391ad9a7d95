//! How long the template is, and how much of it is not the echo's own.

use std::path::Path;

/// Lines of the sources at most, and of those that each interface has
/// (`docs/design/interface-template.md`).
const MOST: (usize, usize) = (300, 120);

/// Marks of sections: the lines behind them, and their own, are the echo's or each interface's.
const OWN: &str = "// The echo's own from here on.";
const SHARED: &str = "// As in each interface from here on.";

/// The lines of a source, and how many of them are not the echo's own.
fn lines(source: &str, mut is_own: bool) -> (usize, usize) {
    let (mut all, mut shared) = (0, 0);
    for line in source.lines() {
        is_own = (is_own || line.trim() == OWN) && line.trim() != SHARED;
        (all, shared) = (all + 1, shared + usize::from(!is_own));
    }
    (all, shared)
}

#[test]
fn it_is_as_short_as_its_page_states() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut all, mut shared) = (0, 0);
    for entry in std::fs::read_dir(&sources).expect("the sources") {
        let path = entry.expect("an entry").path();
        // The state is the echo's whole, the rest begins with what each interface has.
        let of_file = lines(&std::fs::read_to_string(&path).expect("a source"), path.ends_with("state.rs"));
        (all, shared) = (all + of_file.0, shared + of_file.1);
    }
    assert!(all <= MOST.0 && shared <= MOST.1, "{all} lines, {shared} of them not its own");
    assert!(all > MOST.0 / 2 && shared > MOST.1 / 2, "these are not the sources: {all} lines, {shared}");
}

#[test]
fn sections_are_told_apart() {
    let source = format!("a\n{OWN}\nb\n\n    {SHARED}\nc\n");
    assert_eq!((lines(&source, false), lines(&source, true)), ((6, 3), (6, 2)));
}
