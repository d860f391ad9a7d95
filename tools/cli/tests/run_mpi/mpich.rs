//! MPICH by its own shared memory and its own networks.

use crate::command_line::{exact as text, lines};
use crate::{output, own, rsh, skipped};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// What is installed, without another try.
const WHEELS: [&str; 4] = ["--retries", "0", "mpich", "mpi4py"];

/// A Python that has MPICH and mpi4py, in an environment below the target directory that is made
/// once; nothing where they cannot be had in `PIP_SECONDS`, 60 when absent.
pub(crate) fn python() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(made).clone()
}

fn made() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi4py");
    let (python, stamp) = (folder.join("bin/python"), folder.join("installed"));
    if stamp.exists() {
        return Some(python);
    }
    let limit = std::env::var("PIP_SECONDS").unwrap_or_else(|_| "60".to_owned());
    let quiet = |command: &mut Command| {
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    };
    let is_there = quiet(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
        && quiet(Command::new("timeout").arg(limit).arg(&python).args(["-m", "pip", "install", "-q"]).args(WHEELS));
    if !is_there {
        skipped("no Python with mpich and mpi4py (python3 -m venv, and pip with a network); make mpi waits longer");
        return None;
    }
    std::fs::write(&stamp, "").expect("a file");
    Some(python)
}

/// Each rank greets, sends around a ring, and takes part in a sum; and looks a name up.
pub(crate) const PROGRAM: &str = r#"
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
here = world.Split_type(MPI.COMM_TYPE_SHARED).size
token = world.sendrecv(bytes([rank]) * 100_000, (rank + 1) % size, source=(rank - 1) % size)
assert token == bytes([(rank - 1) % size]) * 100_000
if rank == 0:
    MPI.Publish_name("a service", "port-7")
world.barrier()
assert MPI.Lookup_name("a service") == "port-7"
world.barrier()
print(f"{rank} of {size}, {here} here, {world.allreduce(rank)}, {world.Get_attr(MPI.APPNUM)}", flush=True)
"#;

/// Runs four ranks of a program of mpi4py.
fn mpich(python: &Path, options: &[&str], program: &str) -> Output {
    let python = python.to_str().expect("text");
    output(&mut own(&[options, &["-n", "4", python, "-c", program]].concat()))
}

#[test]
fn mpich_runs_by_its_own_shared_memory_and_by_its_network_between_hosts() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    for (options, here) in [(&[][..], 4), (&["-H", "there:2,localhost:2", "--rsh", &rsh], 2)] {
        let ended = mpich(&python, options, PROGRAM);
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        let expected = (0..4).map(|rank| format!("{rank} of 4, {here} here, 6, 0"));
        assert_eq!(lines(&ended.stdout), expected.collect::<Vec<_>>());
    }
    let abort =
        "from mpi4py import MPI; MPI.COMM_WORLD.rank == 2 and MPI.COMM_WORLD.Abort(9); MPI.COMM_WORLD.barrier()";
    let ended = mpich(&python, &[], abort);
    assert_eq!(ended.status.code(), Some(9), "{ended:?}");
    assert!(text(&ended.stderr).contains("rank 2 has aborted the job; the job ends with status 9"), "{ended:?}");
}

/// `make mpi` runs it.
#[test]
#[ignore = "64 interpreters of Python take a while"]
fn sixty_four_ranks_of_mpich_meet_by_shared_memory_and_by_a_network() {
    let Some(python) = python() else { return };
    let python = python.to_str().expect("text");
    // TCP by libfabric, and no shared memory of MPICH.
    let network = [("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp"), ("MPIR_CVAR_NOLOCAL", "1")];
    for (ranks, here, variables) in [(64, 64, &[][..]), (16, 1, &network)] {
        let mut job = own(&["-n", &ranks.to_string(), python, "-c", PROGRAM]);
        let ended = output(job.envs(variables.iter().copied()));
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        let sum = ranks * (ranks - 1) / 2;
        let mut expected: Vec<_> = (0..ranks).map(|rank| format!("{rank} of {ranks}, {here} here, {sum}, 0")).collect();
        expected.sort_unstable();
        assert_eq!(lines(&ended.stdout), expected);
    }
}
