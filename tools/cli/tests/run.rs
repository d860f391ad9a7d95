//! `cci run`: ranks on this host and in network name spaces, however they end.

mod command_line;

use command_line::{exact as text, lines};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// How soon after a failure a job must have ended.
const SOON: Duration = Duration::from_secs(1);

fn cci() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cci"))
}

fn run(arguments: &[&str]) -> Command {
    let mut command = command_line::cci(&["run"]);
    command.args(arguments);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the command")
}

/// A job whose ranks write the numbers of their processes, and those of a process that each leaves
/// behind in a group of its own, and then wait for ever.
const WAITING: &str = "setsid sleep 1000 & echo $$ $!; wait";

/// Starts such a job of so many ranks; the job, and all its processes.
fn waiting(ranks: usize, script: &str) -> (Child, Vec<Pid>) {
    let mut command = run(&["-n", &ranks.to_string(), "sh", "-c", script]);
    let mut job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    let mut pids = Vec::new();
    let mut lines = BufReader::new(job.stdout.take().expect("a pipe")).lines();
    for _ in 0..ranks {
        let line = lines.next().expect("a line of each rank").expect("text");
        pids.extend(
            line.split_whitespace().map(|pid| Pid::from_raw(pid.parse().expect("a number")).expect("a process")),
        );
    }
    (job, pids)
}

/// Whether a process is there and no zombie.
fn lives(pid: Pid) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let is_zombie = state.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'));
    test_kill_process(pid).is_ok() && !is_zombie
}

fn standard_error(job: &mut Child) -> String {
    let mut text = String::new();
    job.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    text
}

/// Sends a signal to a waiting job and returns its status once nothing of it is left.
fn interrupted(signal: Signal) -> Option<i32> {
    let (mut job, pids) = waiting(4, WAITING);
    kill_process(Pid::from_child(&job), signal).expect("the job");
    let status = job.wait().expect("its end").code();
    let left: Vec<_> = pids.iter().filter(|pid| lives(**pid)).collect();
    assert!(left.is_empty() && pids.len() == 8, "{left:?} of {pids:?} survive");
    status
}

/// How often a job is interrupted: `make jobs` sets another number.
fn times() -> u32 {
    std::env::var("CCI_INTERRUPTS").ok().map_or(20, |times| times.parse().expect("a number"))
}

#[test]
fn nothing_survives_an_interrupt() {
    for time in 0..times() {
        assert_eq!(interrupted(Signal::INT), Some(130), "time {time}");
    }
    assert_eq!(interrupted(Signal::TERM), Some(143));
    assert_eq!(interrupted(Signal::HUP), Some(129));
}

#[test]
fn ranks_that_ignore_the_interrupt_are_killed() {
    let (mut job, pids) = waiting(2, "trap '' INT TERM; echo $$; while :; do sleep 1000; done");
    kill_process(Pid::from_child(&job), Signal::INT).expect("the job");
    assert_eq!(job.wait().expect("its end").code(), Some(130));
    assert!(!pids.into_iter().any(lives));
}

