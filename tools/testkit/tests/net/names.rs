//! A name server that does not answer.

use crate::Ignored;
use cci_testkit::Peer;
use std::fs;
use std::panic::panic_any;
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// No call takes a twentieth of the 30 s that the lookup takes.
const LONG: Duration = Duration::from_millis(1500);

/// The connect ends at its time although the lookup goes on, and no call waits for the lookup.
pub(crate) fn silent() {
    let path = std::env::temp_dir().join(format!("cci-resolv-{}", std::process::id()));
    fs::write(&path, "nameserver 127.0.0.53\noptions timeout:30 attempts:1\n").expect("a file");
    let bind = format!("mount --bind {} /etc/resolv.conf", path.display());
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", &bind]).output().expect("unshare");
    if !tried.status.success() {
        let _ = fs::remove_file(&path);
        panic_any(Ignored(format!("no mount in a name space: {}", String::from_utf8_lossy(&tried.stderr).trim())));
    }
    let script = format!("{bind} && ip link set lo up && exec {PROGRAM} silent-name-server");
    let mut peer = Peer::spawn("unshare", "--mount", &["--net", "sh", "-c", &script]);
    let longest = peer.line();
    let _ = fs::remove_file(&path);
    let longest = Duration::from_micros(longest.parse().expect("a number"));
    assert!(longest < LONG, "a call took {longest:?}");
    say!("the longest call took {longest:?}");
}
