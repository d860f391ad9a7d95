//! Fat trees of equal switches, with full bisection: two levels (leaf and spine), or three (the
//! k-ary fat tree).

use super::product::product;
use crate::error::ModelError;
use crate::topology::route::{Component, Components, Route, Vertex};

/// A fat tree of switches of k ports: k²/2 nodes with two levels, k³/4 with three.
///
/// Upward ports are chosen by the destination's number, so that each downward link serves one
/// destination (D-mod-k: E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
/// permutations on real life fat trees", 2010).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    ports: u64,
    levels: u8,
}

impl FatTree {
    /// A fat tree of switches of `ports` ports.
    ///
    /// # Errors
    ///
    /// The number of ports is even, half of them up and half down; there are two or three levels.
    pub fn new(ports: u64, levels: u8) -> Result<Self, ModelError> {
        let kind = || format!("a fat tree of {levels} levels");
        if !(2..=3).contains(&levels) {
            return Err(ModelError::Size {
                kind: "a fat tree".into(),
                asked: format!("{levels} levels"),
                instead: "give fattree2 or fattree3".into(),
            });
        }
        if ports < 2 || !ports.is_multiple_of(2) {
            let (below, above) = ((ports.saturating_sub(1)).max(2), ports.saturating_add(1).max(2));
            let nearest = if below == above { format!("k={below}") } else { format!("k={below} or k={above}") };
            return Err(ModelError::Size {
                kind: kind(),
                asked: format!("switches of k={ports} ports"),
                instead: format!("half the ports go up and half down, so give {nearest}"),
            });
        }
        let tree = Self { ports, levels };
        // A third as many switches again is still counted exactly.
        match product([ports / 2, ports, if levels == 2 { 1 } else { ports / 2 }]) {
            Some(_) => Ok(tree),
            None => Err(ModelError::TooLarge { topology: tree.name() }),
        }
    }

    /// Ports of each switch, k.
    #[must_use]
    pub fn ports(self) -> u64 {
        self.ports
    }

    /// Two or three.
    #[must_use]
    pub fn levels(self) -> u8 {
        self.levels
    }

    /// As its topology is written.
    pub(super) fn name(self) -> String {
        format!("fattree{}:k={}", self.levels, self.ports)
    }

    /// Nodes of a leaf switch.
    fn half(self) -> u64 {
        self.ports / 2
    }

    /// Nodes that a switch of the second level reaches downwards, or in two levels all.
    fn pod(self) -> u64 {
        if self.levels == 2 { self.nodes() } else { self.half() * self.half() }
    }

    pub(super) fn nodes(self) -> u64 {
        self.half() * self.ports * if self.levels == 2 { 1 } else { self.half() }
    }

    pub(super) fn switches(self) -> u64 {
        let leaves = self.leaves();
        if self.levels == 2 { leaves + self.half() } else { 2 * leaves + self.half() * self.half() }
    }

    fn leaves(self) -> u64 {
        self.nodes() / self.half()
    }

    fn leaf(self, node: u64) -> Vertex {
        self.nodes() + node / self.half()
    }

    /// The switch above the leaf of `at` through which messages to `destination` go.
    fn middle(self, at: u64, destination: u64) -> Vertex {
        let column = destination % self.half();
        self.nodes() + self.leaves() + at / self.pod() * self.half() + column
    }

    fn core(self, destination: u64) -> Vertex {
        self.nodes() + 2 * self.leaves() + destination % (self.half() * self.half())
    }

    pub(super) fn count(self, source: u64, destination: u64) -> Components {
        let switches = if source / self.half() == destination / self.half() {
            1.0
        } else if source / self.pod() == destination / self.pod() {
            3.0
        } else {
            5.0
        };
        Components::of(switches + 1.0, switches)
    }

    pub(super) fn walk(self, source: u64, destination: u64, route: &mut Route) {
        let mut on = |vertex| route.on(Component::Switching, vertex);
        on(self.leaf(source));
        if self.leaf(source) != self.leaf(destination) {
            on(self.middle(source, destination));
            if source / self.pod() != destination / self.pod() {
                on(self.core(destination));
                on(self.middle(destination, destination));
            }
            on(self.leaf(destination));
        }
        on(destination);
    }

    /// Pairs of vertices that a cable joins.
    pub(super) fn cables(self) -> Vec<(Vertex, Vertex)> {
        let half = self.half();
        let mut cables: Vec<_> = (0..self.nodes()).map(|node| (node, self.leaf(node))).collect();
        let leaves = (0..self.leaves()).map(|leaf| leaf * half);
        cables
            .extend(leaves.flat_map(|node| (0..half).map(move |column| (self.leaf(node), self.middle(node, column)))));
        if self.levels == 3 {
            let pods = (0..self.ports).map(|pod| pod * self.pod());
            // Of the nodes of a pod each has a core switch of its own, which follows from its
            // number alone.
            cables.extend(pods.flat_map(|pod| (0..half * half).map(move |to| (self.middle(pod, to), self.core(to)))));
        }
        cables
    }
}
