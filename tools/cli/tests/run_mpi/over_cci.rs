//! MPICH over CCI, by its provider of libfabric.

use crate::command_line::{Running, UNSET, exact as text, lines};
use crate::mpich::{PROGRAM, python};
use crate::{installed, output, rsh};
use cci_conformance::namespace::{has, may_be_made, named, pair};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The command with its provider, as they are installed, and a Python with MPICH.
struct Installed {
    folder: TempDir,
    command: PathBuf,
    python: PathBuf,
}

impl Installed {
    fn new() -> Option<Self> {
        let python = python()?;
        let built = cci_conformance::build("cci-fabric-c", Path::new(env!("CARGO_TARGET_TMPDIR")));
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let command = installed(folder.path(), false);
        let provider = folder.path().join("lib/cci/fabric/libcci-fi.so");
        std::fs::copy(built.join("libcci_fi.so"), &provider).expect("the library is built");
        Some(Self { folder, command, python })
    }

    /// Has a command run so many ranks of a program.
    fn job<'a>(&self, job: &'a mut Command, options: &[&str], ranks: u32, program: &str) -> &'a mut Command {
        // What a job itself sets; and pieces of lines come at any time where Python writes them so.
        let others = ["FI_PROVIDER", "MPIR_CVAR_NOLOCAL", "CCI_LOG", "PYTHONUNBUFFERED"];
        for variable in others.into_iter().chain(UNSET) {
            job.env_remove(variable);
        }
        job.args(["run", "--mpi"]).args(options).args(["-n", &ranks.to_string()]);
        job.arg(&self.python).args(["-c", program]).stdin(Stdio::null())
    }

    fn run(&self, options: &[&str], ranks: u32, program: &str) -> Output {
        output(self.job(&mut Command::new(&self.command), options, ranks, program))
    }
}

/// The sorted lines of a job that has ended well.
fn said(ended: &Output) -> Vec<&str> {
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    lines(&ended.stdout)
}

#[test]
fn mpich_sends_over_cci() {
    let Some(installed) = Installed::new() else { return };
    let rsh = rsh(installed.folder.path());
    let program = format!("{PROGRAM}\nprint('libcci-fi.so' in open('/proc/self/maps').read(), flush=True)");
    for hosts in [&[][..], &["-H", "there:2,localhost:2", "--rsh", &rsh]] {
        let ended = installed.run(hosts, 4, &program);
        let greetings = (0..4).map(|rank| format!("{rank} of 4, 1 here, 6, 0"));
        assert_eq!(said(&ended), greetings.chain(vec!["True".to_owned(); 4]).collect::<Vec<_>>());
    }
}

/// What goes around a ring, of each kind of message: without bytes, eager, by rendezvous.
const RING: &str = r#"
from mpi4py import MPI
import os
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
for length in (0, 1, 1_000, 60_000, 1_000_000):
    for turn in range(4):
        token = world.sendrecv(bytes([rank + turn]) * length, (rank + 1) % size, source=(rank - 1) % size)
        assert token == bytes([(rank - 1) % size + turn]) * length
net = os.readlink("/proc/self/ns/net")
print(rank, len(set(world.allgather(net))), "libcci-fi.so" in open("/proc/self/maps").read(), flush=True)
"#;

#[test]
fn ranks_on_two_hosts_lose_nothing_by_a_loss_of_1_percent() {
    let Some(installed) = Installed::new() else { return };
    if !may_be_made() || !has("nft") {
        return;
    }
    let nets = pair(1500);
    for net in &nets {
        net.rules(
            "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
             add rule ip t in iifname \"v*\" numgen random mod 100 < 1 counter drop",
        );
    }
    let [near, _] = nets.each_ref();
    let ended = near.enter(|| {
        let hosts = ["-H", "a:2,b:2", "--rsh", "ip netns exec"];
        output(installed.job(named(nets.each_ref()).arg(&installed.command), &hosts, 4, RING))
    });
    assert_eq!(said(&ended), ["0 2 True", "1 2 True", "2 2 True", "3 2 True"]);
    assert!(nets.iter().any(|net| net.counted("t", "in") > 0), "frames were lost");
}

#[test]
fn threads_of_a_rank_send_at_once() {
    let Some(installed) = Installed::new() else { return };
    let program = r#"
import mpi4py
mpi4py.rc.thread_level = "multiple"
from mpi4py import MPI
import threading
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right = []
def work(thread):
    for turn in range(50):
        length = turn * 37 * (thread + 1) % 20_000
        to, of = (rank + 1) % size, (rank - 1) % size
        token = world.sendrecv(bytes([thread]) * length, to, sendtag=thread, source=of, recvtag=thread)
        assert token == bytes([thread]) * length
    right.append(thread)
threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(rank, MPI.Query_thread() == MPI.THREAD_MULTIPLE, sorted(right), flush=True)
"#;
    let ended = installed.run(&[], 2, program);
    assert_eq!(said(&ended), ["0 True [0, 1, 2, 3]", "1 True [0, 1, 2, 3]"]);
}

