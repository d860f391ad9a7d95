//! No thread that the library starts in a program takes a signal of that program:
//! `cci_mem::quiet_thread` starts all of them.

use crate::sources::{parsed, root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::Visit;
use syn::{Attribute, ExprCall, ExprMethodCall, File, Item, ItemMod, Meta, UsePath, UseTree};

/// What runs in programs, and how many files there are at least.
const FOLDERS: [&str; 5] = ["cci", "core", "transports", "interfaces", "bindings"];
const LEAST: usize = 500;

/// Starts all others.
const HOME: &str = "core/mem/src/quiet_thread.rs";

/// Whether an item is of tests alone.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    let is_test = |list: &syn::MetaList| list.path.is_ident("cfg") && list.tokens.to_string().contains("test");
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => is_test(list),
        _ => attribute.path().is_ident("test"),
    })
}

/// How many calls start a thread: those of `thread::spawn`, of a scope, and of a builder. A `use`
/// of `thread::spawn` counts too.
#[derive(Default)]
struct Started(usize);

impl Visit<'_> for Started {
    fn visit_item(&mut self, item: &Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs[..],
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            _ => &[],
        };
        if !is_of_tests(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_use_path(&mut self, path: &UsePath) {
        let is_spawn = |tree: &UseTree| matches!(tree, UseTree::Name(name) if name.ident == "spawn");
        let has_spawn = match &*path.tree {
            UseTree::Group(group) => group.items.iter().any(is_spawn),
            tree => is_spawn(tree),
        };
        self.0 += usize::from(path.ident == "thread" && has_spawn);
        syn::visit::visit_use_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &ExprCall) {
        if let syn::Expr::Path(called) = &*call.func {
            let names: Vec<_> = called.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            self.0 += usize::from(names.ends_with(&["thread", "spawn"]));
        }
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        if ["spawn", "spawn_scoped", "spawn_unchecked"].iter().any(|name| call.method == name) {
            self.0 += 1;
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

/// The files that modules of tests lie in, and those below them.
fn of_tests(files: &BTreeMap<PathBuf, File>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (path, file) in files {
        let is_root = ["lib.rs", "mod.rs", "main.rs"].iter().any(|name| path.ends_with(name));
        let below = if is_root { path.with_file_name("") } else { path.with_extension("") };
        let modules = file.items.iter().filter_map(|item| match item {
            Item::Mod(ItemMod { attrs, ident, content: None, .. }) if is_of_tests(attrs) => Some(ident.to_string()),
            _ => None,
        });
        found.extend(modules.flat_map(|name| [below.join(format!("{name}.rs")), below.join(name)]));
    }
    found
}

fn sources(folder: &Path) -> BTreeMap<PathBuf, File> {
    let mut crates = vec![folder.to_owned()];
    if !folder.join("src").is_dir() {
        let entries = std::fs::read_dir(folder).expect("a folder of crates");
        crates = entries.map(|entry| entry.expect("an entry").path()).collect();
    }
    let sources = crates.iter().map(|path| path.join("src")).filter(|path| path.is_dir());
    sources.flat_map(|source| parsed(&source)).collect()
}

#[test]
fn every_thread_in_a_program_is_started_with_its_signals_blocked() {
    let root = root();
    let (mut files, mut found) = (0, Vec::new());
    for folder in FOLDERS {
        let sources = sources(&root.join(folder));
        let of_tests = of_tests(&sources);
        for (path, file) in &sources {
            if of_tests.iter().any(|tests| path.starts_with(tests)) || path.ends_with(HOME) {
                continue;
            }
            files += 1;
            let mut started = Started::default();
            started.visit_file(file);
            if started.0 > 0 {
                found.push(path.strip_prefix(&root).expect("below the root").display().to_string());
            }
        }
    }
    assert!(files >= LEAST, "these are not the sources: {files} files");
    assert!(found.is_empty(), "use cci_mem::quiet_thread:\n{}", found.join("\n"));
}

#[test]
fn a_thread_is_found_however_it_is_started() {
    let starts = |text: &str| {
        let mut started = Started::default();
        started.visit_file(&syn::parse_file(text).expect("Rust"));
        started.0
    };
    assert_eq!(starts("fn f() { std::thread::spawn(run); }"), 1);
    assert_eq!(starts("use std::{sync::Arc, thread::{JoinHandle, spawn}}; fn f() { spawn(run); }"), 1);
    assert_eq!(starts("fn f() { Builder::new().name(name).spawn(run)?; scope.spawn(|| ()); }"), 2);
    assert_eq!(starts("fn f() { quiet_thread::spawn(NAME, STACK, run)?; }"), 0);
    assert_eq!(starts("#[cfg(test)] mod tests { fn f() { std::thread::spawn(run); } }"), 0);
}
