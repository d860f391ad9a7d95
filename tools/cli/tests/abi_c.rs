//! Runs through `libcci.so`, as C programs use it.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use cci_conformance::build;
use command_line::Running;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that a machine under load does not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The library, in the profile of this test: it is no dependency of the command.
fn library() -> PathBuf {
    let library = build("cci-c", Path::new(env!("CARGO_TARGET_TMPDIR"))).join("libcci_c.so");
    assert!(library.is_file(), "cargo build has made no {}", library.display());
    library
}

/// Processor time of a process, in ticks of the kernel.
fn ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// CCI 2.2 has no event for the death of a peer but that of its keepalive.
#[test]
fn a_server_notices_that_its_client_was_killed() {
    let library = library();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cci.ini");
    for (transport, configuration) in
        [("sm", "[it]\ntransport = sm\n"), ("sock", "[it]\ntransport = sock\nip = 127.0.0.1\n")]
    {
        std::fs::write(&file, configuration).unwrap();
        let perf = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
            command
                .arg("perf")
                .args(arguments)
                .args(["--transport", transport, "--abi", "c", "--library"])
                .arg(&library);
            command.env("CCI_CONFIG", &file).stdin(Stdio::null());
            command
        };
        let mut server = Running(perf(&["--server"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut uri = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut uri).unwrap();
        let mut errors = BufReader::new(server.0.stderr.take().unwrap());
        let arguments = ["oneway", "--connect", uri.trim(), "-s", "64", "--blocks", "1000000", "--launches", "1"];
        let client = Running(perf(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let (begin, before) = (Instant::now(), ticks(server.0.id()));
        while ticks(server.0.id()) < before + 20 {
            assert!(begin.elapsed() < PATIENCE, "the run over {transport} did not begin");
            std::thread::yield_now();
        }
        let pid = client.0.id();
        kill_process(Pid::from_child(&client.0), Signal::KILL).unwrap();
        drop(client);
        let (sender, lines) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            let _ = errors.read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = lines.recv_timeout(PATIENCE).expect("a line of the server");
        assert!(line.contains(&format!("pid {pid},")) && line.contains(": ended early: the other end"), "{line}");
        drop(server);
        reader.join().unwrap();
    }
}
