//! `cci perf --peers` with programs that are built for the test, and with stand-ins that misbehave.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/build");

/// The programs of all peers that are installed here, and what the build said of each.
fn built() -> &'static (PathBuf, String) {
    static BUILT: OnceLock<(PathBuf, String)> = OnceLock::new();
    BUILT.get_or_init(|| {
        // A static is never dropped, so that the programs lie where the next run finds them.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
        let output = Command::new(BUILD).arg(&directory).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (directory, text(&output.stdout))
    })
}

/// Two processors that this process may use, or one twice.
fn two_processors() -> [String; 2] {
    let set = sched_getaffinity(None).unwrap();
    let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    let first = allowed.next().unwrap();
    [first, allowed.next().unwrap_or(first)].map(|cpu| cpu.to_string())
}

/// A short run with peers; few blocks are not accurate, and need not be.
fn run(directory: &Path, arguments: &[&str]) -> (Output, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    command.arg("perf").args(arguments).args(["--local", "--json", "-", "--accuracy", "1000%", "--peers-in"]);
    command.arg(directory).env_remove("CCI_CONFIG").stdin(Stdio::null());
    let output = command.output().unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, document)
}

/// Rows by library and the short name of the setting, with their medians.
fn medians(document: &Value) -> Vec<(String, String, f64)> {
    let word = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let short = |setting: &str| setting.split(':').next().unwrap_or_default().to_owned();
    let rows = document["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| (word(row, "library"), short(&word(row, "setting")), row["median_ns"].as_f64().unwrap()))
        .collect()
}

const QUICK: [&str; 4] = ["--blocks", "4", "--launches", "2"];

#[test]
fn bare_sockets_stand_beside_cci_in_each_measurement() {
    let (directory, said) = built();
    assert!(said.contains("built sockets"), "{said}");
    for measurement in
        [&["pingpong", "--size", "8"][..], &["bw", "--size", "4096", "--touch"], &["rate", "--size", "8"]]
    {
        let arguments = ["--peers", "sockets", "--count", "50"];
        let (output, document) = run(directory, &[measurement, &arguments, &QUICK].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let rows = medians(&document);
        let names: Vec<_> = rows.iter().map(|(library, setting, _)| format!("{library}:{setting}")).collect();
        assert_eq!(names, ["cci:", "sockets:unix", "sockets:tcp", "sockets:udp"]);
        for row in document["rows"].as_array().unwrap() {
            assert!(row["median_ns"].as_f64().unwrap() > 0.0 && row["ratio"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!((row["blocks"].as_u64(), row["launches"].as_array().unwrap().len()), (Some(4), 2), "{row}");
        }
        let table = text(&output.stderr);
        assert!(table.contains("to cci") && table.contains("TCP_NODELAY"), "{table}");
    }
}

/// Each library that is installed here. One that is not is named in the output, and nothing is
/// claimed of it.
#[test]
fn every_installed_library_stands_beside_cci_and_the_others_are_left_out_by_name() {
    let (directory, said) = built();
    let arguments = ["pingpong", "--size", "8,4096", "--peers", "installed", "--count", "20"];
    let (output, document) = run(directory, &[&arguments[..], &QUICK].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = medians(&document);
    for line in said.lines() {
        let words: Vec<_> = line.split([' ', ':']).collect();
        let library = if words[0] == "built" { words[1] } else { words[2] };
        let its = rows.iter().filter(|(of, _, median)| of == library && *median > 0.0).count();
        if words[0] == "built" {
            assert!(its >= 4, "{library} has {its} rows of two settings and two sizes: {}", text(&output.stderr));
        } else {
            assert_eq!(its, 0, "{library}");
            assert!(text(&output.stderr).contains(&format!("{library} is not built")), "{}", text(&output.stderr));
        }
    }
}

#[test]
fn mpi_stands_beside_windows_where_it_is_installed() {
    let (directory, said) = built();
    if !said.contains("built openmpi") && !said.contains("built mpich") {
        return;
    }
    let plot = tempfile::NamedTempFile::new().unwrap();
    let quick = ["mpi", "--transport", "sm", "--launches", "1", "--runs", "1", "--time", "1ms", "--size", "1,8,64,256"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    command.arg("perf").args(quick).args(["--local", "--json", "-", "--peers-in"]).arg(directory);
    let output = command.arg("--plot").arg(plot.path()).env_remove("CCI_CONFIG").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = document["findings"][0]["points"].as_array().unwrap();
    for library in ["openmpi", "mpich"].into_iter().filter(|library| said.contains(&format!("built {library}"))) {
        for experiment in ["oneway", "pingpong"] {
            let of = |way: &str| points.iter().filter(|of| of["way"] == way && of["experiment"] == experiment).count();
            assert_eq!((of(library), of("windows")), (4, 4), "{points:?}");
        }
    }
    let drawn = fs::read_to_string(plot.path()).unwrap();
    assert!(drawn.contains("13: model") && text(&output.stderr).contains("1999: MPI"), "{}", text(&output.stderr));
}

#[test]
fn a_size_that_a_peer_cannot_carry_leaves_out_its_row_only() {
    let (directory, _) = built();
    let arguments = ["pingpong", "--op", "write", "--size", "8,64K", "--peers", "sockets:udp", "--count", "20"];
    let (output, document) = run(directory, &[&arguments[..], &QUICK].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let libraries: Vec<_> = medians(&document).into_iter().map(|(library, ..)| library).collect();
    assert_eq!(libraries, ["cci", "sockets", "cci"]);
    let said = text(&output.stderr);
    assert_eq!(said.matches("sockets:udp cannot carry a message of 65536 bytes").count(), 1, "{said}");
}

/// Stand-ins for programs. A shell writes the files: this process starts others meanwhile, which
/// would have them open.
fn stand_ins(scripts: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, script) in scripts {
        let path = directory.path().join(name);
        let mut shell = Command::new("sh");
        let writing = "{ echo '#!/bin/sh'; cat; } > \"$0\" && chmod +x \"$0\"";
        let mut writer = shell.args(["-c", writing]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
        writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }
    directory
}

#[test]
fn peers_that_die_or_talk_nonsense_are_lost_and_the_others_go_on() {
    let directory = stand_ins(&[
        ("ucx", "echo out of order >&2; exit 4"),
        ("nng", "printf 'peer 1\\tnng\\t9\\tfine\\n'; read line; echo ns 1; kill -9 $$"),
        ("zeromq", "printf 'peer 1\\tzeromq\\t9\\tfine\\n'; while read line; do echo ns soon; done"),
    ]);
    fs::copy(built().0.join("sockets"), directory.path().join("sockets")).unwrap();
    let arguments = ["pingpong", "--size", "8", "--count", "20", "--peers", "ucx:posix,nng:ipc,zeromq:tcp,sockets:tcp"];
    let (output, document) = run(directory.path(), &[&arguments[..], &QUICK].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(document["complete"], false);
    let why = document["interrupted"].as_str().unwrap();
    let expected = [
        "ucx:posix is lost: it ended (exit status: 4); the end of its standard error: out of order",
        "nng:ipc is lost",
        "\"ns soon\"",
    ];
    for sentence in expected {
        assert_eq!(why.matches(sentence).count(), 1, "{sentence} in {why}");
    }
    assert!(why.contains("signal: 9"), "{why}");
    let rows = medians(&document);
    let of = |library: &str| rows.iter().filter(|(of, ..)| of == library).count();
    assert_eq!((of("cci"), of("sockets"), of("ucx"), of("zeromq")), (1, 1, 0, 0), "{rows:?}");
    // CCI and the socket have the blocks of both launches.
    assert!(document["rows"].as_array().unwrap().iter().all(|row| row["library"] == "nng" || row["blocks"] == 4));
}

#[test]
fn a_missing_peer_is_named_with_its_package_and_marks_the_run() {
    let directory = stand_ins(&[]);
    let arguments = ["pingpong", "--size", "8", "--count", "20", "--peers"];
    let (output, document) = run(directory.path(), &[&arguments[..], &["mpich:tcp"], &QUICK].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((document["complete"].as_bool(), document["rows"].as_array().unwrap().len()), (Some(false), 1));
    let why = document["interrupted"].as_str().unwrap();
    assert!(why.contains("mpich is not built") && why.contains("libmpich-dev"), "{why}");
    let (output, document) = run(directory.path(), &[&arguments[..], &["installed"], &QUICK].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(document["complete"], true);
    assert!(text(&output.stderr).contains("Left out: mpich is not built"), "{}", text(&output.stderr));
}

#[test]
fn what_peers_cannot_do_is_refused_before_the_run() {
    let directory = stand_ins(&[]);
    let refused = |arguments: &[&str]| {
        let (output, document) = run(directory.path(), arguments);
        assert!(!output.status.success() && document.is_null(), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(refused(&["pingpong", "--peers", "openmpy"]).contains("mpich (:shm, :tcp)"));
    assert!(refused(&["pingpong", "--op", "read", "--peers", "all"]).contains("--op send or write"));
    assert!(refused(&["pingpong", "--mode", "blocking", "--peers", "all"]).contains("--mode blocking"));
    assert!(refused(&["pingpong", "--transport", "sim", "--peers", "all"]).contains("virtual time"));
    assert!(refused(&["oneway", "--peers", "all"]).contains("--peers"));
}

/// The process that a stand-in has written the number of.
fn process_of(path: &Path) -> Option<Pid> {
    Pid::from_raw(fs::read_to_string(path).ok()?.trim().parse().ok()?)
}

#[test]
fn a_killed_run_leaves_no_program_behind() {
    let (programs, _) = built();
    let real = programs.join("sockets");
    let directory = tempfile::tempdir().unwrap();
    let number = directory.path().join("number");
    // Written whole, then put in its place.
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec {1} \"$@\"", number.display(), real.display());
    let stand_in = stand_ins(&[("sockets", &script)]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    command.args([
        "perf",
        "pingpong",
        "--local",
        "--size",
        "8",
        "--time",
        "1000s",
        "--peers",
        "sockets:tcp",
        "--peers-in",
    ]);
    let mut run = command.arg(stand_in.path()).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let program = loop {
        if let Some(program) = process_of(&number) {
            break program;
        }
        assert!(begin.elapsed() < PATIENCE && run.try_wait().unwrap().is_none(), "the program did not start");
        std::thread::yield_now();
    };
    let ended = pidfd_open(program, PidfdFlags::empty()).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let limit = Timespec::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&limit)), Ok(1), "{program:?} goes on");
}

/// Whether a process sleeps, and all that it has started.
fn sleeps(process: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    let state = read("stat").rsplit(')').next().unwrap().trim().chars().next();
    let children = read(&format!("task/{process}/children"));
    state == Some('S') && children.split_whitespace().all(|child| sleeps(child.parse().unwrap()))
}

/// Idle programs must not take a processor from the one that is measured, although their libraries
/// would poll.
#[test]
fn both_processes_of_a_program_sleep_between_blocks() {
    let (programs, _) = built();
    for (library, setting) in
        [("sockets", "tcp"), ("libfabric", "udp"), ("ucx", "tcp"), ("zeromq", "ipc"), ("nng", "ipc")]
    {
        let program = programs.join(library);
        if !program.exists() {
            continue;
        }
        let mut command = Command::new(&program);
        command.arg(setting).args(two_processors()).arg("65536").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        for block in ["pingpong 8 20", "pingpong 65000 5", "stream 4096 50 read", "echo 8192 5"] {
            writeln!(input, "block {block}").unwrap();
            line.clear();
            output.read_line(&mut line).unwrap();
            assert!(line.starts_with("ns "), "{library} {block}: {line}");
            let begin = Instant::now();
            // One that polls may wait for a processor, or be interrupted, but does not sleep a
            // hundred times in a row.
            let mut asleep = 0;
            while asleep < 100 {
                asleep = if sleeps(child.id()) { asleep + 1 } else { 0 };
                assert!(begin.elapsed() < PATIENCE, "{library} does not sleep after {block}");
                std::thread::yield_now();
            }
        }
        drop(input);
        assert!(child.wait().unwrap().success(), "{library}");
    }
}

#[test]
fn the_build_names_what_it_leaves_out_and_fails_when_a_program_does_not_compile() {
    let directory = stand_ins(&[("sockets", "exit 1")]);
    let build = |variable: &str, value: &str| {
        let output = Command::new(BUILD).arg(directory.path()).env(variable, value).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, said, _) = build("CC", "no-such-compiler");
    assert!(said.contains("left out zeromq: it needs libzmq3-dev"), "{said}");
    assert_eq!((status, directory.path().join("sockets").exists()), (Some(0), false), "an old program stays");
    let (status, _, complaints) = build("CFLAGS", "-Dint=nonsense");
    assert_eq!(status, Some(1));
    assert!(complaints.contains("did not compile: sockets"), "{complaints}");
}

/// What a program says when it is started by hand, and that both of its processes end with their
/// input.
#[test]
fn a_program_ends_when_nobody_asks_any_more_and_refuses_what_it_does_not_know() {
    let program = built().0.join("sockets");
    let start = |setting: &str| {
        let mut command = Command::new(&program);
        command
            .arg(setting)
            .args(two_processors())
            .arg("64")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut child = start("unix");
    child.stdin.take().unwrap().write_all(b"block pingpong 8 10\nblock pingpong 65 10\n").unwrap();
    // The pipes end when both processes have.
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    let lines: Vec<_> = said.lines().collect();
    assert!(output.status.success() && lines.len() == 3, "{said}");
    assert!(lines[0].starts_with("peer 1\tsockets\t") && lines[1].starts_with("ns "), "{said}");
    assert!(lines[2].starts_with("cannot carry") && lines[2].ends_with("at most 64"), "{said}");
    let mut child = start("tcp");
    child.stdin.take().unwrap().write_all(b"block sideways 8 10\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success() && text(&output.stdout).contains("error no such request"));
    let output = start("carrier-pigeon").wait_with_output().unwrap();
    assert!(!output.status.success() && text(&output.stdout).contains("error "));
}
