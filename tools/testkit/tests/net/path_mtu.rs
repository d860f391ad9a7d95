//! Two routers between the ends, and a hop of 1,500 bytes in the middle of wider ones.

use crate::namespace::Net;
use crate::traffic::everything as exchange;

/// A header of IPv4, and one of UDP.
const OVERHEAD: u32 = 28;

/// Sender, two routers, receiver.
fn path() -> [Net; 4] {
    let nets = [Net::new(), Net::new(), Net::new(), Net::new()];
    nets[0].join(("v0", "10.0.0.1/24"), &nets[1], ("v1", "10.0.0.2/24"), 9000);
    nets[1].join(("m0", "10.0.1.1/24"), &nets[2], ("m1", "10.0.1.2/24"), 1500);
    nets[2].join(("w0", "10.0.2.1/24"), &nets[3], ("w1", "10.0.2.2/24"), 9000);
    nets[0].run(&["ip route add default via 10.0.0.2"]);
    nets[1..3].iter().for_each(|router| router.set("ip_forward", "1"));
    nets[1].run(&["ip route add default via 10.0.1.2"]);
    nets[2].run(&["ip route add default via 10.0.1.1"]);
    nets[3].run(&["ip route add default via 10.0.2.1"]);
    nets
}

/// Everything arrives, and frames grow to what the narrowest hop carries, not beyond.
fn check(nets: &[Net; 4]) {
    let ends = [nets[0].endpoint("v0"), nets[3].endpoint("w1")];
    let largest = exchange([&ends[0], &ends[1]], 200, 1 << 20, 4);
    assert!((1400..=1500 - OVERHEAD).contains(&largest), "frames of {largest} bytes, where 1472 pass");
}

/// The router says "too big".
pub(crate) fn told() {
    check(&path());
}

/// What it says is lost.
pub(crate) fn untold() {
    let nets = path();
    for net in &nets {
        net.rules(
            "add table ip t; add chain ip t in { type filter hook input priority 0; }; add rule ip t in ip protocol icmp drop",
        );
    }
    check(&nets);
}
