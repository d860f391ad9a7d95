//! The examples, built as their readers build them, server and client as two processes.

use crate::prefix::{command, end, finish, program, program_by, root, scratch, succeeds};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};

fn example(name: &str, dir: &Path) -> PathBuf {
    program(root().join("examples/c").join(name).with_extension("c"), dir)
}

/// A server; killed if its test fails before the server has ended.
struct Server {
    child: Option<Child>,
    output: BufReader<ChildStdout>,
    uri: String,
}

impl Server {
    /// Starts a server that prints its URI on its first line, and reads that.
    fn start(program: &Path, arguments: &[&str]) -> Self {
        Self::start_on("", program, arguments)
    }

    /// With these transports only; "" = all.
    fn start_on(transports: &str, program: &Path, arguments: &[&str]) -> Self {
        let mut child = command(program).env("CCI_CTP", transports).args(arguments).spawn().expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut server = Self { child: Some(child), output, uri: String::new() };
        server.output.read_line(&mut server.uri).expect("a line");
        server.uri = server.uri.trim().to_owned();
        if server.uri.is_empty() {
            server.finish();
            panic!("the server ended without printing its URI");
        }
        server
    }

    /// Ends it as a crash does.
    fn kill(mut self) {
        let mut child = self.child.take().expect("not finished before");
        child.kill().expect("it runs");
        child.wait().expect("its end");
    }

