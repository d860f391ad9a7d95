//! Parallel programs in C: their start, what they do together, their end, and what goes wrong.

mod installed;

use cci_conformance::installed::use_transport;
use cci_conformance::namespace;
use installed::{INSTALLED, build, command, end, text};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longer than a job takes to end, with its grace of a second.
const SOON: Duration = Duration::from_secs(10);

/// The programs, built once per run of this test: that of the tests for either dialect, and the
/// examples.
fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let dir = BUILT.get_or_init(|| {
        let dir = cci_conformance::run_folder(env!("CARGO_TARGET_TMPDIR").as_ref());
        let of = |name: &str| dir.join(name);
        build(&["bindings/am/tests/c/spmd.c"], &[], "amudp", &of("amudp"));
        build(&["bindings/am/tests/c/spmd.c"], &["-DWITH_AMMPI"], "ammpi", &of("ammpi"));
        build(&["bindings/am/tests/c/descriptors.c"], &[], "amudp", &of("descriptors"));
        let cancelled = "bindings/am/tests/c/cancelled.c";
        build(&[cancelled], &["-pthread"], "amudp", &of("cancelled_amudp"));
        build(&[cancelled], &["-pthread", "-DWITH_AMMPI"], "ammpi", &of("cancelled_ammpi"));
        for (example, dialect) in [("am_ring", "amudp"), ("am_sort", "ammpi"), ("am_stencil", "amudp")] {
            build(&[&format!("examples/am/{example}.c")], &[], dialect, &of(example));
        }
        dir
    });
    dir.join(name)
}

/// `cci run` of a program.
fn run(ranks: u32, program: &Path) -> Command {
    let mut run = command(INSTALLED.cci());
    run.args(["run", "-n", &ranks.to_string()]).arg(program);
    run
}

/// The program of the tests as its own master.
fn master(workers: u32) -> Command {
    let mut master = command(program("amudp"));
    master.args([&workers.to_string(), "L"]);
    master
}

fn output(command: &mut Command) -> Output {
    end(command.spawn().expect("it starts"), &format!("{command:?}"))
}

/// What a program printed that ended well and silently, line by line in order.
fn lines(output: &Output) -> Vec<&str> {
    assert!(output.status.success() && output.stderr.is_empty(), "{}: {}", output.status, text(&output.stderr));
    let mut lines: Vec<&str> = text(&output.stdout).lines().collect();
    lines.sort_unstable();
    lines
}

fn of_each(workers: u32, line: impl Fn(u32) -> String) -> Vec<String> {
    (0..workers).map(line).collect()
}

/// Of workers of `cci run`, and of a master, which has none either.
#[test]
fn no_descriptor_is_inherited_or_a_standard_one() {
    let workers = of_each(2, |worker| format!("worker {worker} of 2"));
    for (transport, when) in
        ["", "sm", "sock", "tcp"].iter().flat_map(|at| ["closed", "closing"].map(|when| (at, when)))
    {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut master = command(program("descriptors"));
        master.args(["2", "L"]);
        for (mut job, is_master) in [(run(2, &program("descriptors")), false), (master, true)] {
            use_transport(&mut job, transport, dir.path());
            let output = output(job.env("DESCRIPTORS", when));
            if is_master && when == "closed" {
                // Its workers have nowhere to print to.
                assert!(output.status.success(), "{transport}: {output:?}");
            } else {
                assert_eq!(lines(&output), workers, "{transport}, {when}");
            }
        }
    }
}

#[test]
fn every_call_under_cci_run_and_by_its_own_master() {
    let walks = |workers| of_each(workers, |worker| format!("worker {worker} of {workers} walks"));
    let variable = ("SPMD_TEST", "of the master");
    for dialect in ["amudp", "ammpi"] {
        let mut job = run(4, &program(dialect));
        assert_eq!(lines(&output(job.arg("walk").env(variable.0, variable.1))), walks(4));
    }
    assert_eq!(lines(&output(master(3).arg("walk").env(variable.0, variable.1))), walks(3));
    let mut named = command(program("amudp"));
    named.args(["2", "walk"]).env("AMUDP_SPAWNFN", "L").env(variable.0, variable.1);
    assert_eq!(lines(&output(&mut named)), walks(2));
    // A program by itself.
    let mut alone = command(program("ammpi"));
    assert_eq!(lines(&output(alone.arg("walk").env(variable.0, variable.1))), walks(1));
}

