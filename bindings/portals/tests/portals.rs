//! The library as it is installed: headers, symbols, and C programs that use it.

use cci_conformance::installed::{Installed, STRICT, end, succeed};
use cci_conformance::namespace::{self, Net};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// The transports that programs run over; none: without a configuration.
const TRANSPORTS: [&str; 4] = ["", "sm", "sock", "tcp"];

/// Of the default interface.
const MODES: [&str; 2] = ["generic", "accelerated"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Made by `install.sh` once per run of this test.
fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| Installed::new("cci-portals3", here(), env!("CARGO_TARGET_TMPDIR").as_ref()))
}

fn compile(source: &str, dir: &Path) -> PathBuf {
    let source = here().join("tests/c").join(source);
    let program = dir.join(source.file_stem().expect("a name"));
    installed().compile("portals3", &[source], &[], &program);
    program
}

/// So many numbers of processes that no other test has.
fn pids(count: u32) -> u32 {
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().expect("no test panics here");
    let first = *last;
    *last += count;
    (std::process::id() * 61 + first) % 22_000
}

/// A program over a transport, without a configuration of the user's.
fn command(program: &Path, transport: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("CCI_CONFIG").env_remove("CCI_CTP").stdout(Stdio::piped()).stderr(Stdio::piped());
    if !transport.is_empty() {
        let file = dir.join(format!("{transport}.ini"));
        let ip = if transport == "sm" { "" } else { "ip = 127.0.0.1\n" };
        // Once: a program that was started reads it.
        if !file.exists() {
            std::fs::write(&file, format!("[device]\ntransport = {transport}\n{ip}")).expect("a configuration");
        }
        command.env("CCI_CONFIG", &file).env("TEST_CONFIG", &file);
    }
    command
}

fn finish(child: Child, transport: &'static str) -> String {
    let output = end(child, &format!("a program over '{transport}'"));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "over '{transport}': {}\n{words}", output.status);
    assert!(words.is_empty(), "nobody has asked for it: {words}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program in so many processes over each transport, in each mode.
fn run(source: &str, size: u32, transports: &[&'static str], said: &str) {
    MODES.iter().for_each(|mode| run_in(mode, source, size, transports, said));
}

fn run_in(mode: &str, source: &str, size: u32, transports: &[&'static str], said: &str) {
    run_with((mode, ""), source, size, transports, said);
}

/// `descriptors`: when the program closes its standard descriptors.
fn run_with((mode, descriptors): (&str, &str), source: &str, size: u32, transports: &[&'static str], said: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile(source, dir.path());
    for &transport in transports {
        let first = pids(size);
        let nids = vec!["127.0.0.1"; size as usize].join(":");
        let map = (first..first + size).map(|pid| pid.to_string()).collect::<Vec<_>>().join(":");
        let start = |rank: u32| {
            let mut command = command(&program, transport, dir.path());
            command.env("PTL_MY_RID", rank.to_string()).env("PTL_NIDMAP", &nids).env("PTL_PIDMAP", &map);
            command.env("CCI_PORTALS_MODE", mode).env("DESCRIPTORS", descriptors);
            command.spawn().expect("the program starts")
        };
        let ranks: Vec<_> = (0..size).map(start).collect();
        // All of them: what one has said explains why another one waits.
        let ends: Vec<_> =
            ranks.into_iter().map(|child| std::thread::spawn(move || finish(child, transport))).collect();
        let words: Vec<_> = ends.into_iter().map(|end| end.join().unwrap_or_default()).collect();
        assert!(words.iter().all(|words| words == said), "{source} over '{transport}', {mode}: {words:?}");
    }
}

#[test]
fn no_descriptor_is_inherited_or_a_standard_one() {
    for when in ["never", "closed", "closing"] {
        MODES.iter().for_each(|mode| run_with((mode, when), "descriptors.c", 2, &TRANSPORTS, "exchanged\n"));
    }
}

#[test]
fn structures_and_constants_are_those_of_portals() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile("layout.c", dir.path());
    assert_eq!(finish(command(&program, "", dir.path()).spawn().expect("it starts"), ""), "laid out\n");
}

#[test]
fn each_code_is_provoked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile("codes.c", dir.path());
    for (transport, mode) in TRANSPORTS.into_iter().flat_map(|of| MODES.map(|mode| (of, mode))) {
        let mut command = command(&program, transport, dir.path());
        let child = command.arg(pids(2).to_string()).env("CCI_PORTALS_MODE", mode).spawn().expect("it starts");
        assert_eq!(finish(child, transport), "codes\n", "{mode}");
    }
}

#[test]
fn the_dialect_of_cray_has_its_own_rules() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile("cray.c", dir.path());
    assert_eq!(finish(command(&program, "", dir.path()).spawn().expect("it starts"), ""), "PTL_IFACE_DUP\n");
}

#[test]
fn a_process_has_an_interface_of_each_mode() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = compile("modes.c", dir.path());
    for transport in TRANSPORTS {
        assert_eq!(
            finish(command(&program, transport, dir.path()).spawn().expect("it starts"), transport),
            "two modes\n"
        );
    }
}

