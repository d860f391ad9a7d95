//! `cci perf pingpong` between two hosts, as a person would run it.

use crate::namespace::{Net, pair};
use cci_conformance::process::Running;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The command, which is built beside the tests.
pub(crate) fn command() -> PathBuf {
    built("cci", "cci-cli")
}

/// A program of this package, which the build puts beside the tests.
pub(crate) fn built(program: &str, package: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("this program");
    let built = tests.ancestors().nth(2).expect("the folder of what is built").join(program);
    assert!(built.is_file(), "there is no {}: build it with cargo build -p {package}", built.display());
    built
}

fn serve(net: &Net, keys: &[&str]) -> (Running, String) {
    let child = net.enter(|| {
        let arguments = ["perf", "--server", "--transport", "sock", "--key", "interface=v1"];
        let keys = keys.iter().flat_map(|key| ["--key", key]);
        Command::new(command()).args(arguments).args(keys).stdout(Stdio::piped()).spawn().expect("a server")
    });
    let mut server = Running(child);
    let mut uri = String::new();
    BufReader::new(server.0.stdout.take().expect("its output")).read_line(&mut uri).expect("a line");
    (server, uri.trim().to_owned())
}

/// Where a server without a configuration listens, with this value of `CCI_LISTEN`.
pub(crate) fn uri_of_server(net: &Net, transport: &str, listen: &str) -> String {
    let mut server = Running(net.enter(|| {
        let arguments = ["perf", "--server", "--transport", transport];
        Command::new(command())
            .args(arguments)
            .env("CCI_LISTEN", listen)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server")
    }));
    let mut uri = String::new();
    BufReader::new(server.0.stdout.take().expect("its output")).read_line(&mut uri).expect("a line");
    uri.trim().to_owned()
}

fn play(mtu: u32) {
    let nets = pair(mtu);
    let (_server, uri) = serve(&nets[1], &[]);
    assert!(uri.starts_with("sock://10.0.0.2:"), "{uri}");
    measure(&nets[0], &uri, &format!("MTU {mtu}"));
}

/// A client's run against the server at `uri`.
fn measure(net: &Net, uri: &str, title: &str) {
    let output = net.enter(|| {
        let arguments = ["perf", "pingpong", "--connect", uri, "--key", "interface=v0", "--size", "8,4096"];
        Command::new(command())
            .args(arguments)
            .args(["--time", "short", "--launches", "3", "--accuracy", "1000000%", "--json", "-"])
            .output()
            .expect("a client")
    });
    let (json, table) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{table}");
    say!("{title}: {table}");
    for text in ["\"complete\": true", "\"transport\": \"sock\"", "\"size\": 8,", "\"size\": 4096,", "UDP over IPv4"] {
        assert!(json.contains(text), "{text} is not in {json}");
    }
}

pub(crate) fn over_1500() {
    play(1500);
}

pub(crate) fn over_9000() {
    play(9000);
}

/// A firewall lets UDP pass to and from these ports of the server, and nothing else.
fn wall(net: &Net, ports: &str) {
    net.rules(&format!(
        "add table inet wall; \
         add chain inet wall to {{ type filter hook input priority 0; policy drop; }}; \
         add chain inet wall from {{ type filter hook output priority 0; policy drop; }}; \
         add rule inet wall to udp dport {ports} accept; \
         add rule inet wall from udp sport {ports} accept"
    ));
}

pub(crate) fn through_one_port() {
    let nets = pair(1500);
    wall(&nets[1], "5000");
    let (_server, uri) = serve(&nets[1], &["port=5000"]);
    assert_eq!(uri, "sock://10.0.0.2:5000");
    // The server is the same after each run, and there again at once.
    for number in 1..=2 {
        measure(&nets[0], &uri, &format!("run {number} through one port"));
    }
}

pub(crate) fn through_a_range_of_ports() {
    let nets = pair(1500);
    wall(&nets[1], "5000-5003");
    // Another program has the first of them.
    let _other = nets[1].enter(|| std::net::UdpSocket::bind("10.0.0.2:5000").expect("a free port"));
    let (_server, uri) = serve(&nets[1], &["port=5000-5003"]);
    assert_eq!(uri, "sock://10.0.0.2:5001");
    measure(&nets[0], &uri, "a range of ports");
}