#[test]
fn barriers_keep_workers_together() {
    let met = of_each(3, |worker| format!("worker {worker} has met all"));
    assert_eq!(lines(&output(run(3, &program("ammpi")).arg("barriers"))), met);
}

#[test]
fn workers_start_by_a_command_of_the_users_and_by_a_shell_elsewhere() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let variable = ("SPMD_TEST", "of the master");
    let walks = of_each(2, |worker| format!("worker {worker} of 2 walks"));
    let mut custom = command(program("amudp"));
    custom.args(["2", "C", "walk"]).env("AMUDP_CSPAWN_CMD", format!("{} run -n %N %C", INSTALLED.cci().display()));
    assert_eq!(lines(&output(custom.env(variable.0, variable.1))), walks);
    // What stands for ssh forgets the host and runs the rest here.
    let rsh = script(dir.path(), "shift; export SPMD_TEST='of the master'; exec \"$@\"");
    let mut ssh = command(program("amudp"));
    let path = format!("{}:/usr/bin:/bin", INSTALLED.cci().parent().expect("a folder").display());
    ssh.args(["2", "S", "walk"]).env("AMUDP_SSH_SERVERS", "a b").env("AMUDP_SSH_CMD", rsh).env("PATH", path);
    assert_eq!(lines(&output(&mut ssh)), walks);
}

#[test]
fn a_start_that_cannot_be_says_why() {
    for (arguments, why) in [
        (&["walk"][..], "usage: "),
        (&["0", "walk"], "usage: "),
        (&["2", "S", "walk"], "AMUDP_SSH_SERVERS is not set"),
        (&["2", "C", "walk"], "AMUDP_CSPAWN_CMD is not set"),
    ] {
        let ended = output(command(program("amudp")).args(arguments));
        assert_eq!(ended.status.code(), Some(9), "{arguments:?}");
        assert!(text(&ended.stderr).contains(why), "{arguments:?}: {}", text(&ended.stderr));
    }
}

/// One worker's status ends all: those that poll run their callback, those that do not are killed.
#[test]
fn an_exit_ends_all_workers_with_its_status() {
    for status in [7, 0] {
        let ended = output(master(3).args(["leave", &status.to_string()]));
        assert_eq!(ended.status.code(), Some(status), "{}", text(&ended.stderr));
        let mut left: Vec<&str> = text(&ended.stdout).lines().collect();
        left.sort_unstable();
        let mut wanted = of_each(3, |worker| format!("worker {worker} ends with {status}"));
        wanted.extend(of_each(3, |worker| format!("worker {worker} kills itself")));
        wanted.sort_unstable();
        assert_eq!(left, wanted);
        // It may build the command first.
        let mut busy = run(3, &program("ammpi"));
        let begin = Instant::now();
        let busy = output(busy.args(["busy", &status.to_string()]));
        assert_eq!(busy.status.code(), Some(status), "{}", text(&busy.stderr));
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    }
    let handler = output(master(3).arg("handler"));
    assert_eq!(handler.status.code(), Some(5), "{}", text(&handler.stderr));
}

/// Programs with a handler of SIGTERM that ends them, as conduits have it.
#[test]
fn a_worker_that_ends_the_program_is_not_asked_to_end() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ended = output(master(3).arg("own_handler").env("GONE", dir.path().join("gone")));
    assert_eq!(ended.status.code(), Some(6), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout), "");
}

#[test]
fn a_worker_that_dies_is_named_and_ends_the_program() {
    let ended = output(master(3).arg("die"));
    assert_eq!(ended.status.code(), Some(137));
    let why = "rank 1 was killed by signal 9 (SIGKILL); the job ends with status 137";
    assert!(text(&ended.stderr).contains(why), "{}", text(&ended.stderr));
}

