//! The library as it is installed, and C programs that use it.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) use cci_conformance::installed::end;

use cci_conformance::installed::Installed;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Made by `install.sh` once per run of this test.
pub(crate) fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| Installed::new("cci-am-c", here(), env!("CARGO_TARGET_TMPDIR").as_ref()))
}

/// Builds a C program; its sources are below the project's directory.
pub(crate) fn build(sources: &[&str], flags: &[&str], name: &str, target: &Path) {
    let sources: Vec<_> = sources.iter().map(|source| here().join("../..").join(source)).collect();
    installed().compile(name, &sources, flags, target);
}

/// A command without a configuration of the user's, and without a job that the test is a part of.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["CCI_CONFIG", "CCI_CTP", "CCI_JOB_FD", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}
