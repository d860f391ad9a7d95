//! A library of C as it is installed, and the programs that are built against it.

use crate::{build, run_folder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// Longer than any program here takes; one that runs longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Warnings with which headers and programs are compiled.
pub const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Runs a tool, and returns what it printed.
///
/// # Panics
///
/// It is not there, or fails.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?"));
    let words = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{words}", output.status);
    output
}

/// Waits for a program whose outputs are pipes, which they fit.
///
/// # Panics
///
/// It does not end in time.
#[must_use]
pub fn end(mut child: Child, what: &str) -> Output {
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

/// A library below a prefix of its own, which is a [`run_folder()`].
pub struct Installed {
    here: PathBuf,
    prefix: PathBuf,
}

impl Installed {
    /// Builds a package, and has the script `install.sh` in its folder `here` install it. `tmp` is
    /// that of [`build`].
    ///
    /// # Panics
    ///
    /// It cannot be built or installed.
    #[must_use]
    pub fn new(package: &str, here: &Path, tmp: &Path) -> Self {
        let prefix = run_folder(tmp);
        succeed(Command::new(here.join("install.sh")).arg(build(package, tmp)).arg(&prefix));
        Self { here: here.to_owned(), prefix }
    }

    /// What pkg-config prints of a name.
    ///
    /// # Panics
    ///
    /// It does not find the name.
    #[must_use]
    pub fn pkg_config(&self, name: &str, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.args(arguments).arg(name).env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        String::from_utf8_lossy(&succeed(&mut command).stdout).split_whitespace().map(str::to_owned).collect()
    }

    /// Builds a C program by what pkg-config prints of a name.
    ///
    /// # Panics
    ///
    /// It does not compile, or warns.
    pub fn compile(&self, name: &str, sources: &[PathBuf], flags: &[&str], program: &Path) {
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.arg("-std=c99").args(STRICT).args(["-D_DEFAULT_SOURCE", "-g", "-pthread"]).args(flags);
        cc.arg("-o").arg(program).args(sources);
        succeed(cc.args(self.pkg_config(name, &["--cflags", "--libs"])));
    }

    /// The symbols that the library is to export: those of the file `exported.list`.
    ///
    /// # Panics
    ///
    /// There is no such file.
    #[must_use]
    pub fn listed(&self) -> BTreeSet<String> {
        let text = std::fs::read_to_string(self.here.join("exported.list")).expect("the list");
        text.lines().map(str::to_owned).collect()
    }

    /// The symbols that the shared and the static library of a name do export.
    ///
    /// # Panics
    ///
    /// One is not there.
    #[must_use]
    pub fn exported(&self, name: &str) -> [BTreeSet<String>; 2] {
        [("--dynamic", "so"), ("--extern-only", "a")].map(|(flag, kind)| {
            let library = self.prefix.join(format!("lib/cci/compat/lib{name}.{kind}"));
            let output = succeed(Command::new("nm").args([flag, "--defined-only"]).arg(library));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let symbols = text.lines().filter(|line| line.split_whitespace().count() == 3);
            symbols.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
        })
    }

    /// Where it is installed.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The names in a folder below the prefix, sorted.
    ///
    /// # Panics
    ///
    /// There is no such folder.
    #[must_use]
    pub fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.prefix.join(folder)).expect("a directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
