//! The library as it is installed: headers, symbols, and C programs that use it.

use cci_conformance::installed::{Installed, STRICT, end, succeed};
use cci_conformance::namespace::{self, Net};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The transports that programs run over; none: without a configuration.
const TRANSPORTS: [&str; 4] = ["", "sm", "sock", "tcp"];
/// By IPv6, where the host has it.
const IPV6: &str = "tcp by IPv6";

fn has_ipv6() -> bool {
    std::net::TcpListener::bind("[::1]:0").is_ok()
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Made by `install.sh` once per run of this test.
fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| Installed::new("cci-vipl", here(), env!("CARGO_TARGET_TMPDIR").as_ref()))
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
    installed().compile("vipl", &[source.to_owned()], flags, &program);
    program
}

/// A program without a configuration of the user's.
fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("CCI_CONFIG").env_remove("CCI_CTP");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(program: &Path, arguments: &[&str], transport: &str, dir: &Path) -> Child {
    start_with(command(program, arguments), transport, dir)
}

fn start_with(mut command: Command, transport: &str, dir: &Path) -> Child {
    if !transport.is_empty() {
        let file = dir.join(format!("{transport}.ini"));
        let (transport, ip) = match transport {
            "sm" => ("sm", ""),
            IPV6 => ("tcp", "ip = ::1\n"),
            other => (other, "ip = 127.0.0.1\n"),
        };
        std::fs::write(&file, format!("[device]\ntransport = {transport}\n{ip}")).expect("a configuration");
        command.env("CCI_CONFIG", file);
    }
    command.spawn().expect("the program starts")
}

fn finish(child: Child, transport: &str) -> String {
    let output = end(child, &format!("a program over '{transport}'"));
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

/// Programs define nothing, and use either names or both.
#[test]
fn both_names_of_a_segment_compile_in_strict_modes() {
    let compilers = ["cc", "clang"].into_iter();
    let has = |compiler: &&str| Command::new(compiler).arg("--version").stdout(Stdio::null()).status().is_ok();
    for compiler in compilers.filter(has) {
        for (language, standard) in [("c", "c99"), ("c", "c11"), ("c++", "c++98"), ("c++", "c++17")] {
            let mut command = Command::new(compiler);
            command.args([
                "-x",
                language,
                &format!("-std={standard}"),
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Wconversion",
            ]);
            command.args(["-Werror", "-O2", "-S", "-o", "/dev/null"]).arg("-I").arg(here().join("include"));
            succeed(command.arg(here().join("tests/c/both_names.c")));
        }
    }
}

#[test]
fn memory_that_is_not_mapped_is_refused_at_its_registration() {
    assert_eq!(run("unmapped.c", &[], &TRANSPORTS), ["refused\n"; 4]);
}

#[test]
fn it_conforms_call_by_call() {
    assert_eq!(run("conformance.c", &[], &TRANSPORTS), ["conforms\n"; 4]);
}

#[test]
fn names_and_addresses_are_looked_up_within_a_limit() {
    assert_eq!(run("silent_names.c", &[], &["sock"]), ["within the limit\n"]);
}

#[test]
fn no_descriptor_is_inherited_or_a_standard_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(&here().join("tests/c/descriptors.c"), &[], dir.path());
    for (transport, when) in TRANSPORTS.iter().flat_map(|at| ["never", "closed", "closing"].map(|when| (at, when))) {
        let mut command = command(&program, &[]);
        command.env("DESCRIPTORS", when);
        let said = finish(start_with(command, transport, dir.path()), &format!("{transport}, {when}"));
        assert_eq!(said, "exchanged\n");
    }
}

#[test]
fn it_fails_as_documented() {
    assert_eq!(run("failures.c", &[], &TRANSPORTS), ["fails well\n"; 4]);
}

#[test]
fn a_client_finds_its_server_behind_a_silent_port() {
    assert_eq!(run("silent_port.c", &[], &TRANSPORTS), ["connected\n"; 4]);
}

#[test]
fn a_child_that_is_forked_amid_calls_is_refused_at_once() {
    assert_eq!(run("forked.c", &[], &TRANSPORTS), ["refused\n"; 4]);
}

