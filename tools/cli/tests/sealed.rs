//! `cci perf` and `cci explain` between processes of users who have a secret, over a network.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use cci_conformance::sealed::{Secret, Secrets, TRANSPORTS};
use command_line::{Running, cci, text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Output, Stdio};

/// A server whose user has the secret, and where it is.
struct Server {
    uri: String,
    _child: Running,
    _output: BufReader<ChildStdout>,
}

impl Server {
    fn start(secrets: &Secrets, transport: &str) -> Self {
        let mut command = cci(&["perf", "--server"]);
        command.envs(secrets.variables(Secret::Named, transport, "")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut uri = String::new();
        output.read_line(&mut uri).unwrap();
        Self { uri: uri.trim().to_owned(), _child: Running(child), _output: output }
    }
}

/// A command about a server, by a user with this secret.
fn run(arguments: &[&str], secrets: &Secrets, secret: Secret, transport: &str) -> Output {
    cci(arguments).envs(secrets.variables(secret, transport, "")).output().unwrap()
}

#[test]
fn measurements_between_members_of_a_group_are_sealed_and_strangers_are_refused() {
    let secrets = Secrets::new();
    for transport in TRANSPORTS {
        let server = Server::start(&secrets, transport);
        let pingpong = ["perf", "pingpong", "--connect", &server.uri, "--size", "8"];
        let explain = ["explain", &server.uri, "--timeout", "1s"];
        let by = |arguments: &[&str], secret| run(arguments, &secrets, secret, transport);
        for secret in [Secret::Other, Secret::Missing] {
            let output = by(&explain, secret);
            let why = text(&output.stderr);
            assert!(!output.status.success() && why.contains("secret"), "{transport}, {secret:?}: {why}");
            assert_eq!(why.lines().count(), 1, "{transport}, {secret:?}: {why}");
        }
        let refused = by(&pingpong, Secret::Missing);
        let why = text(&refused.stderr);
        assert!(!refused.status.success() && why.contains(&server.uri), "{transport}: {why}");

        let measured =
            by(&[&pingpong[..], &["--time", "short", "--accuracy", "1000000%", "--json", "-"]].concat(), Secret::Home);
        assert!(measured.status.success(), "{transport}: {}", text(&measured.stderr));
        let document: Value = serde_json::from_slice(&measured.stdout).unwrap();
        assert_eq!(document["rows"][0]["transport"], transport);
        let explained = text(&by(&explain, Secret::Home).stdout);
        assert!(explained.contains("security   sealed by AES-256-GCM"), "{transport}: {explained}");
    }
}
