//! No circle of files that use each other crosses a folder of a crate: a folder can be read, and
//! replaced, without those that stand on it.

use crate::sources::{parsed, root};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{Visit, visit_item_mod};
use syn::{File, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// Where the crates lie, and how many files and uses those with folders have at least.
const CRATES: &str = "cci core/* transports/* interfaces/* bindings/* tools/*";
const LEAST: (usize, usize) = (900, 2000);

/// The sources of the crates.
fn sources() -> Vec<PathBuf> {
    let subfolders = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    };
    let crates = CRATES.split(' ').flat_map(|place| match place.strip_suffix("/*") {
        Some(room) => subfolders(&root().join(room)),
        None => vec![root().join(place)],
    });
    let mut sources: Vec<PathBuf> = crates.map(|path| path.join("src")).collect();
    sources.retain(|source| source.join("lib.rs").exists());
    sources.sort();
    sources
}

type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The files of a crate, without those of tests alone.
struct Sources {
    root: PathBuf,
    files: BTreeMap<PathBuf, File>,
}

impl Sources {
    fn read(folder: &Path) -> Self {
        let mut files = parsed(folder);
        files.retain(|path, _| !path.ends_with("fixture.rs") && !path.ends_with("main.rs"));
        Self { root: folder.join("lib.rs"), files }
    }

    /// The folder of a file's modules.
    fn below(file: &Path) -> PathBuf {
        let is_folder = ["lib.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
        if is_folder { file.with_file_name("").components().collect() } else { file.with_extension("") }
    }

    fn module(&self, of: &Path, name: &str) -> Option<PathBuf> {
        let folder = Self::below(of);
        let places = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
        places.into_iter().find(|place| self.files.contains_key(place))
    }

    fn parent(&self, of: &Path) -> Option<PathBuf> {
        let folder = if of.ends_with("mod.rs") { of.parent()?.parent()? } else { of.parent()? };
        let places = [folder.join("mod.rs"), folder.with_extension("rs"), folder.join("lib.rs")];
        places.into_iter().find(|place| self.files.contains_key(place))
    }

    /// The file in which what this path names is defined, as far as it is of this crate.
    fn file_of(&self, from: &Path, path: &[String]) -> Option<PathBuf> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => self.root.clone(),
            "self" => from.to_owned(),
            "super" => self.parent(from)?,
            name => {
                rest = path;
                self.module(from, name)?;
                from.to_owned()
            }
        };
        while let Some((name, further)) = rest.split_first() {
            let next = if name == "super" { self.parent(&at) } else { self.module(&at, name) };
            if let Some(next) = next {
                (at, rest) = (next, further);
                continue;
            }
            let imported = self.imports(&at).into_iter().find(|(known, _)| known == name);
            return imported.and_then(|(_, path)| self.file_of(&at, &path)).or(Some(at));
        }
        Some(at)
    }

    /// The names that a file has by `use` of other files, which those below it, or all, may use as
    /// its own, each with its path.
    fn imports(&self, file: &Path) -> Vec<(String, Vec<String>)> {
        let items = self.files[file].items.iter();
        let trees = items.filter_map(|item| if let Item::Use(item) = item { Some(&item.tree) } else { None });
        let is_ours = |first: &str| ["crate", "self", "super"].contains(&first) || self.module(file, first).is_some();
        trees.flat_map(paths).filter(|(_, path)| path.first().is_some_and(|first| is_ours(first))).collect()
    }

    fn graph(&self) -> Graph {
        let uses = |(path, file): (&PathBuf, &File)| {
            let mut found = Uses::default();
            found.visit_file(file);
            let mut used: BTreeSet<_> = found.0.iter().filter_map(|used| self.file_of(path, used)).collect();
            // `lib.rs` names every file. What a file uses of it by a name of the crate is found at
            // its own place.
            used.retain(|used| used != path && *used != self.root);
            (path.clone(), used)
        };
        self.files.iter().filter(|(path, _)| **path != self.root).map(uses).collect()
    }
}

/// The names that a `use` gives, each with its path. A `*` gives none, and `self` that of its
/// module.
fn paths(tree: &UseTree) -> Vec<(String, Vec<String>)> {
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let name = |name: String| if name == "self" { first.clone() } else { name };
            let behind = |rest: Vec<String>| [vec![first.clone()], rest].concat();
            paths(&path.tree).into_iter().map(|(known, rest)| (name(known), behind(rest))).collect()
        }
        UseTree::Name(name) if name.ident == "self" => vec![("self".to_owned(), vec![])],
        UseTree::Name(name) => vec![(name.ident.to_string(), vec![name.ident.to_string()])],
        UseTree::Rename(renamed) => vec![(renamed.rename.to_string(), vec![renamed.ident.to_string()])],
        UseTree::Glob(_) => vec![(String::new(), vec![])],
        UseTree::Group(group) => group.items.iter().flat_map(paths).collect(),
    }
}

