//! `cci run --mpi` and `cci mpi-env`: PMI as its clients see it, and MPICH where it can be had.

mod command_line;

use command_line::{cci, exact as text, lines};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A job of an MPI with a network of its own.
fn own(arguments: &[&str]) -> Command {
    let mut command = cci(&["run", "--mpi=own"]);
    for variable in ["CCI_MPI_TRACE", "CCI_PMI", "FI_PROVIDER"] {
        command.env_remove(variable);
    }
    command.args(arguments);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the command")
}

/// Tells people why a test does less here.
fn skipped(why: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A command that stands for `ssh`: it forgets the host and runs the rest here.
fn rsh(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("rsh");
    std::fs::write(&path, "#!/bin/sh\nshift; exec \"$@\"\n").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path.to_str().expect("text").to_owned()
}

/// `cci job` is a client of PMI where it does not see that it was started by `cci run`.
const CLIENT: [&str; 4] = ["env", "-u", "CCI_JOB_FD", env!("CARGO_BIN_EXE_cci")];

#[test]
fn ranks_are_served_both_versions_of_pmi_here_and_on_other_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    for hosts in [&[][..], &["-H", "there:2,localhost:1,elsewhere:2", "--rsh", &rsh]] {
        for version in ["1", "2"] {
            let arguments = [hosts, &["-n", "5"], &CLIENT, &["job", "--exchanges", "3"]].concat();
            let ended = output(own(&arguments).env("CCI_PMI", version));
            assert!(ended.status.success(), "{}", text(&ended.stderr));
            let lines = lines(&ended.stdout);
            let is_right = |line: &&str| line.contains("of 5") && line.contains(&format!("by PMI-{version}"));
            assert!(lines.len() == 5 && lines.iter().all(is_right), "{lines:?}");
        }
    }
}

#[test]
fn the_job_of_cci_stays_beside_that_of_the_mpi() {
    let ended = output(&mut own(&["-n", "3", env!("CARGO_BIN_EXE_cci"), "job", "--exchanges", "2", "--rounds", "1"]));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let lines = lines(&ended.stdout);
    assert!(lines.len() == 3 && lines.iter().all(|line| line.contains("by cci run, authenticated")), "{lines:?}");
}

/// What ranks find, and what is left of another launcher's.
#[test]
fn ranks_have_the_variables_of_pmi_and_none_of_another_launcher() {
    let script =
        "echo $PMI_RANK $PMI_ID $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS [$PMIX_RANK$PMI_PORT]; : >&$PMI_FD";
    let mut job = own(&["-n", "2", "bash", "-c", script]);
    let ended = output(job.envs([("PMIX_RANK", "7"), ("PMI_PORT", "other:1"), ("PMI_RANK", "9")]));
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(0), ""));
    assert_eq!(lines(&ended.stdout), ["0 0 2 0 2 []", "1 1 2 1 2 []"]);
    let mut plain = cci(&["run", "-n", "1", "sh", "-c", "echo [$PMI_FD$PMI_SIZE]"]);
    assert_eq!(text(&output(plain.env_remove("PMI_SIZE")).stdout), "[]\n", "without --mpi there is none");
}

/// Runs this script of bash in three ranks; it begins with functions that send a line and take one.
fn three(hosts: &[&str], script: &str) -> Output {
    let functions = r#"
        ask() { printf '%s\n' "$*" >&$PMI_FD; }
        get() { read -r line <&$PMI_FD; }
        ask cmd=init pmi_version=1 pmi_subversion=1; get
    "#;
    let begin = Instant::now();
    let ended = output(&mut own(&[hosts, &["-n", "3", "bash", "-c", &format!("{functions}{script}")]].concat()));
    assert!(begin.elapsed() < LONG, "{ended:?}");
    ended
}

#[test]
fn an_abort_ends_the_job_with_its_status() {
    let folder = tempfile::tempdir().expect("a folder");
    let rsh = rsh(folder.path());
    let abort =
        r#"[ $PMI_RANK = 1 ] && { ask cmd=abort exitcode=7 message=no more; exit 7; }; ask cmd=barrier_in; get"#;
    let why =
        |place: &str| format!("cci run: rank 1{place} has aborted the job: no more; the job ends with status 7\n");
    let here = three(&[], abort);
    assert_eq!((here.status.code(), text(&here.stderr)), (Some(7), &*why("")));
    let there = three(&["-H", "localhost,there", "--rsh", &rsh], abort);
    let clear = text(&there.stderr).strip_prefix("cci run: --mpi=own: the network of the MPI does not seal");
    assert_eq!(there.status.code(), Some(7));
    assert!(clear.expect("a warning").ends_with(&why(" on there")), "{there:?}");
}

