//! The descriptors of the library: none is a standard one of its program, and none is inherited.

use crate::prefix::{command, finish, program, scratch};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

/// Of a program whose standard descriptors are closed, `when` the program says.
fn piped(program: &Path, file: &Path, when: &str) -> Command {
    let mut command = command(program);
    command.env("CCI_CONFIG", file).env("DESCRIPTORS", when);
    command
}

/// Two processes exchange messages and RMA over a transport.
fn works_over(transport: &str, keys: &str) {
    let dir = scratch();
    let file = dir.path().join("cci.ini");
    std::fs::write(&file, format!("[it]\ntransport = {transport}\n{keys}")).expect("a configuration file");
    let program = program("descriptors.c", dir.path());
    for when in ["never", "closed", "closing"] {
        let name = format!("a program over {transport} with its descriptors {when}");
        let mut server = piped(&program, &file, when).spawn().expect("the program starts");
        let mut uri = String::new();
        let mut output = BufReader::new(server.stdout.take().expect("a pipe"));
        output.read_line(&mut uri).expect("text");
        let mut client = piped(&program, &file, when);
        let client = client.arg(uri.trim()).spawn().expect("the program starts");
        // Both: what one has said explains why the other one waits.
        let ends = [(client, "client"), (server, "server")]
            .map(|(child, end)| (name.clone(), child, end))
            .map(|(name, child, end)| std::thread::spawn(move || finish(child, &format!("{end} of {name}"))));
        let outputs = ends.map(|end| end.join().unwrap_or_else(|_| panic!("{name} has failed")));
        assert!(outputs.iter().all(|output| output.stderr.is_empty()), "{name}: {outputs:?}");
    }
}

#[test]
fn a_program_over_sm_may_close_its_standard_descriptors() {
    works_over("sm", "");
}

#[test]
fn a_program_over_sock_may_close_its_standard_descriptors() {
    works_over("sock", "ip = 127.0.0.1\n");
}

#[test]
fn a_program_over_tcp_may_close_its_standard_descriptors() {
    works_over("tcp", "ip = 127.0.0.1\n");
    works_over("tcp", "ip = 127.0.0.1\nstreams = 3\n");
}

#[test]
fn a_program_over_auto_may_close_its_standard_descriptors() {
    works_over("auto", "");
}
