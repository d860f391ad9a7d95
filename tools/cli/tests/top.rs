//! `cci top` as its users run it. The endpoints are this test's own, or those of processes that it
//! starts.
#![allow(missing_docs, reason = "tests")]

use cci::{Connect, Connection, Context, Endpoint, EndpointOptions, EventKind, HeapBytes, Memory, Notify};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that a machine under load does not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    command.arg("top").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is shown of a process.
fn shown(pid: u32) -> Value {
    let output = top(&["--json", "--interval", "250ms", "--pid", &pid.to_string()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "cci-top/1");
    document
}

/// What is shown of an endpoint.
fn endpoint(pid: u32, uri: &str) -> Value {
    let document = shown(pid);
    let found = document["endpoints"].as_array().unwrap().iter().find(|it| it["uri"] == uri);
    found.unwrap_or_else(|| panic!("{uri} is not in {document}")).clone()
}

fn open(transport: &str) -> Endpoint {
    let context = Context::new().unwrap();
    let device = context.devices().iter().find(|device| device.transport == transport && device.up).unwrap();
    Endpoint::open(device, &EndpointOptions::new()).unwrap()
}

/// As [`open`], with these keys besides those of the device.
fn open_with(transport: &str, keys: &[(&str, &str)]) -> Endpoint {
    let context = Context::new().unwrap();
    let mut device = context.devices().iter().find(|device| device.transport == transport).unwrap().clone();
    device.arguments.extend(keys.iter().map(|(key, value)| ((*key).into(), (*value).into())));
    Endpoint::open(&device, &EndpointOptions::new()).unwrap()
}

/// Polls until something has come of it.
fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "nothing came");
        std::thread::yield_now();
    }
}

/// Connects two endpoints of this process.
fn connect(client: &Endpoint, server: &Endpoint) -> [Connection; 2] {
    client.connect(&Connect::to(server.uri())).unwrap();
    let (mut here, mut there) = (None, None);
    until(|| {
        if let Some(event) = server.get_event().unwrap() {
            match event.kind() {
                EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).unwrap(),
                EventKind::Accept => there = event.connection(),
                _ => {}
            }
        }
        if let Some(event) = client.get_event().unwrap() {
            here = event.connection();
        }
        Some([here?, there?])
    })
}

/// Takes this many messages.
fn receive(endpoint: &Endpoint, count: usize) {
    let mut taken = 0;
    until(|| {
        if let Some(event) = endpoint.get_event().unwrap() {
            taken += usize::from(event.kind() == EventKind::Recv);
        }
        (taken == count).then_some(())
    });
}

/// A server that is ended when the test ends.
struct Server {
    child: Child,
    uri: String,
}

