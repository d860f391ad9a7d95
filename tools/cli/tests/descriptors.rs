//! What programs that the command starts, or that its processes execute, inherit of it.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::Running;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn cci(arguments: &[&str]) -> Command {
    let mut command = command_line::cci(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Descriptors of a process, beside its standard ones, that a program inherits that it executes.
fn inheritable(process: u32) -> BTreeSet<(u32, PathBuf)> {
    const CLOEXEC: u32 = 0o200_0000;
    let folder = PathBuf::from(format!("/proc/{process}"));
    let numbers = std::fs::read_dir(folder.join("fdinfo")).unwrap();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_inherited = |number: &u32| {
        let about = std::fs::read_to_string(folder.join(format!("fdinfo/{number}"))).ok()?;
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
        Some(u32::from_str_radix(flags.trim(), 8).ok()? & CLOEXEC == 0)
    };
    let found = numbers.filter(|number| *number > 2 && is_inherited(number) == Some(true));
    found.filter_map(|number| Some((number, folder.join(format!("fd/{number}")).read_link().ok()?))).collect()
}

/// What this test passes on to all.
fn own() -> BTreeSet<(u32, PathBuf)> {
    inheritable(std::process::id())
}

/// Starts a command, and waits for its first line.
fn started(command: &mut Command) -> (Running, String) {
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "it has ended");
    (running, line.trim().to_owned())
}

#[test]
fn nothing_of_a_server_of_metrics_is_inherited() {
    let (server, _) = started(&mut cci(&["top", "--listen", "127.0.0.1:0"]));
    assert_eq!(&inheritable(server.0.id()) - &own(), BTreeSet::new());
}

#[test]
fn nothing_of_a_measuring_server_is_inherited() {
    for transport in ["sm", "sock", "tcp", "auto"] {
        let (server, uri) = started(&mut cci(&["perf", "--server", "--transport", transport]));
        assert_eq!(&inheritable(server.0.id()) - &own(), BTreeSet::new(), "{transport}");
        let run = ["perf", "pingpong", "--connect", &uri, "--size", "8", "--time", "short", "--launches", "1"];
        let client = cci(&run).output().unwrap();
        // It may be as inaccurate as the machine is busy.
        assert!(!client.stdout.is_empty(), "{transport}: {client:?}");
        assert_eq!(&inheritable(server.0.id()) - &own(), BTreeSet::new(), "{transport}");
    }
}

/// Each rank has its own end of its connection to the store, and nothing of the others.
#[test]
fn a_rank_has_its_standard_descriptors_and_that_of_its_job() {
    let script = "for f in /proc/$$/fd/*; do [ -L $f ] && echo ${f##*/} $CCI_JOB_FD; done; true";
    let passed: BTreeSet<u32> = own().into_iter().map(|(number, _)| number).collect();
    for more in [&[][..], &["--label"]] {
        let mut run = cci(&["run", "-n", "3"]);
        let output = run.args(more).args(["sh", "-c", script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.lines().count() >= 12, "{text}");
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [.., number, of_job] = words[..] else { panic!("{text}") };
            let number: u32 = number.parse().unwrap();
            assert!(number < 3 || number.to_string() == of_job || passed.contains(&number), "{text}");
        }
    }
}