#[test]
fn puts_and_gets_go_to_and_fro() {
    run("pingpong.c", 2, &TRANSPORTS, "ping and pong\n");
}

#[test]
fn swaps_make_a_lock() {
    run("lock.c", 3, &["", "sm", "tcp"], "locked\n");
}

#[test]
fn a_token_goes_round() {
    run("ring.c", 4, &["", "sm", "sock"], "round\n");
}

#[test]
fn descriptors_are_unlinked_right_after_their_events() {
    run("unlink.c", 2, &TRANSPORTS, "unlinked\n");
}

#[test]
fn a_queue_is_overrun() {
    run("overrun.c", 2, &["sm", "tcp"], "overrun\n");
}

#[test]
fn programs_have_the_habits_of_those_for_the_reference() {
    run("reference.c", 2, &TRANSPORTS, "as the reference\n");
}

#[test]
fn a_wait_takes_no_processor_time() {
    run("idle.c", 2, &["", "sm", "tcp"], "idle\n");
}

/// Ranks, maps and the ways to partners come from the job.
#[test]
fn a_job_fills_in_ranks_and_maps() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let cci = cci_conformance::build("cci-cli", env!("CARGO_TARGET_TMPDIR").as_ref()).join("cci");
    for (source, ranks, said) in [
        ("ring.c", "4", "round\n"),
        ("lock.c", "3", "locked\n"),
        ("pingpong.c", "2", "ping and pong\n"),
        ("jobmodes.c", "3", "both modes\n"),
        ("reference.c", "2", "as the reference\n"),
    ] {
        let program = compile(source, dir.path());
        let child = command(&cci, "", dir.path()).args(["run", "-n", ranks]).arg(program).spawn().expect("it starts");
        let count = ranks.parse().expect("a number");
        assert_eq!(finish(child, "a job"), said.repeat(count));
    }
}

#[test]
fn programs_run_between_hosts() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let programs = ["pingpong.c", "lock.c", "ring.c", "unlink.c", "overrun.c"];
    for (source, mode) in programs.into_iter().flat_map(|source| MODES.map(|mode| (source, mode))) {
        let program = compile(source, dir.path());
        let first = pids(2);
        let start = |(rank, net): (u32, &Net)| {
            let mut command = command(&program, "", dir.path());
            command.env("PTL_MY_RID", rank.to_string()).env("PTL_NIDMAP", "10.0.0.1:10.0.0.2");
            command.env("PTL_PIDMAP", format!("{first}:{}", first + 1)).env("CCI_LISTEN", "network");
            command.env("CCI_PORTALS_MODE", mode);
            net.enter(|| command.spawn().expect("the program starts"))
        };
        let ranks: Vec<_> = (0..).zip(&nets).map(start).collect();
        for child in ranks {
            assert!(!finish(child, "the wire").is_empty());
        }
    }
}

#[test]
fn the_libraries_export_the_list() {
    assert_eq!(installed().exported("portals3"), [(); 2].map(|()| installed().listed()));
}

#[test]
fn the_headers_declare_what_the_list_names() {
    let headers = ["portals3.h", "p3rt/p3rt.h", "portals/portals3.h", "p3api/debug.h", "p3/debug.h"];
    let text: String = headers
        .iter()
        .map(|header| std::fs::read_to_string(here().join("include").join(header)).expect("a header"))
        .collect();
    let starts = ["int ", "unsigned int ", "void ", "const char *", "extern const char *", "extern FILE *"];
    let declarations = text.lines().filter_map(|line| starts.iter().find_map(|start| line.strip_prefix(start)));
    let names = declarations.filter_map(|line| line.split(['(', '[', ';']).next()).map(str::to_owned);
    assert_eq!(names.collect::<BTreeSet<_>>(), installed().listed());
}

#[test]
fn each_header_stands_alone_in_c_and_in_cxx() {
    let headers = [
        "portals3.h",
        "portals/portals3.h",
        "p3rt/p3rt.h",
        "p3api/types.h",
        "p3api/api.h",
        "p3api/misc.h",
        "p3api/debug.h",
        "p3/errno.h",
        "p3/debug.h",
        "p3utils.h",
        "p3nal_cci.h",
        "p3nal_utcp.h",
        "p3nal_ibng.h",
    ];
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++17")] {
        for header in headers {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let source = dir.path().join("alone.c");
            std::fs::write(&source, format!("#include <{header}>\nint unused;\n")).expect("a source is written");
            let mut cc = Command::new("cc");
            cc.args(["-x", language, standard]).args(STRICT).arg("-fsyntax-only").arg(source);
            succeed(cc.args(installed().pkg_config("portals", &["--cflags"])));
        }
    }
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(installed().names_in("include"), ["cci"]);
    assert_eq!(installed().names_in("lib"), ["cci", "pkgconfig"]);
    assert_eq!(installed().names_in("lib/pkgconfig"), ["portals.pc", "portals3.pc"]);
}
