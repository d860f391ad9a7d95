//! Runs server and client of each example as two processes.

use cci::{Connect, Context, Endpoint, EndpointOptions, Event, Notify};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Far beyond what any of them needs.
const LIMIT: Duration = Duration::from_secs(60);

/// A running example; killed should the test end before it does.
struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(path: &str, arguments: &[&str]) -> Self {
        Self::start_on("", path, arguments)
    }

    /// With these transports only; "" = all.
    fn start_on(transports: &str, path: &str, arguments: &[&str]) -> Self {
        Self::start_with(path, arguments, &[("CCI_CTP", transports)])
    }

    fn start_with(path: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env_remove("CCI_CONFIG").env_remove("CCI_CTP").envs(variables.iter().copied());
        let mut child = command.spawn().expect("the example starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    /// The next line of its output.
    fn line(&self) -> String {
        self.lines.recv_timeout(LIMIT).expect("a line of output")
    }

    /// The rest of its output, once it has ended well by itself.
    fn finish(mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the example does not end; it printed {rest:?}"),
            }
        }
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().expect("its status") {
                assert!(status.success(), "{status}; it printed {rest:?}");
                return rest;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the example does not end");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails only when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn echo() {
    let path = env!("CARGO_BIN_EXE_echo");
    let server = Program::start(path, &["server"]);
    let client = Program::start(path, &["client", &server.line(), "first", "", "third"]);
    assert_eq!(client.finish(), ["first", "", "third"]);
    assert!(server.finish().is_empty());
}

/// The clients that the pages show, compiled as they stand there, on every transport that a server
/// may have.
#[test]
fn the_clients_of_the_pages() {
    shown_client("README.md", "examples/first/hello.rs", env!("CARGO_BIN_EXE_first"));
    shown_client("docs/first-client.md", "examples/rust/hello.rs", env!("CARGO_BIN_EXE_hello"));
}

fn shown_client(page: &str, source: &str, hello: &str) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).expect("a file of the project");
    let text = read(page);
    let shown = text.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let source_text = read(source);
    // The whole program, or some lines of a function, without their indentation.
    let inside = source_text.replace("\n    ", "\n");
    assert!(source_text.ends_with(shown) || inside.contains(shown), "{page} shows another program than {source}");
    for (transports, scheme) in [("", "cci://"), ("sock", "cci://"), ("^auto", "sm://")] {
        let server = Program::start_on(transports, env!("CARGO_BIN_EXE_echo"), &["server"]);
        let uri = server.line();
        assert!(uri.starts_with(scheme), "{uri}");
        assert_eq!(Program::start(hello, &[&uri]).finish(), ["hello"]);
        drop(server);
    }
    let server = Program::start_on("sock", env!("CARGO_BIN_EXE_echo"), &["server"]);
    let uri = server.line();
    drop(server);
    let output = Command::new(hello).arg(&uri).output().expect("ran");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.split_whitespace().count() > 5, "{uri}: {text}");
    let output = Command::new(hello).output().expect("ran");
    assert_eq!(output.status.code(), Some(1), "without a URI");
}

#[test]
fn clients_follow_the_uri_to_another_transport() {
    for (path, words, answer) in
        [(env!("CARGO_BIN_EXE_echo"), "one", "one"), (env!("CARGO_BIN_EXE_rma"), "across hosts", "read: across hosts")]
    {
        let server = Program::start_on("sock", path, &["server"]);
        let client = Program::start(path, &["client", &server.line(), words]);
        assert_eq!(client.finish(), [answer]);
        drop(server);
    }
}

#[test]
fn rma() {
    let path = env!("CARGO_BIN_EXE_rma");
    let server = Program::start(path, &["server"]);
    let client = Program::start(path, &["client", &server.line(), "across processes"]);
    assert_eq!(client.finish(), ["read: across processes"]);
    assert_eq!(server.finish(), ["written: across processes"]);
}

#[test]
fn the_store_of_the_tutorial() {
    let store = env!("CARGO_BIN_EXE_store");
    for transports in ["", "sock"] {
        let server = Program::start_on(transports, store, &[]);
        let uri = server.line();
        for value in ["red", "green"] {
            assert!(Program::start(store, &[&uri, "put", "colour", value]).finish().is_empty());
        }
        assert_eq!(Program::start(store, &[&uri, "get", "colour"]).finish(), ["green"]);
        let output = Command::new(store).args([&*uri, "get", "shape"]).output().expect("ran");
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("no such key"));
    }
}

