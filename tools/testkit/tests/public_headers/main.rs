//! Each public header by itself, under each compiler that is installed and each standard that the
//! compiler has, with the warnings that careful programs ask for as errors; and the names in them.

mod names;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const STANDARDS: [(&str, &[&str]); 2] =
    [("c", &["c99", "c11", "c17", "c2x", "c23"]), ("c++", &["c++11", "c++14", "c++17", "c++20", "c++2b", "c++23"])];

const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];

/// Compilers of both languages, as far as they are installed; the first is one that every build
/// needs.
const COMPILERS: [&str; 18] = [
    "cc", "gcc-11", "gcc-12", "gcc-13", "gcc-14", "gcc-15", "gcc-16", "clang", "clang-13", "clang-14", "clang-15",
    "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21", "clang-22",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's directory")
}

/// The folders that installation copies to one include folder.
fn include_folders() -> Vec<PathBuf> {
    let bindings = root().join("bindings").read_dir().expect("the bindings");
    let mut folders: Vec<_> = bindings.map(|entry| entry.expect("an entry").path().join("include")).collect();
    folders.retain(|folder| folder.is_dir());
    folders.push(root().join("include"));
    folders.sort();
    folders
}

/// The headers below a folder, as programs name them.
fn headers(folder: &Path) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = rest.pop() {
        for path in next.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                rest.push(path);
            } else if path.extension().is_some_and(|end| end == "h") {
                found.push(path.strip_prefix(folder).expect("below it").to_str().expect("its name").to_owned());
            }
        }
    }
    found
}

/// Compiles a source that is read from a pipe; the compiler's complaints otherwise.
fn compile(compiler: &str, language: &str, standard: &str, source: &str) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(["-x", language, &format!("-std={standard}")]).args(WARNINGS).args(["-fsyntax-only", "-"]);
    for folder in include_folders() {
        command.arg("-I").arg(folder);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // A compiler that does not have the standard reads nothing.
    let _ = std::io::Write::write_all(&mut child.stdin.take().expect("its input"), source.as_bytes());
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// What each compiler that is here has of the standards.
fn dialects() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut found = Vec::new();
    for compiler in COMPILERS {
        for (language, standards) in STANDARDS {
            let has = |standard: &&&str| compile(compiler, language, standard, "int one;\n").is_ok();
            found.extend(standards.iter().filter(has).map(|standard| (compiler, language, *standard)));
        }
    }
    found
}

#[test]
fn each_header_compiles_by_itself_without_a_warning_in_every_standard() {
    let dialects = dialects();
    for (language, least) in [("c", "c99"), ("c++", "c++17")] {
        assert!(dialects.contains(&("cc", language, least)), "cc has no {least}: {dialects:?}");
    }
    let headers: Vec<_> = include_folders().iter().flat_map(|folder| headers(folder)).collect();
    assert!(headers.len() > 20, "{headers:?}");
    let complaints = std::thread::scope(|scope| {
        let check = |(compiler, language, standard)| {
            let complain = move |header: &String| {
                let source = format!("#include <{header}>\n");
                let complaint = compile(compiler, language, standard, &source).err()?;
                // A part of another header says so, and which to include.
                let is_part = complaint.contains("#error \"include ") || complaint.contains("error: \"include ");
                (!is_part).then(|| format!("{header}, {compiler} -std={standard}: {complaint}"))
            };
            headers.iter().filter_map(complain).collect::<Vec<_>>()
        };
        let threads: Vec<_> = dialects.iter().map(|dialect| scope.spawn(move || check(*dialect))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread ends")).collect::<Vec<_>>()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
