//! Rings and tori of network name spaces.

use cci_conformance::namespace::Net;
use std::fmt::Write as _;

/// The address of every link's far end, which no packet is for, and its Ethernet address: nobody
/// has to ask for either.
const GATE: &str = "169.254.0.1";
const STATION: &str = "02:00:00:00:00:01";
/// Rules that a packet passes that changes its dimension, so that it takes longer than going
/// straight on.
const RULES: usize = 256;
/// Bytes of a packet: the interface that has a node's address takes no more than a cable does.
const MTU: usize = 1500;
/// Tables of routes: of a node's own packets, of those that switch, and from this one on, of those
/// that stay in a dimension.
const OWN: usize = 10;
const SWITCHING: usize = 30;
const STRAIGHT: usize = 20;

/// A unidirectional ring or torus: a name space for each node, and a cable to the next node of each
/// dimension, over which all goes one way.
pub(crate) struct Bed {
    /// `ring:8`, `torus:4x4`.
    pub(crate) name: String,
    sides: Vec<usize>,
    nodes: Vec<Net>,
}

/// The address of a node.
pub(crate) fn address(node: usize) -> String {
    format!("10.0.0.{}", node + 1)
}

impl Bed {
    /// Makes it. There are at most 250 nodes.
    pub(crate) fn new(sides: &[usize]) -> Self {
        let words: Vec<String> = sides.iter().map(ToString::to_string).collect();
        let name = format!("{}:{}", if sides.len() == 1 { "ring" } else { "torus" }, words.join("x"));
        let nodes = (0..sides.iter().product()).map(|_| Net::new()).collect();
        let bed = Self { name, sides: sides.to_vec(), nodes };
        bed.nodes.iter().for_each(quiet);
        for node in 0..bed.nodes.len() {
            bed.lay_cables(node);
        }
        for node in 0..bed.nodes.len() {
            bed.nodes[node].batch(&bed.orders(node));
        }
        bed
    }

    pub(crate) fn node(&self, node: usize) -> &Net {
        &self.nodes[node]
    }

    /// Links, forwardings and switchings from one node to another.
    pub(crate) fn count(&self, from: usize, to: usize) -> [usize; 3] {
        let hops: Vec<usize> = (0..self.sides.len()).map(|dimension| self.hops(from, to, dimension)).collect();
        let links = hops.iter().sum::<usize>();
        let switchings = hops.iter().filter(|hops| **hops > 0).count() - 1;
        [links, links - 1 - switchings, switchings]
    }

    fn stride(&self, dimension: usize) -> usize {
        self.sides[..dimension].iter().product()
    }

    fn hops(&self, from: usize, to: usize, dimension: usize) -> usize {
        let (side, stride) = (self.sides[dimension], self.stride(dimension));
        (to / stride % side + side - from / stride % side) % side
    }

    /// The node that a cable leads to.
    fn next(&self, node: usize, dimension: usize) -> usize {
        let (side, stride) = (self.sides[dimension], self.stride(dimension));
        let here = node / stride % side;
        node - here * stride + (here + 1) % side * stride
    }

    /// A cable from this node to the next of each dimension: `o0` here, `i0` there.
    fn lay_cables(&self, node: usize) {
        let mut lines = String::new();
        for dimension in 0..self.sides.len() {
            let there = self.nodes[self.next(node, dimension)].path();
            // Writing to a string does not fail.
            let _ = writeln!(
                lines,
                "link add o{dimension} type veth peer name i{dimension} address {STATION} netns {there}"
            );
        }
        self.nodes[node].batch(&lines);
    }

    /// What a node has to know: its address, and which cable leads where. Dimensions are travelled
    /// in order.
    fn orders(&self, node: usize) -> String {
        let mut lines = format!(
            "addr add {}/32 dev lo\nlink set lo mtu {MTU}\nrule add pref 10 iif lo lookup {OWN}\n",
            address(node)
        );
        let mut order = |line: String| {
            let _ = writeln!(lines, "{line}");
        };
        for dimension in 0..self.sides.len() {
            order(format!("link set o{dimension} up"));
            order(format!("link set i{dimension} up"));
            order(format!("neigh add {GATE} lladdr {STATION} dev o{dimension} nud permanent"));
            order(format!("rule add pref {} iif i{dimension} lookup {}", 20 + dimension, STRAIGHT + dimension));
        }
        for rule in 0..RULES {
            order(format!("rule add pref {} to 10.255.{rule}.0/24 lookup {SWITCHING}", 100 + rule));
        }
        order(format!("rule add pref 1000 lookup {SWITCHING}"));
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let first = (0..self.sides.len()).find(|dimension| self.hops(node, other, *dimension) > 0);
            let Some(dimension) = first else { continue };
            for table in [OWN, SWITCHING, STRAIGHT + dimension] {
                order(format!("route add {}/32 via {GATE} dev o{dimension} onlink table {table}", address(other)));
            }
        }
        lines
    }
}

/// Has a name space pass packets on without looking back where they come from, and say nothing by
/// itself.
fn quiet(net: &Net) {
    net.set("ip_forward", "1");
    for which in ["all", "default"] {
        net.set(&format!("conf/{which}/rp_filter"), "0");
        // With rules of its own the kernel looks up each packet's source, too; this has it not.
        net.set(&format!("conf/{which}/accept_local"), "1");
        net.set(&format!("conf/{which}/send_redirects"), "0");
        // Kernels without IPv6 say nothing on it.
        net.set_if_there(&format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
}

#[cfg(test)]
mod tests {
    use super::Bed;

    #[test]
    fn components_are_those_of_dimension_order() {
        let bed = Bed { name: String::new(), sides: vec![4, 4], nodes: Vec::new() };
        assert_eq!(bed.count(0, 10), [4, 2, 1]);
        assert_eq!(bed.count(10, 0), [4, 2, 1]);
        assert_eq!(bed.count(0, 2), [2, 1, 0]);
        assert_eq!(bed.count(0, 8), [2, 1, 0]);
        assert_eq!(bed.count(3, 4), [2, 0, 1]);
        assert_eq!((bed.next(3, 0), bed.next(3, 1), bed.next(13, 1)), (0, 7, 1));
        let ring = Bed { name: String::new(), sides: vec![6], nodes: Vec::new() };
        assert_eq!((ring.count(0, 3), ring.count(5, 0)), ([3, 2, 0], [1, 0, 0]));
    }
}
