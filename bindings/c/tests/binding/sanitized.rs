//! Programs that are built with the thread sanitizer, and the library that is not.

use crate::prefix::{STRICT, command, compiler, end, here, pkg_config, prefix, scratch, succeed};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

fn build(source: &Path, target: &Path) -> Command {
    let mut cc = compiler("c");
    cc.args(["-std=c99", "-fsanitize=thread", "-g", "-pthread", "-D_DEFAULT_SOURCE", "-o"]).args([target, source]);
    cc
}

/// Whether the compiler has the sanitizer, and its programs start: they do not where addresses are
/// laid out in a way that it does not know.
fn is_there(dir: &Path) -> bool {
    let (source, target) = (dir.join("nothing.c"), dir.join("nothing"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a source is written");
    let built = build(&source, &target).output().is_ok_and(|output| output.status.success());
    let is_there = built && Command::new(&target).output().is_ok_and(|output| output.status.success());
    if !is_there {
        let _ = writeln!(std::io::stderr(), "skipped: no thread sanitizer is to be had here");
    }
    is_there
}

fn run(program: &Path, transport: &str, arguments: &[&str]) -> Output {
    let suppressions = prefix().join("share/cci/tsan.supp");
    let mut program = command(program);
    program.args(arguments).env("CCI_CTP", transport);
    program.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    end(program.spawn().expect("it starts"), "two_threads")
}

#[test]
fn the_thread_sanitizer_reports_races_of_the_program_and_none_of_the_library() {
    let dir = scratch();
    if !is_there(dir.path()) {
        return;
    }
    let program = dir.path().join("two_threads");
    let mut cc = build(&here().join("tests/c/two_threads.c"), &program);
    succeed(cc.args(STRICT).args(pkg_config(&["--cflags", "--libs"])));
    for transport in ["sm", "sock", "tcp", "sm,sock,tcp"] {
        let output = run(&program, transport, &[]);
        assert!(output.status.success() && output.stderr.is_empty(), "{transport}: {output:?}");
    }
    let output = run(&program, "sm", &["race"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("data race"), "{output:?}");
}
