//! The library as it is installed: headers, symbols, and C programs that use it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longer than anything here takes; a program that runs longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// The transports that programs run over; none: without a configuration.
const TRANSPORTS: [&str; 4] = ["", "sm", "sock", "tcp"];
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a tool and demands success.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?"));
    let words = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{words}", output.status);
    output
}

/// The libraries of the profile that this test was built in. An integration test of a crate without
/// rlib does not make cargo build them.
fn build() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = tmp.parent().expect("tmp/ lies in the target directory");
    let test = std::env::current_exe().expect("the path of this test");
    let below = test.strip_prefix(target).expect("this test lies in the target directory");
    let dir = target.join(below.components().next().expect("a test lies in a directory of its profile"));
    let profile = match dir.file_name().and_then(OsStr::to_str) {
        None | Some("debug") => "dev",
        Some(other) => other,
    };
    let depth = if std::env::var_os("CARGO_BUILD_TARGET").is_some() { 2 } else { 1 };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "cci-vipl", "--profile", profile, "--target-dir"]);
    succeed(cargo.arg(tmp.ancestors().nth(depth).expect("the target directory")).current_dir(here()));
    dir
}

/// The prefix, made by `install.sh` once per run of this test.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = PREFIX.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        succeed(Command::new(here().join("install.sh")).arg(build()).arg(dir.path()));
        dir
    });
    made.path()
}

fn pkg_config(name: &str, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg(name).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    String::from_utf8_lossy(&succeed(&mut command).stdout).split_whitespace().map(str::to_owned).collect()
}

/// Builds a C program by what pkg-config prints, runs it over each of the transports, and returns
/// what it prints each time.
fn run(source: &str, flags: &[&str], transports: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(&here().join("tests/c").join(source), flags, dir.path());
    transports.iter().map(|transport| finish(start(&program, &[], transport, dir.path()), transport)).collect()
}

fn compile(source: &Path, flags: &[&str], dir: &Path) -> PathBuf {
    let program = dir.join(source.file_stem().expect("a name"));
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.arg("-std=c99").args(STRICT).args(["-D_DEFAULT_SOURCE", "-g", "-pthread"]).args(flags).arg("-o").arg(&program);
    succeed(cc.arg(source).args(pkg_config("vipl", &["--cflags", "--libs"])));
    program
}

fn start(program: &Path, arguments: &[&str], transport: &str, dir: &Path) -> Child {
    let mut command = Command::new(program);
    command.args(arguments);
    command.env_remove("CCI_CONFIG").env_remove("CCI_CTP").stdout(Stdio::piped()).stderr(Stdio::piped());
    if !transport.is_empty() {
        let file = dir.join(format!("{transport}.ini"));
        let ip = if transport == "sm" { "" } else { "ip = 127.0.0.1\n" };
        std::fs::write(&file, format!("[device]\ntransport = {transport}\n{ip}")).expect("a configuration");
        command.env("CCI_CONFIG", file);
    }
    command.spawn().expect("the program starts")
}

