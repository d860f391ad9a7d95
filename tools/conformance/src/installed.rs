//! A library of C as it is installed, and the programs that are built against it.

use crate::{build, run_folder};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
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

/// Returns what a program printed that ends well and complains of nothing.
///
/// # Panics
///
/// It does not.
#[must_use]
pub fn finish(child: Child, what: &str) -> String {
    let output = end(child, what);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{words}", output.status);
    assert!(words.is_empty(), "nobody has asked for it: {words}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits for programs, each of which is to print `said` and to end as for [`finish`].
///
/// # Panics
///
/// One does not.
pub fn finish_all(children: impl IntoIterator<Item = Child>, said: &str, what: &str) {
    // All of them: what one has said explains why another one waits.
    let words: Vec<_> = std::thread::scope(|scope| {
        let ends: Vec<_> = children.into_iter().map(|child| scope.spawn(move || finish(child, what))).collect();
        ends.into_iter().map(|end| end.join().unwrap_or_default()).collect()
    });
    assert!(words.iter().all(|words| words == said), "{what}: {words:?}");
}

/// A C compiler, or a C++ compiler for `c++`, as the environment names it.
#[must_use]
pub fn compiler(language: &str) -> Command {
    let (variable, default) = if language == "c++" { ("CXX", "c++") } else { ("CC", "cc") };
    Command::new(std::env::var_os(variable).unwrap_or_else(|| default.into()))
}

/// A command without a configuration of the user's, and without a job that the test is a part of.
/// Its outputs are pipes.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in ["CCI_CONFIG", "CCI_CTP", "CCI_JOB_FD", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Has a command use a transport within this host, by a configuration in `dir`; `tcp6` is TCP over
/// IPv6, and nothing is done for `""`.
///
/// # Panics
///
/// The configuration cannot be written.
pub fn use_transport(command: &mut Command, transport: &str, dir: &Path) {
    let (name, ip) = match transport {
        "" => return,
        "sm" => ("sm", ""),
        "tcp6" => ("tcp", "ip = ::1\n"),
        other => (other, "ip = 127.0.0.1\n"),
    };
    let file = dir.join(format!("{transport}.ini"));
    // Once: a program that was started reads it.
    if !file.exists() {
        std::fs::write(&file, format!("[device]\ntransport = {name}\n{ip}")).expect("a configuration");
    }
    command.env("CCI_CONFIG", &file).env("TEST_CONFIG", &file);
}

/// A library below a prefix of its own, which is a [`run_folder()`].
pub struct Installed {
    name: &'static str,
    here: PathBuf,
    tmp: PathBuf,
    prefix: PathBuf,
    cci: OnceLock<PathBuf>,
}

impl Installed {
    /// Builds a package, and has the script `install.sh` in its folder `here` install it;
    /// pkg-config has its flags by `name`. `tmp` is that of [`build`].
    ///
    /// # Panics
    ///
    /// It cannot be built or installed.
    #[must_use]
    pub fn new(package: &str, name: &'static str, here: &str, tmp: &str) -> Self {
        let (here, tmp) = (PathBuf::from(here), PathBuf::from(tmp));
        let prefix = run_folder(&tmp);
        succeed(Command::new(here.join("install.sh")).arg(build(package, &tmp)).arg(&prefix));
        Self { name, here, tmp, prefix, cci: OnceLock::new() }
    }

    /// The command `cci`, which is built by the first call.
    pub fn cci(&self) -> &Path {
        self.cci.get_or_init(|| build("cci-cli", &self.tmp).join("cci"))
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

    /// Builds a C program into a folder, and returns its path. A relative path of its source is one
    /// below `tests/c` of the package.
    ///
    /// # Panics
    ///
    /// It does not compile, or warns.
    #[must_use]
    pub fn compile(&self, source: impl AsRef<Path>, flags: &[&str], dir: &Path) -> PathBuf {
        let source = self.here.join("tests/c").join(source);
        let program = dir.join(source.file_stem().expect("a name"));
        self.compile_by(compiler("c"), self.name, &[source], flags, &program);
        program
    }

    /// The same by a compiler, and by what pkg-config prints of a name.
    ///
    /// # Panics
    ///
    /// It does not compile, or warns.
    pub fn compile_by(&self, mut cc: Command, name: &str, sources: &[PathBuf], flags: &[&str], program: &Path) {
        cc.arg("-std=c99").args(STRICT).args(["-D_DEFAULT_SOURCE", "-g", "-pthread"]).args(flags);
        cc.arg("-o").arg(program).args(sources);
        succeed(cc.args(self.pkg_config(name, &["--cflags", "--libs"])));
    }

    /// Compiles a program that includes nothing but a header, in C and in C++.
    ///
    /// # Panics
    ///
    /// One does not compile, or warns.
    pub fn stands_alone(&self, name: &str, header: &str, flags: &[&str]) {
        for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++17")] {
            self.stands_alone_in(language, name, header, &[&[standard][..], &STRICT, flags].concat());
        }
    }

    /// The same in one language, with these flags and those of a name.
    ///
    /// # Panics
    ///
    /// It does not compile, or warns.
    pub fn stands_alone_in(&self, language: &str, name: &str, header: &str, flags: &[&str]) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = dir.path().join("alone.c");
        std::fs::write(&source, format!("#include <{header}>\nint unused;\n")).expect("a source is written");
        let mut cc = compiler(language);
        cc.args(["-x", language]).args(flags).arg("-fsyntax-only").arg(source);
        succeed(cc.args(self.pkg_config(name, &["--cflags"])));
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