#[test]
fn ranks_end_with_a_launcher_that_is_killed() {
    let (mut job, pids) = waiting(2, "echo $$; exec sleep 1000");
    job.kill().expect("the job");
    job.wait().expect("its end");
    let begin = Instant::now();
    while pids.iter().any(|pid| lives(*pid)) {
        assert!(begin.elapsed() < LONG, "they live");
        std::thread::yield_now();
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_job_within_a_second() {
    let (mut job, pids) = waiting(4, "echo $$; exec sleep 1000");
    let begin = Instant::now();
    kill_process(pids[2], Signal::KILL).expect("a rank");
    assert_eq!(job.wait().expect("its end").code(), Some(137));
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    assert!(!pids.into_iter().any(lives));
    let text = standard_error(&mut job);
    assert!(text.contains("was killed by signal 9 (SIGKILL); the job ends with status 137"), "{text}");
}

#[test]
fn the_first_status_other_than_0_is_the_jobs() {
    let begin = Instant::now();
    let script = "test $RANK = 1 && exit 3; exec sleep 1000";
    let ended = output(&mut run(&["-n", "3", "sh", "-c", script]));
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!(text(&ended.stderr), "cci run: rank 1 ended with status 3; the job ends with status 3\n");
    assert!(begin.elapsed() < LONG);
}

#[test]
fn the_job_names_the_first_failure_and_counts_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = folder.path().join("gate");
    let wait = format!("until test -e {}; do sleep 0.01; done", gate.display());
    let fail = "test $RANK = 0 && exit 0; test $RANK = 3 && kill -TERM $$; exit $RANK";
    let (mut job, pids) = waiting(5, &format!("echo $$; {wait}; {fail}"));
    let launcher = Pid::from_child(&job);
    // It finds all of them ended, and has asked none to.
    kill_process(launcher, Signal::STOP).expect("the job");
    std::fs::write(&gate, "").expect("a file");
    let begin = Instant::now();
    while pids.iter().any(|pid| lives(*pid)) {
        assert!(begin.elapsed() < LONG, "they live");
        std::thread::yield_now();
    }
    kill_process(launcher, Signal::CONT).expect("the job");
    let status = job.wait().expect("its end").code().expect("a status");
    let text = standard_error(&mut job);
    // The system does not tell in which order they ended.
    assert!([1, 2, 4, 143].contains(&status), "{text}");
    let first = format!("; the job ends with status {status}\ncci run: also failed: ");
    let others = if status == 143 { 3 } else { 2 };
    assert!(text.contains(&first) && text.ends_with(&format!(": {others} of the other ranks\n")), "{text}");
}

#[test]
fn status_0_does_not_end_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    // Rank 0 goes on only after rank 1 has ended: its end of the pipe closes then.
    let script = "if test $RANK = 1; then exec 3>\"$0\"; exit 0; fi; cat \"$0\"; echo on";
    let ended = output(&mut run(&["-n", "2", "sh", "-c", script, fifo.to_str().expect("text")]));
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(0), "on\n"));
}

#[test]
fn signals_are_passed_on() {
    let script = "trap 'echo got; exit 0' USR1; echo $$; while :; do sleep 0.01; done";
    let mut command = run(&["-n", "2", "--label", "sh", "-c", script]);
    // The shell reports what the signal does to its own children.
    let mut job = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command");
    let mut lines = BufReader::new(job.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    let _begun: Vec<String> = lines.by_ref().take(2).collect();
    kill_process(Pid::from_child(&job), Signal::USR1).expect("the job");
    let mut got: Vec<String> = lines.collect();
    got.sort_unstable();
    assert_eq!(got, ["[0] got", "[1] got"]);
    assert_eq!(job.wait().expect("its end").code(), Some(0));
}

#[test]
fn standard_input_goes_to_rank_0() {
    let mut job = run(&["-n", "3", "--label", "cat"]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    job.stdin.take().expect("a pipe").write_all(b"one\ntwo").expect("a reader");
    let ended = job.wait_with_output().expect("its end");
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(0), "[0] one\n[0] two\n"));
}

#[test]
fn lines_are_labelled_and_whole_and_none_is_lost() {
    let script = "i=0; while test $i -lt 2000; do echo line $i; i=$((i+1)); done; echo err >&2";
    let ended = output(&mut run(&["-n", "4", "--label", "sh", "-c", script]));
    assert_eq!(ended.status.code(), Some(0));
    let found = lines(&ended.stdout);
    let mut expected: Vec<String> =
        (0..4).flat_map(|rank| (0..2000).map(move |line| format!("[{rank}] line {line}"))).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(lines(&ended.stderr), ["[0] err", "[1] err", "[2] err", "[3] err"]);
}

#[test]
fn a_reader_that_leaves_ends_the_job_and_hangs_nothing() {
    let mut job = run(&["-n", "2", "--label", "yes"]);
    let mut job = job.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command");
    let mut some = [0; 4096];
    job.stdout.take().expect("a pipe").read_exact(&mut some).expect("lines");
    assert_eq!(job.wait().expect("its end").code(), Some(141), "SIGPIPE");
}

#[test]
fn thirty_two_ranks_know_all_others() {
    let ended = output(&mut run(&["-n", "32", env!("CARGO_BIN_EXE_cci"), "job", "--exchanges", "5"]));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let lines = lines(&ended.stdout);
    assert_eq!(lines.len(), 32);
    for rank in 0..32 {
        let begin = format!("rank {rank} of 32, {rank} of 32 on this host");
        assert!(lines.iter().any(|line| line.starts_with(&begin)), "{begin}: {lines:?}");
    }
    assert!(lines.iter().all(|line| line.contains("by cci run, authenticated")), "{lines:?}");
}

