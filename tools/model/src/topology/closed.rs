//! Closed forms, over measures that need not be whole numbers: a torus of two dimensions and 18
//! nodes has sides of √18.
//!
//! The sums behind them: over all pairs of a ring of n nodes, unidirectional, the hops are n · n
//! (n - 1) / 2; bidirectional, n · ⌊n² / 4⌋; in a line, n (n² - 1) / 3. In a grid each dimension
//! contributes its own hops, whatever the others do, and is travelled by all pairs whose
//! coordinates differ in it: a share of 1 - 1/n of all pairs, those of a node with itself included.
//! A route that is travelled in z dimensions has z - 1 switchings. Hence, with N nodes, P = N/(N-1)
//! · sum of the mean hops, S = N/(N-1) · sum of (1 - 1/n) - 1, F = P - S - 1. For equal sides and
//! unidirectional rings these are the formulas of D. Gonzalez, "Performance Modeling and Evaluation
//! of Topologies for Low-Latency SCI Systems", equations 14 to 17: its sum of (i - 1) C(D, i) (n -
//! 1)^i is D (n - 1) n^(D-1) - (n^D - 1).

use crate::topology::Wrap;
use crate::topology::route::Components;

/// The measures of a topology, whole or not.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A grid.
    Grid {
        /// Nodes along each dimension.
        sides: Vec<f64>,
        /// How they are linked.
        wrap: Wrap,
        /// Whether the sides are whole numbers. If not, bidirectional rings are as those of an even
        /// number of nodes.
        whole: bool,
    },
    /// A hypercube: a grid of log2 N dimensions, which need not be a whole number either.
    Hypercube {
        /// Nodes, N.
        nodes: f64,
    },
    /// A single switch.
    Star {
        /// Nodes on it.
        nodes: f64,
    },
    /// A fat tree.
    FatTree {
        /// Ports of each switch, k.
        ports: f64,
        /// Two or three.
        levels: u8,
    },
    /// A dragonfly.
    Dragonfly {
        /// At each router, p.
        nodes: f64,
        /// In each group, a.
        routers: f64,
        /// Links to other groups from each router, h.
        globals: f64,
    },
}

impl Shape {
    /// Number of nodes, N.
    #[must_use]
    pub fn nodes(&self) -> f64 {
        match self {
            Self::Grid { sides, .. } => sides.iter().product(),
            Self::Hypercube { nodes } | Self::Star { nodes } => *nodes,
            Self::FatTree { ports, levels: 2 } => ports * ports / 2.0,
            Self::FatTree { ports, .. } => ports * ports * ports / 4.0,
            Self::Dragonfly { nodes, routers, globals } => nodes * routers * (routers * globals + 1.0),
        }
    }

    /// Mean components of the routes between all pairs of different nodes.
    #[must_use]
    pub fn mean(&self) -> Components {
        let others = self.nodes() - 1.0;
        match self {
            Self::Grid { sides, wrap, whole } => {
                let scale = self.nodes() / others;
                let hops: f64 = sides.iter().map(|side| mean_hops(*side, *wrap, *whole)).sum();
                let travelled: f64 = sides.iter().map(|side| 1.0 - 1.0 / side).sum();
                Components::of(scale * hops, scale * travelled - 1.0)
            }
            // Each of the dimensions is travelled by half of all pairs, and every hop is in another
            // one.
            Self::Hypercube { nodes } => all_switching(nodes.log2() / 2.0 * nodes / others),
            Self::Star { .. } => through_switches(1.0),
            Self::FatTree { ports, levels } => {
                // Two switches more for each level that must be climbed.
                let outside = |reached: f64| (self.nodes() - reached) / others;
                let half = ports / 2.0;
                let climbs = outside(half) + if *levels == 3 { outside(half * half) } else { 0.0 };
                through_switches(1.0 + 2.0 * climbs)
            }
            Self::Dragonfly { nodes, routers, globals } => {
                let same_group = nodes * (routers - 1.0);
                let other_groups = nodes * routers * routers * globals;
                // Two routers with the global link, and one more at either end unless the link
                // happens to be there.
                let between = 2.0 + 2.0 * (1.0 - 1.0 / routers);
                through_switches((nodes - 1.0 + 2.0 * same_group + between * other_groups) / others)
            }
        }
    }