    /// Waits for its end and gives what it has printed after the URI.
    fn finish(mut self) -> String {
        finish(self.child.take().expect("not finished before"), "server");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("its output");
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ask(program: &Path, arguments: &[&str]) -> String {
    let output = succeeds(command(program).args(arguments), "client");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_echo_server_echoes() {
    let dir = scratch();
    let server = Server::start(&example("echo_server", dir.path()), &[]);
    let said = ask(&example("echo_client", dir.path()), &[&server.uri, "hello", "world"]);
    assert_eq!(said, "hello\nworld\n");
    assert!(server.finish().contains("I would like an echo"));
}

/// Those of these that are installed; the first is one that every build needs.
const COMPILERS: [&str; 18] = [
    "cc", "gcc-11", "gcc-12", "gcc-13", "gcc-14", "gcc-15", "gcc-16", "clang", "clang-13", "clang-14", "clang-15",
    "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21", "clang-22",
];

#[test]
fn the_echo_server_echoes_by_each_compiler_that_is_installed() {
    let is_installed = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let found: Vec<&str> = COMPILERS.iter().filter(is_installed).copied().collect();
    assert!(found.contains(&"cc"), "{found:?}");
    for compiler in found {
        let dir = scratch();
        let build = |name: &str| {
            program_by(Command::new(compiler), &root().join("examples/c").join(name).with_extension("c"), dir.path())
        };
        let server = Server::start(&build("echo_server"), &[]);
        assert_eq!(ask(&build("echo_client"), &[&server.uri, compiler]), format!("{compiler}\n"));
        server.finish();
    }
}

/// A port opens the server to other hosts; the client has the same lines.
#[test]
fn a_server_with_a_port_is_reached_at_it() {
    let dir = scratch();
    let free = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let server = Server::start_on("^sm", &example("echo_server", dir.path()), &[&free.to_string()]);
    assert!(server.uri.contains(&format!(":{free},tcp")), "{}", server.uri);
    assert_eq!(ask(&example("echo_client", dir.path()), &[&server.uri, "hello"]), "hello\n");
    server.finish();
}

/// The program that a page shows.
fn shown_client(page: &str, dir: &Path) -> PathBuf {
    let source = dir.join("hello.c");
    std::fs::write(&source, shown(page)).expect("a source is written");
    program(&source, dir)
}

fn shown(page: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).expect("a page");
    text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program").to_owned()
}

/// The README shows lines of a function, without their indentation.
#[test]
fn the_lines_of_the_readme_are_those_of_an_example_that_says_hello() {
    let source = root().join("examples/first/hello.c");
    let text = std::fs::read_to_string(&source).expect("an example");
    assert!(text.replace("\n    ", "\n").contains(&shown("README.md")), "the README shows other lines");
    let dir = scratch();
    says_hello(&program(&source, dir.path()), &example("echo_server", dir.path()));
}

/// Whoever forgot to start the server reads a sentence.
#[test]
fn the_client_of_the_readme_gives_a_reason_without_a_server() {
    let dir = scratch();
    let client = program(root().join("examples/first/hello.c"), dir.path());
    let server = example("echo_server", dir.path());
    for transports in ["", "sock", "tcp", "^auto"] {
        let server = Server::start_on(transports, &server, &[]);
        let uri = server.uri.clone();
        server.kill();
        let output = end(command(&client).arg(&uri).spawn().expect("the client starts"), "client");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output.stdout.is_empty(), "{uri}: {output:?}");
        let reason = text.strip_prefix("hello: ").unwrap_or_default().trim();
        assert!(reason.len() > 20, "{uri}: {text:?}");
    }
}

#[test]
fn the_client_of_the_page_says_hello() {
    let dir = scratch();
    let server = example("echo_server", dir.path());
    says_hello(&shown_client("docs/first-client.md", dir.path()), &server);
}

fn says_hello(client: &Path, server: &Path) {
    for (transports, scheme) in [("", "cci://"), ("sock", "cci://"), ("^auto", "sm://")] {
        let server = Server::start_on(transports, server, &[]);
        assert!(server.uri.starts_with(scheme), "{}", server.uri);
        assert_eq!(ask(client, &[&server.uri]), "hello\n");
        server.kill();
    }
}

/// It ends, with a status that says so, whatever happens to its server.
#[test]
fn the_longer_client_ends_without_its_server() {
    let dir = scratch();
    let client = shown_client("docs/first-client.md", dir.path());
    let deaf = program("deaf_server.c", dir.path());
    let fails = |arguments: &[&str], why: &str, meanwhile: &mut dyn FnMut()| {
        let child = command(&client).args(arguments).spawn().expect("the client starts");
        meanwhile();
        let output = end(child, "the client");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(why), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    };
    fails(&[], "URI", &mut || ());
    fails(&["nowhere"], "not a URI", &mut || ());
    fails(&["scok://192.0.2.1:5000"], "did you mean 'sock'?", &mut || ());
    fails(&["sm://1/4294967295"], "nobody listens", &mut || ());
    for transports in ["sm", "sock"] {
        let mut server = Some(Server::start_on(transports, &deaf, &[]));
        let uri = server.as_ref().map(|server| server.uri.clone()).unwrap_or_default();
        // By a disconnect, or by the message that the server did not acknowledge.
        fails(&[&uri], "gone", &mut || {
            let mut server = server.take().expect("once");
            let mut line = String::new();
            server.output.read_line(&mut line).expect("a line");
            assert_eq!(line, "received\n");
            server.kill();
        });
    }
}

#[test]
fn clients_follow_the_uri_to_another_transport() {
    let dir = scratch();
    let server = Server::start_on("sock", &example("echo_server", dir.path()), &[]);
    assert_eq!(ask(&example("echo_client", dir.path()), &[&server.uri, "hello"]), "hello\n");
    server.kill();
}

/// What a client prints on standard error, with `CCI_LOG` as given.
fn logged(level: &str) -> String {
    let dir = scratch();
    let server = Server::start(&example("echo_server", dir.path()), &[]);
    let mut client = command(&example("echo_client", dir.path()));
    client.args([&server.uri, "hello"]).env("CCI_LOG", level).env("CCI_CPT", "sm");
    let output = succeeds(&mut client, "client");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
    server.kill();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_library_logs_slow_paths_where_it_is_asked_to() {
    assert_eq!(logged(""), "", "never uninvited");
    assert_eq!(logged("error"), "", "nothing went wrong");
    let warn = logged("warn");
    assert!(warn.contains(" WARN CCI_CPT is set, and nothing reads it; did you mean CCI_CTP?"), "{warn}");
    let info = logged("info");
    assert!(info.contains(" INFO endpoint opened uri=") && !info.contains("DEBUG"), "{info}");
    let debug = logged("debug");
    for what in ["devices found number=", "open device=", "connecting uri=", "handshake ended event=Connect", "close"] {
        assert!(debug.lines().any(|line| line.starts_with("cci[") && line.contains(what)), "{what}: {debug}");
    }
    let wrong = logged("loud");
    assert!(wrong.starts_with("cci: CCI_LOG=loud is no level; use ") && wrong.contains(" INFO "), "{wrong}");
}

#[test]
fn the_store_of_the_tutorial_gets_what_was_put() {
    let dir = scratch();
    let store = program(root().join("examples/store/store.c"), dir.path());
    for transports in ["", "sock"] {
        let server = Server::start_on(transports, &store, &[]);
        let uri = server.uri.as_str();
        for value in ["red", "green"] {
            assert_eq!(ask(&store, &[uri, "put", "colour", value]), "");
        }
        assert_eq!(ask(&store, &[uri, "get", "colour"]), "green\n");
        let missing = command(&store).args([uri, "get", "shape"]).spawn().expect("the client starts");
        let missing = end(missing, "client");
        assert_eq!(missing.status.code(), Some(1));
        assert_eq!(String::from_utf8_lossy(&missing.stderr), "no such key\n");
        server.kill();
    }
}

#[test]
fn the_store_outlives_clients_that_leave() {
    let dir = scratch();
    let store = program(root().join("examples/store/store.c"), dir.path());
    let leaves = program("leaves_store.c", dir.path());
    let server = Server::start(&store, &[]);
    let uri = server.uri.as_str();
    for _ in 0..20 {
        let status = command(&leaves).arg(uri).status().expect("it starts");
        assert_eq!(status.signal(), Some(9));
    }
    assert_eq!(ask(&store, &[uri, "put", "colour", "red"]), "");
    assert_eq!(ask(&store, &[uri, "get", "colour"]), "red\n");
    server.kill();
}

#[test]
fn rma_moves_memory_both_ways() {
    let dir = scratch();
    let server = Server::start(&example("rma_server", dir.path()), &[]);
    let said = ask(&example("rma_client", dir.path()), &[&server.uri]);
    assert!(said.contains("write verified") && said.contains("read verified"), "the client printed: {said}");
    let rest = server.finish();
    assert!(rest.contains("write verified"), "the server printed: {rest}");
}

#[test]
fn an_event_loop_serves_the_echo_client() {
    let dir = scratch();
    let server = Server::start(&example("epoll_loop", dir.path()), &[]);
    let said = ask(&example("echo_client", dir.path()), &[&server.uri, "one", "two", "three"]);
    assert_eq!(said, "one\ntwo\nthree\n");
    server.finish();
}

/// Every example says how it is used when it is called the wrong way.
#[test]
fn examples_print_their_usage() {
    let dir = scratch();
    for name in ["echo_server", "echo_client", "rma_server", "rma_client", "epoll_loop", "job_ring"] {
        let program = example(name, dir.path());
        let output = command(&program).arg("--help").output().expect("it starts");
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage:"), "{name} says nothing");
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
}

/// No example is forgotten here.
#[test]
fn every_example_is_run() {
    let files = std::fs::read_dir(root().join("examples/c")).expect("the examples");
    let mut names: Vec<_> = files.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8")).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "c"));
    names.sort();
    assert_eq!(names, ["echo_client.c", "echo_server.c", "epoll_loop.c", "job_ring.c", "rma_client.c", "rma_server.c"]);
    for name in names {
        let text = std::fs::read_to_string(root().join("examples/c").join(&name)).expect("an example");
        assert!(text.lines().count() < 80, "{name} is too long to be read at a sitting; shorten it");
    }
}
