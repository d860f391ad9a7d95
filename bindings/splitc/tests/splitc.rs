//! The library as it is installed: headers, symbols, and C programs that use it as ranks of a job.

use cci_conformance::installed::{Installed, STRICT, command, compiler, end, succeed, use_transport};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, OnceLock};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

static INSTALLED: LazyLock<Installed> =
    LazyLock::new(|| Installed::new("cci-splitc-c", "splitc", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR")));

/// A C program of the tests, built once per run of this test.
fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let dir = BUILT.get_or_init(|| {
        let dir = cci_conformance::run_folder(env!("CARGO_TARGET_TMPDIR").as_ref());
        for name in ["walk", "wrong", "elsewhere", "descriptors"] {
            let _ = INSTALLED.compile(format!("{name}.c"), &["-O2"], &dir);
        }
        let mut cpp = compiler("c++");
        cpp.arg("-std=c++11").args(STRICT).args(["-O2", "-o"]).arg(dir.join("walk-cpp"));
        cpp.arg(here().join("tests/cpp/walk.cpp"));
        succeed(cpp.args(INSTALLED.pkg_config("splitc", &["--cflags", "--libs"])));
        dir
    });
    dir.join(name)
}

/// Runs a program as ranks of a job over a transport, or the default one.
fn run(ranks: u32, name: &str, arguments: &[&str], transport: &str) -> Output {
    run_by(command(INSTALLED.cci()), ranks, name, arguments, transport)
}

fn run_by(mut command: Command, ranks: u32, name: &str, arguments: &[&str], transport: &str) -> Output {
    command.args(["run", "-n", &ranks.to_string()]).arg(program(name)).args(arguments);
    let dir = tempfile::tempdir().expect("a temporary directory");
    use_transport(&mut command, transport, dir.path());
    end(command.spawn().expect("it starts"), &format!("{name} {arguments:?} of {ranks}"))
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}

fn walks(ranks: u32, name: &str, transport: &str) {
    let output = run(ranks, name, &["argument"], transport);
    assert!(output.status.success() && output.stderr.is_empty(), "{ranks} over '{transport}': {output:?}");
    let mut lines: Vec<&str> = text(&output.stdout).lines().collect();
    lines.sort_unstable();
    let wanted: Vec<_> = (0..ranks).map(|rank| format!("rank {rank} of {ranks} walks")).collect();
    assert_eq!(lines, wanted);
}

#[test]
fn every_call_does_what_the_headers_state() {
    (1..=4).for_each(|ranks| walks(ranks, "walk", ""));
}

/// Nothing is mapped: the library serves it all.
#[test]
fn every_call_does_the_same_by_messages() {
    [2, 3].into_iter().for_each(|ranks| walks(ranks, "walk", "sock"));
}

#[test]
fn no_descriptor_is_inherited_or_a_standard_one() {
    for (transport, when) in ["", "sock"].iter().flat_map(|at| ["never", "closed", "closing"].map(|when| (at, when))) {
        let mut command = command(INSTALLED.cci());
        command.env("DESCRIPTORS", when);
        let output = run_by(command, 2, "descriptors", &[], transport);
        assert!(output.status.success() && output.stderr.is_empty(), "'{transport}', {when}: {output:?}");
        let mut lines: Vec<&str> = text(&output.stdout).lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["rank 0 of 2", "rank 1 of 2"]);
    }
}

#[test]
fn the_header_of_cpp_does_the_same() {
    (1..=4).for_each(|ranks| walks(ranks, "walk-cpp", ""));
    walks(3, "walk-cpp", "sock");
}

#[test]
fn a_wrong_program_ends_with_a_sentence() {
    for (what, sentence) in [
        ("rank", "splitc: rank 1: a global pointer names rank 99, and the job has 3 ranks;"),
        ("null", "splitc: rank 1: rank 0 has no 8 bytes at address 0x0 for this access;"),
        ("beyond", "splitc: rank 1: rank 0 has no 8 bytes at address 0x1102"),
        ("constant", "splitc: rank 1: rank 0 has no 4 bytes at address 0x"),
        ("store", "splitc: rank 1: rank 0 has no 8 bytes at address 0x0 for this access;"),
        ("misaligned", "of rank 0, which is no multiple of 4; align the word"),
        ("atomic", "splitc: rank 1: rank 0 has no 4 bytes at address 0x40 for this access;"),
        ("freed", "no spread memory was allocated at address 0x11"),
        ("size", "bytes for each rank, and this host has "),
        ("overflow", "spread memory of 18446744073709551615 bytes for each rank"),
        ("thread", "splitc: a call outside of splitc_main, or from another thread;"),
    ] {
        let output = run(3, "wrong", &[what], "");
        let words = text(&output.stderr);
        assert!(output.status.code() == Some(1) && words.contains(sentence), "{what}: {}: {words}", output.status);
        assert!(!words.contains("panicked"), "{words}");
    }
}

