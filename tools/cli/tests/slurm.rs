//! Ranks that Slurm starts: a cluster of one node, this one, that lives as long as the test.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than Slurm takes to begin on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A daemon, ended with this value.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &str, arguments: &[&str], folder: &Path) -> Daemon {
    let mut command = Command::new(program);
    command.args(arguments).env("SLURM_CONF", folder.join("slurm.conf"));
    Daemon(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a daemon"))
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

#[test]
fn ranks_of_slurm_speak_pmi_and_pmix_and_meet_at_a_store() {
    if let Some(why) = lacks() {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
        return;
    }
    let temporary = tempfile::tempdir().expect("a folder");
    let (folder, ports) = (temporary.path(), free_ports());
    let path = |name: &str| format!("{}/{name}", folder.display());
    let host = rustix::system::uname().nodename().to_str().expect("text").split('.').next().expect("a name").to_owned();
    for name in ["state", "spool"] {
        std::fs::create_dir(path(name)).expect("a folder");
    }
    let text = configuration(&folder.display().to_string(), &host, ports);
    std::fs::write(path("slurm.conf"), text).expect("a configuration");
    std::fs::write(path("key"), [7; 64]).expect("a key");
    let restricted = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path("key"), restricted).expect("a mode");
    let files =
        [("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")];
    let munge: Vec<String> = files.iter().map(|(option, name)| format!("--{option}={}", path(name))).collect();
    let munge: Vec<&str> = ["--foreground", "--force"].into_iter().chain(munge.iter().map(String::as_str)).collect();
    let _authority = start("munged", &munge, folder);
    let slurm = |program: &str| {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", path("slurm.conf")).stdin(Stdio::null());
        command
    };
    until("munged listens", || Path::new(&path("socket")).exists());
    let _control = start("slurmctld", &["-D"], folder);
    let _node = start("slurmd", &["-D"], folder);
    until("the node is idle", || {
        let asked = slurm("sinfo").args(["--noheader", "--format=%T"]).output().expect("sinfo");
        String::from_utf8_lossy(&asked.stdout).trim() == "idle"
    });
    let store = format!("127.0.0.1:{}", ports[2]);
    for (plugin, variable, source) in [
        ("pmi2", ("CCI_PMI", "1"), "by PMI-1,"),
        ("pmi2", ("CCI_PMI", "2"), "by PMI-2,"),
        ("pmix", ("CCI_PMI", ""), "by PMIx,"),
        ("none", ("CCI_STORE", &store), "by Slurm, CCI_STORE,"),
    ] {
        let mut job = slurm("srun");
        job.args(["--overcommit", "-n", "3", &format!("--mpi={plugin}"), env!("CARGO_BIN_EXE_cci"), "job"]);
        for variable in ["CCI_JOB_FD", "CCI_STORE", "CCI_SECRET_FILE", "CCI_LISTEN"] {
            job.env_remove(variable);
        }
        let ended = job.args(["--rounds", "2"]).env(variable.0, variable.1).output().expect("srun");
        assert!(ended.status.success(), "{plugin}: {}", String::from_utf8_lossy(&ended.stderr));
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        let are_right = said.lines().all(|line| line.contains(source) && line.contains("of 3 on this host"));
        assert!(are_right && said.lines().count() == 3, "{plugin}: {said}");
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
