//! Names of hosts: a name server that does not answer, a host with several addresses.

use crate::Ignored;
use cci::{Connect, EventKind};
use cci_conformance::namespace::pair;
use cci_conformance::{LIMIT, Peer, World, device_of, open};
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

/// A host has two addresses. At the first, which the system names first because it is nearer,
/// datagrams are dropped, and later nobody listens: each connect goes on at the second.
pub(crate) fn several_addresses() {
    let nets = pair(1500);
    nets[0].run(&["ip addr add 10.0.0.3/24 dev v0"]);
    let server = nets[0].endpoint("v0");
    let port = server.uri().strip_prefix("sock://10.0.0.1:").expect("the first address").to_owned();
    // One that listens there, and one that reaches out from the loop-back interface.
    let outward = nets[1].enter(|| open(&device_of("sock", &[("interface", "lo"), ("connect", "network")])));
    let clients = [nets[1].endpoint("v1"), outward];
    let hosts = "10.0.0.3 several\n10.0.0.1 several\n127.0.0.1 localhost\n";
    let entered = nets[1].enter_with_hosts(hosts, || {
        let world = World::new([&server, &clients[0], &clients[1]]);
        let connect = |at: usize| {
            clients[at - 1]
                .connect(&Connect::to(&format!("sock://several:{port}")).context(1).timeout(LIMIT))
                .expect("a connect");
            world.accept(0);
            let connected = world.next(at, EventKind::Connect);
            assert_eq!(connected.outcome(), Ok(()), "{:?}", connected.reason());
            let path = clients[at - 1].report(connected.connection().expect("one")).expect("open").path;
            assert!(path.contains("10.0.0.1:"), "{path}");
            assert_eq!(world.waiting(0, EventKind::ConnectRequest), 0, "one request of each connect");
        };
        nets[0].rules(
            "add table ip d; add chain ip d in { type filter hook input priority 0; }; \
             add rule ip d in ip daddr 10.0.0.3 counter drop",
        );
        [1, 2].into_iter().for_each(connect);
        assert!(nets[0].counted("d", "in") > 0, "nothing was dropped");
        nets[0].rules("delete table ip d");
        [1, 2].into_iter().for_each(connect);
    });
    entered.unwrap_or_else(|why| panic_any(Ignored(why)));
}
