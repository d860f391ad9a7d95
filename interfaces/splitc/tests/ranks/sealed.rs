//! Ranks that a user starts by variables, with a secret in a file: what they exchange is sealed.

use super::program;
use cci_conformance::installed::{command, end};
use cci_conformance::process::Running;
use cci_conformance::sealed::{Secret, Secrets, TRANSPORTS};
use std::net::TcpListener;
use std::process::{Child, Output};

/// Two ranks are started and connect by this way; rank 1 has other secrets in some runs.
struct Pair<'p> {
    secrets: &'p Secrets,
    transport: &'p str,
    mapping: &'p str,
}

impl Pair<'_> {
    fn start(&self, rank: u32, port: u16, secret: Secret, lines: &str) -> Child {
        let mut command = command(program());
        command.arg("bulk").envs(self.secrets.variables(secret, self.transport, lines));
        command.env("CCI_SPLITC_MAPPING", self.mapping).env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.spawn().expect("it starts")
    }

    /// Runs rank 1 to its end. Rank 0 has ended well if it has; else it is ended.
    fn run(&self, first: Secret, second: Secret, lines: &str) -> Output {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        // Rank 0 serves at the port behind this one.
        let port = listener.local_addr().expect("bound").port() - 1;
        drop(listener);
        let what = format!("{first:?} and {second:?} over {} by {}", self.transport, self.mapping);
        let mut zero = Running(self.start(0, port, first, ""));
        let output = end(self.start(1, port, second, lines), &what);
        if output.status.success() {
            assert!(zero.0.wait().expect("its end").success(), "{what}");
        }
        output
    }

    fn succeeds(&self, secret: Secret) {
        let output = self.run(secret, secret, "");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.is_empty(), "{secret:?} over {}: {words}", self.transport);
    }

    /// Rank 1 ends with one sentence, which has these words.
    fn refused(&self, (first, second): (Secret, Secret), lines: &str, why: &str) {
        let output = self.run(first, second, lines);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains(why), "{first:?}, {second:?}: {}: {words}", output.status);
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}

pub(crate) fn all() {
    let secrets = Secrets::new();
    for transport in TRANSPORTS {
        for mapping in ["direct", "am", "vi"] {
            let pair = Pair { secrets: &secrets, transport, mapping };
            // A file that is named is the secret of the job; one of the user that of his devices.
            pair.succeeds(Secret::Named);
            pair.succeeds(Secret::Home);
        }
        let pair = Pair { secrets: &secrets, transport, mapping: "direct" };
        let sealed = "cannot connect to rank 0";
        pair.refused((Secret::Home, Secret::Missing), "", sealed);
        pair.refused((Secret::Named, Secret::Named), "security = off\n", sealed);
        pair.refused((Secret::Named, Secret::Other), "", "with the secret of the job");
    }
}