#[test]
fn a_rank_that_never_joins_is_named() {
    let cci = env!("CARGO_BIN_EXE_cci");
    let script = format!("if test $RANK = 1; then exec sleep 1000; fi; exec {cci} job --limit 300ms");
    let ended = output(&mut run(&["-n", "3", "sh", "-c", &script]));
    assert_eq!(ended.status.code(), Some(1));
    let errors = text(&ended.stderr);
    assert!(errors.contains("rank 1 did not come within"), "{errors}");
}

#[test]
fn a_rank_that_lies_to_the_store_is_named_and_the_others_are_told() {
    let cci = env!("CARGO_BIN_EXE_cci");
    let lie = r"printf '\377\377\377\377\1' >&$CCI_JOB_FD; exec sleep 1000";
    let script = format!("if test $RANK = 1; then {lie}; fi; exec {cci} job");
    let begin = Instant::now();
    let ended = output(&mut run(&["-n", "2", "bash", "-c", &script]));
    let errors = text(&ended.stderr);
    assert!(errors.contains("the store has closed the connection of rank 1: a frame longer"), "{errors}");
    assert!(errors.contains("rank 1 will not come"), "{errors}");
    assert!(begin.elapsed() < LONG);
}

#[test]
fn the_secret_is_in_no_argument_and_no_environment() {
    let script = "tr '\\0' '\\n' </proc/$$/environ | grep -E '^(CCI_|RANK|WORLD|LOCAL)' | sed 's/=.*//'";
    let ended = output(run(&["-n", "1", "sh", "-c", script]).env_remove("CCI_INTERRUPTS"));
    assert_eq!(
        lines(&ended.stdout),
        ["CCI_APPNUM", "CCI_JOB_FD", "CCI_JOB_SOCKET", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"]
    );
}

/// Nobody asks for it: the secret of the job is enough.
#[test]
fn connections_of_a_job_over_a_network_are_sealed() {
    for (ways, protection) in
        [("sock", ", sealed by AES-256-GCM"), ("tcp", ", sealed by AES-256-GCM"), ("sm", ", over no network")]
    {
        let ended = output(run(&["-n", "2", env!("CARGO_BIN_EXE_cci"), "job", "--rounds", "2"]).env("CCI_CTP", ways));
        assert!(ended.status.success(), "{ways}: {}", text(&ended.stderr));
        let lines = lines(&ended.stdout);
        assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(protection)), "{ways}: {lines:?}");
    }
}

/// `--security off` is said once, by the launcher; and nothing else than it and `psk` is taken.
#[test]
fn connections_of_a_job_are_in_clear_where_the_user_says_so() {
    let job = |security: &str| {
        let cci = env!("CARGO_BIN_EXE_cci");
        output(run(&["-n", "2", "--security", security, cci, "job", "--rounds", "2"]).env("CCI_CTP", "auto,sock"))
    };
    let ended = job("off");
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let plain = ", connections in clear; 1 exchanges";
    let (lines, complaint) = (lines(&ended.stdout), text(&ended.stderr));
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(plain)), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(", authenticated, ")), "they prove the secret: {lines:?}");
    assert!(lines.iter().all(|line| line.ends_with(", plain, since the key security is 'off'")), "{lines:?}");
    assert!(complaint.lines().count() == 1 && complaint.starts_with("cci run: --security off: "), "{complaint}");
    let ended = job("psk");
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", text(&ended.stderr));
    assert!(!text(&ended.stdout).contains("clear"), "{ended:?}");
    for other in ["", "on", "none", "prefer", "required", "OFF"] {
        let refused = job(other);
        assert_eq!(refused.status.code(), Some(2), "{other}");
        assert!(text(&refused.stderr).contains("[possible values: psk, off]"), "{other}: {refused:?}");
        assert!(refused.stdout.is_empty(), "no rank has been started: {refused:?}");
    }
}

#[test]
fn ranks_are_bound_to_processors_in_turn() {
    let script = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$$/status";
    let ended = output(&mut run(&["-n", "2", "--bind", "core", "--label", "sh", "-c", script]));
    let lines = lines(&ended.stdout);
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| !line.contains([',', '-'])), "one processor each: {lines:?}");
}

