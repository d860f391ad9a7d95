//! A NAT between client and server that forgets the client, and maps it anew to another port. The
//! connection is lost: the server is told why.

use cci::{Attribute, Connect, ConnectionOption, EndpointOptions, EventKind};
use cci_conformance::namespace::Net;
use cci_conformance::{LIMIT, World, device_of, open_with};
use std::time::{Duration, Instant};

/// How soon a send fails to which nobody answers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A client's network, a router that translates its addresses, and a server's network.
fn behind_a_nat() -> [Net; 3] {
    let nets = [Net::new(), Net::new(), Net::new()];
    nets[1].join(("c0", "10.1.0.1/24"), &nets[0], ("c1", "10.1.0.2/24"), 1500);
    nets[1].join(("s0", "10.0.0.1/24"), &nets[2], ("s1", "10.0.0.2/24"), 1500);
    nets[0].run(&["ip route add default via 10.1.0.1"]);
    nets[1].set("ip_forward", "1");
    nets[1].rules("add table ip n; add chain ip n out { type nat hook postrouting priority 100; }");
    // As long as a NAT remembers a flow.
    for name in ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"] {
        nets[1].set_if_there(&format!("/proc/sys/net/netfilter/{name}"), "1");
    }
    map_to(&nets[1], 6000);
    nets
}

/// New flows of the client come from this port of the router.
fn map_to(nat: &Net, port: u16) {
    nat.rules(&format!("flush chain ip n out; add rule ip n out oif s0 udp dport 5000 snat to 10.0.0.1:{port}"));
}

fn wait(world: &World<'_>, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        world.step();
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn maps_anew() {
    let nets = behind_a_nat();
    let with_disconnects = |options: &mut EndpointOptions| options.disconnect_events = true;
    let server =
        nets[2].enter(|| open_with(&device_of("sock", &[("ip", "10.0.0.2"), ("port", "5000")]), with_disconnects));
    let client = nets[0].enter(|| open_with(&device_of("sock", &[]), with_disconnects));
    nets[0].enter(|| {
        let world = World::new([&client, &server]);
        client
            .connect(&Connect::to(server.uri()).attribute(Attribute::ReliableOrdered).context(1).timeout(LIMIT))
            .expect("a connect");
        let back = world.accept(1);
        let there = world.next(0, EventKind::Connect).connection().expect("one");
        client.send(there, b"before", 1).expect("a send");
        assert_eq!((world.message(1), world.sent(0)), (b"before".to_vec(), 1));
        let path = server.report(back).expect("open").path;
        assert!(path.contains("10.0.0.1:6000"), "{path}");
        assert_eq!(server.report(back).expect("open").moved, None);
        map_to(&nets[1], 6001);
        // Until the flow is forgotten.
        wait(&world, Duration::from_secs(5));
        client.send(there, b"after", 2).expect("a send");
        world.until("frames from elsewhere", || server.report(back).expect("known").moved.is_some());
        let report = server.report(back).expect("known");
        let moved = report.moved.expect("just seen");
        assert!(
            moved.contains("came from sock://10.0.0.1:6001 and were dropped") && moved.contains("keepalive"),
            "{moved}"
        );
        assert!(report.why.ends_with(&moved), "{}", report.why);
        server.set_option(back, ConnectionOption::SendTimeout, TIMEOUT).expect("an option");
        server.send(back, b"to nobody", 3).expect("a send");
        let lost = world.next(1, EventKind::Disconnect);
        let reason = lost.reason().expect("a reason");
        assert!(reason.contains("came from sock://10.0.0.1:6001 and were dropped"), "{reason}");
    });
}