#[test]
fn a_rank_that_ends_before_a_barrier_ends_the_barrier() {
    for leave in ["exit 0", "exec {PMI_FD}>&-; exec sleep 1000"] {
        let script = format!(
            "[ $PMI_RANK = 2 ] && {{ {leave}; }}; ask cmd=barrier_in; get; echo $line; \
             ask cmd=abort exitcode=5; exec sleep 1000"
        );
        let ended = three(&[], &script);
        let why = "rank 2 will not come to a barrier of MPI, which fails: it has ended, or has closed its connection";
        assert_eq!(ended.status.code(), Some(5), "{ended:?}");
        assert!(text(&ended.stderr).contains(why), "{ended:?}");
        assert!(lines(&ended.stdout).iter().all(|line| line.starts_with("cmd=barrier_out rc=1 msg=rank_2_")));
    }
}

#[test]
fn a_rank_that_is_killed_in_a_barrier_ends_the_job_with_its_own_words_alone() {
    // A process that it leaves behind has its connection.
    let script = "[ $PMI_RANK = 1 ] && { ask cmd=barrier_in; sleep 1000 & kill -9 $$; }; ask cmd=barrier_in; get";
    let ended = three(&[], script);
    assert_eq!(ended.status.code(), Some(137));
    let why = "cci run: rank 1 was killed by signal 9 (SIGKILL); the job ends with status 137\n";
    assert_eq!(text(&ended.stderr), why);
}

#[test]
fn a_rank_that_floods_or_lies_harms_itself_alone() {
    let flood = "[ $PMI_RANK = 0 ] && { yes cmd=get_maxes | head -c 3000000 >&$PMI_FD; exec sleep 1000; }";
    for (wrong, why) in [
        ("yes | head -c 100 >&$PMI_FD", "what is no command of PMI"),
        ("head -c 70000 /dev/zero >&$PMI_FD", "a command longer than 65536 bytes"),
        (flood, ""),
    ] {
        let script = format!(
            "[ $PMI_RANK = 0 ] && {{ {wrong}; exec sleep 1000; }}; ask cmd=get_universe_size; get; echo $line; \
             [ $PMI_RANK = 1 ] && exec sleep 1000; ask cmd=publish_name service=s port=p; get; ask cmd=abort exitcode=3"
        );
        let ended = three(&[], &format!("{script}; exec sleep 1000"));
        assert_eq!(ended.status.code(), Some(3), "{wrong}: {ended:?}");
        assert!(lines(&ended.stdout).contains(&"cmd=universe_size rc=0 size=3"), "{wrong}: {ended:?}");
        if !why.is_empty() && text(&ended.stderr).contains("is closed") {
            let closed = format!("cci run: the PMI connection of rank 0 is closed: {why}\n");
            assert!(text(&ended.stderr).contains(&closed), "{ended:?}");
        }
    }
}

#[test]
fn each_line_of_both_sides_is_traced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let script = "printf 'cmd=init pmi_version=1 pmi_subversion=1\\n' >&$PMI_FD; read -r line <&$PMI_FD";
    let ended = output(own(&["-n", "1", "bash", "-c", script]).env("CCI_MPI_TRACE", &file));
    assert!(ended.status.success(), "{ended:?}");
    let expected = "0 asks cmd=init pmi_version=1 pmi_subversion=1\n\
                    0 gets cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    assert_eq!(std::fs::read_to_string(&file).expect("a trace"), expected);
    let refused = output(own(&["-n", "1", "true"]).env("CCI_MPI_TRACE", folder.path()));
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("set CCI_MPI_TRACE to a file"), "{refused:?}");
    let full = output(own(&["-n", "1", "bash", "-c", script]).env("CCI_MPI_TRACE", "/dev/full"));
    assert_eq!(full.status.code(), Some(0), "{full:?}");
    assert!(text(&full.stderr).contains("the job goes on without it"), "{full:?}");
}

/// The command as it is installed, with or without a provider beside it.
fn installed(folder: &Path, has_provider: bool) -> PathBuf {
    let (bin, fabric) = (folder.join("bin"), folder.join("lib/cci/fabric"));
    let command = bin.join("cci");
    std::fs::create_dir_all(&bin).expect("a folder");
    std::fs::create_dir_all(&fabric).expect("a folder");
    if !command.exists() {
        std::fs::hard_link(env!("CARGO_BIN_EXE_cci"), &command).expect("one file system");
    }
    if has_provider {
        std::fs::write(fabric.join("libcci-fi.so"), "").expect("a file");
    }
    command
}

