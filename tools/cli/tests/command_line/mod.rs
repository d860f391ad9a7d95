//! How tests run the command, and what they look at.
#![allow(dead_code, reason = "each test uses a part")]

use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};

/// A configuration of the user's, and a job around it.
pub(crate) const UNSET: [&str; 8] =
    ["CCI_CONFIG", "CCI_CTP", "CCI_JOB_FD", "PMI_FD", "PMI_PORT", "CCI_STORE", "CCI_LISTEN", "CCI_SECRET_FILE"];

/// The command, without a configuration of the user's, and outside of any job.
pub(crate) fn cci(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cci"));
    for variable in UNSET {
        command.env_remove(variable);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The first finding of a run that writes JSON to standard output.
pub(crate) fn first_finding(output: &Output) -> Value {
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", text(&output.stderr)));
    document["findings"][0].clone()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is text altogether.
pub(crate) fn exact(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}

/// The lines, sorted: ranks write in any order.
pub(crate) fn lines(bytes: &[u8]) -> Vec<&str> {
    let mut lines: Vec<&str> = exact(bytes).lines().collect();
    lines.sort_unstable();
    lines
}

/// A process that is ended when the test ends.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