#[test]
fn what_cannot_be_started_is_named() {
    let ended = output(&mut run(&["-n", "2", "/nowhere/program"]));
    assert_eq!(ended.status.code(), Some(127));
    assert!(text(&ended.stderr).contains("rank 0 cannot start '/nowhere/program': No such file"), "{ended:?}");
    let refused = output(&mut run(&["-n", "2", "-H", "-oProxyCommand=x", "true"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("names no host"), "{refused:?}");
}

/// A command that stands for `ssh`: it forgets the host and runs the rest here.
fn rsh(folder: &Path, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("rsh");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path.to_str().expect("text").to_owned()
}

#[test]
fn ranks_of_other_hosts_are_ranks_like_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path(), "shift; exec \"$@\"");
    let mut job = run(&["-n", "5", "-H", "there:2,localhost:2,elsewhere:1", "--rsh", &rsh, "--label", "sh", "-c"]);
    let script = format!("cat; {} job --exchanges 20; echo $HIDDEN$CCI_SHOWN", env!("CARGO_BIN_EXE_cci"));
    job.arg(script).env("CCI_SHOWN", "shown").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut job = job.spawn().expect("the command");
    job.stdin.take().expect("a pipe").write_all(b"input\n").expect("a reader");
    let ended = job.wait_with_output().expect("its end");
    assert_eq!(ended.status.code(), Some(0));
    let lines = lines(&ended.stdout);
    assert_eq!(lines.iter().filter(|line| line.ends_with("] input")).count(), 1, "{lines:?}");
    assert!(lines.contains(&"[0] input"), "rank 0 is there: {lines:?}");
    for (rank, local) in [(0, "0 of 2"), (1, "1 of 2"), (2, "0 of 2"), (3, "1 of 2"), (4, "0 of 1")] {
        let line = format!("[{rank}] rank {rank} of 5, {local} on this host");
        assert!(lines.iter().any(|found| found.starts_with(&line)), "{line}: {lines:?}");
        assert!(lines.contains(&&*format!("[{rank}] shown")), "{lines:?}");
    }
}

/// Tells people why a test does less here.
fn skipped(why: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Each host is a network name space without any interface that is up.
#[test]
fn ranks_of_other_hosts_need_no_network_to_the_launcher() {
    let can = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        return skipped("this user may not make network name spaces");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path(), "shift; exec unshare --net \"$@\"");
    let script = format!("readlink /proc/self/ns/net; {} job", env!("CARGO_BIN_EXE_cci"));
    let ended = output(&mut run(&["-n", "4", "-H", "a:2,b:2", "--rsh", &rsh, "sh", "-c", &script]));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let lines = lines(&ended.stdout);
    let spaces: std::collections::BTreeSet<_> = lines.iter().filter(|line| line.starts_with("net:")).collect();
    assert_eq!((spaces.len(), lines.len()), (2, 8), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("rank 3 of 4, 1 of 2 on this host")), "{lines:?}");
}

/// The last bytes are in the rank's pipe when it ends, because all buffers on the way are full.
#[test]
fn much_output_from_elsewhere_arrives_whole() {
    const LENGTH: usize = 5_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path(), "shift; exec \"$@\"");
    let length = LENGTH.to_string();
    let ended = output(&mut run(&["-n", "1", "-H", "there", "--rsh", &rsh, "head", "-c", &length, "/dev/zero"]));
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(0), LENGTH));
}

#[test]
fn a_failure_elsewhere_ends_all_and_names_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path(), "shift; exec \"$@\"");
    let script = "test $RANK = 1 && { echo last; exit 7; }; exec sleep 1000";
    let ended = output(&mut run(&["-n", "2", "-H", "localhost,there", "--rsh", &rsh, "sh", "-c", script]));
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(7), "last\n"));
    assert_eq!(text(&ended.stderr), "cci run: rank 1 on there ended with status 7; the job ends with status 7\n");
}

#[test]
fn nothing_survives_an_interrupt_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path(), "shift; exec \"$@\"");
    let mut job = run(&["-n", "2", "-H", "there:2", "--rsh", &rsh, "sh", "-c", WAITING]);
    let mut job = job.stdout(Stdio::piped()).spawn().expect("the command");
    let lines = BufReader::new(job.stdout.take().expect("a pipe")).lines().take(2);
    let pids: Vec<Pid> = lines
        .flat_map(|line| line.expect("text").split(' ').map(|pid| pid.parse().expect("a number")).collect::<Vec<i32>>())
        .map(|pid| Pid::from_raw(pid).expect("a process"))
        .collect();
    kill_process(Pid::from_child(&job), Signal::INT).expect("the job");
    assert_eq!(job.wait().expect("its end").code(), Some(130));
    assert!(pids.len() == 4 && !pids.into_iter().any(lives));
}

