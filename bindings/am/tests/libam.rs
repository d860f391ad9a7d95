//! The library as it is installed: headers, symbols, and C programs that use it.

mod installed;

use cci_conformance::installed::{STRICT, compiler, finish, succeed};
use installed::{INSTALLED, build, command, end, here, text};
use std::collections::BTreeSet;
use std::process::Command;

const DIALECTS: [(&str, &str); 3] = [("amudp", "AMUDP_"), ("ammpi", "AMMPI_"), ("am", "AMNOW_")];

/// Builds a C program, runs it, and returns what it prints.
fn run(sources: &[&str], flags: &[&str], name: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = dir.path().join("program");
    build(sources, flags, name, &program);
    finish(command(&program).spawn().expect("the program starts"), &sources.join(" "))
}

#[test]
fn amudp_conforms_call_by_call() {
    assert!(run(&["bindings/am/tests/c/conformance.c"], &[], "amudp").ends_with("conforms\n"));
}

#[test]
fn ammpi_conforms_call_by_call() {
    assert!(run(&["bindings/am/tests/c/conformance.c"], &["-DWITH_AMMPI"], "ammpi").ends_with("conforms\n"));
}

#[test]
fn three_dialects_are_linked_into_one_program() {
    let sources =
        ["dialects.c", "part_udp.c", "part_mpi.c", "part_now.c"].map(|name| format!("bindings/am/tests/c/{name}"));
    let sources = sources.each_ref().map(String::as_str);
    assert_eq!(run(&sources, &[], "am"), "three dialects\n");
}

#[test]
fn children_go_on_whose_parent_was_in_a_call() {
    assert_eq!(run(&["bindings/am/tests/c/forks.c"], &["-pthread"], "amudp"), "its children go on\n");
}

#[test]
fn a_thread_that_is_cancelled_ends_its_calls_first() {
    assert_eq!(run(&["bindings/am/tests/c/cancelled.c"], &["-pthread"], "amudp"), "called\n");
}

/// Packaged: staged below a directory that is not the prefix.
#[test]
fn a_staged_installation_builds_programs() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let built = cci_conformance::build("cci-am-c", env!("CARGO_TARGET_TMPDIR").as_ref());
    succeed(Command::new(here().join("install.sh")).arg(built).arg("/usr/local").env("DESTDIR", dir.path()));
    let lib = dir.path().join("usr/local/lib");
    let flags = |kind: &str| {
        let mut command = Command::new("pkg-config");
        command.args([kind, "amudp"]).env("PKG_CONFIG_SYSROOT_DIR", dir.path());
        let printed = succeed(command.env("PKG_CONFIG_PATH", lib.join("pkgconfig")));
        text(&printed.stdout).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let program = dir.path().join("conformance");
    let mut cc = compiler("c");
    cc.args(["-std=c99", "-D_DEFAULT_SOURCE", "-pthread"])
        .args(["tests/c/alone.c", "tests/c/part_udp.c"].map(|source| here().join(source)));
    succeed(cc.args(flags("--cflags")).args(flags("--libs")).arg("-o").arg(&program));
    let ended = end(command(&program).env("LD_LIBRARY_PATH", lib.join("cci/compat")).spawn().expect("it starts"), "it");
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

#[test]
fn the_libraries_export_the_list() {
    assert_eq!(INSTALLED.exported("am"), [(); 2].map(|()| INSTALLED.listed()));
}

/// The header of parallel programs, where a dialect has one.
fn spmd(dialect: &str) -> Option<String> {
    (dialect != "am").then(|| format!("{dialect}_spmd"))
}

/// Each symbol of a dialect's prefix that its header names, but for functions of the header itself.
#[test]
fn headers_declare_what_the_list_names() {
    let mut declared = BTreeSet::new();
    for (header, prefix) in DIALECTS {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = dir.path().join("header.c");
        let spmd = spmd(header).map(|header| format!("#include <{header}.h>\n")).unwrap_or_default();
        std::fs::write(&source, format!("#include <{header}.h>\n{spmd}")).expect("a source is written");
        let mut cc = compiler("c");
        cc.args(["-std=c99", "-E", "-P"]).arg(source).args(INSTALLED.pkg_config(header, &["--cflags"]));
        let text = String::from_utf8_lossy(&succeed(&mut cc).stdout).into_owned();
        let is_name = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
        for line in text.lines().filter(|line| !line.starts_with(' ') && !line.contains("static inline")) {
            let mut words = line.split(|symbol| !is_name(symbol)).filter(|word| word.starts_with(prefix));
            declared.extend(words.next().map(str::to_owned));
        }
    }
    assert_eq!(declared, INSTALLED.listed());
}

#[test]
fn each_header_stands_alone_in_c_and_in_cxx() {
    let headers = DIALECTS.into_iter().flat_map(|(name, _)| [Some(name.into()), spmd(name)]);
    for header in headers.flatten().chain(["amudp_const".into()]) {
        let name = header.split('_').next().unwrap_or(&header);
        INSTALLED.stands_alone(name, &format!("{header}.h"), &[]);
    }
}

/// A program's public header includes the constants alone, and asks for them by call.
#[test]
fn the_header_of_constants_has_the_limits_as_calls() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = dir.path().join("limits.c");
    let limits = "AM_MaxShort() + AM_MaxMedium() + AM_MaxLong() + AM_MaxNumHandlers()";
    std::fs::write(&source, format!("#include <amudp_const.h>\nchar limits[{limits}];\n")).expect("it is written");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99"]).args(STRICT).arg("-fsyntax-only").arg(source);
    succeed(cc.args(INSTALLED.pkg_config("amudp", &["--cflags"])));
}

/// Its callers' formats are checked, and gcc with its advice on attributes has none to give.
#[test]
fn a_fatal_error_has_the_attribute_of_its_format() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = dir.path().join("fatal.c");
    for (arguments, accepted) in [("\"%d\", 1", true), ("\"%d\", \"1\"", false)] {
        let call = format!("#include <amudp.h>\nint main(void) {{ AMUDP_FatalErr({arguments}); return 0; }}\n");
        std::fs::write(&source, call).expect("it is written");
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-D_DEFAULT_SOURCE", "-fsyntax-only"]).args(STRICT).arg(&source);
        let checked = cc.args(INSTALLED.pkg_config("amudp", &["--cflags"])).output().expect("cc runs");
        assert_eq!(checked.status.success(), accepted, "{}", text(&checked.stderr));
    }
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(INSTALLED.names_in("include"), ["cci"]);
    assert_eq!(INSTALLED.names_in("lib"), ["cci", "pkgconfig"]);
}
