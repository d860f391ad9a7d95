//! `cci run`: several programs of one job, and how hosts are named.

mod command_line;

use command_line::{cci, exact as text};
use std::path::Path;
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    cci(&["run"]).args(arguments).output().expect("the command")
}

/// The lines, sorted: ranks write in any order.
fn lines(output: &Output) -> Vec<&str> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    command_line::lines(&output.stdout)
}

/// A command that stands for `ssh`: it keeps the names of hosts in a file, and runs the rest here.
fn rsh(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("rsh");
    let script = format!("#!/bin/sh\necho $1 >>{}; shift; exec \"$@\"\n", folder.join("names").display());
    std::fs::write(&path, script).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path.to_str().expect("text").to_owned()
}

#[test]
fn ranks_of_several_programs_are_one_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    let script = "echo $0 $RANK $WORLD_SIZE $CCI_APPNUM";
    let programs = ["-n", "2", "sh", "-c", script, "a", ":", "-n", "1", "sh", "-c", script, "b", ":", "-np", "2"];
    let programs = [&programs[..], &["sh", "-c", script, "c"]].concat();
    let expected = ["a 0 5 0", "a 1 5 0", "b 2 5 1", "c 3 5 2", "c 4 5 2"];
    assert_eq!(lines(&run(&programs)), expected);
    let elsewhere = [&["-H", "there:3,localhost:1,elsewhere:1", "--rsh", &rsh], &programs[..]].concat();
    assert_eq!(lines(&run(&elsewhere)), expected);
}

#[test]
fn ranks_of_several_programs_know_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    let cci = env!("CARGO_BIN_EXE_cci");
    let programs = ["-n", "1", cci, "job", ":", "-n", "3", cci, "job", "--limit", "50s"];
    for hosts in [&[][..], &["-H", "there:2,localhost:2", "--rsh", &rsh]] {
        let ended = run(&[hosts, &programs].concat());
        let lines = lines(&ended);
        assert_eq!(lines.len(), 4);
        for (rank, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("rank {rank} of 4")), "{line}");
        }
    }
}

#[test]
fn a_second_program_that_cannot_be_started_is_named_with_its_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    let programs = ["-n", "2", "sleep", "1000", ":", "-n", "2", "/nowhere/program"];
    for hosts in [&[][..], &["-H", "there:4", "--rsh", &rsh]] {
        let ended = run(&[hosts, &programs].concat());
        assert_eq!(ended.status.code(), Some(127));
        let why = text(&ended.stderr);
        assert!(why.contains("rank 2") && why.contains("cannot start '/nowhere/program': No such file"), "{why}");
    }
}

#[test]
fn hosts_are_named_by_ipv6_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    let file = folder.path().join("hosts");
    std::fs::write(&file, "::1\n[::2]:2\n::3 slots=1\n").expect("a file");
    let file = file.to_str().expect("text");
    for hosts in [&["-H", "::1,[::2]:2,::3"], &["-f", file]] {
        let ended = run(&[hosts, &["--rsh", &rsh, "-np", "4", "sh", "-c", "echo $RANK $LOCAL_RANK"][..]].concat());
        assert_eq!(lines(&ended), ["0 0", "1 0", "2 1", "3 0"]);
        let names = folder.path().join("names");
        let mut found: Vec<String> =
            std::fs::read_to_string(&names).expect("names").lines().map(str::to_owned).collect();
        found.sort_unstable();
        assert_eq!(found, ["::1", "::2", "::3"]);
        std::fs::remove_file(&names).expect("a file");
    }
}
