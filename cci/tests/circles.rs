//! No circle of files that use each other crosses a folder of these crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The sources of the crates, from the folder of this one, with fewer files and uses than each has.
const SOURCES: [(&str, usize, usize); 3] =
    [("src", 20, 40), ("../transports/sm/src", 30, 60), ("../transports/sock/src", 15, 30)];

type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The file of a module, which is a file or a folder.
fn file_of(folder: &Path, module: &str) -> Option<PathBuf> {
    let places = [folder.join(format!("{module}.rs")), folder.join(module).join("mod.rs")];
    places.into_iter().find(|place| place.is_file())
}

/// The names after each `prefix`, also of a list in braces.
fn names_after<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.split(prefix).skip(1).filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
}

/// Files, and those that each uses. Without `lib.rs`, which names every file and is used by none:
/// see below. Without `fixture.rs`, which tests of every file use.
fn graph(source: &Path) -> Graph {
    let mut found = Vec::new();
    files(source, &mut found);
    let left_out = ["lib.rs", "fixture.rs"].map(|name| source.join(name));
    found.retain(|path| !left_out.contains(path));
    let uses = |path: &PathBuf| {
        let folder = path.parent().expect("a folder");
        let text = std::fs::read_to_string(path).expect("a source");
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        let mut used = BTreeSet::new();
        for line in code {
            for module in names_after(line, "crate::") {
                let place = file_of(source, module);
                // A name of the crate itself would lead through `lib.rs` to anything.
                used.insert(place.unwrap_or_else(|| panic!("{}: write crate::module::{module}", path.display())));
            }
            let parent = if path.ends_with("mod.rs") { folder.parent() } else { Some(folder) };
            let is_child = line.contains("super::") && parent != Some(source);
            used.extend(is_child.then(|| folder.join("mod.rs")).filter(|place| place.is_file()));
            let declared = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            let below = if path.ends_with("mod.rs") { folder.to_owned() } else { path.with_extension("") };
            used.extend(declared.and_then(|module| file_of(&below, module)));
        }
        used.retain(|path| !left_out.contains(path));
        used
    };
    found.iter().map(|path| (path.clone(), uses(path))).collect()
}

/// The folder that a file lies in. What lies in `name` beside `name.rs` is a part of that file.
fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().expect("a folder");
    if folder.with_extension("rs").is_file() { folder_of(folder) } else { folder }
}

fn reached(graph: &Graph, from: &PathBuf) -> BTreeSet<PathBuf> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop().and_then(|path| graph.get(path)) {
        open.extend(next.iter().filter(|path| reached.insert((*path).clone())));
    }
    reached
}

#[test]
fn no_circle_of_files_crosses_a_folder() {
    for (source, files, uses) in SOURCES {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join(source), files, uses);
    }
}

fn check(source: &Path, files: usize, uses: usize) {
    let graph = graph(source);
    let counts = (graph.len(), graph.values().map(BTreeSet::len).sum::<usize>());
    assert!(counts.0 > files && counts.1 > uses, "these are not the sources: {counts:?}");
    let reached: BTreeMap<_, _> = graph.keys().map(|path| (path, self::reached(&graph, path))).collect();
    for (file, others) in &reached {
        for other in others.iter().filter(|other| folder_of(other) != folder_of(file)) {
            assert!(
                !reached[other].contains(*file),
                "{} and {} use each other, and lie in two folders; move what both need to a file of its own",
                file.display(),
                other.display()
            );
        }
    }
}
