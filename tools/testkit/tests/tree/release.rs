//! The dry run of `ci/release`, in a repository of its own with the files that it compares.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a release compares, from the project's root.
const FILES: [&str; 7] = [
    "ci/release",
    "Cargo.toml",
    "CHANGELOG.md",
    "include/cci.h",
    "bindings/c/cci.pc.in",
    "bindings/c/build.rs",
    "bindings/python/Cargo.toml",
];

/// A repository with one commit, removed when dropped.
struct Repository(PathBuf);

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Repository {
    /// `name`: of the directory, one for each test.
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("release-{name}-{}", std::process::id()));
        let repository = Self(place);
        for file in FILES {
            let target = repository.0.join(file);
            std::fs::create_dir_all(target.parent().expect("a directory")).expect("a directory is made");
            // With its rights: the script is run.
            std::fs::copy(root.join(file), target).expect("a file is copied");
        }
        repository.git(&["init", "-q"]);
        repository.commit();
        repository
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(&self.0).args(["-c", "user.name=release", "-c", "user.email=release@example.org"]);
        let output = git.args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "git {arguments:?}: {}", text(&output));
        text(&output)
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "a commit"]);
    }

    /// Changes a file; `from` must occur in it.
    fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.0.join(file);
        let before = std::fs::read_to_string(&path).expect("a file");
        assert!(before.contains(from), "{file} has no '{from}'");
        std::fs::write(path, before.replacen(from, to, 1)).expect("it is written");
    }

    fn dry_run(&self) -> Output {
        Command::new(self.0.join("ci/release")).arg("--dry-run").output().expect("the script runs")
    }

    /// Demands that the dry run refuses a committed change of a file, with these words.
    fn refuses(&self, (file, from, to): (&str, &str, &str), words: &str) {
        self.replace(file, from, to);
        self.commit();
        let output = self.dry_run();
        assert!(!output.status.success() && text(&output).contains(words), "{file}: {}", text(&output));
        self.replace(file, to, from);
        self.commit();
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The version of the workspace, which these tests have too.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn a_dry_run_says_the_tag_and_makes_none() {
    let repository = Repository::new("dry");
    let output = repository.dry_run();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains(&format!(" as v{VERSION}")), "{}", text(&output));
    assert_eq!(repository.git(&["tag"]), "");
}

#[test]
fn versions_that_differ_are_refused() {
    let repository = Repository::new("versions");
    let other = "version = \"9.9.9\"";
    repository.refuses(("Cargo.toml", &format!("version = \"{VERSION}\""), other), "CHANGELOG.md begins with");
    repository.refuses(("bindings/c/cci.pc.in", "Version: 2.2.", "Version: 2.3."), "cci.pc.in has version 2.3.");
    repository.refuses(("bindings/c/build.rs", "libcci.so.2", "libcci.so.3"), "names libcci.so.3");
    let python = ("bindings/python/Cargo.toml", &*format!("version = \"{VERSION}\""), other);
    repository.refuses(python, "bindings/python/Cargo.toml has version '9.9.9'");
    let abi = ("include/cci.h", "#define CCI_ABI_VERSION 2", "#define CCI_ABI_VERSION 3");
    repository.refuses(abi, "has ABI version 3");
    assert!(repository.dry_run().status.success(), "every change was undone");
}

#[test]
fn a_tree_with_changes_and_a_tag_that_exists_are_refused() {
    let repository = Repository::new("tree");
    repository.replace("CHANGELOG.md", "# Changelog", "# Changelog ");
    let output = repository.dry_run();
    assert!(!output.status.success() && text(&output).contains("the tree is not clean"), "{}", text(&output));
    repository.commit();
    repository.git(&["tag", &format!("v{VERSION}")]);
    let output = repository.dry_run();
    assert!(!output.status.success() && text(&output).contains("exists; raise the version"), "{}", text(&output));
}
