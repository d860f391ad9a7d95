//! A firewall that rejects for a moment.

use cci::{Attribute, EventKind};
use cci_conformance::World;
use cci_conformance::namespace::{Net, pair};
use std::time::{Duration, Instant};

/// How long the firewall rejects.
const MOMENT: Duration = Duration::from_secs(3);

fn reject(net: &Net) {
    net.rules(
        "add table ip r; add chain ip r in { type filter hook input priority 0; }; \
         add rule ip r in udp dport 1024-65535 counter reject",
    );
}

/// The peer's host says "unreachable" for a moment: what was sent meanwhile arrives, both ways, and
/// nothing ends.
pub(crate) fn heals() {
    let nets = pair(1500);
    let ends = [nets[0].endpoint("v0"), nets[1].endpoint("v1")];
    let world = World::new([&ends[0], &ends[1]]);
    let (there, back) = world.connect(0, 1, Attribute::ReliableOrdered);
    ends[0].send(there, b"before", 0).expect("a send");
    assert_eq!((world.sent(0), world.message(1)), (0, b"before".to_vec()));
    nets.iter().for_each(reject);
    for (end, connection) in ends.iter().zip([there, back]) {
        end.send(connection, b"meanwhile", 1).expect("a send");
    }
    let begun = Instant::now();
    while begun.elapsed() < MOMENT {
        world.step();
    }
    for (at, net) in nets.iter().enumerate() {
        assert!(net.counted("r", "in") > 2, "nothing was rejected");
        assert_eq!(world.waiting(at, EventKind::Send), 0, "it ended while its frames were rejected");
        net.rules("delete table ip r");
    }
    for at in [0, 1] {
        assert_eq!((world.sent(at), world.message(at)), (1, b"meanwhile".to_vec()));
    }
}