/// The paths that a file names, but those of its tests.
#[derive(Default)]
struct Uses(Vec<Vec<String>>);

impl Visit<'_> for Uses {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        if item.ident != "tests" {
            visit_item_mod(self, item);
        }
    }

    /// `pub(in crate::folder)` uses nothing.
    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.0.extend(paths(&item.tree).into_iter().map(|(_, path)| path));
    }

    /// What a macro is given has no syntax: names with `::` between them are taken for a path.
    fn visit_macro(&mut self, called: &Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }
}

impl Uses {
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                TokenTree::Ident(name) => self.0.push(std::mem::replace(&mut path, vec![name.to_string()])),
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.0.push(std::mem::take(&mut path)),
            }
            colons = 0;
        }
        self.0.push(path);
        self.0.retain(|path| path.len() != 1);
    }
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

/// The pairs of files that use each other and lie in two folders.
fn circles(graph: &Graph) -> Vec<String> {
    let reached: BTreeMap<_, _> = graph.keys().map(|path| (path, reached(graph, path))).collect();
    let mut found = Vec::new();
    for (file, used) in graph {
        let others = used.iter().filter(|other| folder_of(other) != folder_of(file));
        for other in others.filter(|other| reached[other].contains(file)) {
            found.push(format!("{} -> {}", file.display(), other.display()));
        }
    }
    found
}

/// The sets of files of which each uses each other, if only by way of others.
fn knots(graph: &Graph) -> BTreeSet<Vec<&PathBuf>> {
    let reached: BTreeMap<_, _> = graph.keys().map(|path| (path, reached(graph, path))).collect();
    let is_one = |a: &PathBuf, b: &PathBuf| reached[a].contains(b) && reached[b].contains(a);
    let knot = |file| graph.keys().filter(|other| is_one(file, other)).collect();
    graph.keys().map(knot).filter(|knot: &Vec<_>| knot.len() > 1).collect()
}

/// One thought in two files: what a record of a frame is, and its head; memory, and pieces of it.
const PAIRS: [&[&str]; 2] = [
    &["core/mem/src/arena.rs", "core/mem/src/memory.rs"],
    &["core/proto/src/wire/data.rs", "core/proto/src/wire/header.rs"],
];

#[test]
fn no_files_use_each_other_but_few_pairs() {
    let mut found = Vec::new();
    for source in sources() {
        let graph = Sources::read(&source).graph();
        let shown = |file: &PathBuf| file.strip_prefix(root()).expect("inside").display().to_string();
        found.extend(knots(&graph).iter().map(|knot| knot.iter().map(|file| shown(file)).collect::<Vec<_>>()));
    }
    found.sort();
    assert_eq!(found, PAIRS, "move what both need to a file of its own");
}

#[test]
fn no_circle_of_files_crosses_a_folder() {
    let (mut found, mut files, mut uses) = (Vec::new(), 0, 0);
    for source in sources() {
        let graph = Sources::read(&source).graph();
        files += graph.len();
        uses += graph.values().map(BTreeSet::len).sum::<usize>();
        found.extend(circles(&graph));
    }
    assert!(files >= LEAST.0 && uses >= LEAST.1, "these are not the sources: {files} files, {uses} uses");
    assert!(found.is_empty(), "move what both need to a file of its own:\n{}", found.join("\n"));
}

/// What is found in a crate of these files.
fn found(name: &str, files: &[(&str, &str)]) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("cci-circles-{name}-{}", std::process::id()));
    for (file, text) in files {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let found = circles(&Sources::read(&folder).graph());
    std::fs::remove_dir_all(&folder).expect("this folder");
    found
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let (lib, module) = ("mod above; mod a; pub use a::Low;", "mod low; pub use low::Low;");
    let with = |name, low| {
        found(name, &[("lib.rs", lib), ("above.rs", "use crate::Low;"), ("a/mod.rs", module), ("a/low.rs", low)])
    };
    assert_eq!(with("none", "pub struct Low;"), [""; 0], "a use in one direction");
    assert_eq!(with("path", "pub struct Low(crate::above::High);").len(), 2);
    assert_eq!(with("super", "use super::super::above::High;").len(), 2);
    assert_eq!(with("list", "use crate::{above::{High as Other}};").len(), 2);
    assert_eq!(with("macro", "fn f() { println!(\"{}\", crate::above::high()); }").len(), 2);
    let named = |name, lib, above, low| {
        let a = ("a/mod.rs", "pub mod low;");
        found(name, &[("lib.rs", lib), ("above.rs", above), a, ("a/low.rs", low)])
    };
    let uses_low = "pub use crate::a::low::Low;";
    assert_eq!(named("renamed", "mod above; mod a; pub use above::A as B;", uses_low, "use crate::B;").len(), 2);
    assert_eq!(named("private", "mod above; mod a; use above::B;", uses_low, "struct Low(crate::B);").len(), 2);
    assert_eq!(with("test", "#[cfg(test)] mod tests { use crate::above::High; }"), [""; 0], "a use of tests");
}