/// Clients that put, and leave before the answers: the server serves on.
#[test]
fn the_store_outlives_its_clients() {
    let server = Program::start(env!("CARGO_BIN_EXE_store"), &[]);
    let uri = server.line();
    let context = Context::new().expect("devices");
    let device = context.device_for(&uri).expect("a device");
    let mut slot = [0; 64];
    slot[..6].copy_from_slice(b"colour");
    for round in 0..20 {
        let endpoint = Endpoint::open(device, &EndpointOptions::new()).expect("an endpoint");
        endpoint.connect(&Connect::to(&uri)).expect("asked for");
        let client = loop {
            if let Some(Event::Connected(connected)) = endpoint.wait(Some(LIMIT)).expect("no failure") {
                break connected.connection().expect("it lasts");
            }
        };
        slot[24] = b'a' + round;
        for _ in 0..100 {
            endpoint.send(client, &slot, Notify::OnFailure(0)).expect("there is room");
        }
        // Closing waits until the messages are delivered, and for no answers.
    }
    assert_eq!(Program::start(env!("CARGO_BIN_EXE_store"), &[&uri, "get", "colour"]).finish(), ["t"]);
}

#[test]
fn epoll() {
    let server = Program::start(env!("CARGO_BIN_EXE_echo"), &["server"]);
    let mut client = Program::start(env!("CARGO_BIN_EXE_epoll"), &[&server.line()]);
    let mut input = client.child.stdin.take().expect("piped");
    // One after the other: each wakes the loop.
    for line in ["one", "two", "three"] {
        writeln!(input, "{line}").expect("written");
        assert_eq!(client.line(), line);
    }
    drop(input);
    assert!(client.finish().is_empty());
    assert!(server.finish().is_empty());
}

/// A page of code shows what a program is; a longer one hides it.
#[test]
fn examples_are_short() {
    let folder = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).expect("the folder");
    let files =
        folder.map(|file| file.expect("a file").path()).filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let lengths: Vec<(std::path::PathBuf, usize)> =
        files.map(|path| (path.clone(), std::fs::read_to_string(path).expect("a text").lines().count())).collect();
    assert!(lengths.len() >= 4 && lengths.iter().all(|(_, lines)| *lines < 80), "{lengths:?}");
}

#[test]
fn a_client_without_a_server_says_why() {
    let path = env!("CARGO_BIN_EXE_echo");
    let output = Command::new(path).args(["client", "sm://1/4294967295", "word"]).output().expect("ran");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("nobody listens"), "{text}");
}

/// Three threads pass a token round three times: nine hops, the last one to the first of the ring.
#[test]
fn am_ring() {
    let lines = Program::start(env!("CARGO_BIN_EXE_am_ring"), &[]).finish();
    let hops = |at: u32, hops: u32| format!("endpoint {at}: the token has come 3 times, last after {hops} hops");
    assert_eq!(lines, [hops(0, 9), hops(1, 7), hops(2, 8)]);
}

/// The same round of the ranks of a job.
#[test]
fn am_ring_of_a_job() {
    let command = cci_conformance::build("cci-cli", env!("CARGO_TARGET_TMPDIR").as_ref()).join("cci");
    let command = command.to_str().expect("text");
    let mut lines = Program::start(command, &["run", "-n", "4", env!("CARGO_BIN_EXE_am_ring")]).finish();
    lines.sort_unstable();
    let hops = |rank: u32, hops: u32| format!("rank {rank}: the token has come 3 times, last after {hops} hops");
    assert_eq!(lines, [hops(0, 12), hops(1, 9), hops(2, 10), hops(3, 11)]);
}

/// Three ranks without a launcher: rank 0 serves the store.
#[test]
fn job_ring() {
    // A port that was free a moment ago; the store's is the one behind it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = (free.expect("a port").port() - 1).to_string();
    let start = |rank: u32| {
        let variables = [("RANK", &*rank.to_string()), ("WORLD_SIZE", "3"), ("MASTER_PORT", &port)];
        Program::start_with(
            env!("CARGO_BIN_EXE_job_ring"),
            &[],
            &[&variables[..], &[("MASTER_ADDR", "127.0.0.1")]].concat(),
        )
    };
    for (rank, program) in [0, 1, 2].map(start).into_iter().enumerate() {
        let before = (rank + 2) % 3;
        assert_eq!(program.finish(), [format!("rank {rank} of 3 got the message of rank {before}")]);
    }
}
