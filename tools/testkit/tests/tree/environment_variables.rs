//! The variables that the sources read are those whose misspellings are named.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of variables that stand as literals in the sources below a directory, without those of
/// tests.
fn named_below(place: &Path, found: &mut BTreeSet<String>) {
    for path in place.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let is_test = path.ends_with("tests") || path.ends_with("tests.rs") || path.ends_with("target");
        if path.is_dir() && !is_test {
            named_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
            let text = std::fs::read_to_string(&path).expect("a source");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let literals =
                lines.flat_map(|line| line.split("\"CCI_").skip(1)).filter_map(|rest| rest.split('"').next());
            let is_name =
                |end: &&str| !end.is_empty() && end.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
            let is_name = |end: &&str| is_name(end) && !end.contains("TEST_");
            found.extend(literals.filter(is_name).map(|end| format!("CCI_{end}")));
        }
    }
}

#[test]
fn each_variable_that_the_sources_read_is_a_known_one_and_stands_in_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = BTreeSet::new();
    for folder in ["cci", "core", "transports", "interfaces", "bindings", "tools/launcher", "tools/cli", "tools/perf"] {
        named_below(&root.join(folder), &mut named);
    }
    assert!(named.contains("CCI_CTP") && named.len() > 10, "{named:?}");
    let known = std::fs::read_to_string(root.join("cci/src/environment.rs")).expect("the list");
    let unlisted: Vec<_> = named.iter().filter(|name| !known.contains(&format!("    \"{name}\",\n"))).collect();
    assert!(unlisted.is_empty(), "cci/src/environment.rs lacks {unlisted:?}");
    let page = ["docs/configuration.md", "docs/design/portals.md", "docs/design/splitc.md", "docs/design/jobs.md"];
    let pages: String = page.iter().map(|page| std::fs::read_to_string(root.join(page)).expect("a page")).collect();
    let unexplained: Vec<_> = named.iter().filter(|name| !pages.contains(&format!("`{name}"))).collect();
    assert!(unexplained.is_empty(), "no page explains {unexplained:?}");
}
