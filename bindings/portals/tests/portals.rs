//! The library as it is installed: headers, symbols, and C programs that use it.

use cci_conformance::installed::{self, Installed, finish, finish_all, use_transport};
use cci_conformance::namespace::{self, Net};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// The transports that programs run over; none: without a configuration.
const TRANSPORTS: [&str; 4] = ["", "sm", "sock", "tcp"];

/// Of the default interface.
const MODES: [&str; 2] = ["generic", "accelerated"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

static INSTALLED: LazyLock<Installed> = LazyLock::new(|| {
    Installed::new("cci-portals3", "portals3", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR"))
});

/// So many numbers of processes that no other test has.
fn pids(count: u32) -> u32 {
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().expect("no test panics here");
    let first = *last;
    *last += count;
    (std::process::id() * 61 + first) % 22_000
}

fn command(program: &Path, transport: &str, dir: &Path) -> Command {
    let mut command = installed::command(program);
    use_transport(&mut command, transport, dir);
    command
}

/// Runs a program in so many processes over each transport, in each mode.
fn run(source: &str, size: u32, transports: &[&str], said: &str) {
    MODES.iter().for_each(|mode| run_in(mode, source, size, transports, said));
}

fn run_in(mode: &str, source: &str, size: u32, transports: &[&str], said: &str) {
    run_with((mode, ""), source, size, transports, said);
}

/// `descriptors`: when the program closes its standard descriptors.
fn run_with((mode, descriptors): (&str, &str), source: &str, size: u32, transports: &[&str], said: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile(source, &[], dir.path());
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
        finish_all((0..size).map(start), said, &format!("{source} over '{transport}', {mode}"));
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
    let program = INSTALLED.compile("layout.c", &[], dir.path());
    assert_eq!(finish(command(&program, "", dir.path()).spawn().expect("it starts"), ""), "laid out\n");
}

#[test]
fn each_code_is_provoked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("codes.c", &[], dir.path());
    for (transport, mode) in TRANSPORTS.into_iter().flat_map(|of| MODES.map(|mode| (of, mode))) {
        let mut command = command(&program, transport, dir.path());
        let child = command.arg(pids(2).to_string()).env("CCI_PORTALS_MODE", mode).spawn().expect("it starts");
        assert_eq!(finish(child, transport), "codes\n", "{mode}");
    }
}

#[test]
fn the_dialect_of_cray_has_its_own_rules() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("cray.c", &[], dir.path());
    assert_eq!(finish(command(&program, "", dir.path()).spawn().expect("it starts"), ""), "PTL_IFACE_DUP\n");
}

#[test]
fn a_process_has_an_interface_of_each_mode() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("modes.c", &[], dir.path());
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
fn a_thread_that_is_cancelled_ends_its_calls_first() {
    run("cancelled.c", 1, &["", "sm", "tcp"], "called\n");
}

/// In both modes, over each transport.
#[test]
fn handles_of_ended_interfaces_and_of_the_parent_name_nothing() {
    run("forked.c", 1, &["", "sm", "tcp"], "stale\n");
}

#[test]
fn a_wait_takes_no_processor_time() {
    run("idle.c", 2, &["", "sm", "tcp"], "idle\n");
}

/// Ranks, maps and the ways to partners come from the job.
#[test]
fn a_job_fills_in_ranks_and_maps() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (source, ranks, said) in [
        ("ring.c", "4", "round\n"),
        ("lock.c", "3", "locked\n"),
        ("pingpong.c", "2", "ping and pong\n"),
        ("jobmodes.c", "3", "both modes\n"),
        ("reference.c", "2", "as the reference\n"),
    ] {
        let program = INSTALLED.compile(source, &[], dir.path());
        let child = command(INSTALLED.cci(), "", dir.path())
            .args(["run", "-n", ranks])
            .arg(program)
            .spawn()
            .expect("it starts");
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
        let program = INSTALLED.compile(source, &[], dir.path());
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
    assert_eq!(INSTALLED.exported("portals3"), [(); 2].map(|()| INSTALLED.listed()));
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
    assert_eq!(names.collect::<BTreeSet<_>>(), INSTALLED.listed());
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
    headers.iter().for_each(|header| INSTALLED.stands_alone("portals", header, &[]));
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(INSTALLED.names_in("include"), ["cci"]);
    assert_eq!(INSTALLED.names_in("lib"), ["cci", "pkgconfig"]);
    assert_eq!(INSTALLED.names_in("lib/pkgconfig"), ["portals.pc", "portals3.pc"]);
}
