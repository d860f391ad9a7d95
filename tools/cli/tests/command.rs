//! The command as its users run it.
#![allow(missing_docs, reason = "tests")]

mod command_line;

use command_line::{Running, cci, text};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that a machine under load does not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);
/// What makes a run of blocks very long: by its time alone it has a limited number of blocks.
const VERY_LONG: &[&str] = &["-t", "3000s", "--blocks", "1000000"];

/// A spread that is never exceeded: these tests run on machines that do much else.
const ANY: &str = "1000000%";

fn run(arguments: &[&str]) -> Output {
    cci(arguments).output().unwrap()
}

/// Runs what must fail: its status and its sentence.
fn refused(arguments: &[&str]) -> (i32, String) {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    (output.status.code().unwrap(), text(&output.stderr))
}

/// A server that is ended when the test ends.
struct Server {
    child: Running,
    uri: String,
    _output: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Self {
        Self::start_with(&[], Stdio::null())
    }

    fn start_with(more: &[&str], errors: Stdio) -> Self {
        let mut command = cci(&["perf", "--server"]);
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut uri = String::new();
        output.read_line(&mut uri).unwrap();
        Self { child: Running(child), uri: uri.trim().to_owned(), _output: output }
    }
}

/// The one row of a run that writes JSON to standard output.
fn row(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "cci-perf/2");
    assert_eq!(document["complete"], true);
    assert!(document["environment"]["processor"].is_string());
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{document}");
    rows[0].clone()
}

fn local(more: &[&str]) -> Value {
    let mut arguments = vec!["perf"];
    arguments.extend(more);
    arguments.extend(["--local", "--time", "short", "--json", "-", "--accuracy", ANY, "--launches", "2"]);
    row(&arguments)
}

fn positive(row: &Value, field: &str) -> f64 {
    let value = row[field].as_f64().unwrap_or(0.0);
    assert!(value > 0.0, "{field} in {row}");
    value
}

#[test]
fn info_lists_shared_memory_in_the_format_that_scripts_read() {
    let output = run(&["info"]);
    assert!(output.status.success());
    let text = text(&output.stdout);
    let mut lines = text.lines();
    assert!(lines.next().unwrap().ends_with(" CCI devices:"), "{text}");
    assert!(lines.any(|line| line.contains("(sm)") && line.contains("MSS=")), "{text}");
}

