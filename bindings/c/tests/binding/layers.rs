//! The binding is thin: of this project it uses the facade, and jobs, whose calls are in `ccix.h`.

use crate::prefix::here;

/// Names of the entries of a table of `Cargo.toml`.
fn entries(manifest: &str, table: &str) -> Vec<String> {
    let after = manifest.lines().skip_while(|line| line.trim() != format!("[{table}]")).skip(1);
    let lines = after.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_binding_depends_on_the_facade_and_on_jobs_only() {
    let manifest = std::fs::read_to_string(here().join("Cargo.toml")).expect("the manifest");
    let mut ours = entries(&manifest, "dependencies");
    ours.retain(|name| name.starts_with("cci"));
    assert_eq!(ours, ["cci", "cci-job"]);
    assert!(!manifest.contains("path ="), "a dependency of another folder could be under any name");
}

/// Behind an endpoint's lock are the core's own types: what needs them is a function of
/// `cci::__binding`.
#[test]
fn the_binding_takes_no_lock_of_an_endpoint() {
    let mut files = 0;
    for file in std::fs::read_dir(here().join("src")).expect("the sources") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a source");
        let code = text.split("#[cfg(test)]").next().expect("a first part");
        assert!(!code.contains(".with(|"), "{}: call a function of cci::__binding instead", path.display());
        files += 1;
    }
    assert!(files > 10, "{files} files are not the sources");
}
