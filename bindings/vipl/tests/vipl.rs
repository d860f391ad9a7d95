//! The library as it is installed: headers, symbols, and C programs that use it.

use cci_conformance::installed::{Installed, command, finish, succeed, use_transport};
use cci_conformance::namespace::{self, Net};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// The transports that programs run over; none: without a configuration.
const TRANSPORTS: [&str; 4] = ["", "sm", "sock", "tcp"];

fn has_ipv6() -> bool {
    std::net::TcpListener::bind("[::1]:0").is_ok()
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

static INSTALLED: LazyLock<Installed> =
    LazyLock::new(|| Installed::new("cci-vipl", "vipl", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR")));

/// Builds a C program by what pkg-config prints, runs it over each of the transports, and returns
/// what it prints each time.
fn run(source: &str, flags: &[&str], transports: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile(source, flags, dir.path());
    transports.iter().map(|transport| finish(start(&program, &[], transport, dir.path()), transport)).collect()
}

fn start(program: &Path, arguments: &[&str], transport: &str, dir: &Path) -> Child {
    let mut command = command(program);
    use_transport(&mut command, transport, dir);
    command.args(arguments).spawn().expect("the program starts")
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
    let program = INSTALLED.compile("descriptors.c", &[], dir.path());
    for (transport, when) in TRANSPORTS.iter().flat_map(|at| ["never", "closed", "closing"].map(|when| (at, when))) {
        let mut command = command(&program);
        use_transport(&mut command, transport, dir.path());
        let child = command.env("DESCRIPTORS", when).spawn().expect("the program starts");
        let said = finish(child, &format!("{transport}, {when}"));
        assert_eq!(said, "exchanged\n");
    }
}

#[test]
fn a_thread_that_is_cancelled_ends_its_calls_first() {
    assert_eq!(run("cancelled.c", &[], &TRANSPORTS), ["called\n"; 4]);
}

#[test]
fn clients_that_hang_up_keep_no_descriptor_of_their_server() {
    assert_eq!(run("hang_ups.c", &[], &TRANSPORTS), ["hung up\n"; 4]);
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
        assert_eq!(run("conformance.c", &[], &["tcp6"]), ["conforms\n"]);
        assert_eq!(run("failures.c", &[], &["tcp6"]), ["fails well\n"]);
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
    let program = INSTALLED.compile("failures.c", &[], dir.path());
    let child = nets[0].enter(|| command(&program).arg("no route").spawn().expect("the program starts"));
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
        INSTALLED.compile(&source, &[], dir.path())
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
    let program = INSTALLED.compile(&source, &[], dir.path());
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
    let program = INSTALLED.compile(here().join("../../examples/c/vipl/mailbox.c"), &[], dir.path());
    let start = |net: &Net, arguments: &[&str]| {
        let start = || command(&program).args(arguments).env("CCI_LISTEN", "network").spawn();
        net.enter(start).expect("the program starts")
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
        ["server", "client"].map(|end| INSTALLED.compile(examples.join(format!("pingpong_{end}.c")), &[], dir.path()));
    // Their endpoints are open to the network.
    let start = |net: &Net, program: &Path, arguments: &[&str]| {
        let start = || command(program).args(arguments).env("CCI_LISTEN", "network").spawn();
        net.enter(start).expect("the program starts")
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
    assert_eq!(INSTALLED.exported("vipl"), [(); 2].map(|()| INSTALLED.listed()));
}

#[test]
fn the_header_declares_what_the_list_names() {
    let text = std::fs::read_to_string(here().join("include/vipl.h")).expect("the header");
    let declarations = text.lines().filter_map(|line| line.strip_prefix("VIP_RETURN "));
    let declared: BTreeSet<_> = declarations.filter_map(|line| line.split('(').next()).map(str::to_owned).collect();
    assert_eq!(declared, INSTALLED.listed());
}

#[test]
fn the_header_stands_alone_in_c_and_in_cxx() {
    [&[][..], &["-DVIPL095"]].iter().for_each(|flags| INSTALLED.stands_alone("vipl", "vipl.h", flags));
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(INSTALLED.names_in("include"), ["cci"]);
    assert_eq!(INSTALLED.names_in("lib"), ["cci", "pkgconfig"]);
}