#[test]
fn the_network_of_cci_needs_its_provider() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let command = |has_provider, arguments: &[&str]| {
        let mut command = Command::new(installed(folder.path(), has_provider));
        command.args(arguments).env_remove("FI_PROVIDER").env_remove("MPIR_CVAR_NOLOCAL").stdin(Stdio::null());
        command
    };
    let fabric = folder.path().join("lib/cci/fabric").display().to_string();
    let refused = output(&mut command(false, &["run", "--mpi", "-n", "2", "echo", "started"]));
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
    let why = format!("there is no libcci-fi.so in {fabric}; write --mpi=own to use the network of the MPI.\n");
    assert_eq!(text(&refused.stderr), format!("cci: this build has no provider of libfabric: {why}"));
    let refused = output(&mut command(false, &["mpi-env", "--mpi", "mpich"]));
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
    let script = "echo $FI_PROVIDER $MPIR_CVAR_CH4_NETMOD $MPIR_CVAR_NOLOCAL";
    let run = ["run", "--mpi", "-v", "-n", "1", "/bin/sh", "-c", script];
    let ended = output(&mut command(true, &run));
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(0), "cci ofi 1\n"), "{ended:?}");
    assert!(
        text(&ended.stderr).starts_with(&format!("cci run: FI_PROVIDER_PATH={fabric}\ncci run: FI_PROVIDER=cci\n"))
    );
    let ended = output(command(true, &run).env("MPIR_CVAR_NOLOCAL", "0"));
    assert_eq!(text(&ended.stdout), "cci ofi 0\n", "what a user sets for the ranks of a host stays");
    let refused = output(command(true, &run).env("FI_PROVIDER", "tcp"));
    assert_eq!(text(&refused.stderr), "cci: FI_PROVIDER is 'tcp'; unset it, or write --mpi=own.\n");
    let lines = output(&mut command(true, &["mpi-env", "--mpi", "mpich"]));
    let expected = "export FI_PROVIDER=cci\nexport MPIR_CVAR_CH4_NETMOD=ofi\nexport MPIR_CVAR_NOLOCAL=1\n";
    assert_eq!(text(&lines.stdout), format!("export FI_PROVIDER_PATH={fabric}\n{expected}"));
}

#[test]
fn an_mpi_that_cannot_be_started_is_named_with_the_remedy() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let library = |name: &str| {
        let path = folder.path().join("lib").join(name);
        std::fs::create_dir_all(folder.path().join("lib")).expect("a folder");
        let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(&path);
        assert!(cc.status().expect("a C compiler").success());
        path
    };
    let cci = installed(folder.path(), true);
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(&cci);
        command.args(arguments).env("LD_LIBRARY_PATH", folder.path().join("lib")).env_remove("FI_PROVIDER");
        let ended = output(command.stdin(Stdio::null()));
        assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(1), ""), "{ended:?}");
        text(&ended.stderr).to_owned()
    };
    let path = library("libmpich.so.12");
    let why = "is MPICH built without libfabric, which cannot load CCI; install one that has it: pip install mpich.\n";
    for arguments in [&["run", "--mpi", "-n", "1", "true"][..], &["mpi-env", "true"]] {
        assert_eq!(refused(arguments), format!("cci: {} {why}", path.display()));
    }
    std::fs::remove_file(path).expect("a file");
    let path = library("libmpi.so.40");
    for network in ["--mpi", "--mpi=own"] {
        let why = "is Open MPI, which its own mpirun starts; start it by that, or install MPICH: pip install mpich.\n";
        assert_eq!(refused(&["run", network, "-n", "1", "true"]), format!("cci: {} {why}", path.display()));
    }
}

/// What is installed, without another try.
const WHEELS: [&str; 4] = ["--retries", "0", "mpich", "mpi4py"];

/// A Python that has MPICH and mpi4py, in an environment below the target directory that is made
/// once; nothing where they cannot be had in so many seconds.
fn python(limit: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi4py");
    let (python, stamp) = (folder.join("bin/python"), folder.join("installed"));
    if stamp.exists() {
        return Some(python);
    }
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
const PROGRAM: &str = r#"
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
    let Some(python) = python("15") else { return };
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

#[test]
fn mpich_sends_over_cci() {
    let Some(python) = python("15") else { return };
    let built = cci_conformance::build("cci-fabric-c", Path::new(env!("CARGO_TARGET_TMPDIR")));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let command = installed(folder.path(), false);
    let provider = folder.path().join("lib/cci/fabric/libcci-fi.so");
    std::fs::copy(built.join("libcci_fi.so"), &provider).expect("the library is built");
    let (rsh, python) = (rsh(folder.path()), python.to_str().expect("text"));
    let program = format!("{PROGRAM}\nprint('libcci-fi.so' in open('/proc/self/maps').read(), flush=True)");
    for hosts in [&[][..], &["-H", "there:2,localhost:2", "--rsh", &rsh]] {
        let mut job = Command::new(&command);
        for variable in ["FI_PROVIDER", "MPIR_CVAR_NOLOCAL", "CCI_LOG"] {
            job.env_remove(variable);
        }
        job.args(["run", "--mpi"]).args(hosts).args(["-n", "4", python, "-c", &program]).stdin(Stdio::null());
        let ended = output(&mut job);
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        let mut lines = lines(&ended.stdout);
        lines.sort_unstable();
        let greetings = (0..4).map(|rank| format!("{rank} of 4, 1 here, 6, 0"));
        assert_eq!(lines, greetings.chain(vec!["True".to_owned(); 4]).collect::<Vec<_>>());
    }
}

/// `make mpi` runs it.
#[test]
#[ignore = "64 interpreters of Python take a while"]
fn sixty_four_ranks_of_mpich_meet_by_shared_memory_and_by_a_network() {
    let Some(python) = python("600") else { return };
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
