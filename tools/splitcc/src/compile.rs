//! The route of a file: preprocessed, encoded, parsed, translated, compiled.

use crate::arguments::{Arguments, Goal};
use crate::edits::place;
use crate::lex::encode;
use crate::strings::{joined, unterminated};
use crate::translate::translate;
use lang_c::driver::{Config, Flavor, parse_preprocessed};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The dialect of the language. What several files define without a value is one variable.
const DIALECT: [&str; 3] = ["-std=gnu89", "-fgnu89-inline", "-fcommon"];
/// What compilers of the language's time warned of, and those of today refuse.
const TOLERANCE: [&str; 2] = ["-Wno-error=incompatible-pointer-types", "-Wno-error=int-conversion"];

fn compiler() -> OsString {
    std::env::var_os("CC").filter(|name| !name.is_empty()).unwrap_or_else(|| "cc".into())
}

fn cannot(what: &str, why: &dyn std::fmt::Display, remedy: &str) -> Vec<String> {
    vec![format!("splitcc: error: {what}: {why}; {remedy}")]
}

/// What `pkg-config` prints of the run time.
fn flags(of: &str) -> Result<Vec<String>, Vec<String>> {
    let mut command = Command::new("pkg-config");
    command.args([of, "splitc"]);
    // Installed together, this command lies in PREFIX/bin.
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.parent()?.join("lib/pkgconfig")));
    let paths: Vec<PathBuf> =
        std::env::var_os("PKG_CONFIG_PATH").iter().flat_map(std::env::split_paths).chain(beside).collect();
    if let Ok(paths) = std::env::join_paths(paths) {
        command.env("PKG_CONFIG_PATH", paths);
    }
    let remedy = "install the run time, and set PKG_CONFIG_PATH to PREFIX/lib/pkgconfig";
    let output = command.output().map_err(|why| cannot("cannot run pkg-config", &why, "install it"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(cannot("the run time is not found", &why.trim(), remedy));
    }
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Vec<String>> {
    let cflags = flags("--cflags")?;
    let scratch = Scratch::new()?;
    let mut objects = Vec::new();
    for (number, source) in arguments.sources.iter().enumerate() {
        let named = PathBuf::from(source.file_name().unwrap_or_default()).with_extension("o");
        let object = match (arguments.goal, &arguments.output) {
            (Goal::Objects, Some(output)) => output.clone(),
            (Goal::Objects, None) => named.clone(),
            _ => scratch.0.join(format!("{number}.o")),
        };
        let rules_for = if arguments.goal == Goal::Objects { &object } else { &named };
        let text = preprocessed(source, arguments, &cflags, rules_for, &scratch)?;
        if arguments.goal == Goal::Rules {
            print(&text, arguments.output.as_deref())?;
            continue;
        }
        let text = translated(&text, arguments.has("-w"))?;
        if arguments.goal == Goal::Translation {
            print(&text, arguments.output.as_deref())?;
            continue;
        }
        let file = scratch.0.join(format!("{number}.i"));
        std::fs::write(&file, text).map_err(|why| cannot("cannot write the translation", &why, "see TMPDIR"))?;
        compile(&file, &object, arguments, &cflags)?;
        objects.push(object);
    }
    match arguments.goal {
        Goal::Program => link(&objects, arguments, &cflags),
        Goal::Objects => compile_c(arguments, &cflags),
        Goal::Translation | Goal::Rules => Ok(()),
    }
}

/// The flags of the run time that do not name its headers.
fn of_code(cflags: &[String]) -> impl Iterator<Item = &String> {
    cflags.iter().filter(|flag| !flag.starts_with("-I"))
}

/// Compiles a translation.
fn compile(file: &Path, object: &Path, arguments: &Arguments, cflags: &[String]) -> Result<(), Vec<String>> {
    let mut cc = Command::new(compiler());
    cc.args(DIALECT).args(of_code(cflags));
    if !arguments.has("-Werror") {
        cc.args(TOLERANCE);
    }
    cc.args(arguments.for_compiler()).args(["-x", "cpp-output", "-c"]).arg(file).arg("-o").arg(object);
    succeed(&mut cc)
}

/// Compiles the files of C that are not linked.
fn compile_c(arguments: &Arguments, cflags: &[String]) -> Result<(), Vec<String>> {
    for file in arguments.c_files() {
        let mut cc = Command::new(compiler());
        cc.args(cflags).arg("-fcommon").args(arguments.for_c()).args(["-c", file]);
        if let Some(output) = &arguments.output {
            cc.arg("-o").arg(output);
        }
        succeed(&mut cc)?;
    }
    Ok(())
}

fn link(objects: &[PathBuf], arguments: &Arguments, cflags: &[String]) -> Result<(), Vec<String>> {
    let mut cc = Command::new(compiler());
    if arguments.c_files().is_empty() {
        cc.args(of_code(cflags));
    } else {
        cc.args(cflags).arg("-fcommon");
    }
    cc.args(objects).args(arguments.for_linker());
    cc.arg("-o").arg(arguments.output.as_deref().unwrap_or(Path::new("a.out")));
    succeed(cc.args(flags("--libs")?))
}

fn print(text: &str, to: Option<&Path>) -> Result<(), Vec<String>> {
    let written = match to {
        Some(file) => std::fs::write(file, text),
        None => std::io::stdout().write_all(text.as_bytes()),
    };
    written.map_err(|why| cannot("cannot write the translation", &why, "choose another place"))
}

/// Runs the C compiler, which reports its errors itself.
fn succeed(cc: &mut Command) -> Result<(), Vec<String>> {
    let status = cc.status().map_err(|why| cannot("cannot run the C compiler", &why, "install one, or set CC"))?;
    if status.success() { Ok(()) } else { Err(Vec::new()) }
}

/// What the preprocessor makes of a file, whose object has a name for rules of `make`.
fn preprocessed(
    source: &Path,
    arguments: &Arguments,
    cflags: &[String],
    object: &Path,
    scratch: &Scratch,
) -> Result<String, Vec<String>> {
    let cannot_run = |why| cannot("cannot run the C compiler", &why, "install one, or set CC");
    let mut cpp = preprocessor(arguments.for_preprocessor(), cflags);
    if arguments.has("-MD") || arguments.has("-MMD") {
        if !arguments.has_start("-MF") {
            cpp.arg("-MF").arg(object.with_extension("d"));
        }
        if !arguments.has_start("-MT") && !arguments.has_start("-MQ") {
            cpp.arg("-MQ").arg(object);
        }
    }
    let mut output = cpp.arg(source).output().map_err(cannot_run)?;
    let name = source.display().to_string();
    let mut lines = BTreeSet::new();
    loop {
        // Each pass finds what strings before have hidden.
        let found = unterminated(&name, &String::from_utf8_lossy(&output.stderr));
        if found.is_subset(&lines) || arguments.goal == Goal::Rules {
            break;
        }
        lines.extend(found);
        let text = std::fs::read(source).map_err(|why| cannot(&name, &why, "see its rights"))?;
        let text = [format!("# 1 \"{}\"\n", name.escape_default()).as_bytes(), &joined(&text, &lines)].concat();
        let file = scratch.0.join("joined.c");
        std::fs::write(&file, text).map_err(|why| cannot("cannot write the translation", &why, "see TMPDIR"))?;
        let folder = source.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Headers beside the file are found first, as if it were there.
        let folder = folder.to_string_lossy();
        let options = [vec!["-iquote", &*folder], arguments.for_preprocessor_without_rules()].concat();
        output = preprocessor(options, cflags).arg(file).output().map_err(cannot_run)?;
    }
    let Output { status, stdout, stderr } = output;
    if !status.success() || !arguments.has("-w") {
        let _ = std::io::stderr().write_all(&stderr);
    }
    if !status.success() {
        return Err(Vec::new());
    }
    String::from_utf8(stdout).map_err(|why| cannot(&name, &why, "write it in UTF-8"))
}

/// The preprocessor. Its warnings are read, in English, and printed later.
fn preprocessor(options: Vec<&str>, cflags: &[String]) -> Command {
    let mut cpp = Command::new(compiler());
    cpp.args(["-E", "-x", "c", "-D__SPLITC__"]).args(DIALECT).args(cflags).env("LC_ALL", "C");
    cpp.args(["-include", "split-c/split-c.h"]).args(options.into_iter().filter(|option| *option != "-w"));
    cpp
}

/// The translation of a preprocessed file. Warnings go to standard error, unless it is quiet.
fn translated(text: &str, is_quiet: bool) -> Result<String, Vec<String>> {
    let config = Config { flavor: Flavor::GnuC11, ..Config::default() };
    let encoded = encode(text);
    let parsed = parse_preprocessed(&config, encoded).map_err(|error| {
        let place = place(&error.source, error.offset);
        let near = near(&error.source, error.offset);
        vec![format!("{place}: error: this is no Split-C, at `{near}`; see what stands before")]
    })?;
    let translated = translate(parsed.source, &parsed.unit)?;
    for warning in translated.warnings.iter().filter(|_| !is_quiet) {
        let _ = std::io::stderr().write_all(format!("{warning}\n").as_bytes());
    }
    Ok(translated.text)
}

/// What stands at a place, as it was written.
fn near(text: &str, offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default().lines().next().unwrap_or_default();
    let line = rest.replace("= sc_get_ =", ":=").replace("= sc_store_ =", ":-").replace("[sc_here_]", "::");
    line.chars().take(40).collect()
}

/// A folder that goes with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Vec<String>> {
        let path = std::env::temp_dir().join(format!("splitcc-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|why| cannot(&path.display().to_string(), &why, "see TMPDIR"))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
