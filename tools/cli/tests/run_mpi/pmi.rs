//! PMI as its clients see it, and what is said before an MPI starts.

use crate::command_line::{cci, exact as text, lines};
use crate::{installed, output, own, rsh};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

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
