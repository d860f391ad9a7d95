//! Processes that see no `/proc`: a name space of mounts where something else lies there.

use cci_conformance::Peer;
use cci_conformance::namespace::Net;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

fn without_proc(role: &str) -> Peer {
    let script = format!("mount -t tmpfs none /proc && exec env -u CCI_TEST_PARENT {PROGRAM} {role}");
    Peer::spawn("unshare", "--mount", &["sh", "-c", &script])
}

/// The default device opens, and two processes of one host find each other by every way.
pub(crate) fn opens_and_connects() {
    // A peer dies with the thread that started it.
    Net::new().enter(|| {
        let opened = without_proc("open-default").line();
        assert!(opened.starts_with("cci://"), "{opened}");
        for (ways, path) in [("sm,sock,tcp", "sm:"), ("sock", "sock:"), ("tcp", "tcp:")] {
            let mut server = without_proc(&format!("echo-over-ways {ways}"));
            let uri = server.line();
            let met = without_proc(&format!("meet-over-ways {ways} {uri}")).line();
            assert!(met.starts_with(path), "{ways}: {met}");
        }
    });
}