/// Whichever is first.
#[test]
fn a_worker_that_dies_while_another_one_ends_all_well_is_named_too() {
    let ended = output(master(2).arg("late"));
    assert_eq!(ended.status.code(), Some(137));
    assert!(text(&ended.stderr).contains("rank 0 was killed by signal 9"), "{}", text(&ended.stderr));
}

#[test]
fn a_worker_that_never_comes_is_named() {
    let begin = Instant::now();
    let ended = output(master(3).arg("walk").env("NEVER", "1").env("CCI_AM_START_LIMIT", "1"));
    assert_eq!(ended.status.code(), Some(9));
    let why = "AMUDP_SPMDStartup: rank 1 did not come within 1 s";
    assert!(text(&ended.stderr).contains(why), "{}", text(&ended.stderr));
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

#[test]
fn a_worker_that_ended_well_holds_nobody_up() {
    let ended = output(run(3, &program("amudp")).arg("early").env("VERBOSE", "1"));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let errors = text(&ended.stderr);
    assert!(errors.contains("AMUDP_SPMDBarrier: worker 1 is gone"), "{errors}");
    assert_eq!(text(&ended.stdout).lines().count(), 2, "{}", text(&ended.stdout));
}

#[test]
fn what_all_workers_do_together_is_refused_once_the_library_has_ended() {
    let ended = of_each(2, |worker| format!("worker {worker} has ended the library"));
    for dialect in ["amudp", "ammpi"] {
        assert_eq!(lines(&output(run(2, &program(dialect)).arg("terminated"))), ended);
    }
}

/// In each call from the start on, and however the worker ends; a master too.
#[test]
fn workers_that_are_cancelled_end_their_calls_first() {
    let called = of_each(2, |_| "called".to_owned());
    for dialect in ["cancelled_amudp", "cancelled_ammpi"] {
        assert_eq!(lines(&output(run(2, &program(dialect)).env("PARALLEL", "1"))), called, "{dialect}");
        let asked = output(run(1, &program(dialect)).env("PARALLEL", "1").env("ENDS", "asked"));
        assert_eq!(asked.status.code(), Some(143), "{dialect}: {}", text(&asked.stderr));
        assert_eq!(text(&asked.stdout), "called\n", "{dialect}");
    }
    let mut master = command(program("cancelled_amudp"));
    assert_eq!(lines(&output(master.args(["2", "L"]).env("PARALLEL", "1"))), called);
}

#[test]
fn forked_children_of_workers_refuse() {
    let lines_of = of_each(2, |worker| format!("worker {worker} has a child that refuses"));
    assert_eq!(lines(&output(run(2, &program("ammpi")).arg("children"))), lines_of);
}

/// A running program, killed should the test end before it does, and its lines.
struct Running(Child, Lines<BufReader<ChildStdout>>);

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self(child, lines)
    }

    fn pid(&mut self) -> i32 {
        self.1.next().expect("a line").expect("text").parse().expect("a number")
    }

    fn ends(&mut self) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("its status") {
                return status.code();
            }
            assert!(begin.elapsed() < SOON, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only when it has ended. A stopped one dies of it too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lives(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn signal(signal: &str, pid: i32) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().expect("kill");
    assert!(status.success());
}

/// However the master ends: asked, or killed. Its workers sleep in a wait.
#[test]
fn nothing_survives_the_master() {
    for (name, status) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let mut running = Running::start(master(3).arg("wait"));
        let pids: Vec<i32> = (0..3).map(|_| running.pid()).collect();
        signal(name, running.0.id().cast_signed());
        assert_eq!(running.ends(), status, "{name}");
        let begin = Instant::now();
        while pids.iter().any(|pid| lives(*pid)) {
            assert!(begin.elapsed() < SOON, "{name}: {pids:?} survive");
            std::thread::yield_now();
        }
    }
}

