//! The library installed below a directory of its own, and a C compiler that builds against it.

pub(crate) use cci_conformance::installed::{STRICT, compiler, end, succeed};

use cci_conformance::installed::{self, Installed};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::LazyLock;

/// Below a prefix that `install.sh` makes once per run of this test.
pub(crate) static INSTALLED: LazyLock<Installed> =
    LazyLock::new(|| Installed::new("cci-c", "cci", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR")));

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
    let dir = cci_conformance::build("cci-c", env!("CARGO_TARGET_TMPDIR").as_ref());
    let library = dir.join("libcci_c.so");
    assert!(library.is_file(), "cargo build has made no {}", library.display());
    dir
}

pub(crate) fn prefix() -> &'static Path {
    INSTALLED.prefix()
}

/// A directory for the programs of one test.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// What `pkg-config` says about the installed library.
pub(crate) fn pkg_config(arguments: &[&str]) -> Vec<String> {
    INSTALLED.pkg_config("cci", arguments)
}

/// Builds one C program against the installed library and says where it is. A relative path of its
/// source is one below `tests/c`.
pub(crate) fn program(source: impl AsRef<Path>, dir: &Path) -> PathBuf {
    INSTALLED.compile(source, &[], dir)
}

/// The same by a compiler of the caller's choice.
pub(crate) fn program_by(cc: Command, source: &Path, dir: &Path) -> PathBuf {
    let target = dir.join(source.file_stem().expect("a source has a name"));
    INSTALLED.compile_by(cc, "cci", &[source.to_owned()], &[], &target);
    target
}

/// A command that runs a program with the installed library. Its outputs are pipes.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = installed::command(program);
    command.env("LD_LIBRARY_PATH", prefix().join("lib")).env_remove("CCI_DEBUG");
    command
}

/// Runs a program to its end and demands success.
pub(crate) fn run(program: &Path) -> Output {
    succeeds(&mut command(program), &program.display().to_string())
}

/// Runs a command to its end and demands success.
pub(crate) fn succeeds(command: &mut Command, name: &str) -> Output {
    finish(command.spawn().expect("the program starts"), name)
}

/// Waits for a program whose outputs are pipes and demands success.
pub(crate) fn finish(child: Child, name: &str) -> Output {
    let output = end(child, name);
    let words = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{words}", output.status);
    output
}