    /// Components of the longest route.
    #[must_use]
    pub fn longest(&self) -> Components {
        match self {
            Self::Grid { sides, wrap, whole } => {
                let far = |side: &f64| match wrap {
                    Wrap::Forward | Wrap::Line => side - 1.0,
                    Wrap::Both if *whole => (side / 2.0).floor(),
                    Wrap::Both => side / 2.0,
                };
                Components::of(sides.iter().map(far).sum(), sides.len() as f64 - 1.0)
            }
            Self::Hypercube { nodes } => all_switching(nodes.log2()),
            Self::Star { .. } => through_switches(1.0),
            Self::FatTree { levels, .. } => through_switches(f64::from(2 * *levels - 1)),
            Self::Dragonfly { .. } => through_switches(4.0),
        }
    }

    /// Mean components of the routes from node 0 to all others: also of those to it, by symmetry.
    #[must_use]
    pub fn mean_to_corner(&self) -> Components {
        match self {
            // From the corner of a line the way is as long as round a unidirectional ring.
            Self::Grid { sides, wrap: Wrap::Line, whole } => {
                Self::Grid { sides: sides.clone(), wrap: Wrap::Forward, whole: *whole }.mean()
            }
            _ => self.mean(),
        }
    }

    /// Mean components of the routes to neighbours: over one link of a grid; to the next number in
    /// networks of switches.
    #[must_use]
    pub fn neighbour(&self) -> Components {
        match self {
            Self::Grid { .. } | Self::Hypercube { .. } => Components::of(1.0, 0.0),
            Self::Star { .. } => through_switches(1.0),
            // One of k/2 leaves its switch, one of (k/2)² its pod.
            Self::FatTree { ports, levels: 2 } => through_switches(1.0 + 4.0 / ports),
            Self::FatTree { ports, .. } => through_switches(1.0 + 4.0 / ports + 8.0 / (ports * ports)),
            Self::Dragonfly { nodes, routers, globals } => {
                let groups = routers * globals + 1.0;
                // From the last router of a group to the first of the next: the global link is at
                // it in h groups of all, at either end.
                let between = 2.0 + 2.0 * (groups - globals) / groups;
                let leaves_group = 1.0 / (nodes * routers);
                let leaves_router = 1.0 / nodes - leaves_group;
                through_switches(1.0 + leaves_router + (between - 1.0) * leaves_group)
            }
        }
    }

    /// Components of each way that a binomial tree adds to the critical path, and how many such
    /// ways there are.
    ///
    /// Exact for grids and fat trees whose sides and ports are powers of two: the message that goes
    /// 2^j numbers further moves in one dimension only, and of the ways to a node that over every j
    /// is the longest.
    #[must_use]
    pub fn tree(&self) -> (Components, f64) {
        let rounds = self.nodes().log2();
        let sum = match self {
            Self::Grid { sides, .. } => {
                let hops: f64 = sides.iter().map(|side| side - 1.0).sum();
                Components { propagations: hops, forwardings: hops - rounds, switchings: 0.0 }
            }
            Self::Hypercube { .. } => Components { propagations: rounds, ..Components::default() },
            Self::Star { .. } => through_switches(1.0).times(rounds),
            Self::FatTree { ports, levels } => {
                let half = (ports / 2.0).log2();
                let top = ports.log2();
                let inner = through_switches(1.0).times(half);
                match levels {
                    2 => inner.plus(top, &through_switches(3.0)),
                    _ => inner.plus(half, &through_switches(3.0)).plus(top, &through_switches(5.0)),
                }
            }
            Self::Dragonfly { nodes, routers, globals } => through_switches(1.0)
                .times(nodes.log2())
                .plus(routers.log2(), &through_switches(2.0))
                .plus((routers * globals + 1.0).log2(), &through_switches(2.0 + 2.0 * (1.0 - 1.0 / routers))),
        };
        (sum, rounds)
    }
}

/// A way of so many links whose every hop is in another dimension.
fn all_switching(hops: f64) -> Components {
    Components::of(hops, hops - 1.0)
}

/// A way through this many switches.
fn through_switches(switches: f64) -> Components {
    Components { propagations: switches + 1.0, forwardings: 0.0, switchings: switches }
}

/// Mean hops in one dimension between any two coordinates, equal ones included.
pub(crate) fn mean_hops(side: f64, wrap: Wrap, whole: bool) -> f64 {
    match wrap {
        Wrap::Forward => (side - 1.0) / 2.0,
        Wrap::Both if whole && side % 2.0 != 0.0 => (side * side - 1.0) / (4.0 * side),
        Wrap::Both => side / 4.0,
        Wrap::Line => (side * side - 1.0) / (3.0 * side),
    }
}