#[test]
fn info_as_json_gives_the_reason_of_each_device() {
    let output = run(&["info", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "cci-info/1");
    for device in document["devices"].as_array().unwrap() {
        assert!(!device["reason"].as_str().unwrap().is_empty(), "{device}");
    }
}

#[test]
fn doctor_gives_a_remedy_for_each_thing_that_is_not_ok() {
    let output = run(&["doctor", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "cci-doctor/1");
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.len() > 10, "{document}");
    for finding in findings {
        assert_eq!(finding["verdict"] == "ok", finding["remedy"].is_null(), "{finding}");
    }
    let works = findings.iter().all(|finding| finding["verdict"] != "fails");
    assert_eq!(output.status.success(), works, "{document}");
    assert_eq!(text(&run(&["doctor"]).stdout).lines().filter(|line| line.starts_with("ok ")).count(), {
        findings.iter().filter(|finding| finding["verdict"] == "ok").count()
    });
    assert!(!text(&run(&["doctor", "--quiet"]).stdout).lines().any(|line| line.starts_with("ok ")));
}

#[test]
fn doctor_names_misspelt_variables_with_the_nearest_right_name() {
    let output = cci(&["doctor"]).env("CCI_CPT", "sm").env("CCI_SOCK_PROT", "5000").output().unwrap();
    let text = text(&output.stdout);
    for expected in ["CCI_CPT is set, and nothing reads it", "did you mean CCI_CTP?", "did you mean CCI_SOCK_PORT?"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn doctor_fails_where_no_device_is_left() {
    let output = cci(&["doctor"]).env("CCI_CTP", "none").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output.stdout);
    assert!(text.lines().any(|line| line.starts_with("fails    device")), "{text}");
}

#[test]
fn no_color_removes_colours_that_are_forced() {
    for arguments in [&["doctor"][..], &["--help"]] {
        let coloured = |no_color: &str| {
            let mut command = cci(arguments);
            let output = command.env("CLICOLOR_FORCE", "1").env("NO_COLOR", no_color).output().unwrap();
            output.stdout.contains(&0x1b)
        };
        assert!(coloured("") && !coloured("1"), "{arguments:?}");
        assert!(!run(arguments).stdout.contains(&0x1b), "what is no terminal gets no colours");
    }
}

#[test]
fn each_shell_has_a_completion_of_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completion", shell]);
        assert!(output.status.success() && output.stderr.is_empty());
        let script = text(&output.stdout);
        for word in ["doctor", "explain", "pingpong", "--hostfile"] {
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
    assert!(refused(&["completion", "tcsh"]).1.contains("bash"));
}

/// As in `cci completion zsh | head -n 1`. The script is longer than a pipe holds.
#[test]
fn who_reads_only_the_beginning_of_a_completion_sees_no_failure() {
    let mut child = cci(&["completion", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn bash_completes_by_the_printed_script() {
    let script = text(&run(&["completion", "bash"]).stdout);
    let ask = "COMP_WORDS=(cci do); COMP_CWORD=1; _cci cci do cci; echo \"${COMPREPLY[*]}\"";
    // By a file: it is longer than an argument may be.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{script}\n{ask}\n").unwrap();
    let output = Command::new("bash").arg(file.path()).output().unwrap();
    assert_eq!(text(&output.stdout).trim(), "doctor", "{}", text(&output.stderr));
}

#[test]
fn a_local_ping_pong_has_a_ratio_to_the_bare_line() {
    let row = local(&["pingpong", "--size", "8"]);
    for field in ["min_ns", "median_ns", "p99_ns", "probe_ns", "ratio", "count"] {
        positive(&row, field);
    }
    let ratio = positive(&row, "median_ns") / positive(&row, "probe_ns");
    assert!((ratio - positive(&row, "ratio")).abs() < 1e-6 * ratio, "{row}");
    let expected = [("measurement", "pingpong"), ("operation", "send"), ("attribute", "RO"), ("transport", "auto")];
    for (field, value) in expected {
        assert_eq!(row[field], value);
    }
    assert_eq!(row["size"], 8);
}

#[test]
fn every_measurement_of_sends_gives_a_row() {
    for arguments in [
        &["pingpong", "--size", "4096", "--touch", "--silent"][..],
        &["pingpong", "--size", "0", "--attribute", "ru", "--threads", "one"],
        &["pingpong", "--size", "64", "--mode", "blocking"],
        &["oneway", "--size", "64"],
        &["rate", "--size", "8", "--threads", "one", "--silent"],
        &["rate", "--size", "8", "--attribute", "uu"],
        &["bw", "--size", "4K", "--touch"],
        &["rate", "--size", "8", "--bidirectional"],
        &["bw", "--size", "4K", "--bidirectional", "--window", "8", "--attribute", "ru"],
        &["jitter", "--size", "64"],
    ] {
        let row = local(arguments);
        positive(&row, "ratio");
        assert_eq!(row["per_second"].is_number(), matches!(arguments[0], "rate" | "bw"), "{row}");
    }
}

#[test]
fn every_measurement_of_rma_gives_a_row() {
    for arguments in [
        &["pingpong", "--op", "write", "--size", "4K"][..],
        &["pingpong", "--op", "read", "--size", "4K", "--memory", "any"],
        &["oneway", "--op", "write", "--size", "64K", "--silent"],
        &["bw", "--op", "write", "--size", "1M"],
        &["bw", "--op", "read", "--size", "1M", "--memory", "any"],
        &["bw", "--op", "write", "--size", "1M", "--memory", "any", "--target", "computing"],
        &["bw", "--op", "read", "--size", "64K", "--bidirectional"],
        &["jitter", "--op", "write", "--size", "64"],
        &["overlap", "--op", "write", "--size", "64K"],
    ] {
        positive(&local(arguments), "median_ns");
    }
}

#[test]
fn a_run_whose_points_are_not_accurate_says_so_marks_them_and_fails_where_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.json");
    let run = |more: &[&str]| {
        let run = ["perf", "pingpong", "--local", "-s", "8", "-t", "short", "--accuracy", "0.0000001%"];
        cci(&run).args(["--launches", "8", "--blocks", "16"]).args(more).output().unwrap()
    };
    assert_eq!(run(&["--strict"]).status.code(), Some(1));
    let output = run(&["--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    assert!(said.contains("1 of 1 points are not accurate") && said.contains("--time long"), "{said}");
    assert!(text(&output.stdout).contains("! not accurate"));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((&document["complete"], &document["rows"][0]["accurate"]), (&true.into(), &false.into()));
    let spread = positive(&document["rows"][0], "spread");
    let launches: Vec<_> = document["rows"][0]["launches"].as_array().unwrap().clone();
    let blocks: u64 = launches.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((launches.len(), blocks), (8, document["rows"][0]["blocks"].as_u64().unwrap()), "{spread}");
}

#[test]
fn json_without_a_file_goes_to_standard_output_and_iterations_are_shared_out() {
    let run =
        run(&["perf", "pingpong", "--local", "-n", "1000", "-s", "8", "--accuracy", ANY, "--launches", "4", "--json"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let document: Value = serde_json::from_slice(&run.stdout).unwrap();
    let row = &document["rows"][0];
    assert_eq!((&row["count"], &row["blocks"]), (&1000.into(), &4.into()));
    assert!(positive(row, "probe_p99_ns") >= positive(row, "probe_ns"));
    // Blocks are averages, and the table says so.
    assert!(text(&run.stderr).contains("p99 of blocks"), "{}", text(&run.stderr));
}

#[test]
fn a_run_takes_the_time_that_is_asked_for_whatever_the_size() {
    let begin = Instant::now();
    let row = local(&["bw", "--op", "write", "--size", "64M", "--transport", "sock"]);
    // 60 ms are asked for, and memory of this size needs some time to be there, with other tests
    // beside it.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(positive(&row, "count") < 16.0, "{row}");
}

#[test]
fn a_signal_ends_a_run_and_what_was_measured_is_shown_and_written() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let server = Server::start();
        for to in [&["--local"][..], &["--connect", &server.uri]] {
            let run = [&["pingpong", "-s", "8", "--launches", "1"], VERY_LONG, to].concat();
            let (shown, document) = ended_by(signal, &run);
            assert!(shown.contains("half round trip"), "{shown}");
            positive(&document["rows"][0], "median_ns");
        }
    }
}

#[test]
fn a_signal_ends_every_measurement_and_what_was_measured_is_shown_and_written() {
    for (arguments, shown, field) in [
        (&["jitter", "--local", "-s", "8", "--launches", "1"][..], "round trips of 8 B", "median_ns"),
        (&["overlap", "--local", "--op", "write", "-s", "64K", "--launches", "1"], "computing", ""),
        (&["threads", "--upto", "2", "-s", "8", "-t", "14s"], "threads", ""),
        (&["logp", "--local", "-s", "8", "-t", "3000s"], "Fit:", "round_trip_ns"),
        (&["breakdown", "--local", "-s", "8", "-t", "3000s"], "flow-control", "total_ns"),
        (&["gups", "--local", "--table", "1M", "--updates", "1000000000000"], "updates", "updates"),
        (&["idle", "--seconds", "3000"], "idle", "seconds"),
        (&["memory", "--connections", "1000000"], "connections", "endpoint_resident_bytes"),
        (&["memory", "--connections", "2..1M", "--transport", "sm", "-t", "3000s"], "peers", ""),
    ] {
        let in_blocks = ["jitter", "overlap"].contains(&arguments[0]);
        let arguments = &[arguments, if in_blocks { VERY_LONG } else { &[] }].concat()[..];
        let (text, document) = ended_by(Signal::TERM, arguments);
        assert!(text.contains(shown), "{arguments:?}: {text}");
        let found = &document["findings"][0];
        if !field.is_empty() {
            positive(found, field);
        }
        if ["memory", "overlap", "threads"].contains(&arguments[0]) {
            assert!(!found["points"].as_array().unwrap().is_empty(), "{document}");
        }
        if arguments[0] == "gups" {
            assert_eq!(found["errors"], 0, "{document}");
        }
    }
}

/// Runs a measurement that would take very long, sends the signal in its midst, and expects that
/// what was measured is shown as incomplete: what is shown, and the document that is written.
fn ended_by(signal: Signal, arguments: &[&str]) -> (String, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("found.json");
    let mut command = cci(&["perf"]);
    command.args(arguments).args(["--json", file.to_str().unwrap()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Running(command.spawn().unwrap());
    under_way(child.0.id(), arguments[0] == "idle");
    kill_process(Pid::from_child(&child.0), signal).unwrap();
    let (code, shown, said) = child.output();
    assert_eq!(code, Some(1), "{arguments:?} {signal:?}: {said}");
    assert!(said.contains("the run is incomplete") && said.contains("a signal ended the run"), "{arguments:?}: {said}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(document["complete"], false);
    (shown, document)
}

/// Waits until a run and the processes that it started have used so much processor time that they
/// measure; one that measures idleness sleeps instead.
fn under_way(pid: u32, is_idle: bool) {
    let used = || ticks(pid) + children(pid).into_iter().map(ticks).sum::<u64>();
    let begin = Instant::now();
    while if is_idle { begin.elapsed() < Duration::from_secs(2) } else { used() < 300 } {
        assert!(begin.elapsed() < PATIENCE, "the run did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    for arguments in [
        &[&["pingpong", "--local", "-s", "8", "--launches", "1"], VERY_LONG].concat()[..],
        &["idle", "--seconds", "3000"],
    ] {
        let mut command = Command::new("nohup");
        command.arg(env!("CARGO_BIN_EXE_cci")).arg("perf").args(arguments).env_remove("CCI_CONFIG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = Running(command.spawn().unwrap());
        under_way(child.0.id(), arguments[0] == "idle");
        let ignored = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let mask = |field: &str| {
                let mask = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
                u64::from_str_radix(mask.trim(), 16).unwrap()
            };
            // The first bit is that of SIGHUP.
            (mask("SigIgn:") & 1, mask("SigCgt:") & 1)
        };
        for pid in std::iter::once(child.0.id()).chain(children(child.0.id())) {
            assert_eq!(ignored(pid), (1, 0), "{arguments:?}: SIGHUP is ignored in {pid}, and no handler is set");
        }
        kill_process(Pid::from_child(&child.0), Signal::HUP).unwrap();
        kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
        // A second signal that is not ignored would end it with another status.
        let (code, _, said) = child.output();
        assert!(code == Some(1) && said.contains("the run is incomplete"), "{code:?} {said}");
    }
}

#[test]
fn keys_of_sock_come_from_the_environment_below_those_of_the_command_line() {
    let free = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let uri = |arguments: &[&str], port: &str| {
        let mut command = cci(&["perf", "--server", "--transport", "sock"]);
        command.args(arguments).env("CCI_SOCK_INTERFACE", "lo").env("CCI_SOCK_PORT", port);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut uri = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut uri).unwrap();
        let _ = child.kill();
        child.wait().unwrap();
        uri.trim().to_owned()
    };
    // Another test may take a port that was free a moment ago; then it is tried with others.
    let are_taken = (0..20).any(|_| {
        let (port, other) = (free(), free());
        uri(&[], &port) == format!("sock://127.0.0.1:{port}")
            && uri(&["-p", &other], &port) == format!("sock://127.0.0.1:{other}")
    });
    assert!(are_taken, "the keys of the environment and of the command line are not those of the endpoint");
    assert_eq!(uri(&[], "no port"), "");
}

#[test]
fn the_parameters_of_logp_are_told_against_a_server_that_goes_on_serving() {
    let server = Server::start();
    for attribute in ["ro", "ru"] {
        let arguments =
            ["perf", "logp", "--connect", &server.uri, "--attribute", attribute, "--time", "short", "--json", "-"];
        let output = run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = &document["findings"][0];
        assert_eq!((&found["kind"], &document["environment"]["pinned"]), (&"logp".into(), &Value::Null));
        assert!(positive(found, "round_trip_ns") > 0.0 && found["points"].as_array().unwrap().len() > 20, "{found}");
    }
    let (_, why) = refused(&["perf", "logp", "--connect", &server.uri, "--size", "1M"]);
    assert!(why.contains("at most"), "{why}");
    let (_, why) = refused(&["perf", "logp", "--connect", "sm://1/2"]);
    assert!(why.contains("is the server running?"), "{why}");
    let (_, why) = refused(&["perf", "logp", "--connect", "sim://1/2", "--transport", "sim"]);
    assert!(why.contains("--local"), "{why}");
    let again = ["perf", "pingpong", "--connect", &server.uri, "--time", "short", "--launches", "2", "--size", "8"];
    positive(&row(&[&again[..], &["--accuracy", ANY, "--json", "-"]].concat()), "median_ns");
}

#[test]
fn memory_threads_and_idleness_are_found_on_either_transport() {
    let found = |arguments: &[&str]| {
        let output = run(&[&["perf"], arguments, &["--json", "-"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&document["complete"], document["rows"].as_array().unwrap().len()), (&true.into(), 0));
        document["findings"][0].clone()
    };
    for transport in ["sm", "sock"] {
        let memory = found(&["memory", "--connections", "3000", "--transport", transport]);
        // Both are what has been added meanwhile. The system may take pages of the program's file
        // back, so that less became resident, and the peer may come to share pages that were
        // private, so that none more are.
        positive(&memory, "endpoint_resident_bytes");
        assert!(positive(&memory, "endpoint_private_bytes") > 10_000.0, "{memory}");
        let points = memory["points"].as_array().unwrap();
        let connections: Vec<_> = points.iter().map(|point| point["connections"].as_u64().unwrap()).collect();
        assert_eq!(connections, [10, 100, 1000, 3000], "{memory}");
        // Some hundred connections fit memory that the endpoint has used before.
        let added = ["private_bytes", "resident_bytes"].map(|field| points[3][field].as_f64().unwrap());
        assert!(added[0].max(added[1]) > 3000.0 * 50.0, "{memory}");
        let idle = found(&["idle", "--seconds", "1", "--transport", transport]);
        assert!(positive(&idle, "bare_processor_ms") > 0.0 && positive(&idle, "processor_ms") < 500.0, "{idle}");
        for op in ["send", "write"] {
            let threads = found(&["threads", "--upto", "2", "--op", op, "--time", "short", "--transport", transport]);
            assert_eq!(threads["points"].as_array().unwrap().len(), 2, "{threads}");
            let one = &threads["points"][0];
            assert_eq!(one["shared_per_second"], one["own_per_second"], "one thread is one thread");
            for point in threads["points"].as_array().unwrap() {
                positive(point, "shared_per_second");
                positive(point, "own_per_second");
            }
        }
    }
}

#[test]
fn a_range_of_connections_gives_curves_of_transports_and_of_bare_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let [plot, narrow] = ["memory.svg", "narrow.svg"].map(|name| directory.path().join(name));
    let range = ["perf", "memory", "--connections", "50..1000", "--time", "300s", "--json", "-"];
    let output =
        run(&[&range[..], &["--plot", plot.to_str().unwrap(), "--plot-narrow", narrow.to_str().unwrap()]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let found = &document["findings"][0];
    let bytes = |curve: &str, over: &str, space: &str, count: u64| {
        let is_it = |point: &&Value| {
            (&point["curve"], &point["over"], &point["space"]) == (&curve.into(), &over.into(), &space.into())
                && (&point["count"], &point["computed"]) == (&count.into(), &false.into())
        };
        let points = found["points"].as_array().unwrap();
        points.iter().find(is_it).unwrap_or_else(|| panic!("{curve} {over} {count}: {found}"))["bytes"]
            .as_f64()
            .unwrap()
    };
    let each = |curve, over, from, to| {
        (bytes(curve, over, "user", to) - bytes(curve, over, "user", from)) / (to - from) as f64
    };
    // Two pages for each, what the allocator adds to each (1 %), and the list of them.
    for (from, to) in [(50, 100), (100, 1000)] {
        let more = bytes("bare sockets", "peers", "user", to) - bytes("bare sockets", "peers", "user", from);
        let buffers = 8192.0 * (to - from) as f64;
        assert!((0.99 * buffers..1.02 * buffers + 32_768.0).contains(&more), "{more} B from {from} to {to}: {found}");
    }
    // What docs/performance.md promises for an idle connection, and what tables leave in the heap
    // that were too small.
    let connection = each("sm", "connections", 100, 1000);
    assert!(connection <= 128.0 + 32_768.0 / 900.0, "{connection} B for a connection: {found}");
    // A lane takes 36 KiB and its share of tables; connections of one lane share it.
    let peer = each("sm", "peers", 100, 1000);
    assert!((36_864.0..2.0 * 36_864.0).contains(&peer), "{peer} B for a peer: {found}");
    for transport in ["sock", "tcp"] {
        assert!(each(transport, "peers", 100, 1000) < 8192.0, "less than bare buffers: {found}");
        assert!(each(transport, "connections", 100, 1000) < 4096.0, "{found}");
    }
    if std::fs::read_to_string("/proc/slabinfo").is_ok() {
        let sockets = bytes("bare sockets", "peers", "kernel", 1000) / 1000.0;
        assert!((2000.0..20_000.0).contains(&sockets), "{sockets} B of the kernel for a socket: {found}");
    } else {
        assert!(said.contains("without the kernel's part"), "{said}");
    }
    for expected in ["bare sockets, user", "verbs RC, computed", "sm, user", "* computed"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    for (path, width) in [(plot, "width=\"1160\""), (narrow, "width=\"480\"")] {
        let drawn = std::fs::read_to_string(path).unwrap();
        assert!(drawn.contains("<svg") && drawn.contains("verbs RC, computed") && drawn.contains(width), "{drawn}");
    }
}

#[test]
fn a_curve_without_time_is_computed_beyond_what_it_reached() {
    let run = run(&["perf", "memory", "--transport", "sm", "--connections", "1..1M", "--time", "1ms", "--json", "-"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let document: Value = serde_json::from_str(&text(&run.stdout)).unwrap();
    let found = &document["findings"][0];
    let points = found["points"].as_array().unwrap().iter();
    let sm: Vec<_> = points.filter(|point| point["curve"] == "sm" && point["over"] == "connections").collect();
    let last = sm.last().unwrap();
    assert_eq!((&last["count"], &last["computed"]), (&1_000_000.into(), &true.into()), "{found}");
    assert_eq!(sm[0]["computed"], false, "{found}");
    assert!(text(&run.stderr).contains("allow it more time by --time"), "{}", text(&run.stderr));
}

#[test]
fn jitter_and_overlap_are_found_and_shown() {
    let found = |arguments: &[&str]| {
        let output =
            run(&[arguments, &["--local", "--time", "short", "--launches", "2", "--json", "-", "--accuracy", ANY]]
                .concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (document["findings"][0].clone(), document["rows"][0].clone(), text(&output.stderr))
    };
    let (jitter, row, said) = found(&["perf", "jitter", "--size", "8"]);
    assert!(said.contains("round trips of 8 B over auto") && said.contains("##"), "{said}");
    let counts = jitter["histogram"].as_array().unwrap().iter().map(|step| step[1].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), jitter["count"].as_u64().unwrap());
    let ordered = ["min_ns", "median_ns", "p99_ns", "p999_ns"].map(|field| positive(&jitter, field));
    assert!(ordered.is_sorted() && positive(&jitter, "max_ns") >= ordered[3], "{jitter}");
    assert!((positive(&row, "p999_ns") - ordered[3]).abs() < 1.0, "{row}");
    let (overlap, _, said) = found(&["perf", "overlap", "--op", "write", "--size", "64K", "--transport", "sock"]);
    assert!(said.contains("hides behind computing"), "{said}");
    let point = &overlap["points"][0];
    // The same computing at another time, on a machine that others use too.
    assert!(positive(point, "both_ns") >= 0.05 * positive(point, "compute_ns"), "{overlap}");
    assert!((0.0..=1.0).contains(&point["overlap"].as_f64().unwrap()), "{overlap}");
}

#[test]
fn in_virtual_time_both_directions_share_nothing_and_jitter_is_that_of_the_links() {
    let run = |arguments: &[&str]| {
        let on = ["--local", "--transport", "sim", "--key", "bandwidth=1000000000", "--json", "-"];
        let common = [&on[..], &["--count", "40", "--blocks", "3", "--accuracy", ANY]].concat();
        let output = run(&[&["perf"], arguments, &common].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let one = run(&["bw", "--op", "write", "--size", "64K"]);
    let both = run(&["bw", "--op", "write", "--size", "64K", "--bidirectional"]);
    let ratio = positive(&both["rows"][0], "bytes_per_second") / positive(&one["rows"][0], "bytes_per_second");
    // 1.9 as a rule; the acknowledgements that share the links fall differently with the engine's
    // first sequence numbers.
    assert!((1.3..2.05).contains(&ratio), "{ratio}");
    let still = run(&["jitter", "--key", "delay=3000"]);
    let found = &still["findings"][0];
    // To three digits, which is what the histogram keeps.
    assert!(positive(found, "max_ns") / positive(found, "min_ns") < 1.002, "{found}");
    let shaken = run(&["jitter", "--key", "delay=3000", "--key", "jitter=2000"]);
    let found = &shaken["findings"][0];
    let width = positive(found, "max_ns") - positive(found, "min_ns");
    assert!((500.0..4000.0).contains(&width), "{found}");
}

#[test]
fn in_virtual_time_a_run_is_the_same_each_time_and_says_so() {
    let run = || {
        let output = run(&[
            "perf",
            "pingpong",
            "--local",
            "--transport",
            "sim",
            "--key",
            "delay=7000",
            "--size",
            "8,4096",
            "--count",
            "20",
            "--blocks",
            "3",
            "--json",
            "-",
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("in virtual time"), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (first, second) = (run(), run());
    assert_eq!(first["rows"], second["rows"]);
    assert_eq!(first["environment"]["virtual"], true);
    let small = positive(&first["rows"][0], "median_ns");
    assert!((7000.0..7100.0).contains(&small) && positive(&first["rows"][1], "median_ns") > small, "{first}");
    assert_eq!(first["rows"][0]["probe"], Value::Null);
}

#[test]
fn a_client_measures_against_a_server_again_and_again() {
    let server = Server::start();
    for _ in 0..2 {
        let to = ["perf", "pingpong", "--connect", &server.uri, "--size", "8", "--time", "short"];
        let row = row(&[&to[..], &["--json", "-", "--accuracy", ANY]].concat());
        positive(&row, "median_ns");
        assert_eq!(row["ratio"], Value::Null);
    }
}

/// What `tell` does once the server is at work for a client, and the client's number.
fn in_the_midst(server: &Server, keys: &[&str], tell: Signal) -> u32 {
    let mut command = cci(&["perf", "oneway", "--connect", &server.uri, "-s", "64", "--launches", "1"]);
    let mut client =
        Running(command.args(VERY_LONG).args(keys).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let (begin, before) = (Instant::now(), ticks(server.child.0.id()));
    while ticks(server.child.0.id()) < before + 20 {
        assert!(begin.elapsed() < PATIENCE, "the run did not begin");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&client.0), tell).unwrap();
    assert!(!client.0.wait().unwrap().success());
    client.0.id()
}

#[test]
fn the_server_prints_a_line_for_each_run_with_client_sizes_and_result() {
    for (transport, keys) in
        [("sm", &["--transport", "sm"][..]), ("sock", &["--transport", "sock", "--key", "interface=lo"])]
    {
        let mut server = Server::start_with(keys, Stdio::piped());
        let errors = BufReader::new(server.child.0.stderr.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || errors.lines().for_each(|line| sender.send(line.unwrap()).unwrap()));
        let line = || lines.recv_timeout(PATIENCE).expect("a line of the server");
        let who = |pid: u32| format!("(pid {pid}, uid {})", rustix::process::getuid().as_raw());

        let mut command = cci(&["perf", "pingpong", "--connect", &server.uri, "-s", "8,64", "--json", "-"]);
        command.args(["--count", "20", "--blocks", "3", "--launches", "3", "--accuracy", ANY]).args(keys);
        let client = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let pid = client.id();
        let document: Value = serde_json::from_slice(&client.wait_with_output().unwrap().stdout).unwrap();
        let told = line();
        assert!(told.starts_with(&format!("{transport}://")) && told.contains(&who(pid)), "{told}");
        let run = format!("pingpong of send, 8 B to 64 B, over {transport}, 3 launches: half round trip: 8 B ");
        let (_, result) = told.split_once(&run).unwrap_or_else(|| panic!("{run} in {told}"));
        let shown = |ns: f64| match ns {
            ns if ns < 1e3 => format!("{ns:.1} ns"),
            ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
            ns => format!("{:.2} ms", ns / 1e6),
        };
        let medians = [0, 1].map(|row| shown(positive(&document["rows"][row], "median_ns")));
        assert_eq!(result, format!("{}, 64 B {}", medians[0], medians[1]));

        let client = in_the_midst(&server, keys, Signal::INT);
        let told = line();
        let run = format!("{}: oneway of send, 64 B, over {transport}, 1 launch: ended early: ", who(client));
        assert!(told.contains(&run) && told.contains("a signal ended the run; until then time per"), "{told}");
        let client = in_the_midst(&server, keys, Signal::KILL);
        let told = line();
        assert!(told.contains(&who(client)) && told.contains(": ended early: the other end disconnected"), "{told}");

        drop(server);
        reader.join().unwrap();
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), Vec::<String>::new(), "one line a run");
    }
}

#[test]
fn a_run_with_several_ends_says_how_many_ports_it_needs_and_takes_a_range() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let key = format!("port={port}");
    for (arguments, ports) in [(&["pingpong", "--local"][..], 2), (&["threads", "--upto", "2"], 6)] {
        let of_sock = ["--transport", "sock", "--key", &key, "--time", "short"];
        let (_, why) = refused(&[&["perf"], arguments, &of_sock].concat());
        assert!(why.contains("is in use") && why.contains(&format!("needs {ports} ports")), "{why}");
    }
    // The first of the range is taken, and others may be.
    let key = format!("port={}-{}", port.min(65_000), port.min(65_000) + 40);
    let row = local(&["pingpong", "--transport", "sock", "--key", &key, "--size", "8"]);
    assert_eq!(row["transport"], "sock");
}

#[test]
fn explain_names_the_way_to_a_server() {
    let server = Server::start();
    let output = run(&["explain", &server.uri]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let text = text(&output.stdout);
    for word in [server.uri.as_str(), "transport", "sm", "messages", "RMA", "why"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn the_help_of_explain_says_that_it_connects() {
    let text = text(&run(&["explain", "--help"]).stdout);
    assert!(text.contains("as a client does") && text.contains("must accept"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_told_by_both_commands() {
    let uri = "sm://999999999/0";
    for arguments in [&["explain", uri][..], &["perf", "pingpong", "--connect", uri]] {
        let (status, text) = refused(arguments);
        assert_eq!(status, 1);
        assert!(text.contains(uri), "{text}");
        assert_eq!(text.contains("nobody listens at"), arguments[0] == "explain", "{text}");
    }
}

#[test]
fn nobody_who_answers_is_told_by_host_route_and_firewall() {
    // TEST-NET-1, where nobody is.
    let uri = "sock://192.0.2.77:5000";
    let (_, text) = refused(&["explain", uri, "--timeout", "100ms"]);
    let told = ["192.0.2.77", "ip route get", "firewall", "UDP port 5000"].iter().all(|word| text.contains(word));
    // A host without a route is told so at once.
    assert!(told || text.contains("cannot connect"), "{text}");
    assert!(!text.contains("same user"), "{text}");
    // A socket that takes datagrams of nobody but itself: the port belongs to this test, and nobody
    // listens there.
    let held = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    held.connect(("127.0.0.1", port)).unwrap();
    let uri = format!("sock://127.0.0.1:{port}");
    for arguments in [&["explain", &uri][..], &["perf", "pingpong", "--connect", &uri, "--key", "interface=lo"]] {
        let (_, text) = refused(arguments);
        assert!(text.contains(&format!("no endpoint at port {port}")), "{text}");
        assert!(!text.contains("same user") && !text.contains("?."), "{text}");
    }
}

/// The lookup of a name takes for ever: the name is what both commands speak of.
#[test]
fn a_host_whose_name_is_not_resolved_is_told_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("silent.c"), folder.path().join("silent.so"));
    let silent = "int pause(void);\nint getaddrinfo(const char *n, const char *s, const void *h, void **r)\n\
                  { (void)n; (void)s; (void)h; (void)r; for (;;) pause(); }\n";
    std::fs::write(&source, silent).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
    assert!(built.success());
    let uri = "tcp://silent.example:5000";
    for arguments in
        [&["explain", uri, "--timeout", "200ms"][..], &["perf", "pingpong", "--connect", uri, "--size", "8"]]
    {
        let wanted = "was not resolved within the timeout; see that a name server";
        let output = cci(arguments).env("LD_PRELOAD", &library).output().unwrap();
        let text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(wanted) && text.contains("getent hosts silent.example)"), "{text}");
        assert!(!text.contains("UDP") && !text.contains("route") && !text.contains("busy"), "{text}");
    }
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    for arguments in [&["--help"][..], &["perf", "pingpong", "--help"], &["--version"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = cci(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("cannot write the help"), "{}", text(&output.stderr));
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for arguments in [
        &["info"][..],
        &["info", "--json"],
        &["doctor"],
        &["model"],
        &["model", "plot", "--out", out],
        &["completion", "bash"],
        &["top", "--once"],
        &["top", "--once", "--json"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = cci(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("No space left on device"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_server_whose_uri_cannot_be_written_ends() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = cci(&["perf", "server", "--transport", "sm"]);
    let mut server = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        match server.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if begin.elapsed() > Duration::from_secs(100) => break None,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    // One that runs on ends with the test.
    let _ = server.kill();
    let text = text(&server.wait_with_output().unwrap().stderr);
    assert_eq!(status.and_then(|status| status.code()), Some(1), "{text}");
    assert!(text.contains("cannot write the URI of the server: No space left on device"), "{text}");
}

#[test]
fn help_fits_a_terminal_of_100_columns() {
    for arguments in [&["--help"][..], &["perf", "pingpong", "--help"], &["perf", "--help"], &["model", "plot", "-h"]] {
        let text = text(&run(arguments).stdout);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

/// Runs the command with its output in a terminal of so many columns: the lines that it shows.
fn at_a_terminal(columns: u16, arguments: &[&str]) -> Vec<String> {
    let mut screen =
        std::fs::File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap());
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    tcsetwinsize(&screen, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let terminal = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = cci(arguments);
    let mut child = Running(command.env_remove("COLUMNS").stdout(terminal).stderr(Stdio::null()).spawn().unwrap());
    // The command has the only other descriptor of the terminal, whose end is the end of what can
    // be read.
    drop(command);
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(len @ 1..) = screen.read(&mut part) {
        shown.extend_from_slice(&part[..len]);
    }
    assert!(child.0.wait().unwrap().success(), "{arguments:?}");
    text(&shown).lines().map(without_styles).collect()
}

/// A line without the sequences that set colours.
fn without_styles(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn help_wraps_to_the_terminal() {
    for arguments in
        [&["--help"][..], &["perf", "pingpong", "--help"], &["perf", "--help"], &["model", "plot", "--help"]]
    {
        let widest = |columns| {
            let lines = at_a_terminal(columns, arguments);
            lines.into_iter().max_by_key(|line| line.chars().count()).unwrap()
        };
        let (narrow, wide) = (widest(60), widest(90));
        assert!(narrow.chars().count() <= 60, "{arguments:?}: {narrow}");
        assert!((61..=90).contains(&wide.chars().count()), "{arguments:?}: {wide}");
    }
}

#[test]
fn bad_arguments_are_told_with_what_would_do() {
    for (arguments, expected) in [
        (&["perf", "pingpong", "--local", "--op", "push"][..], "send, write, read"),
        (&["perf", "pingpong", "--local", "--size", "many"], "8,64,4096"),
        (&["perf", "pingpong", "--local", "--time", "soon"], "250ms"),
        (&["perf", "speed", "--local"], "pingpong"),
        (&["perf", "pingpong"], "--local"),
        (&["perf", "bw", "--local", "--op", "write", "--attribute", "uu"], "reliable connection"),
        (&["perf", "bw", "--local", "--op", "write", "--size", "0"], "at least one byte"),
        (&["perf", "pingpong", "--local", "--transport", "pigeon"], "pigeon"),
        (&["perf", "pingpong", "--local", "--size", "1G", "--time", "short"], "exceeds the largest message"),
        (&["perf", "pingpong", "--local", "--plot", "x.png"], "drawn as SVG, not as png"),
        (&["perf", "pingpong", "--local", "--plot", "x.svg", "--plot-narrow", "x.png"], "drawn as SVG, not as png"),
        (&["perf", "pingpong", "--local", "--plot-narrow", "x.svg"], "--plot <FILE.svg>"),
        (&["perf", "pingpong", "--local", "--bidirectional"], "both ways already"),
        (&["perf", "rate", "--local", "--bidirectional", "--silent"], "without --silent"),
        (&["perf", "memory", "--connections", "1"], "from 2 to 1M"),
        (&["perf", "memory", "--transport", "sim"], "--transport sm or sock"),
        (&["perf", "memory", "--transport", "pigeon"], "cci info"),
        (&["perf", "idle", "--json", "/nowhere/x.json"], "cannot write to"),
        (&["perf", "threads", "--upto", "0"], "1..="),
        (&["perf", "threads", "--size", "8,64"], "give one"),
        (&["perf", "threads", "--size", "1G", "--time", "short"], "smaller --size"),
        (&["perf", "threads", "--op", "read", "--attribute", "uu"], "reliable connection"),
        (&["perf", "overlap", "--local", "--silent"], "waits for each"),
        (&["perf", "overlap", "--local", "--transport", "sim"], "computing takes no time"),
        (&["perf", "pingpong", "--local", "--accuracy", "none"], "such as 5%"),
        (&["perf", "pingpong", "--connect", "sim://x/0:1", "--transport", "sim"], "use --local"),
        (&["perf", "pingpong", "--connect", "sim://x/0:1"], "use --local"),
        (&["perf", "server", "--transport", "sim"], "use --local"),
        (&["perf", "pingpong", "--local", "--transport", "sim", "--abi", "c"], "--abi rust"),
        (&["perf", "pingpong", "--local", "--transport", "sim", "--mode", "blocking"], "never sleeps"),
        (&["perf", "pingpong", "--local", "--transport", "sim", "--probe", "udp"], "leave out --probe"),
        (&["perf", "pingpong", "--local", "--transport", "sim", "--key", "colour=1"], "'colour'"),
        (&["explain", "nonsense"], "not a URI"),
        (&["explain", "pigeon://1"], "pigeon"),
        (&["explain", "scok://1"], "did you mean sock?"),
        (&["perf", "pingpong", "--local", "--transport", "scok"], "did you mean sock?"),
        (&["perf", "idle", "--transport", "scok"], "did you mean sock?"),
    ] {
        let (_, text) = refused(arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    for option in ["--json", "--csv", "--plot"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing").join("file");
        let (_, text) = refused(&["perf", "pingpong", "--local", option, path.to_str().unwrap()]);
        assert!(text.contains("cannot write to") && !text.contains("half round trip"), "{text}");
    }
}

#[test]
fn the_files_of_a_run_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, plot) = (path("rows.json"), path("rows.csv"), path("rows.svg"));
    let output = run(&[
        "perf",
        "pingpong",
        "--local",
        "--size",
        "8,64",
        "--time",
        "short",
        "--json",
        &json,
        "--csv",
        &csv,
        "--plot",
        &plot,
        "--accuracy",
        ANY,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("half round trip"));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["rows"].as_array().unwrap().len(), 2);
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 3);
    assert!(std::fs::read_to_string(plot).unwrap().starts_with("<svg"));
}

#[test]
fn a_server_killed_in_the_midst_of_a_run_leaves_the_rows_so_far_and_a_status() {
    let mut server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.json");
    let sizes = (1..2000).map(|size| size.to_string()).collect::<Vec<_>>().join(",");
    let client = cci(&["perf", "pingpong", "--connect", &server.uri, "--size", &sizes, "--time", "100ms"])
        .args(["--csv", "-", "--json", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = Running(client);
    // The run is under way once the server has used more processor time than its start takes.
    let begin = Instant::now();
    while ticks(server.child.0.id()) < 100 {
        assert!(begin.elapsed() < PATIENCE, "the run did not begin");
        std::thread::yield_now();
    }
    server.child.0.kill().unwrap();
    let mut said = String::new();
    client.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(client.0.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("the run is incomplete") && said.contains("disconnected"), "{said}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(document["complete"], false);
    assert!(document["interrupted"].as_str().unwrap().contains("disconnected"));
    assert!(!document["rows"].as_array().unwrap().is_empty());
}

/// Processor time of a process, in ticks of the kernel; none of one that has ended.
fn ticks(pid: u32) -> u64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0 };
    let fields: Vec<_> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// A local run over a transport: rows, with the probe that is the natural one.
fn over(transport: &str, arguments: &[&str], probe: &str) -> Value {
    let all = [
        &["perf"],
        arguments,
        &["--local", "--transport", transport, "--count", "20", "--blocks", "3", "--json", "-", "--accuracy", ANY],
    ];
    let output = cci(&all.concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    for row in document["rows"].as_array().unwrap() {
        assert_eq!((&row["transport"], &row["probe"]), (&transport.into(), &probe.into()), "{row}");
        assert!(row["ratio"].as_f64().unwrap() > 0.0, "{row}");
    }
    document
}

/// The same over sock, and the path that the rows took.
fn over_sock(arguments: &[&str], probe: &str) -> Value {
    let document = over("sock", arguments, probe);
    let path = &document["environment"]["path"];
    assert!(path["messages"].as_str().unwrap().contains("segmentation offload"), "{path}");
    assert!(path["why"].as_str().unwrap().contains("offload"), "{path}");
    document
}

#[test]
fn every_measurement_over_sock_has_a_probe_that_does_the_same_barely() {
    over_sock(&["pingpong", "--size", "8,4096"], "udp");
    over_sock(&["pingpong", "--size", "8", "--mode", "blocking"], "udp-wake");
    over_sock(&["oneway", "--size", "8"], "udp");
    over_sock(&["rate", "--size", "8", "--attribute", "ru", "--window", "16"], "udp-messages");
    over_sock(&["bw", "--size", "4096", "--silent"], "udp-stream");
    over_sock(&["bw", "--op", "write", "--size", "8,100000"], "udp-stream");
    over_sock(&["bw", "--op", "read", "--size", "100000"], "udp-stream");
    over_sock(&["bw", "--op", "write", "--size", "100000", "--key", "check=remote", "--probe", "tcp"], "tcp");
    over_sock(&["bw", "--op", "write", "--size", "100000", "--target", "computing"], "udp-stream");
    over_sock(&["bw", "--op", "write", "--size", "100000", "--bidirectional"], "udp-stream");
    over_sock(&["rate", "--size", "8", "--bidirectional", "--mode", "blocking"], "udp-messages");
}

#[test]
fn every_measurement_over_tcp_has_a_bare_stream_beside_it() {
    let over_tcp = |arguments: &[&str], probe| {
        let path = over("tcp", arguments, probe)["environment"]["path"].clone();
        assert!(path["messages"].as_str().unwrap().contains("TCP over IPv4 to 127.0.0.1"), "{path}");
    };
    over_tcp(&["pingpong", "--size", "8,4096"], "tcp-ping");
    over_tcp(&["pingpong", "--size", "8", "--mode", "blocking"], "tcp-wake");
    over_tcp(&["rate", "--size", "8", "--attribute", "ru", "--window", "16"], "tcp-messages");
    over_tcp(&["bw", "--size", "4096", "--silent"], "tcp-stream");
    over_tcp(&["bw", "--op", "write", "--size", "8,3000000"], "tcp-stream");
    over_tcp(&["bw", "--op", "read", "--size", "100000"], "tcp-stream");
    over_tcp(&["bw", "--op", "write", "--size", "100000", "--target", "computing"], "tcp-stream");
}

#[test]
fn a_key_that_the_transport_does_not_know_is_told_with_those_that_it_knows() {
    let output = cci(&["perf", "pingpong", "--local", "--transport", "sock", "--key", "speed=9"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("'speed'") && text.contains("interface"), "{text}");
}

#[test]
fn many_connections_of_one_endpoint_are_counted_and_cost_their_bytes() {
    let task = json!({"transport": "sock", "stops": [500], "uris": null});
    let order = json!({"parent": std::process::id(), "task": "connections", "arguments": task});
    let output = cci(&["cci-perf-child", &order.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["points"][0]["connections"], 500);
    assert!(positive(&figures["points"][0], "private_bytes") > 100.0 * 499.0, "{figures}");
    positive(&figures, "cost");
}

impl Running {
    /// Its status, what it wrote to standard output, and what it said.
    fn output(mut self) -> (Option<i32>, String, String) {
        let mut errors = self.0.stderr.take().unwrap();
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            errors.read_to_string(&mut said).unwrap();
            said
        });
        let mut shown = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
        (self.0.wait().unwrap().code(), shown, said.join().unwrap())
    }
}

/// A long local run, once both of its ends are there, which are those of one launch.
fn long_run() -> (Running, Vec<u32>) {
    let child = cci(&["perf", "pingpong", "--local", "--time", "100s", "--launches", "1", "--size", "8"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = Running(child);
    let begin = Instant::now();
    loop {
        let ends = children(run.0.id());
        if ends.len() == 2 && ends.iter().all(|end| ticks(*end) > 10) {
            return (run, ends);
        }
        assert!(begin.elapsed() < PATIENCE, "the ends did not start");
        std::thread::yield_now();
    }
}

fn is_alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    state.is_some_and(|text| {
        !matches!(text.rsplit(')').next().and_then(|rest| rest.trim().chars().next()), Some('Z' | 'X'))
    })
}

#[test]
fn the_ends_of_a_local_run_do_not_outlive_it() {
    let (mut run, ends) = long_run();
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    let begin = Instant::now();
    while ends.iter().any(|end| is_alive(*end)) {
        assert!(begin.elapsed() < PATIENCE, "an end is still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_local_run_notices_that_an_end_was_killed() {
    for end in [0, 1] {
        let (mut run, ends) = long_run();
        let pid = rustix::process::Pid::from_raw(i32::try_from(ends[end]).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let mut said = String::new();
        run.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(run.0.wait().unwrap().code(), Some(1), "{said}");
        assert!(said.contains("died"), "{said}");
        assert!(!ends.iter().any(|end| is_alive(*end)), "an end outlived the run");
    }
}
