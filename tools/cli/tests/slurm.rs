//! Ranks that Slurm starts: a cluster of one node, this one, that lives as long as the test.

mod command_line;

use command_line::{Running, text as text_of};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longer than Slurm takes to begin on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A node belongs to one cluster at a time.
static ONE: Mutex<()> = Mutex::new(());

fn start(program: &str, arguments: &[&str], folder: &Path) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).env("SLURM_CONF", folder.join("slurm.conf"));
    Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a daemon"))
}

/// Ports that were free a moment ago.
fn free_ports() -> [u16; 3] {
    let free = || TcpListener::bind("127.0.0.1:0").expect("a port");
    [free(), free(), free()].map(|listener| listener.local_addr().expect("an address").port())
}

fn configuration(folder: &str, host: &str, ports: [u16; 3]) -> String {
    format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nAuthType=auth/munge\nAuthInfo=socket={folder}/socket\n\
         CredType=cred/munge\nSlurmUser=root\nSlurmdUser=root\nStateSaveLocation={folder}/state\n\
         SlurmdSpoolDir={folder}/spool\nSlurmctldPidFile={folder}/control.pid\nSlurmdPidFile={folder}/node.pid\n\
         SlurmctldPort={}\nSlurmdPort={}\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMpiDefault=none\n\
         NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
         PartitionName=all Nodes={host} Default=YES OverSubscribe=FORCE:8 State=UP\n",
        ports[0], ports[1]
    )
}

/// Why there can be no cluster here, if so.
fn lacks() -> Option<String> {
    // Without a configuration some say no version, and yet are there.
    let has = |program: &&str| {
        Command::new(program)
            .arg("-V")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    };
    let missing = ["munged", "slurmctld", "slurmd", "srun"].into_iter().find(|program| !has(program));
    match missing {
        Some(program) => Some(format!("there is no {program} (apt-get install slurmctld slurmd slurm-client munge)")),
        None => (!rustix::process::geteuid().is_root()).then(|| "slurmd needs the superuser".into()),
    }
}

/// The daemons of a cluster. They end before the folder of their files does.
struct Cluster {
    _node: Running,
    _control: Running,
    _authority: Running,
    folder: tempfile::TempDir,
    store: String,
    _one: MutexGuard<'static, ()>,
}

impl Cluster {
    /// A cluster whose node is idle; none, and the reason on standard error, where there can be
    /// none.
    fn start() -> Option<Self> {
        if let Some(why) = lacks() {
            // Without a standard error there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            return None;
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let temporary = tempfile::tempdir().expect("a folder");
        let (folder, ports) = (temporary.path(), free_ports());
        let uname = rustix::system::uname();
        let host = uname.nodename().to_str().expect("text").split('.').next().expect("a name");
        for name in ["state", "spool"] {
            std::fs::create_dir(folder.join(name)).expect("a folder");
        }
        let text = configuration(&folder.display().to_string(), host, ports);
        std::fs::write(folder.join("slurm.conf"), text).expect("a configuration");
        let authority = authority(folder);
        until("munged listens", || folder.join("socket").exists());
        let control = start("slurmctld", &["-D"], folder);
        let node = start("slurmd", &["-D"], folder);
        let store = format!("127.0.0.1:{}", ports[2]);
        let cluster =
            Self { _node: node, _control: control, _authority: authority, folder: temporary, store, _one: one };
        until("the node is idle", || {
            let asked = cluster.command("sinfo").args(["--noheader", "--format=%T"]).output().expect("sinfo");
            text_of(&asked.stdout).trim() == "idle"
        });
        Some(cluster)
    }

    /// A command of Slurm, as a user without a job gives it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).stdin(Stdio::null());
        for variable in ["CCI_JOB_FD", "CCI_STORE", "CCI_SECRET_FILE", "CCI_LISTEN"] {
            command.env_remove(variable);
        }
        command
    }

    /// Gives a script to the queue; the number of its job, and the file of what it prints.
    fn submit(&self, script: &str) -> (String, std::path::PathBuf) {
        let (file, printed) = (self.folder.path().join("script"), self.folder.path().join("printed"));
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a script");
        let mut batch = self.command("sbatch");
        batch.args(["--parsable", "--overcommit", "-n", "3", "-o"]).arg(&printed).arg(&file);
        let ended = batch.env("CCI", CCI).output().expect("sbatch");
        assert!(ended.status.success(), "{}", text_of(&ended.stderr));
        (text_of(&ended.stdout).trim().to_owned(), printed)
    }

    fn cancel(&self, job: &str) {
        let ended = self.command("scancel").arg(job).output().expect("scancel");
        assert!(ended.status.success(), "{}", text_of(&ended.stderr));
    }

