//! Two routers between the ends, and a hop of 1,500 bytes in the middle of wider ones, from the
//! start or after a while.

use crate::namespace::Net;
use crate::traffic::{Areas, WRITTEN, everything as exchange, transfers};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, EventKind, Rma};
use cci_conformance::{World, pattern};

/// A header of IPv4, and one of UDP.
const OVERHEAD: u32 = 28;

/// Bytes of a write under way: a second's worth of the middle hop.
const LEN: usize = 24 << 20;

/// Sender, two routers, receiver; the hop in the middle has this MTU.
fn path(middle: u32) -> [Net; 4] {
    let nets = [Net::new(), Net::new(), Net::new(), Net::new()];
    nets[0].join(("v0", "10.0.0.1/24"), &nets[1], ("v1", "10.0.0.2/24"), 9000);
    nets[1].join(("m0", "10.0.1.1/24"), &nets[2], ("m1", "10.0.1.2/24"), middle);
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
    check(&path(1500));
}

/// What it says is lost.
pub(crate) fn untold() {
    let nets = path(1500);
    silence(&nets);
    check(&nets);
}

/// Nobody hears what a router says.
fn silence(nets: &[Net; 4]) {
    for net in nets {
        net.rules(
            "add table ip t; add chain ip t in { type filter hook input priority 0; }; add rule ip t in ip protocol icmp drop",
        );
    }
}

/// Frames are as large as the wide path carries and a write and messages are under way when the
/// middle hop becomes narrow.
fn shrinks(nets: &[Net; 4]) {
    nets[1].run(&["tc qdisc add dev m0 root tbf rate 200mbit burst 20000 latency 50ms"]);
    let ends = [nets[0].endpoint("v0"), nets[3].endpoint("w1")];
    let ends = [&ends[0], &ends[1]];
    let world = World::new(ends);
    let (here, there) = world.connect(0, 1, Attribute::ReliableOrdered);
    let mtu = || ends[0].report(here).expect("a report").mtu;
    let small = Areas::new(ends, 1 << 20);
    let wide = 9000 - OVERHEAD;
    for _ in 0..20 {
        if mtu() < wide {
            transfers(&world, ends, here, &small, 1);
        }
    }
    assert_eq!(mtu(), wide);
    let large = Areas::new(ends, LEN);
    let expected = pattern(3, LEN);
    large.fill(&expected);
    let [local, remote] = large.handles();
    let rma = Rma::new(local, remote, LEN as u64).message(WRITTEN);
    ends[0].rma(here, &rma, 100, Flags::WRITE).expect("a write");
    for (end, connection) in [(0, here), (1, there)] {
        for number in 0..20 {
            ends[end].send(connection, &pattern(number, 8000), number).expect("a send");
        }
    }
    for (router, end) in [(1, "m0"), (2, "m1")] {
        nets[router].run(&[&format!("ip link set {end} mtu 1500")]);
    }
    while world.poll(1) {}
    assert_eq!(world.waiting(1, EventKind::Recv), 0, "the write was over before the path shrank");
    assert_eq!(world.message(1), WRITTEN);
    for number in 0..20 {
        assert!([0, 1].iter().all(|end| world.message(*end) == pattern(number, 8000)), "message {number}");
    }
    assert_eq!(world.sent(0), 100);
    assert!((0..20).all(|number| world.sent(0) == number && world.sent(1) == number));
    assert!(large.written() == expected);
    assert!(mtu() <= 1500 - OVERHEAD, "frames of {} bytes", mtu());
}

/// The router says "too big".
pub(crate) fn shrinks_told() {
    shrinks(&path(9000));
}

/// What it says is lost.
pub(crate) fn shrinks_untold() {
    let nets = path(9000);
    silence(&nets);
    shrinks(&nets);
}
