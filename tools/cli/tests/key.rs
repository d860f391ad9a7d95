//! `cci key` as its users run it, in a home folder of the test.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::{cci, text};
use std::fs::{Permissions, metadata, read_to_string, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A home folder without a secret.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Where `cci key new` writes.
    fn default(&self) -> PathBuf {
        self.path("cci/secret")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cci(arguments);
        command.env("XDG_CONFIG_HOME", self.0.path());
        command
    }

    /// Runs what must succeed, and returns its standard output.
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs what must fail, and returns its sentence.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{arguments:?}");
        text(&output.stderr)
    }
}

fn named(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The label in what `cci key new` prints.
fn label_of(said: &str) -> &str {
    let label = said.strip_prefix("wrote the secret ").and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(label.len() == 8 && label.bytes().all(|byte| byte.is_ascii_hexdigit()), "{said}");
    label
}

#[test]
fn a_new_secret_is_of_its_user_alone_and_is_never_overwritten() {
    let home = Home::new();
    let said = home.run(&["key", "new"]);
    let digits = read_to_string(home.default()).unwrap();
    assert_eq!(metadata(home.default()).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(digits.len() == 65 && digits.ends_with('\n'), "64 digits and a newline");
    assert!(digits.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(said.contains(named(&home.default())) && !said.contains(digits.trim_end()), "{said}");
    let shown = home.run(&["key", "show", named(&home.default())]);
    assert_eq!(shown, format!("{}  {}\n", label_of(&said), named(&home.default())));

    let why = home.refused(&["key", "new"]);
    assert!(why.contains("it exists; remove it first"), "{why}");
    assert_eq!(read_to_string(home.default()).unwrap(), digits, "it is the same");

    let other = home.path("other");
    let said = home.run(&["key", "new", named(&other)]);
    assert!(said.contains("CCI_SECRET_FILE"), "it says how to name another file: {said}");
    assert_ne!(read_to_string(&other).unwrap(), digits, "each is drawn");
}

#[test]
fn the_digits_are_printed_only_when_they_are_asked_for() {
    let home = Home::new();
    home.run(&["key", "new"]);
    let digits = read_to_string(home.default()).unwrap();
    for arguments in [&["key", "show"][..], &["key", "show", named(&home.default())]] {
        let said = home.run(arguments);
        assert!(!said.contains(digits.trim_end()), "{arguments:?}: {said}");
    }
    assert_eq!(home.run(&["key", "show", "--secret"]), digits);
    assert_eq!(home.run(&["key", "show", "--secret", named(&home.default())]), digits);
}

#[test]
fn what_is_shown_is_the_place_that_counts() {
    let home = Home::new();
    let said = home.run(&["key", "show"]);
    assert!(said.contains("missing ") && said.contains("make one with `cci key new`"), "{said}");
    let why = home.refused(&["key", "show", "--secret"]);
    assert!(why.contains("there is no secret; make one with `cci key new`"), "{why}");

    let users = home.run(&["key", "new"]);
    let said = home.run(&["key", "show"]);
    let counts = format!("use {}, of {}\n", label_of(&users), named(&home.default()));
    assert!(said.ends_with(&counts), "{said}");

    let (other, configuration) = (home.path("other"), home.path("cci.ini"));
    let others = home.run(&["key", "new", named(&other)]);
    let digits = "5f".repeat(32);
    std::fs::write(&configuration, format!("[net0]\ntransport = auto\nsecret = {digits}\n")).unwrap();
    let mut command = home.command(&["key", "show"]);
    let output = command.env("CCI_SECRET_FILE", &other).env("CCI_CONFIG", &configuration).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.ends_with(&format!("use {}, of CCI_SECRET_FILE ({})\n", label_of(&others), named(&other))), "{said}");
    assert!(said.contains(label_of(&users)), "the file of the user is shown too: {said}");
    assert!(said.contains("the key secret of the device net0") && !said.contains(&digits), "{said}");
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_with_its_remedy() {
    let home = Home::new();
    home.run(&["key", "new"]);
    set_permissions(home.default(), Permissions::from_mode(0o644)).unwrap();
    for arguments in [&["key", "show"][..], &["key", "show", "--secret"], &["key", "show", named(&home.default())]] {
        let why = home.refused(arguments);
        assert!(why.contains("its mode 0644 lets others use it; chmod 600 it"), "{why}");
    }
    let missing = home.path("missing");
    let why = home.refused(&["key", "show", named(&missing)]);
    assert!(why.contains(named(&missing)) && why.contains("`cci key new`"), "{why}");
}
