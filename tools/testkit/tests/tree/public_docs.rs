//! Every public item of the facade, and of the interfaces over it, is documented: each type with an
//! example, each call that can fail with its errors. No call of the facade has so many parameters
//! that a reader confuses them.

use crate::sources::{parsed, root};
use std::collections::BTreeMap;
use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, ReturnType, Signature, Type, Visibility};

/// Where the items that the facade exports are defined.
const SOURCES: [&str; 4] = ["cci/src", "core/mem/src", "core/proto/src", "core/transport/src"];

/// The interfaces over it, and how many exports and functions each has at least.
const INTERFACES: [(&str, usize, usize); 9] = [
    ("interfaces/am/src", 20, 60),
    ("interfaces/am_via/src", 5, 5),
    ("interfaces/job/src", 5, 15),
    ("interfaces/peers/src", 10, 20),
    ("interfaces/mx/src", 18, 40),
    ("interfaces/portals/src", 18, 40),
    ("interfaces/rendezvous/src", 19, 50),
    ("interfaces/sci/src", 20, 60),
    ("interfaces/splitc/src", 10, 40),
];

/// Markers and numbers: what uses them has the example.
const EXAMPLE_ELSEWHERE: [&str; 3] = ["CONN_REQ_LEN", "ManyThreads", "OneThread"];

/// Parameters of a call of the facade beside `self`. A builder names those of a call that needs
/// more.
const MOST_PARAMETERS: usize = 3;

/// The text of doc comments.
fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

/// The last name of a type's path.
fn last_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// What the `pub use` lines of a library export, but from hidden modules.
fn exports(library: &str) -> Vec<String> {
    fn names(tree: &syn::UseTree, found: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => names(&path.tree, found),
            syn::UseTree::Name(name) => found.push(name.ident.to_string()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, found)),
            syn::UseTree::Rename(_) | syn::UseTree::Glob(_) => panic!("an export that this test does not follow"),
        }
    }
    let mut found = Vec::new();
    for item in parsed(&root().join(library)).into_values().flat_map(|file| file.items) {
        if let Item::Use(item) = item
            && matches!(item.vis, Visibility::Public(_))
            && !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"))
        {
            names(&item.tree, &mut found);
        }
    }
    found
}

/// What is known of an exported type.
#[derive(Default)]
struct Known {
    is_found: bool,
    has_example: bool,
    functions: usize,
    faults: Vec<String>,
}

impl Known {
    fn docs(&mut self, text: &str) {
        self.has_example |= text.contains("```");
    }

    fn function(&mut self, name: &str, attributes: &[Attribute], signature: &Signature, is_facade: bool) {
        if is_hidden(attributes) {
            return;
        }
        let (text, called) = (docs(attributes), format!("{name}::{}", signature.ident));
        self.docs(&text);
        self.functions += 1;
        let fails = match &signature.output {
            ReturnType::Type(_, output) => last_name(output).is_some_and(|name| name == "Result"),
            ReturnType::Default => false,
        };
        if text.is_empty() {
            self.faults.push(format!("{called} has no documentation"));
        }
        if fails && !text.contains("# Errors") {
            self.faults.push(format!("{called} can fail, and has no section Errors"));
        }
        let parameters = signature.inputs.iter().filter(|input| matches!(input, syn::FnArg::Typed(_))).count();
        if is_facade && parameters > MOST_PARAMETERS {
            self.faults.push(format!("{called} has {parameters} parameters: give it a builder"));
        }
        if signature.unsafety.is_some() && !text.contains("# Safety") {
            self.faults.push(format!("{called} is unsafe, and has no section Safety"));
        }
    }
}

/// The documentation that stands before a name in a macro's tokens, by name.
fn declared_by_macro(tokens: proc_macro2::TokenStream, known: &mut BTreeMap<String, Known>) {
    let mut text = String::new();
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Group(group) if group.stream().to_string().starts_with("doc") => {
                text.push_str(&group.stream().to_string());
            }
            proc_macro2::TokenTree::Ident(name) => {
                if let Some(entry) = known.get_mut(&name.to_string())
                    && !text.is_empty()
                {
                    entry.is_found = true;
                    entry.docs(&text);
                    text.clear();
                }
            }
            _ => (),
        }
    }
}

