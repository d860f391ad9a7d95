//! C programs as ranks of a parallel job.

use crate::prefix::{INSTALLED, command, finish, program, root, scratch, succeeds};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// `cci run` of a program.
fn job(ranks: u32, program: &Path) -> Command {
    let mut job = command(INSTALLED.cci());
    job.args(["run", "-n", &ranks.to_string()]).arg(program);
    job
}

#[test]
fn ranks_of_cci_run_call_each_other_by_name() {
    let dir = scratch();
    let ring = program(root().join("examples/c/job_ring.c"), dir.path());
    is_a_ring(job(4, &ring));
}

/// Two hosts with a cable between them, whose names end with the command.
const TWO_HOSTS: &str = "set -e
    mount -t tmpfs none /run
    mkdir /run/netns
    ip netns add a
    ip netns add b
    ip -n a link add v0 type veth peer name v1 netns b
    ip -n a addr add 10.0.0.1/24 dev v0
    ip -n b addr add 10.0.0.2/24 dev v1
    for end in 'a link set lo' 'a link set v0' 'b link set lo' 'b link set v1'; do ip -n $end up; done
    exec \"$@\"";

#[test]
fn ranks_of_two_hosts_call_each_other_by_name() {
    let inside = |program: &Path| {
        let mut inside = command(Path::new("unshare"));
        inside.args(["--map-root-user", "--net", "--mount", "sh", "-c", TWO_HOSTS, "sh"]).arg(program);
        inside
    };
    let can = inside(Path::new("true")).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "skipped: no network name spaces for this user: {can:?}");
        return;
    }
    let dir = scratch();
    let ring = program(root().join("examples/c/job_ring.c"), dir.path());
    let mut job = inside(INSTALLED.cci());
    job.args(["run", "-n", "4", "-H", "a:2,b:2", "--rsh", "ip netns exec"]).arg(ring);
    is_a_ring(job);
}

fn is_a_ring(mut job: Command) {
    let output = succeeds(&mut job, "job_ring");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let line = |rank: u32| format!("rank {rank} of 4 got the message of rank {}", (rank + 3) % 4);
    assert_eq!(lines, [0, 1, 2, 3].map(line));
}

#[test]
fn the_calls_of_a_job_do_what_they_say() {
    let dir = scratch();
    let program = program("job.c", dir.path());
    succeeds(job(2, &program).arg("cci run"), "job");
}

/// A rank whose store is at the port behind this one.
fn addressed(program: &Path, rank: u32, port: u16) -> Command {
    let mut rank_of = command(program);
    rank_of.env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
    rank_of.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    rank_of
}

/// The one before a port that was free a moment ago.
fn free_port() -> u16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.expect("a port").port() - 1
}

/// Without `cci run`: rank 0 serves the store.
#[test]
fn ranks_with_an_address_are_a_job_too() {
    let dir = scratch();
    let program = program("job.c", dir.path());
    let port = free_port();
    let ranks = [0, 1].map(|rank| addressed(&program, rank, port).arg("RANK, MASTER_ADDR").spawn().expect("it starts"));
    for (rank, child) in ranks.into_iter().enumerate() {
        finish(child, &format!("rank {rank}"));
    }
}

#[test]
fn a_rank_without_its_store_gives_up_at_its_limit() {
    let dir = scratch();
    let program = program("job.c", dir.path());
    succeeds(addressed(&program, 1, free_port()).arg("alone"), "alone");
}