#[test]
fn a_host_that_fails_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let failed = |text: &str| {
        let rsh = rsh(folder.path(), text);
        let ended = output(&mut run(&["-n", "1", "-H", "there", "--rsh", &rsh, "true"]));
        assert_eq!(ended.status.code(), Some(127));
        String::from_utf8(ended.stderr).expect("text")
    };
    assert!(failed("exit 255").contains("rank 0 on there is lost with its host: its launcher has gone"));
    assert!(failed("echo Welcome to this host; cat >/dev/null").contains("its shell prints nothing"));
}

/// Runs ranks by another launcher, which also connect to each other; nothing where that is not
/// installed.
fn by(launcher: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Option<Output> {
    let mut command = Command::new(launcher);
    command.args(arguments).args([env!("CARGO_BIN_EXE_cci"), "job", "--exchanges", "3", "--rounds", "2"]);
    for variable in ["CCI_JOB_FD", "CCI_STORE", "CCI_SECRET_FILE", "CCI_LISTEN", "CCI_PMI"] {
        command.env_remove(variable);
    }
    // Open MPI asks the superuser to be sure, in two ways.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    let ended = command.output().ok();
    if ended.is_none() {
        skipped(&format!("{launcher} is not installed (apt-get install mpich openmpi-bin)"));
    }
    ended
}

fn all_know_all(ended: &Output, size: usize, source: &str) {
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let lines = lines(&ended.stdout);
    assert_eq!(lines.len(), size, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(source) && line.contains("not authenticated")), "{lines:?}");
}

#[test]
fn ranks_of_hydra_speak_pmi() {
    for (more, version) in [(&[][..], "1"), (&["-pmi-port"], "1"), (&[], "2"), (&["-pmi-port"], "2")] {
        if let Some(ended) = by("mpiexec.hydra", &[more, &["-n", "6"]].concat(), &[("CCI_PMI", version)]) {
            all_know_all(&ended, 6, "of 6 on this host with");
            all_know_all(&ended, 6, &format!("by PMI-{version}"));
        }
    }
}

/// The user gives ranks the secret that their process manager does not.
#[test]
fn ranks_of_hydra_prove_the_secret_of_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    std::fs::write(&file, [b'5'; 64]).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let variables = [("CCI_SECRET_FILE", file.to_str().expect("text"))];
    if let Some(ended) = by("mpiexec.hydra", &["-n", "2"], &variables) {
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        assert!(lines(&ended.stdout).iter().all(|line| line.contains("by PMI-1, authenticated")), "{ended:?}");
    }
}

#[test]
fn ranks_of_open_mpi_speak_pmix() {
    if let Some(ended) = by("mpirun.openmpi", &["--oversubscribe", "-n", "4"], &[]) {
        all_know_all(&ended, 4, "by PMIx");
        all_know_all(&ended, 4, "of 4 on this host with");
    }
}