/// Two workers that no launcher ends: rank 0 serves the job. A peer that is stopped, or killed, is
/// a request that comes back once the send timeout is over.
#[test]
fn requests_to_a_worker_that_stops_come_back() {
    for name in ["STOP", "KILL"] {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
        let mut workers = ["0", "1"].map(|rank| {
            let mut worker = command(program("ammpi"));
            worker.arg("outlive").env("RANK", rank).env("WORLD_SIZE", "2").env("SEND_TIMEOUT", "500");
            worker.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", (port.port() - 1).to_string());
            Running::start(&mut worker)
        });
        let pids = [workers[0].pid(), workers[1].pid()];
        signal(name, pids[1]);
        let begin = Instant::now();
        workers[0].0.stdin.take().expect("a pipe").write_all(b"now\n").expect("it reads");
        assert_eq!(workers[0].ends(), Some(0), "{name}");
        assert!(begin.elapsed() < SOON, "{name}: {:?}", begin.elapsed());
        assert_eq!(workers[0].1.next().expect("a line").expect("text"), "came back", "{name}");
    }
}

#[test]
fn the_examples_are_right() {
    let hops = |worker: u32| {
        format!(
            "worker {worker}: the token has come 3 times, last after {} hops",
            if worker == 0 { 12 } else { 8 + worker }
        )
    };
    assert_eq!(lines(&output(&mut run(4, &program("am_ring")))), of_each(4, hops));
    assert_eq!(lines(&output(command(program("am_ring")).arg("4"))), of_each(4, hops));
    let sorted = of_each(4, |worker| format!("worker {worker}: its part is sorted"));
    assert_eq!(lines(&output(&mut run(4, &program("am_sort")))), sorted);
    let same = of_each(4, |worker| format!("worker {worker}: as one program alone"));
    assert_eq!(lines(&output(&mut run(4, &program("am_stencil")))), same);
}

/// Another launcher, and the library's programs under it: it ends well.
fn starts_programs(launcher: &str, arguments: &[&str]) {
    if !namespace::has(launcher) {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "skipped: {launcher} is not installed");
        return;
    }
    let prints = |workers: u32, name: &str, argument: &str, line: &dyn Fn(u32) -> String| {
        let mut job = command(Path::new(launcher));
        job.args(arguments).args(["-n", &workers.to_string()]).arg(program(name)).arg(argument);
        // Open MPI asks the superuser to be sure, in two ways.
        job.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        assert_eq!(lines(&output(&mut job)), of_each(workers, line));
    };
    prints(3, "ammpi", "barriers", &|worker| format!("worker {worker} has met all"));
    prints(2, "am_sort", "", &|worker| format!("worker {worker}: its part is sorted"));
}

/// By PMI-1.
#[test]
fn hydra_starts_programs_too() {
    starts_programs("mpiexec.hydra", &[]);
}

/// By PMIx, which takes an end without a farewell for a failure.
#[test]
fn open_mpi_starts_programs_too() {
    starts_programs("mpirun.openmpi", &["--oversubscribe"]);
}

/// A script that stands for ssh.
fn script(folder: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("rsh");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

/// Two hosts that reach each other by a cable only: two workers on each.
#[test]
fn the_ring_goes_over_two_name_spaces() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [one, other] = [nets[0].path(), nets[1].path()];
    let enter = format!("case $1 in one) net={one};; *) net={other};; esac; shift; exec nsenter --net=$net \"$@\"");
    let rsh = script(dir.path(), &enter);
    for ring in [
        program("am_ring"),
        cci_conformance::build("cci-examples", env!("CARGO_TARGET_TMPDIR").as_ref()).join("am_ring"),
    ] {
        let mut job = command(INSTALLED.cci());
        job.args(["run", "-n", "4", "-H", "one:2,other:2", "--rsh"]).arg(&rsh).arg(ring);
        let ended = output(&mut job);
        let mut errors = String::new();
        let _ = ended.stderr.as_slice().read_to_string(&mut errors);
        assert_eq!(ended.status.code(), Some(0), "{errors}");
        let mut lines: Vec<&str> = text(&ended.stdout).lines().collect();
        lines.sort_unstable();
        let last: Vec<bool> = lines
            .iter()
            .zip(["12", "9", "10", "11"])
            .map(|(line, hops)| line.ends_with(&format!("after {hops} hops")))
            .collect();
        assert_eq!(last, [true; 4], "{lines:?}");
    }
}