/// Whoever waits for a rank that ends learns of it.
#[test]
fn ranks_that_end_early_end_the_others() {
    let gone = "rank 1 has ended or cannot be reached while other ranks need it;";
    for (what, transport) in [("exits", ""), ("returns", ""), ("exits", "sock")] {
        let output = run(3, "wrong", &[what], transport);
        let words = text(&output.stderr);
        assert!(output.status.code() == Some(1) && words.contains(gone), "{what}: {}: {words}", output.status);
    }
    // The launcher takes the status of the first end that it finds, which may be another rank's.
    for (what, status) in [("dies", 128 + 9), ("aborts", 5)] {
        let output = run(3, "wrong", &[what], "");
        assert!(output.status.code().is_some_and(|code| code == status || code == 1), "{output:?}");
    }
}

/// The end of a child is not that of its rank.
#[test]
fn a_forked_child_ends_alone() {
    let output = run(3, "wrong", &["forks"], "");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_program_may_have_its_own_main() {
    let output = run(2, "elsewhere", &[], "");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(text(&output.stdout), "ended 0\nended 0\n");
}

/// Its statics would lie at another address in each rank.
#[test]
fn a_program_that_is_loaded_anywhere_is_refused() {
    let random = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space").unwrap_or_default();
    if random.trim() == "0" {
        return;
    }
    let anywhere = program("anywhere");
    let mut cc = compiler("c");
    cc.args(["-fPIE", "-pie", "-o"]).arg(&anywhere).arg(here().join("tests/c/elsewhere.c"));
    let flags = INSTALLED.pkg_config("splitc", &["--cflags", "--libs"]);
    succeed(cc.args(flags.iter().filter(|flag| !flag.contains("-no-pie") && !flag.contains("-fno-pie"))));
    let output = run(2, "anywhere", &[], "");
    let words = text(&output.stderr);
    assert!(output.status.code() == Some(1) && words.contains("link it with -no-pie"), "{words}");
}

#[test]
fn without_a_job_it_says_how_to_start_one() {
    let output = command(program("walk")).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output.stderr);
    assert!(words.starts_with("splitc: cannot start the Split-C program: ") && words.contains("cci run"), "{words}");
}

#[test]
fn the_libraries_export_the_list() {
    assert_eq!(INSTALLED.exported("splitc"), [(); 2].map(|()| INSTALLED.listed()));
}

#[test]
fn the_headers_declare_what_the_list_names_and_no_other() {
    let headers = ["control.h", "split-c.h"].map(|name| here().join("include/split-c").join(name));
    let texts = headers.map(|path| std::fs::read_to_string(path).expect("a header"));
    let is_declaration = |line: &&str| line.ends_with(");") && line.contains(" ") && !line.starts_with([' ', '#', '/']);
    let name = |line: &str| {
        let before = line.split('(').next().expect("a name");
        before.rsplit([' ', '*']).next().expect("a word").to_owned()
    };
    let declared: std::collections::BTreeSet<_> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(is_declaration)
        .map(name)
        .filter(|name| name != "splitc_main")
        .collect();
    assert_eq!(declared, INSTALLED.listed());
}

#[test]
fn the_headers_stand_alone() {
    for (language, standard, flags) in [
        ("c", "-std=c99", &["-Wpedantic"][..]),
        ("c", "-std=gnu89", &[]),
        ("c++", "-std=c++17", &["-DSPLITC_OWN_MAIN"]),
    ] {
        let own = if language == "c++" {
            &["split-c.h", "control.h", "split-c.hpp"][..]
        } else {
            &["split-c.h", "control.h"]
        };
        let strict = STRICT.into_iter().filter(|flag| *flag != "-Wpedantic");
        let flags: Vec<_> = strict.chain([standard, "-D_DEFAULT_SOURCE"]).chain(flags.iter().copied()).collect();
        for header in own {
            INSTALLED.stands_alone_in(language, "splitc", &format!("split-c/{header}"), &flags);
        }
    }
}

/// No compiler finds it without pkg-config.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(INSTALLED.names_in("include"), ["cci"]);
    assert_eq!(INSTALLED.names_in("include/cci/compat"), ["split-c"]);
    assert_eq!(INSTALLED.names_in("lib"), ["cci", "pkgconfig"]);
}
