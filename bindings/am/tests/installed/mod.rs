//! The library as it is installed, and C programs that use it.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longer than anything here takes; a program that runs longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a tool and demands success.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?"));
    let words = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{words}", output.status);
    output
}

/// The prefix, made by `install.sh` once per run of this test.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = PREFIX.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        succeed(
            Command::new(here().join("install.sh"))
                .arg(cci_testkit::build("cci-am-c", env!("CARGO_TARGET_TMPDIR").as_ref()))
                .arg(dir.path()),
        );
        dir
    });
    made.path()
}

pub(crate) fn pkg_config(name: &str, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg(name).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    String::from_utf8_lossy(&succeed(&mut command).stdout).split_whitespace().map(str::to_owned).collect()
}

/// Builds a C program by what pkg-config prints; its sources are below the project's directory.
pub(crate) fn build(sources: &[&str], flags: &[&str], name: &str, target: &Path) {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.arg("-std=c99").args(STRICT).args(["-D_DEFAULT_SOURCE", "-g", "-pthread"]).args(flags).arg("-o").arg(target);
    cc.args(sources.iter().map(|source| here().join("../..").join(source)));
    succeed(cc.args(pkg_config(name, &["--cflags", "--libs"])));
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

/// Waits for a program whose outputs are pipes, which they fit.
pub(crate) fn end(mut child: Child, what: &str) -> Output {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().expect("it can be waited for").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it can be killed");
            panic!("{what} does not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().expect("its output")
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}