/// More ranks than processors, most of the time in waits for each other.
#[test]
fn eight_ranks_meet_in_barriers_and_sums() {
    let Some(installed) = Installed::new() else { return };
    let program = r#"
from mpi4py import MPI
world = MPI.COMM_WORLD
for turn in range(50):
    world.barrier()
    assert world.allreduce(world.rank + turn) == 28 + 8 * turn
    assert world.alltoall([world.rank] * 8) == list(range(8))
print(world.rank, flush=True)
"#;
    assert_eq!(said(&installed.run(&[], 8, program)), ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

/// Children have nothing of the library: those by `system`, by `subprocess`, and a fork that ends
/// through Python.
#[test]
fn a_rank_may_start_programs() {
    let Some(installed) = Installed::new() else { return };
    let program = r#"
from mpi4py import MPI
import os, subprocess, sys
world = MPI.COMM_WORLD
other = 1 - world.rank
for turn in range(3):
    assert world.sendrecv(b"x" * 100_000, other, source=other) == b"x" * 100_000
    assert os.system("exit 3") == 3 << 8
    assert subprocess.run(["sh", "-c", "ls /proc/self/fd"], capture_output=True, text=True).stdout.split() == list("0123")
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(world.rank, world.allreduce(1), flush=True)
"#;
    assert_eq!(said(&installed.run(&[], 2, program)), ["0 2", "1 2"]);
}

/// A rank that computes, or sleeps, owes nobody anything: what was sent to it meanwhile is there.
fn silence(seconds: u32) {
    let Some(installed) = Installed::new() else { return };
    let program = r#"
from mpi4py import MPI
import sys, time
world = MPI.COMM_WORLD
world.barrier()
sent = [world.isend(b"y" * length, 1 - world.rank, tag=length) for length in (1, 10_000, 3_000_000)]
if world.rank == 1:
    time.sleep(SECONDS)
for length in (3_000_000, 1, 10_000):
    assert world.recv(source=1 - world.rank, tag=length) == b"y" * length
MPI.Request.waitall(sent)
print(world.rank, flush=True)
"#;
    let program = &program.replace("SECONDS", &seconds.to_string());
    let lanes = ["sm", "sock", "tcp"].map(|lane| {
        let mut job = Command::new(&installed.command);
        installed.job(&mut job, &[], 2, program).env("CCI_CTP", lane).stdout(Stdio::piped()).stderr(Stdio::piped());
        (lane, job.spawn().expect("the command"))
    });
    for (lane, job) in lanes {
        assert_eq!(said(&job.wait_with_output().expect("its end")), ["0", "1"], "over {lane}");
    }
}

#[test]
fn a_rank_that_makes_no_call_gets_what_was_sent() {
    silence(1);
}

/// `make mpi` runs it.
#[test]
#[ignore = "ten minutes"]
fn a_rank_that_makes_no_call_for_ten_minutes_gets_what_was_sent() {
    silence(600);
}

/// A job that is stopped, each of its processes, goes on.
fn stop(pause: Duration) {
    let Some(installed) = Installed::new() else { return };
    let program = r#"
from mpi4py import MPI
import os
world = MPI.COMM_WORLD
other = 1 - world.rank
world.barrier()
print(os.getpid(), flush=True)
for turn in range(3_000):
    length = turn * 997 % 100_000
    assert world.sendrecv(b"z" * length, other, source=other) == b"z" * length
print("done", flush=True)
"#;
    let mut job = Command::new(&installed.command);
    let job = installed.job(&mut job, &[], 2, program).stdout(Stdio::piped()).spawn().expect("the command");
    let mut job = Running(job);
    let mut said = BufReader::new(job.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let mut rank = || said.next().and_then(|line| Pid::from_raw(line.parse().ok()?)).expect("the number of a process");
    let ranks = [rank(), rank()];
    ranks.iter().for_each(|rank| kill_process(*rank, Signal::STOP).expect("a rank"));
    // The pause is what is tested: nothing happens in it.
    std::thread::sleep(pause);
    ranks.iter().for_each(|rank| kill_process(*rank, Signal::CONT).expect("a rank"));
    assert_eq!(said.collect::<Vec<_>>(), ["done", "done"]);
    assert!(job.0.wait().expect("its end").success());
}

#[test]
fn a_job_that_is_stopped_goes_on() {
    stop(Duration::from_secs(2));
}

/// `make mpi` runs it.
#[test]
#[ignore = "five minutes"]
fn a_job_that_is_stopped_for_five_minutes_goes_on() {
    stop(Duration::from_secs(300));
}

/// Others wait for it at that time, in a receive of its message and in a barrier.
#[test]
fn a_rank_that_is_killed_ends_the_job() {
    let Some(installed) = Installed::new() else { return };
    let program = r#"
from mpi4py import MPI
import os, signal
world = MPI.COMM_WORLD
world.barrier()
if world.rank == 1:
    world.send(b"w" * 1_000_000, 0)
    os.kill(os.getpid(), signal.SIGKILL)
if world.rank == 0:
    world.recv(source=1)
    world.recv(source=1)
world.barrier()
"#;
    let ended = installed.run(&[], 3, program);
    assert_eq!(ended.status.code(), Some(128 + 9), "{ended:?}");
    assert!(text(&ended.stderr).contains("rank 1"), "{ended:?}");
}