fn finish(mut child: Child, transport: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().expect("it can be waited for").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it can be killed");
            panic!("a program over '{transport}' does not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().expect("its output");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "over '{transport}': {}\n{words}", output.status);
    assert!(words.is_empty(), "nobody has asked for it: {words}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn structures_and_constants_are_those_of_vipl() {
    for flags in [&[][..], &["-DVIPL095"]] {
        assert_eq!(run("layout.c", flags, &[""]), ["laid out\n"]);
    }
}

#[test]
fn it_conforms_call_by_call() {
    assert_eq!(run("conformance.c", &[], &TRANSPORTS), ["conforms\n"; 4]);
}

#[test]
fn it_fails_as_documented() {
    assert_eq!(run("failures.c", &[], &TRANSPORTS), ["fails well\n"; 4]);
}

/// Two processes, which sleep while they wait.
#[test]
fn the_examples_exchange_messages() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let examples = here().join("../../examples/c/vipl");
    let [server, client] = ["server", "client"].map(|end| {
        let source = examples.join(format!("pingpong_{end}.c"));
        let lines = std::fs::read_to_string(&source).expect("an example").lines().count();
        assert!(lines < 80, "{source:?} is too long to be read at a sitting; shorten it");
        compile(&source, &[], dir.path())
    });
    for transport in TRANSPORTS {
        let name = format!("test{}{transport}", std::process::id());
        let served = start(&server, &["200", &name], transport, dir.path());
        let asked = start(&client, &["200", &name], transport, dir.path());
        assert_eq!(finish(asked, transport), "asked 200\n");
        assert_eq!(finish(served, transport), "served 200\n");
    }
    let refused = Command::new(&client).arg("--help").output().expect("it starts");
    assert!(refused.status.code() == Some(2) && String::from_utf8_lossy(&refused.stderr).contains("usage:"));
}

/// Two name spaces with a wire between them, gone with this value.
struct Wire([String; 2]);

impl Wire {
    fn new() -> Result<Self, String> {
        let names = ["a", "b"].map(|end| format!("vipl{}{end}", std::process::id()));
        let wire = Self(names);
        let [a, b] = &wire.0;
        let ip = |arguments: String| {
            let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|why| format!("ip: {why}"))?;
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {words}")) }
        };
        ip(format!("netns add {a}"))?;
        ip(format!("netns add {b}"))?;
        ip(format!("link add {a} netns {a} type veth peer name {b} netns {b}"))?;
        for (name, host) in [(a, "10.77.0.1/24"), (b, "10.77.0.2/24")] {
            ip(format!("-n {name} addr add {host} dev {name}"))?;
            ip(format!("-n {name} link set {name} up"))?;
            ip(format!("-n {name} link set lo up"))?;
        }
        Ok(wire)
    }

    /// A program in one of the name spaces, its endpoints open to the network.
    fn start(&self, end: usize, program: &Path, arguments: &[&str]) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[end]]).arg(program).args(arguments).env("CCI_LISTEN", "network");
        command.env_remove("CCI_CONFIG").env_remove("CCI_CTP").stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for name in &self.0 {
            // One that was never made needs no end.
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot run says so")]
fn the_examples_exchange_messages_between_hosts() {
    let wire = match Wire::new() {
        Ok(wire) => wire,
        Err(why) => return eprintln!("left out: no network name spaces: {why}"),
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let examples = here().join("../../examples/c/vipl");
    let [server, client] =
        ["server", "client"].map(|end| compile(&examples.join(format!("pingpong_{end}.c")), &[], dir.path()));
    let served = wire.start(0, &server, &["100", "between hosts"]);
    let asked = wire.start(1, &client, &["100", "between hosts", "10.77.0.1"]);
    assert_eq!(finish(asked, "the wire"), "asked 100\n");
    assert_eq!(finish(served, "the wire"), "served 100\n");
}

#[test]
fn it_conforms_with_the_older_names_of_members() {
    assert_eq!(run("conformance.c", &["-DVIPL095"], &[""]), ["conforms\n"]);
}

fn listed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(here().join("exported.list")).expect("the list");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_libraries_export_the_list() {
    for (flag, library) in [("--dynamic", "libvipl.so"), ("--extern-only", "libvipl.a")] {
        let library = prefix().join("lib/cci/compat").join(library);
        let output = succeed(Command::new("nm").args([flag, "--defined-only"]).arg(library));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let symbols = text.lines().filter(|line| line.split_whitespace().count() == 3);
        let found: BTreeSet<_> = symbols.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
        assert_eq!(found, listed());
    }
}

#[test]
fn the_header_declares_what_the_list_names() {
    let text = std::fs::read_to_string(here().join("include/vipl.h")).expect("the header");
    let declarations = text.lines().filter_map(|line| line.strip_prefix("VIP_RETURN "));
    let declared: BTreeSet<_> = declarations.filter_map(|line| line.split('(').next()).map(str::to_owned).collect();
    assert_eq!(declared, listed());
}

#[test]
fn the_header_stands_alone_in_c_and_in_cxx() {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++17")] {
        for flags in [&[][..], &["-DVIPL095"]] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let source = dir.path().join("alone.c");
            std::fs::write(&source, "#include <vipl.h>\nint unused;\n").expect("a source is written");
            let mut cc = Command::new("cc");
            cc.args(["-x", language, standard]).args(STRICT).args(flags).arg("-fsyntax-only").arg(source);
            succeed(cc.args(pkg_config("vipl", &["--cflags"])));
        }
    }
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    let names = |dir: &str| -> Vec<String> {
        let entries = std::fs::read_dir(prefix().join(dir)).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names("include"), ["cci"]);
    let mut lib = names("lib");
    lib.sort();
    assert_eq!(lib, ["cci", "pkgconfig"]);
}
