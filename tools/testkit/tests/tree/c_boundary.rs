//! No panic crosses into a C program: each function that a binding exports runs its body in a
//! guard. The sources are read, so that a new function cannot forget it.

use std::path::{Path, PathBuf};

/// Calls that catch a panic. Bodies of macros have them once for all functions.
const GUARDS: [&str; 11] = [
    "answer(",
    "answer::<",
    "guarded(",
    "catch_unwind(",
    "guard::call(",
    "guard::at_length(",
    "guard::on(",
    "guard::on_cell(",
    "guard::on_connection(",
    "guard::on_connection_at_length(",
    "guard::on_endpoint(",
];

/// Functions without a guard, and why they need none.
const WITHOUT: [(&str, &str); 17] = [
    ("cci_get_event", "what it does itself cannot panic; the functions it calls have guards"),
    ("cci_return_event", "likewise"),
    ("cci_strerror", "a look-up in constants"),
    ("ccix_last_error", "a pointer of the thread"),
    ("ccix_release", "a constant"),
    ("fi_prov_ini", "a constant"),
    ("MX_ERRORS_ARE_FATAL", "writes a line and ends the program"),
    ("MX_ERRORS_RETURN", "returns its argument"),
    ("mx_strerror", "a look-up in constants"),
    ("mx_strstatus", "likewise"),
    ("PtlErrorStr", "likewise"),
    ("PtlEventKindStr", "likewise"),
    ("PtlNIFailStr", "likewise"),
    ("PtlNIDebug", "exchanges a word"),
    ("mpi_is_worker", "a constant"),
    ("mpi_set_thread_mode", "stores a constant"),
    // Of a macro: each body of it is looked at below.
    ("$symbol", "the bodies of Split-C"),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The text from the first brace on to the one that closes it.
fn braced(text: &str) -> &str {
    let begin = text.find('{').expect("a body");
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(begin) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[begin..=at];
        }
    }
    panic!("a body without an end");
}

/// Functions that are exported, or that C calls by pointer: their names and bodies.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let calls = text.match_indices("extern \"C\" fn ").filter_map(|(at, begin)| {
        let rest = &text[at + begin.len()..];
        let name = &rest[..rest.find(['(', '<'])?];
        // A type of a function has no name, and a declaration no body.
        let has_body = rest.find('{').is_some_and(|brace| rest.find(';').is_none_or(|end| brace < end));
        (!name.is_empty() && has_body).then(|| (name, braced(rest)))
    });
    calls.collect()
}

fn is_exported(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("extern \"C\" fn {name}(")) else { return false };
    // Between the attribute and the function are other attributes at most.
    let before = &text[..at];
    let attribute = before.rfind("#[unsafe(no_mangle)]").max(before.rfind("#[unsafe(export_name"));
    attribute.is_some_and(|attribute| !before[attribute..].contains(['{', '}', ';']))
}

#[test]
fn each_exported_function_catches_panics() {
    let bindings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings");
    let (mut count, mut unguarded) = (0, Vec::new());
    let mut needless: Vec<_> = WITHOUT.iter().map(|(name, _)| *name).collect();
    for binding in ["am", "c", "fabric", "mx", "portals", "sci", "splitc", "vipl"] {
        for path in sources(&bindings.join(binding).join("src")) {
            let text = std::fs::read_to_string(&path).expect("a source");
            for (name, body) in functions(&text).into_iter().filter(|(name, _)| is_exported(&text, name)) {
                count += 1;
                if GUARDS.iter().any(|guard| body.contains(guard)) {
                    continue;
                }
                needless.retain(|known| *known != name);
                if !WITHOUT.iter().any(|(known, _)| *known == name) {
                    unguarded.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert!(count > 60, "{count} functions");
    assert!(unguarded.is_empty(), "without a guard: {unguarded:#?}");
    assert!(needless.is_empty(), "these have a guard, or are gone: {needless:?}");
}

#[test]
fn each_call_of_split_c_catches_panics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/splitc/src/exports.rs");
    let text = std::fs::read_to_string(path).expect("a source");
    let calls = braced(text.split_once("\nexport! ").expect("the calls").1);
    let mut count = 0;
    for call in calls.split("\n    sc_").skip(1) {
        count += 1;
        // The one that runs the program: it guards what goes before and after.
        let is_guarded = call.contains("with(") || call.contains("guarded(") || call.starts_with("run(");
        assert!(is_guarded, "sc_{call}");
    }
    assert!(count > 30, "{count} calls");
}

#[test]
fn a_function_without_a_guard_is_found() {
    let text = "#[unsafe(no_mangle)]\nunsafe extern \"C\" fn ours(a: c_int) -> c_int {\n    other(a)\n}\n";
    let found = functions(text);
    assert_eq!(found, [("ours", "{\n    other(a)\n}")]);
    assert!(is_exported(text, "ours") && !is_exported(&text.replace("#[unsafe(no_mangle)]", ""), "ours"));
    assert!(functions("type Callback = extern \"C\" fn(c_int);").is_empty());
}