    /// Waits until no job is in the queue: also none that is about to end.
    fn wait_for_an_empty_queue(&self) {
        until("the queue is empty", || {
            let asked: Output = self.command("squeue").arg("--noheader").output().expect("squeue");
            asked.status.success() && asked.stdout.is_empty()
        });
    }
}

/// The command that this test is about.
const CCI: &str = env!("CARGO_BIN_EXE_cci");

/// The daemon that vouches for users, with a key of its own.
fn authority(folder: &Path) -> Running {
    let path = |name: &str| format!("{}/{name}", folder.display());
    std::fs::write(path("key"), [7; 64]).expect("a key");
    let restricted = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path("key"), restricted).expect("a mode");
    let files =
        [("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")];
    let munge: Vec<String> = files.iter().map(|(option, name)| format!("--{option}={}", path(name))).collect();
    let munge: Vec<&str> = ["--foreground", "--force"].into_iter().chain(munge.iter().map(String::as_str)).collect();
    start("munged", &munge, folder)
}

/// Processes that have this argument.
fn processes_with(argument: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    };
    pids.filter(has).collect()
}

#[test]
fn ranks_of_slurm_speak_pmi_and_pmix_and_meet_at_a_store() {
    let Some(cluster) = Cluster::start() else { return };
    for (plugin, variable, source) in [
        ("pmi2", ("CCI_PMI", "1"), "by PMI-1,"),
        ("pmi2", ("CCI_PMI", "2"), "by PMI-2,"),
        ("pmix", ("CCI_PMI", ""), "by PMIx,"),
        ("none", ("CCI_STORE", cluster.store.as_str()), "by Slurm, CCI_STORE,"),
    ] {
        let mut job = cluster.command("srun");
        job.args(["--overcommit", "-n", "3", &format!("--mpi={plugin}"), CCI, "job", "--rounds", "2"]);
        let ended = job.env(variable.0, variable.1).output().expect("srun");
        assert!(ended.status.success(), "{plugin}: {}", text_of(&ended.stderr));
        let said = text_of(&ended.stdout);
        let are_right = said.lines().all(|line| line.contains(source) && line.contains("of 3 on this host"));
        assert!(are_right && said.lines().count() == 3, "{plugin}: {said}");
    }
}

/// Without an interface of Slurm's ranks have nowhere to meet.
#[test]
fn ranks_of_slurm_that_cannot_meet_name_the_option() {
    let Some(cluster) = Cluster::start() else { return };
    let ended = cluster.command("srun").args(["--overcommit", "-n", "2", CCI, "job"]).output().expect("srun");
    let why = text_of(&ended.stderr);
    assert!(!ended.status.success() && why.contains("`srun --mpi=pmix`"), "{why}");
}

/// Inside of an allocation the script itself has Slurm's variables, and is no rank.
#[test]
fn a_script_of_slurm_starts_ranks_by_srun_and_by_cci_run() {
    let Some(cluster) = Cluster::start() else { return };
    let script = "srun --overcommit -n 3 --mpi=pmi2 \"$CCI\" job --rounds 2 && \"$CCI\" run -n 4 \"$CCI\" job --rounds 2\n\
                  echo \"status $?\"";
    let (_, printed) = cluster.submit(script);
    cluster.wait_for_an_empty_queue();
    let said = std::fs::read_to_string(printed).expect("what it printed");
    let lines_with = |words: &str| said.lines().filter(|line| line.contains(words)).count();
    assert_eq!(lines_with("of 3, "), 3, "{said}");
    assert_eq!(lines_with("of 3 on this host"), 3, "{said}");
    assert_eq!(lines_with("by cci run,"), 4, "{said}");
    assert_eq!(lines_with("status 0"), 1, "{said}");
}

#[test]
fn a_cancelled_job_of_slurm_leaves_no_process() {
    let Some(cluster) = Cluster::start() else { return };
    // More rounds than a day has time for; each number is an argument that no other process has.
    let base = 4_000_000_000 + u64::from(std::process::id()) * 4;
    for (at, starter) in ["srun --overcommit -n 3 --mpi=pmi2", "\"$CCI\" run -n 3"].iter().enumerate() {
        let rounds = (base + u64::try_from(at).expect("small")).to_string();
        let (job, printed) = cluster.submit(&format!("{starter} \"$CCI\" job --rounds {rounds}"));
        until("the ranks run", || processes_with(&rounds).len() >= 4);
        cluster.cancel(&job);
        cluster.wait_for_an_empty_queue();
        let left = || processes_with(&rounds);
        until("no process is left", || left().is_empty());
        assert!(printed.exists(), "{starter}");
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONG, "not within {LONG:?}: {what}");
        // Nothing tells when it is.
        std::thread::sleep(Duration::from_millis(20));
    }
}
