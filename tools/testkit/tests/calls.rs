//! Some thousands of random calls of each C library, as it was built for the tests. `ci/calls`
//! makes many more, over each transport, with sanitizers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the library and the launcher, and returns their folder.
fn built(package: &str) -> PathBuf {
    static LAUNCHER: OnceLock<()> = OnceLock::new();
    let tmp: &Path = env!("CARGO_TARGET_TMPDIR").as_ref();
    LAUNCHER.get_or_init(|| drop(cci_conformance::build("cci-cli", tmp)));
    cci_conformance::build(package, tmp)
}

/// Runs the program of a library over `sm` and over a network, by one process and by two.
fn call(library: &str, package: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join("ci/calls"));
    command.args([library, "--calls", "3000", "--transport", "sm", "--transport", "tcp", "--built"]);
    let output = command.arg(built(package)).output().expect("bash");
    let words = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}{}", words[0], words[1]);
}

#[test]
fn calls_of_libcci_keep_its_promises() {
    call("cci", "cci-c");
}

#[test]
fn calls_of_active_messages_keep_their_promises() {
    for dialect in ["amudp", "ammpi", "am"] {
        call(dialect, "cci-am-c");
    }
}

#[test]
fn calls_of_vipl_keep_its_promises() {
    call("vipl", "cci-vipl");
}

#[test]
fn calls_of_split_c_keep_its_promises() {
    call("splitc", "cci-splitc-c");
}

#[test]
fn calls_of_portals_keep_its_promises() {
    call("portals3", "cci-portals3");
}

#[test]
fn calls_of_myrinet_express_keep_its_promises() {
    call("myriexpress", "cci-myriexpress");
}

#[test]
fn calls_of_sci_keep_its_promises() {
    for symbols in ["sisci", "scasci"] {
        call(symbols, "cci-sisci");
    }
}
