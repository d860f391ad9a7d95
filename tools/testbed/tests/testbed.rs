//! The test bed of `cci model`, in short, and interrupted.

#![forbid(unsafe_code)]

use cci_conformance::build;
use cci_conformance::namespace::{has, may_be_made};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A folder that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(what: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cci-testbed-{what}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in a folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One test bed at a time, since what one does disturbs what another measures. `None`: there can be
/// none here.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    (has("ip") && may_be_made()).then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The test bed in a process group of its own, by which all that it starts is known.
fn bed(out: &Folder) -> Command {
    let mut bed = Command::new(env!("CARGO_BIN_EXE_cci-testbed"));
    let command = build("cci-cli", Path::new(env!("CARGO_TARGET_TMPDIR"))).join("cci");
    bed.args(["--rounds", "1", "--time", "20ms", "--cci"]).arg(command).arg("--out").arg(&out.0).process_group(0);
    bed
}

/// Processes of this group that run.
fn running(group: u32) -> usize {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let stats = processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    // The name, which may hold anything, ends with the last parenthesis; state, parent and group
    // follow.
    let is_running = |stat: &String| {
        let mut words = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        words.next().is_some_and(|state| state != "Z") && words.nth(1) == Some(group.to_string().as_str())
    };
    stats.filter(is_running).count()
}

/// Runs of the test bed of which one has to reach the bar: one round of a machine that does other
/// things may be disturbed.
const TRIES: usize = 3;

#[test]
fn the_test_bed_measures_and_validates() {
    let Some(_alone) = alone() else { return };
    let out = Folder::new("whole");
    let mut tables = (0..TRIES).map(|_| {
        let output = bed(&out).output().expect("the test bed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    // Windows of SCI are predicted as well as messages are, but for two points.
    let reached = tables.find(|table| table.contains("points more: reached"));
    let table = reached.expect("in no run the paths left out are predicted over windows as they are by messages");
    for text in ["2 o_0 - l_f", "ring:4 0-2", "torus:2x4 0-5", "Median error", "over mirror windows of SCI"] {
        assert!(table.contains(text), "{text} is not in {table}");
    }
    let document = fs::read_to_string(out.0.join("torus-4x4-0-10.1.json")).expect("a document");
    assert!(document.contains("\"name\": \"torus:4x4 0-10\""), "{document}");
    let document = fs::read_to_string(out.0.join("torus-4x4-0-10.windows.1.json")).expect("a document");
    assert!(document.contains("\"window\": \"mirror\""), "{document}");
}

/// Killed in the middle of it, it leaves no process behind, and with the processes the name spaces
/// end.
#[test]
fn the_test_bed_leaves_nothing_when_killed() {
    let Some(_alone) = alone() else { return };
    let out = Folder::new("killed");
    let mut child = bed(&out).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the test bed");
    let group = child.id();
    let mut lines = BufReader::new(child.stderr.take().expect("what it says")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.starts_with("round 1"))), "it measures");
    let deadline = Instant::now() + Duration::from_secs(30);
    while running(group) < 2 {
        assert!(Instant::now() < deadline, "the test bed and a server do not run");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killing it");
    child.wait().expect("its end");
    while running(group) > 0 {
        assert!(Instant::now() < deadline, "{} processes still run", running(group));
        std::thread::sleep(Duration::from_millis(5));
    }
}
