//! `cci perf splitc`, as its users run it: it translates a program by this command.

use cci_conformance::installed::{Installed, command, end};
use std::path::Path;
use std::process::Output;

fn perf(splitcc: &str, arguments: &[&str]) -> Output {
    let splitc = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bindings/splitc");
    let installed = Installed::new("cci-splitc-c", "splitc", splitc, env!("CARGO_TARGET_TMPDIR"));
    let flags = installed.pkg_config("splitc", &["--variable=libdir"]);
    let mut command = command(installed.cci());
    command.args(["perf", "splitc", "--local", "--splitcc", splitcc]).args(arguments);
    command.env("PKG_CONFIG_PATH", Path::new(&flags[0]).join("../../pkgconfig"));
    end(command.spawn().expect("it starts"), "cci perf splitc")
}

#[test]
fn each_access_stands_beside_what_it_stands_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let plot = dir.path().join("splitc.svg");
    let output = perf(env!("CARGO_BIN_EXE_splitcc"), &["--time", "10ms", "--plot", plot.to_str().expect("text")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "read of a line that the other rank has written",
        "get of a word, many in a row",
        "put of a word, many in a row",
        "store of a word, many in a row",
        "own word through a global pointer",
        "bulk read of 64 KiB",
        "bulk read of 1 MiB",
        "EM3D with stores, a step",
        "get of a word over a network",
        "direct read",
        "direct memcpy",
        "4 MiB",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(std::fs::read_to_string(plot).is_ok_and(|svg| svg.contains("direct, put") && svg.contains("plateau")));
}

#[test]
fn without_a_translator_it_says_where_one_is_looked_for() {
    let output = perf("/nowhere/splitcc", &[]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("install it beside cci, or name it by --splitcc"), "{words}");
}