fn collect(items: Vec<Item>, known: &mut BTreeMap<String, Known>, is_facade: bool) {
    for item in items {
        let (name, attributes, visibility) = match &item {
            Item::Struct(item) => (&item.ident, &item.attrs, &item.vis),
            Item::Enum(item) => (&item.ident, &item.attrs, &item.vis),
            Item::Type(item) => (&item.ident, &item.attrs, &item.vis),
            Item::Trait(item) => (&item.ident, &item.attrs, &item.vis),
            Item::Const(item) => (&item.ident, &item.attrs, &item.vis),
            Item::Fn(item) => {
                let name = item.sig.ident.to_string();
                if let (Some(entry), Visibility::Public(_)) = (known.get_mut(&name), &item.vis) {
                    entry.is_found = true;
                    entry.function(&name, &item.attrs, &item.sig, is_facade);
                }
                continue;
            }
            Item::Impl(item) if item.trait_.is_none() => {
                let Some(name) = last_name(&item.self_ty) else { continue };
                let Some(entry) = known.get_mut(&name) else { continue };
                for part in &item.items {
                    if let syn::ImplItem::Fn(function) = part
                        && matches!(function.vis, Visibility::Public(_))
                    {
                        entry.function(&name, &function.attrs, &function.sig, is_facade);
                    }
                }
                continue;
            }
            Item::Macro(item) => {
                declared_by_macro(item.mac.tokens.clone(), known);
                continue;
            }
            _ => continue,
        };
        if let (Some(entry), Visibility::Public(_)) = (known.get_mut(&name.to_string()), visibility) {
            entry.is_found = true;
            entry.docs(&docs(attributes));
        }
    }
}

/// What is wrong with the documentation of a library, whose items are defined in these folders.
fn faults(library: &str, sources: &[&str], is_facade: bool, (exported, most): (usize, usize)) -> Vec<String> {
    let mut known: BTreeMap<_, _> = exports(library).into_iter().map(|name| (name, Known::default())).collect();
    assert!(known.len() >= exported, "only {} exports of {library} were found", known.len());
    for (path, file) in sources.iter().flat_map(|directory| parsed(&root().join(directory))) {
        collect(file.items, &mut known, is_facade && path.starts_with(root().join("cci")));
    }
    let functions: usize = known.values().map(|entry| entry.functions).sum();
    assert!(functions >= most, "only {functions} functions of {library} were found");
    let mut faults = Vec::new();
    for (name, entry) in &mut known {
        if !entry.is_found {
            faults.push(format!("{name} is exported, and its definition was not found"));
        } else if !entry.has_example && !EXAMPLE_ELSEWHERE.contains(&name.as_str()) {
            faults.push(format!("{name} has no example"));
        }
        faults.append(&mut entry.faults);
    }
    faults
}

#[test]
fn public_items_are_documented() {
    let faults = faults("cci/src/lib.rs", &SOURCES, true, (60, 150));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_reference_has_every_public_item() {
    let page = std::fs::read_to_string(root().join("docs/rust.md")).expect("the reference");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first_cells = rows.filter_map(|row| row.split('|').nth(1));
    let mut named: Vec<&str> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let mut exported = exports("cci/src/lib.rs");
    named.sort_unstable();
    exported.sort_unstable();
    assert_eq!(named, exported, "docs/rust.md lacks an item, has one twice, or one that is gone");
}

#[test]
fn public_items_of_interfaces_are_documented() {
    for (folder, exported, functions) in INTERFACES {
        let faults = faults(&format!("{folder}/lib.rs"), &[folder], false, (exported, functions));
        assert!(faults.is_empty(), "{folder}: {} faults:\n{}", faults.len(), faults.join("\n"));
    }
}
