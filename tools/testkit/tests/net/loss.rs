//! Frames that vanish, come twice, or come late.

use crate::namespace::{Net, pair};
use crate::traffic::everything as exchange;

fn lose(net: &Net, percent: u32) {
    net.rules(&format!(
        "add table ip t; add chain ip t in {{ type filter hook input priority 0; }}; \
         add rule ip t in udp dport 1024-65535 numgen random mod 100 < {percent} counter drop"
    ));
}

/// Messages and transfers between both, and then the rules of these chains must have been applied,
/// in either direction.
fn play(nets: &[Net; 2], chains: &[(&str, &str)]) {
    let ends = [nets[0].endpoint("v0"), nets[1].endpoint("v1")];
    exchange([&ends[0], &ends[1]], 500, 1 << 20, 2);
    for (table, chain) in chains {
        let counts = nets.each_ref().map(|net| net.counted(table, chain));
        assert!(counts.iter().all(|count| *count > 0), "the rules of {chain} were applied {counts:?} times");
    }
}

/// 30 % of the frames are lost, each way.
pub(crate) fn loss() {
    let nets = pair(1500);
    nets.iter().for_each(|net| lose(net, 30));
    play(&nets, &[("t", "in")]);
}

/// 30 % are lost, 10 % come twice, and 20 % take a way on which they wait behind others.
pub(crate) fn everything() {
    let nets = pair(1500);
    nets[0].join(("w0", "10.0.1.1/24"), &nets[1], ("w1", "10.0.1.2/24"), 1500);
    for (at, (slow, gateway, fast)) in [("w0", "10.0.1.2", "v0"), ("w1", "10.0.1.1", "v1")].into_iter().enumerate() {
        let other = format!("10.0.0.{}", 2 - at);
        // Answers come by the other way than their route, which is no reason to drop them.
        for interface in ["all", slow, fast] {
            nets[at].set(&format!("conf/{interface}/rp_filter"), "0");
        }
        nets[at].run(&[
            &format!("tc qdisc add dev {slow} root tbf rate 50mbit burst 3000 limit 100000"),
            &format!("ip route add default via {gateway} dev {slow} table 7"),
            "ip rule add fwmark 7 table 7",
        ]);
        nets[at].rules(&format!(
            "add table ip u; \
             add chain ip u late {{ type route hook output priority -150; }}; \
             add rule ip u late numgen random mod 100 < 20 counter meta mark set 7; \
             add chain ip u twice {{ type filter hook output priority 0; }}; \
             add rule ip u twice numgen random mod 100 < 10 counter dup to {other} device {fast}"
        ));
        lose(&nets[at], 30);
    }
    play(&nets, &[("t", "in"), ("u", "late"), ("u", "twice")]);
}
