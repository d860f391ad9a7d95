//! The library as it is installed: headers, symbols, and C programs that use it.

use cci_conformance::installed::{self, Installed, finish, finish_all, use_transport};
use cci_conformance::namespace::{self, Net};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// The transports that programs run over; none: without a configuration.
const TRANSPORTS: [&str; 4] = ["", "sm", "sock", "tcp"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

static INSTALLED: LazyLock<Installed> = LazyLock::new(|| {
    Installed::new("cci-myriexpress", "myriexpress", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR"))
});

/// So many ids of endpoints that no other test of this run has.
fn ids(count: u32) -> u32 {
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().expect("no test panics here");
    let first = *last;
    *last += count;
    (std::process::id() * 61 + first) % 2_000
}

fn command(program: &Path, transport: &str, dir: &Path) -> Command {
    let mut command = installed::command(program);
    use_transport(&mut command, transport, dir);
    command
}

/// Runs a program of one process over each transport.
fn run_alone(source: &str, said: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile(source, &[], dir.path());
    for transport in TRANSPORTS {
        let child = command(&program, transport, dir.path()).arg(ids(1).to_string()).spawn().expect("it starts");
        assert_eq!(finish(child, transport), said, "{source}");
    }
}

/// Runs a program in two processes over each transport.
fn run(source: &str, said: &str) {
    run_with(source, "", said);
}

/// `descriptors`: when the program closes its standard descriptors.
fn run_with(source: &str, descriptors: &str, said: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile(source, &[], dir.path());
    for transport in TRANSPORTS {
        let first = ids(2);
        let start = |rank: u32| {
            let mut command = command(&program, transport, dir.path());
            command.args([rank, first + rank].map(|word| word.to_string())).env("DESCRIPTORS", descriptors);
            command.arg("localhost").arg((first + 1 - rank).to_string()).spawn().expect("the program starts")
        };
        finish_all([0, 1].map(start), said, &format!("{source} over '{transport}'"));
    }
}

#[test]
fn structures_and_constants_are_those_of_mx() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("layout.c", &[], dir.path());
    assert_eq!(finish(command(&program, "", dir.path()).spawn().expect("it starts"), ""), "laid out\n");
}

#[test]
fn each_call_works_and_each_code_is_provoked() {
    run_alone("codes.c", "codes\n");
}

#[test]
fn messages_go_to_and_fro() {
    run("pingpong.c", "ping and pong\n");
}

#[test]
fn hosts_are_looked_up_within_a_limit() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("silent_names.c", &[], dir.path());
    assert_eq!(finish(command(&program, "", dir.path()).spawn().expect("it starts"), ""), "within the limit\n");
}

#[test]
fn no_descriptor_is_inherited_or_a_standard_one() {
    ["never", "closed", "closing"].iter().for_each(|when| run_with("descriptors.c", when, "exchanged\n"));
}

#[test]
fn a_stream_stalls_and_is_in_order() {
    run("stream.c", "streamed\n");
}

#[test]
fn an_endpoint_sends_to_itself_and_probes() {
    run_alone("loop.c", "looped\n");
}

#[test]
fn an_endpoint_that_is_closed_under_a_handler_gives_all_back() {
    run_alone("closing.c", "closed\n");
}

#[test]
fn a_fork_in_each_phase_of_a_large_message_changes_nothing() {
    run("fork.c", "whole\n");
}

#[test]
fn handles_of_closed_endpoints_and_of_the_parent_name_nothing() {
    run_alone("stale.c", "stale\n");
}

#[test]
fn context_ids_part_waits() {
    run("contexts.c", "parted\n");
}

#[test]
fn a_thread_that_is_cancelled_ends_its_calls_first() {
    run_alone("cancelled.c", "called\n");
}

#[test]
fn threads_that_wait_are_woken() {
    run_alone("wakeup.c", "woken\n");
}

#[test]
fn the_unexpected_handler_answers() {
    run("handler.c", "handled\n");
}

/// On a default device ranks of one host find each other, and meet in shared memory.
#[test]
fn a_job_gives_names_to_ranks() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("job.c", &[], dir.path());
    for (ranks, transport) in [("1", ""), ("4", ""), ("2", "sm"), ("2", "tcp")] {
        let mut run = command(INSTALLED.cci(), transport, dir.path());
        run.args(["run", "-n", ranks]).arg(&program).args([ranks, transport]);
        let said = finish(run.spawn().expect("it starts"), "a job");
        assert_eq!(said, "all found\n".repeat(ranks.parse().expect("a number")));
    }
}

#[test]
fn programs_run_between_hosts() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    for source in ["pingpong.c", "stream.c", "handler.c"] {
        let program = INSTALLED.compile(source, &[], dir.path());
        let first = ids(2);
        let hosts = ["10.0.0.1", "10.0.0.2"];
        let start = |(rank, net): (u32, &Net)| {
            let mut command = command(&program, "", dir.path());
            command.args([rank, first + rank].map(|word| word.to_string())).arg(hosts[1 - rank as usize]);
            command.arg((first + 1 - rank).to_string()).env("CCI_LISTEN", "network");
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
    assert_eq!(INSTALLED.exported("myriexpress"), [(); 2].map(|()| INSTALLED.listed()));
}

#[test]
fn the_headers_declare_what_the_list_names() {
    let headers = ["myriexpress.h", "mx_extensions.h"];
    let text: String = headers
        .iter()
        .map(|header| std::fs::read_to_string(here().join("include").join(header)).expect("a header"))
        .collect();
    let starts = ["mx_return_t ", "const char *"];
    let declarations = text.lines().filter_map(|line| starts.iter().find_map(|start| line.strip_prefix(start)));
    let names = declarations.filter_map(|line| line.split('(').next()).map(str::to_owned);
    assert_eq!(names.collect::<BTreeSet<_>>(), INSTALLED.listed());
}

#[test]
fn each_header_stands_alone_in_c_and_in_cxx() {
    ["myriexpress.h", "mx_extensions.h"].iter().for_each(|header| INSTALLED.stands_alone("myriexpress", header, &[]));
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(INSTALLED.names_in("include"), ["cci"]);
    assert_eq!(INSTALLED.names_in("lib"), ["cci", "pkgconfig"]);
    assert_eq!(INSTALLED.names_in("lib/pkgconfig"), ["myriexpress.pc"]);
}
