//! The calls in C: programs that are built against the header and the library.

use cci_conformance::build;
use cci_conformance::installed::{STRICT, end, succeed};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a static library of Rust asks the system for.
const SYSTEM: [&str; 5] = ["-lpthread", "-ldl", "-lrt", "-lm", "-lutil"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn library() -> PathBuf {
    build("cci-template-interface", env!("CARGO_TARGET_TMPDIR").as_ref()).join("libcci_template_interface.a")
}

fn cc() -> Command {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.arg("-I").arg(here().join("include")).args(STRICT).arg("-pthread");
    cc
}

fn finish(child: Child, transport: &str) -> String {
    let output = end(child, &format!("a program over '{transport}'"));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && words.is_empty(), "over '{transport}': {}\n{words}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One serves until the other one has ended, which forks meanwhile.
#[test]
fn two_processes_echo_and_a_forked_child_gets_a_code() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = dir.path().join("echo");
    succeed(
        cc().args(["-std=c99", "-D_DEFAULT_SOURCE", "-g", "-o"])
            .arg(&program)
            .arg(here().join("tests/c/echo.c"))
            .arg(library())
            .args(SYSTEM),
    );
    let first = std::process::id() * 7 % 2_000;
    for (at, transport) in (0..).zip(["sm", "tcp"]) {
        let file = dir.path().join(transport);
        let ip = if transport == "sm" { "" } else { "ip = 127.0.0.1\n" };
        std::fs::write(&file, format!("[device]\ntransport = {transport}\n{ip}")).expect("a configuration");
        let start = |role: &str| {
            let mut command = Command::new(&program);
            command.arg(role).arg((first + 8 * at).to_string()).env("CCI_CONFIG", &file).env_remove("CCI_CTP");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        };
        let (mut server, client) = (start("server"), start("client"));
        let said = finish(client, transport);
        // With its input the server ends.
        drop(server.stdin.take());
        let served = finish(server, transport);
        assert_eq!((said.as_str(), served.as_str()), ("echoed\n", "served\n"), "over {transport}");
    }
}

#[test]
fn the_header_stands_alone_in_c_and_in_cxx_and_declares_what_is_exported() {
    let header = here().join("include/echo.h");
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++17")] {
        succeed(cc().args(["-x", language, standard, "-fsyntax-only"]).arg(&header));
    }
    let text = std::fs::read_to_string(header).expect("the header");
    let calls = text.lines().filter(|line| line.ends_with(");") && line.contains("echo_"));
    let name = |line: &str| line.split(['(', ' ', '*']).find(|word| word.starts_with("echo_")).map(str::to_owned);
    let declared: BTreeSet<String> = calls.filter_map(name).collect();
    let symbols = succeed(Command::new("nm").args(["--extern-only", "--defined-only"]).arg(library()));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let exported = symbols.lines().filter_map(|line| line.split(' ').nth(2)).filter(|name| name.starts_with("echo_"));
    assert_eq!(declared, exported.map(str::to_owned).collect());
    assert_eq!(declared.len(), 6);
}