#[test]
fn nics_have_addresses_of_ipv6() {
    if has_ipv6() {
        assert_eq!(run("conformance.c", &[], &[IPV6]), ["conforms\n"]);
        assert_eq!(run("failures.c", &[], &[IPV6]), ["fails well\n"]);
    }
}

/// Elsewhere a host to which no route leads may also be one that does not answer.
#[test]
fn a_host_without_a_route_is_not_reachable() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(&here().join("tests/c/failures.c"), &[], dir.path());
    let child = nets[0].enter(|| command(&program, &["no route"]).spawn().expect("the program starts"));
    assert_eq!(finish(child, "no route"), "fails well\n");
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

/// By the peer-to-peer model, one completion queue, and RDMA writes with immediate data.
#[test]
fn equals_write_into_each_others_memory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = here().join("../../examples/c/vipl/mailbox.c");
    let lines = std::fs::read_to_string(&source).expect("an example").lines().count();
    assert!(lines < 80, "{source:?} is too long to be read at a sitting; shorten it");
    let program = compile(&source, &[], dir.path());
    for transport in TRANSPORTS {
        let [left, right] = ["left", "right"].map(|end| format!("{end}{}{transport}", std::process::id()));
        let one = start(&program, &["100", &left, &right], transport, dir.path());
        let other = start(&program, &["100", &right, &left], transport, dir.path());
        assert_eq!(finish(one, transport), "exchanged 100\n");
        assert_eq!(finish(other, transport), "exchanged 100\n");
    }
}

#[test]
fn equals_write_into_each_others_memory_between_hosts() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(&here().join("../../examples/c/vipl/mailbox.c"), &[], dir.path());
    let start = |net: &Net, arguments: &[&str]| {
        net.enter(|| command(&program, arguments).env("CCI_LISTEN", "network").spawn().expect("the program starts"))
    };
    let one = start(&nets[0], &["100", "left", "right", "10.0.0.2"]);
    let other = start(&nets[1], &["100", "right", "left", "10.0.0.1"]);
    assert_eq!(finish(one, "the wire"), "exchanged 100\n");
    assert_eq!(finish(other, "the wire"), "exchanged 100\n");
}

#[test]
fn the_examples_exchange_messages_between_hosts() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let examples = here().join("../../examples/c/vipl");
    let [server, client] =
        ["server", "client"].map(|end| compile(&examples.join(format!("pingpong_{end}.c")), &[], dir.path()));
    // Their endpoints are open to the network.
    let start = |net: &Net, program: &Path, arguments: &[&str]| {
        net.enter(|| command(program, arguments).env("CCI_LISTEN", "network").spawn().expect("the program starts"))
    };
    let served = start(&nets[0], &server, &["100", "between hosts"]);
    let asked = start(&nets[1], &client, &["100", "between hosts", "10.0.0.1"]);
    assert_eq!(finish(asked, "the wire"), "asked 100\n");
    assert_eq!(finish(served, "the wire"), "served 100\n");
}

#[test]
fn it_conforms_with_the_older_names_of_members() {
    assert_eq!(run("conformance.c", &["-DVIPL095"], &[""]), ["conforms\n"]);
}

#[test]
fn the_libraries_export_the_list() {
    assert_eq!(installed().exported("vipl"), [(); 2].map(|()| installed().listed()));
}

#[test]
fn the_header_declares_what_the_list_names() {
    let text = std::fs::read_to_string(here().join("include/vipl.h")).expect("the header");
    let declarations = text.lines().filter_map(|line| line.strip_prefix("VIP_RETURN "));
    let declared: BTreeSet<_> = declarations.filter_map(|line| line.split('(').next()).map(str::to_owned).collect();
    assert_eq!(declared, installed().listed());
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
            succeed(cc.args(installed().pkg_config("vipl", &["--cflags"])));
        }
    }
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(installed().names_in("include"), ["cci"]);
    assert_eq!(installed().names_in("lib"), ["cci", "pkgconfig"]);
}