impl Server {
    fn start(transport: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
        command.args(["perf", "--server", "--transport", transport]);
        if transport == "sock" {
            command.args(["--key", "interface=lo"]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut uri = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut uri).unwrap();
        Self { child, uri: uri.trim().to_owned() }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn wait_for_state(&self, state: &str) {
        until(|| (process_state(self.child.id()) == state).then_some(()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The letter that the kernel shows.
fn process_state(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap()..][2..3].to_owned()
}

/// Keys of a device.
type Keys<'a> = &'a [(&'a str, &'a str)];

#[test]
fn what_crosses_a_network_is_sealed_or_not() {
    let secret = "a".repeat(64);
    let (sealed, off) = ([("secret", &*secret)], [("security", "off")]);
    let prefer = [sealed[0], ("security", "prefer")];
    let cases: [(&str, Keys<'_>, Option<&str>); 9] = [
        ("sock", &sealed, Some("yes")),
        ("sock", &prefer, Some("may")),
        ("sock", &off, Some("no")),
        ("tcp", &sealed, Some("yes")),
        ("tcp", &prefer, Some("may")),
        ("tcp", &off, Some("no")),
        ("auto", &sealed, Some("yes")),
        ("auto", &off, Some("no")),
        ("sm", &[], None),
    ];
    for (transport, keys, seal) in cases {
        let opened = open_with(transport, keys);
        let shown = endpoint(std::process::id(), opened.uri());
        assert_eq!(shown["seal"].as_str(), seal, "{transport} with {keys:?}: {shown}");
        let table = text(&top(&["--once", "--interval", "50ms", "--pid", &std::process::id().to_string()]).stdout);
        let (head, line) = (table.lines().next().unwrap(), table.lines().find(|line| line.contains(opened.uri())));
        let column = head.find("SEAL").unwrap();
        let cell = line.and_then(|line| line.get(column..column + 4)).unwrap_or_else(|| panic!("{table}"));
        assert_eq!(cell.trim(), seal.unwrap_or("-"), "{table}");
    }
}

#[test]
fn messages_are_counted_as_they_were_sent_and_taken() {
    for transport in ["sm", "sock"] {
        let [client, server] = [open(transport), open(transport)];
        let [connection, _] = connect(&client, &server);
        let pid = std::process::id();
        let [before, _] = [&client, &server].map(|it| endpoint(pid, it.uri()));
        assert_eq!((&before["sent"], &before["transport"]), (&0.into(), &transport.into()), "{before}");
        for number in 0..150 {
            let message = if number < 100 { &[7; 8][..] } else { &[7; 1000][..] };
            client.send(connection, message, Notify::OnFailure(0)).unwrap();
            receive(&server, 1);
        }
        let [sent, received] = [&client, &server].map(|it| endpoint(pid, it.uri()));
        assert_eq!((&sent["sent"], &sent["sent_long_bytes"]), (&150.into(), &50_000.into()), "{sent}");
        assert_eq!((&sent["received"], &received["sent"]), (&0.into(), &0.into()), "{sent} {received}");
        assert_eq!((&received["received"], &received["received_long_bytes"]), (&150.into(), &50_000.into()));
        assert_eq!((&received["connections"], &received["command"]), (&1.into(), &sent["command"]));
        assert_eq!(received["buffers"]["receive"]["limit"], 4096);
        // This process has made no call while it was looked at, for longer than a call could be
        // forgotten.
        assert_eq!(sent["per_second"]["sent"], 0.0);
        if transport == "sm" {
            assert_eq!(sent["state"], "silent", "{sent}");
            assert!(sent["quiet_seconds"].as_f64().unwrap() >= 0.2, "{sent}");
        }
    }
}

#[test]
fn a_rate_is_what_came_between_two_looks() {
    let [client, server] = [open("sm"), open("sm")];
    let [connection, _] = connect(&client, &server);
    let pid = std::process::id().to_string();
    let arguments = ["top", "--json", "--interval", "300ms", "--pid", &pid];
    let viewer = Command::new(env!("CARGO_BIN_EXE_cci")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut viewer = Some(viewer);
    let output = until(|| {
        client.send(connection, &[7; 100], Notify::OnFailure(0)).unwrap();
        receive(&server, 1);
        let ended = viewer.as_mut()?.try_wait().unwrap().is_some();
        ended.then(|| viewer.take().unwrap().wait_with_output().unwrap())
    });
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |uri: &str| document["endpoints"].as_array().unwrap().iter().find(|it| it["uri"] == uri).unwrap().clone();
    let (sent, received) = (of(client.uri()), of(server.uri()));
    assert_eq!((&sent["state"], &received["state"]), (&"calling".into(), &"calling".into()), "{document}");
    let rate = |it: &Value, name: &str| it["per_second"][name].as_f64().unwrap();
    assert!(rate(&sent, "sent") > 0.0 && rate(&received, "received") > 0.0, "{document}");
    // The two may be of moments that are one message apart.
    assert!((rate(&sent, "bytes") / rate(&sent, "sent") - 100.0).abs() < 10.0, "each message has 100 bytes: {sent}");
}

#[test]
fn who_waits_for_room_is_shown_with_whom_it_waits_for_until_it_does_not() {
    let [client, server] = [open("sm"), open("sm")];
    let [connection, _] = connect(&client, &server);
    // Nobody takes them, so that they wait: those that the ring holds do not.
    let mut sent = 0;
    let waits = |it: &Value| it["waits"].as_array().unwrap().clone();
    while sent < 1000 {
        client.send(connection, &[7; 8], Notify::OnFailure(0)).unwrap();
        sent += 1;
    }
    let first = endpoint(std::process::id(), client.uri());
    let [wait] = &waits(&first)[..] else { panic!("{first}") };
    assert_eq!((&wait["peer"], &wait["for"]), (&server.uri().into(), &"room".into()));
    let seconds = wait["seconds"].as_f64().unwrap();
    assert!((0.2..PATIENCE.as_secs_f64()).contains(&seconds), "it has waited while it was looked at: {wait}");
    assert_eq!(first["not_ready"], 1);
    let mut taken = 0;
    until(|| {
        // The messages that wait are published by calls of their sender.
        let _ = client.get_event().unwrap();
        if let Some(event) = server.get_event().unwrap() {
            taken += usize::from(event.kind() == EventKind::Recv);
        }
        (taken == sent).then_some(())
    });
    let after = endpoint(std::process::id(), client.uri());
    assert!(waits(&after).is_empty() && after["sent"] == sent, "{after}");
}

/// A large message asks its peer for memory, and is part of no queue meanwhile.
#[test]
fn a_large_message_that_waits_for_memory_is_shown_until_it_has_some() {
    let [client, server] = [open("sm"), open("sm")];
    server.set_large_limit(100_000).unwrap();
    let [connection, _] = connect(&client, &server);
    let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![7; 100_000])));
    for _ in 0..2 {
        client.send_large(connection, &memory, Notify::OnFailure(0)).unwrap();
    }
    let look = || endpoint(std::process::id(), client.uri());
    let waits = |it: &Value| it["waits"].as_array().unwrap().clone();
    let asked = until(|| {
        let _ = client.get_event().unwrap();
        Some(look()).filter(|it| !waits(it).is_empty())
    });
    let [wait] = &waits(&asked)[..] else { panic!("{asked}") };
    assert_eq!((&wait["peer"], &wait["for"], &wait["operations"]), (&server.uri().into(), &"memory".into(), &1.into()));
    // The first has its memory; the second asks, and the program keeps what there is.
    let receive = || {
        let _ = client.get_event().unwrap();
        server.get_event().unwrap().filter(|event| event.kind() == EventKind::Recv)
    };
    let held = until(receive);
    let second = until(|| {
        let _ = (client.get_event().unwrap(), server.get_event().unwrap());
        Some(look()).filter(|it| it["in_flight"] == 1 && !waits(it).is_empty())
    });
    let [wait] = &waits(&second)[..] else { panic!("{second}") };
    assert_eq!((&wait["for"], &wait["operations"]), (&"memory".into(), &1.into()));
    drop(held);
    drop(until(receive));
    let after = until(|| {
        let _ = client.get_event().unwrap();
        Some(look()).filter(|it| it["in_flight"] == 0)
    });
    assert!(waits(&after).is_empty(), "{after}");
}

#[test]
fn a_connect_that_is_not_answered_is_shown() {
    let [client, server] = [open("sm"), open("sm")];
    client.connect(&Connect::to(server.uri())).unwrap();
    let asked = endpoint(std::process::id(), client.uri());
    let [wait] = &asked["waits"].as_array().unwrap()[..] else { panic!("{asked}") };
    assert_eq!((&wait["peer"], &wait["for"]), (&server.uri().into(), &"connection".into()));
    until(|| {
        let _ = client.get_event().unwrap();
        let event = server.get_event().unwrap()?;
        (event.kind() == EventKind::ConnectRequest).then(|| event.into_request().expect("a request").reject().unwrap())
    });
    until(|| client.get_event().unwrap().filter(|event| event.kind() == EventKind::Connect).map(|_| ()));
    assert_eq!(endpoint(std::process::id(), client.uri())["waits"], Value::Array(vec![]));
}

#[test]
fn a_message_that_is_not_acknowledged_is_shown_until_it_is() {
    let [client, server] = [open("sock"), open("sock")];
    let [connection, _] = connect(&client, &server);
    client.send(connection, b"nobody looks", Notify::OnFailure(0)).unwrap();
    let look = || {
        for _ in 0..100 {
            let _ = client.get_event().unwrap();
        }
        endpoint(std::process::id(), client.uri())
    };
    let waiting = until(|| Some(look()).filter(|it| it["waits"] != Value::Array(vec![])));
    let wait = &waiting["waits"][0];
    assert_eq!((&wait["peer"], &wait["for"]), (&server.uri().into(), &"acknowledgement".into()));
    assert_eq!((&wait["operations"], &waiting["in_flight"]), (&1.into(), &1.into()));
    receive(&server, 1);
    let after = until(|| Some(look()).filter(|it| it["waits"] == Value::Array(vec![])));
    assert!(after["frames"]["resent"].as_u64().unwrap() > 0, "it was sent again meanwhile: {after}");
}

#[test]
fn a_peer_over_the_network_that_is_stopped_is_waited_for() {
    let server = Server::start("sock");
    let context = Context::new().unwrap();
    let mut device = context.devices().iter().find(|device| device.transport == "sock").unwrap().clone();
    device.arguments = vec![("interface".into(), "lo".into())];
    let client = Endpoint::open(&device, &EndpointOptions::new()).unwrap();
    server.signal(Signal::STOP);
    server.wait_for_state("T");
    client.connect(&Connect::to(&server.uri)).unwrap();
    let waits = until(|| {
        for _ in 0..100 {
            let _ = client.get_event().unwrap();
        }
        Some(endpoint(std::process::id(), client.uri())["waits"].clone()).filter(|it| it != &Value::Array(vec![]))
    });
    assert_eq!((&waits[0]["peer"], &waits[0]["for"]), (&server.uri.as_str().into(), &"connection".into()));
    assert_eq!(endpoint(server.child.id(), &server.uri)["state"], "stopped");
    server.signal(Signal::CONT);
}

#[test]
fn a_stopped_process_is_shown_as_such_and_a_killed_one_no_more() {
    let mut server = Server::start("sm");
    let pid = server.child.id();
    server.signal(Signal::STOP);
    server.wait_for_state("T");
    let stopped = endpoint(pid, &server.uri);
    assert_eq!((&stopped["state"], &stopped["process_state"]), (&"stopped".into(), &"T".into()));
    let output = top(&["--once", "--interval", "100ms", "--pid", &pid.to_string()]);
    let table = text(&output.stdout);
    assert!(table.contains("SEND/S") && table.contains(&server.uri) && table.contains("stop "), "{table}");
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let gone = top(&["--once", "--pid", &pid.to_string()]);
    assert!(!gone.status.success());
    assert!(text(&gone.stderr).contains(&format!("there is no process {pid}")), "{}", text(&gone.stderr));
    let all = top(&["--once", "--interval", "50ms"]);
    assert!(all.status.success() && !text(&all.stdout).contains(&server.uri));
}

/// A memfd of this process with this name and content.
fn memfd(name: &str, content: &[u8]) -> File {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(content, 0).unwrap();
    file
}

#[test]
fn files_of_the_name_that_are_no_counters_are_told_and_harm_nothing() {
    let mut page = vec![0xff; 4096];
    page[..8].copy_from_slice(b"cci-ctr1");
    page[8..16].copy_from_slice(&[1, 0, 0, 0, 0, 16, 0, 0]);
    let name = "cci-counters/1";
    let garbage: Vec<u8> = (0..4096u32).map(|at| (at * 7919) as u8).collect();
    let files = [
        memfd(name, b"short"),
        memfd(name, b""),
        memfd(name, &garbage),
        memfd(name, &[b'x'; 9000]),
        memfd("cci-counters/2", b"of another version"),
        memfd("cci-counters/\u{1b}[2J", b"hostile"),
        memfd(name, &page),
    ];
    let mut children = files.map(|file| Command::new("sleep").arg("600").stdin(Stdio::from(file)).spawn().unwrap());
    let whys = children.each_ref().map(|child| {
        let document = shown(child.id());
        assert_eq!(document["endpoints"], Value::Array(vec![]), "{document}");
        document["refused"][0]["why"].as_str().unwrap_or_default().to_owned()
    });
    // With its own number in it, the last one is shown, with its numbers as they are.
    let mut claimed = page.clone();
    claimed[16..20].copy_from_slice(&children[6].id().to_ne_bytes());
    let file = File::options().write(true).open(format!("/proc/{}/fd/0", children[6].id())).unwrap();
    file.write_all_at(&claimed, 0).unwrap();
    let huge = shown(children[6].id());
    let table = top(&["--once", "--interval", "50ms", "--pid", &children[6].id().to_string()]);
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let expected = ["5 bytes", "has 0 bytes", "mark", "bytes instead", "layout 2", "layout 2", ""];
    for (why, expected) in whys.iter().zip(expected) {
        assert!(why.contains(expected) && !why.contains('\u{1b}'), "{whys:?}");
    }
    assert_eq!(huge["endpoints"][0]["sent"], u64::MAX, "{huge}");
    assert!(table.status.success() && !text(&table.stdout).contains('\u{1b}'), "{}", text(&table.stdout));
}

#[test]
fn an_inherited_page_is_its_owners_only() {
    let own = open("sm");
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let page = descriptors.filter(|entry| {
        std::fs::read_link(entry.path()).is_ok_and(|it| it.to_string_lossy().contains("cci-counters/1"))
    });
    let page = page.map(|entry| File::open(entry.path()).unwrap()).next().unwrap();
    let mut child = Command::new("sleep").arg("600").stdin(Stdio::from(page)).spawn().unwrap();
    let document = shown(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(document["endpoints"], Value::Array(vec![]), "{document}");
    assert_eq!(document["refused"], Value::Array(vec![]), "{document}");
    assert_eq!(endpoint(std::process::id(), own.uri())["pid"], std::process::id());
}

#[test]
fn the_user_can_have_the_counters_private() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    command.args(["perf", "--server", "--transport", "sm"]).env("CCI_COUNTERS", "private").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut uri = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut uri).unwrap();
    let mut server = Server { child, uri };
    let document = shown(server.child.id());
    assert!(server.child.try_wait().unwrap().is_none(), "the server runs");
    assert_eq!(document["endpoints"], Value::Array(vec![]), "{document}");

    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    let refused = command.args(["perf", "--server", "--transport", "sm"]).env("CCI_COUNTERS", "of").output().unwrap();
    assert!(!refused.status.success());
    let why = text(&refused.stderr);
    assert!(why.contains("'of' is not a value") && why.contains("'private'"), "{why}");
}

#[test]
fn without_a_terminal_a_sentence_says_what_to_use() {
    let output = top(&[]);
    assert_eq!(output.status.code(), Some(1));
    let why = text(&output.stderr);
    assert!(why.contains("needs a terminal") && why.contains("--once"), "{why}");
    assert_eq!(top(&["--interval", "0"]).status.code(), Some(2));
    assert_eq!(top(&["--pid", "none"]).status.code(), Some(2));
}

/// `cci top --listen`, ended when the test ends, and where it listens.
struct Metrics {
    child: Child,
    address: String,
}

impl Metrics {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
        command.args(["top", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|line| line.strip_suffix("/metrics"));
        Self { address: address.unwrap_or_else(|| panic!("{line:?}")).to_owned(), child }
    }

    /// The answer to these bytes.
    fn ask(&self, request: &str) -> String {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn metrics_of_endpoints_are_served_over_http() {
    let (client, server) = (open("sm"), open("sm"));
    let [here, _there] = connect(&client, &server);
    for _ in 0..3 {
        client.send(here, b"counted", Notify::OnFailure(0)).unwrap();
    }
    receive(&server, 3);
    let metrics = Metrics::start();
    let sample = format!("uri=\"{}\"}} 3", server.uri());
    // Counters are as old as the endpoint's last progress.
    until(|| {
        server.get_event().unwrap();
        let answer = metrics.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
        assert!(answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{answer}");
        let received =
            answer.lines().find(|line| line.starts_with("cci_messages_received_total") && line.ends_with(&sample));
        received.map(|_| ())
    });
}

#[test]
fn what_is_no_request_for_metrics_is_refused_and_the_next_is_answered() {
    let metrics = Metrics::start();
    for (request, status) in [
        ("GET /other HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
        ("GET /metrics", "400"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
    ] {
        let answer = metrics.ask(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer:.60}");
    }
    let output = top(&["--listen", "127.0.0.1:x"]);
    assert!(text(&output.stderr).contains("such as 127.0.0.1:9617"));
    let output = top(&["--listen", &metrics.address]);
    assert!(!output.status.success() && text(&output.stderr).contains("cannot listen at"));
}