/// A library of PMIx that does not do what it should.
const FALSE_PMIX: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { uint16_t kind; union { uint32_t number; const char *string; uint64_t all[3]; } data; } value_t;
typedef struct { char space[256]; uint32_t rank; } process_t;
static int is(const char *lie) { return strcmp(getenv("LIE"), lie) == 0; }
static void stop_if(const char *lie) { while (is(lie)) pause(); }
int PMIx_Init(process_t *own, void *info, size_t count)
{
    stop_if("stopped at init");
    strcpy(own->space, "space");
    own->rank = is("rank") ? 9 : 0;
    return is("init") ? -25 : 0;
}
int PMIx_Put(uint8_t scope, const char *key, value_t *value)
{
    stop_if("stopped at put");
    return is("put") ? -1 : 0;
}
int PMIx_Commit(void)
{
    stop_if("stopped at commit");
    return 0;
}
int PMIx_Finalize(void *info, size_t count) { return 0; }
const char *PMIx_Error_string(int status) { return "THE-WORDS"; }
#ifndef OLD
int PMIx_Fence_nb(process_t *of, size_t count, void *info, size_t infos, void (*done)(int, void *), void *given)
{
    if (is("fence"))
        return 0;
    if (is("at once"))
        return -157;
    done(is("gone") ? -51 : 0, given);
    return 0;
}
#endif
int PMIx_Get_nb(process_t *of, const char *key, void *info, size_t infos, void (*found)(int, value_t *, void *),
                void *given)
{
    value_t value = {14, {2}};
    if (strcmp(key, "pmix.job.size") == 0) {
        if (is("stopped at size"))
            return 0;
        value.kind = is("size") ? 3 : 14;
        value.data.string = "two";
        if (!is("size"))
            value.data.number = 2;
        found(0, &value, given);
    } else if (is("stopped at get")) {
        return 0;
    } else if (is("none")) {
        return -46;
    } else {
        value.kind = is("type") ? 14 : 3;
        value.data.string = is("null") ? NULL : is("digits") ? "no digits" : "00";
        found(0, &value, given);
    }
    return 0;
}
"#;

#[test]
fn a_library_of_pmix_that_is_missing_silent_or_lies_is_explained() {
    // 20 times the limit, and less than a server has where there is none.
    const NO_LONGER: std::time::Duration = std::time::Duration::from_secs(6);
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("false.c");
    std::fs::write(&source, FALSE_PMIX).expect("a source");
    let build = |arguments: &[&str]| {
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.args(["-shared", "-fPIC", "-o"]).arg(folder.path().join("libpmix.so.2")).arg(&source).args(arguments);
        assert!(cc.status().expect("a C compiler").success());
    };
    let error = |lie: &str| {
        let mut job = cci();
        job.args(["job", "--limit", "300ms"]).stdin(Stdio::null());
        for variable in ["CCI_JOB_FD", "CCI_STORE", "PMI_FD", "PMI_PORT"] {
            job.env_remove(variable);
        }
        job.envs([("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "space"), ("LIE", lie)]);
        let begun = std::time::Instant::now();
        let ended = output(job.env("LD_LIBRARY_PATH", folder.path()));
        assert_eq!(ended.status.code(), Some(1), "{lie}: {ended:?}");
        assert!(begun.elapsed() < NO_LONGER, "{lie}: {:?}", begun.elapsed());
        text(&ended.stderr).to_owned()
    };
    build(&[]);
    for (lie, why) in [
        ("init", "the server of PMIx refuses: THE-WORDS"),
        ("rank", "rank 9 is not below the size 2"),
        ("size", "does not state the size of the job"),
        ("put", "the server of PMIx: THE-WORDS"),
        ("fence", "the server of PMIx does not answer within the limit"),
        ("stopped at init", "the server of PMIx does not answer within the limit; see that it runs"),
        ("stopped at size", "the server of PMIx does not answer within the limit; see that it runs"),
        ("stopped at put", "the server of PMIx does not answer within the limit; PMIx does not tell"),
        ("stopped at commit", "the server of PMIx does not answer within the limit; PMIx does not tell"),
        ("stopped at get", "the server of PMIx does not answer within the limit; PMIx does not tell"),
        ("gone", "the server of PMIx: THE-WORDS"),
        ("none", "rank 1 will not come"),
        ("type", "that no rank of this version has put"),
        ("null", "that no rank of this version has put"),
        ("digits", "that no rank of this version has put"),
        // All is well until the values of the second rank are compared.
        ("at once", "something else than all ranks gave"),
    ] {
        let error = error(lie);
        assert!(error.contains(why), "{lie}: {error}");
    }
    build(&["-DOLD"]);
    assert!(error("").contains("libpmix.so.2 has no PMIx_Fence_nb"), "{}", error(""));
    std::fs::write(folder.path().join("libpmix.so.2"), "no library").expect("a file");
    let missing = error("");
    assert!(missing.contains("cannot be loaded") && missing.contains("or set CCI_STORE"), "{missing}");
}

#[test]
fn ranks_of_open_mpi_meet_at_a_store() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let store = format!("CCI_STORE=127.0.0.1:{port}");
    if let Some(ended) = by("mpirun.openmpi", &["--oversubscribe", "-n", "4", "-x", &store], &[]) {
        all_know_all(&ended, 4, "by OMPI, CCI_STORE");
    }
}
