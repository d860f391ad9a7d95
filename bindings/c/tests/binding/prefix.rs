//! The library installed below a directory of its own, and a C compiler that builds against it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longer than anything here takes; a program that runs longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The package's directory.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The project's directory.
pub(crate) fn root() -> PathBuf {
    here().join("../..")
}

/// Builds the libraries, and says where they lie: an integration test of a crate without rlib does
/// not make cargo do it.
pub(crate) fn build() -> PathBuf {
    let dir = build_of("cci-c");
    let library = dir.join("libcci_c.so");
    assert!(library.is_file(), "cargo build has made no {}", library.display());
    dir
}

/// Builds the command `cci`.
pub(crate) fn build_command() -> PathBuf {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| build_of("cci-cli").join("cci")).clone()
}

fn build_of(package: &str) -> PathBuf {
    cci_conformance::build(package, env!("CARGO_TARGET_TMPDIR").as_ref())
}

/// The prefix, made by `install.sh` once per run of this test.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let dir = cci_conformance::run_folder(env!("CARGO_TARGET_TMPDIR").as_ref());
        succeed(Command::new(here().join("install.sh")).arg(build()).arg(&dir));
        dir
    })
}

/// A directory for the programs of one test.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// What `pkg-config` says about the installed library.
pub(crate) fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("cci").env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    let output = succeed(&mut command);
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

/// A C compiler, or a C++ compiler, as the environment names it.
pub(crate) fn compiler(language: &str) -> Command {
    let (variable, default) = if language == "c++" { ("CXX", "c++") } else { ("CC", "cc") };
    Command::new(std::env::var_os(variable).unwrap_or_else(|| default.into()))
}

/// Flags that make the compiler complain about everything, and fail.
pub(crate) const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Builds one C program against the installed library and says where it is.
pub(crate) fn program(source: &Path, dir: &Path) -> PathBuf {
    program_by(compiler("c"), source, dir)
}

/// The same by a compiler of the caller's choice.
pub(crate) fn program_by(mut cc: Command, source: &Path, dir: &Path) -> PathBuf {
    let target = dir.join(source.file_stem().expect("a source has a name"));
    cc.arg("-std=c99").args(STRICT).args(["-g", "-pthread", "-D_DEFAULT_SOURCE", "-o"]).arg(&target).arg(source);
    succeed(cc.args(pkg_config(&["--cflags", "--libs"])));
    target
}

/// A command that runs a program with the installed library, and without a configuration of the
/// user's.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix().join("lib")).env_remove("CCI_CONFIG").env_remove("CCI_DEBUG");
    command.env_remove("CCI_CTP");
    command
}

/// Runs a program to its end and demands success.
pub(crate) fn run(program: &Path) -> Output {
    let child = command(program).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    finish(child.expect("the program starts"), &program.display().to_string())
}

/// Waits for a program whose outputs are pipes and demands success.
pub(crate) fn finish(child: Child, name: &str) -> Output {
    let output = end(child, name);
    assert!(output.status.success(), "{name}: {}\n{}", output.status, words(&output));
    output
}

/// Waits for a program whose outputs are pipes.
pub(crate) fn end(mut child: Child, name: &str) -> Output {
    let deadline = Instant::now() + PATIENCE;
    // The outputs of these programs fit a pipe, so waiting before reading does not block them.
    while child.try_wait().expect("the program can be waited for").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("the program can be killed");
            let output = child.wait_with_output().expect("its output");
            panic!("{name} did not end\n{}", words(&output));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().expect("its output")
}

/// Runs a tool and demands success.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, words(&output));
    output
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
