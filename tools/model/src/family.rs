//! Topologies of one kind and any size.

use crate::error::{MOST_NODES, ModelError};
use crate::topology::closed::Shape;
use crate::topology::{Dragonfly, FatTree, Grid, Star, Topology, Wrap, product};
use std::fmt;
use std::str::FromStr;

const KNOWN: &str = "ring, biring, torus:2d, bitorus:3d, mesh:2d (of 1 to 16 dimensions), hypercube, star, fattree2, fattree3 \
                     and dragonfly";

/// Most dimensions of a family of grids.
const MOST_DIMENSIONS: u32 = 16;

/// A kind of topology, whose size is open.
///
/// It is written as `ring`, `biring`, `torus:3d`, `bitorus:2d`, `mesh:2d`, `hypercube`, `star`,
/// `fattree2`, `fattree3`, `dragonfly`. Sides are equal over real-valued sizes, and differ by at
/// most one node over whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Rings and tori and meshes of a number of dimensions.
    Grid {
        /// Number of dimensions.
        dimensions: u32,
        /// How each is linked.
        wrap: Wrap,
    },
    /// Hypercubes: two nodes in each of log2 N dimensions.
    Hypercube,
    /// A single switch, of as many ports as it takes.
    Star,
    /// Fat trees.
    FatTree {
        /// Two or three.
        levels: u8,
    },
    /// Balanced dragonflies: a = 2p = 2h.
    Dragonfly,
}

impl Family {
    /// Unidirectional tori of a number of dimensions; rings of one.
    #[must_use]
    pub const fn torus(dimensions: u32) -> Self {
        Self::Grid { dimensions, wrap: Wrap::Forward }
    }

    /// One of each: rings, tori and meshes of up to four dimensions, and the networks of switches.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let grid = |wrap, dimensions| Self::Grid { dimensions, wrap };
        let tori = [Wrap::Forward, Wrap::Both].into_iter().flat_map(|wrap| (1..=4).map(move |d| grid(wrap, d)));
        let meshes = (2..=4).map(|dimensions| grid(Wrap::Line, dimensions));
        let switched = [Self::FatTree { levels: 2 }, Self::FatTree { levels: 3 }, Self::Dragonfly];
        tori.chain(meshes).chain([Self::Hypercube, Self::Star]).chain(switched).collect()
    }

    /// The measures of the member with this many nodes, if sizes were real numbers.
    #[must_use]
    pub fn shape(&self, nodes: f64) -> Shape {
        match self {
            Self::Grid { dimensions, wrap } => {
                let side = nodes.powf(1.0 / f64::from(*dimensions));
                Shape::Grid { sides: vec![side; *dimensions as usize], wrap: *wrap, whole: false }
            }
            // Not a grid of log2 N sides, which would have to be a whole number of them.
            Self::Hypercube => Shape::Hypercube { nodes },
            Self::Star => Shape::Star { nodes },
            Self::FatTree { levels: 2 } => Shape::FatTree { ports: (2.0 * nodes).sqrt(), levels: 2 },
            Self::FatTree { levels } => Shape::FatTree { ports: (4.0 * nodes).cbrt(), levels: *levels },
            Self::Dragonfly => {
                // N = h · 2h · (2h² + 1)
                let h = (((1.0 + 4.0 * nodes).sqrt() - 1.0) / 4.0).sqrt();
                Shape::Dragonfly { nodes: h, routers: 2.0 * h, globals: h }
            }
        }
    }

    /// The smallest size from which on the closed forms have a meaning: each dimension two nodes,
    /// each tree its levels.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.at_least(2).map_or(f64::INFINITY, |topology| topology.nodes() as f64)
    }

    /// The smallest member with at least this many nodes; none above 2^53.
    #[must_use]
    pub fn at_least(&self, nodes: u64) -> Option<Topology> {
        match self {
            Self::Grid { dimensions, wrap } => grid_at_least(nodes, *dimensions, *wrap),
            Self::Hypercube => {
                let dimensions = nodes.max(2).checked_next_power_of_two()?.trailing_zeros();
                Grid::new(&vec![2; dimensions as usize], Wrap::Line).ok().map(Topology::Grid)
            }
            Self::Star => Star::new(nodes.max(2)).ok().map(Topology::Star),
            Self::FatTree { levels } => {
                let whole = |half: u64| FatTree::new(2 * half, *levels).ok().map(Topology::FatTree);
                first(nodes, whole)
            }
            Self::Dragonfly => first(nodes, |h| Dragonfly::new(h, 2 * h, h).ok().map(Topology::Dragonfly)),
        }
    }

    /// The largest member with at most this many nodes.
    #[must_use]
    pub fn at_most(&self, nodes: u64) -> Option<Topology> {
        // The smallest above: its predecessor is what remains of a search between it and nothing.
        let (mut low, mut high) = (2, nodes.min(MOST_NODES));
        let fits = |size: u64| self.at_least(size).filter(|topology| topology.nodes() <= nodes);
        fits(low)?;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle).is_some() { low = middle } else { high = middle - 1 }
        }
        fits(low)
    }

    /// The member with exactly this many nodes.
    ///
    /// # Errors
    ///
    /// There may be none; the nearest are named.
    pub fn exactly(&self, nodes: u64) -> Result<Topology, ModelError> {
        if nodes > MOST_NODES {
            return Err(ModelError::TooLarge { topology: format!("{self} of {nodes} nodes") });
        }
        let above = self.at_least(nodes);
        match above {
            Some(topology) if topology.nodes() == nodes => Ok(topology),
            _ => {
                let nearest: Vec<_> = [self.at_most(nodes), above]
                    .iter()
                    .flatten()
                    .map(|topology| format!("{topology} with {} nodes", topology.nodes()))
                    .collect();
                Err(ModelError::Size {
                    kind: self.to_string(),
                    asked: format!("{nodes} nodes"),
                    instead: format!("the nearest is {}", nearest.join(" or ")),
                })
            }
        }
    }
}

/// The grid of nearly equal sides, larger ones first.
fn grid_at_least(nodes: u64, dimensions: u32, wrap: Wrap) -> Option<Topology> {
    let count = dimensions as usize;
    let power = |side: u64| product(std::iter::repeat_n(side, count));
    // The largest side whose power is not above; the root in floating point may be off by one.
    let mut side = (nodes as f64).powf(1.0 / f64::from(dimensions)) as u64;
    while power(side).is_none_or(|power| power > nodes) && side > 1 {
        side -= 1;
    }
    while power(side + 1).is_some_and(|power| power <= nodes) {
        side += 1;
    }
    let side = side.max(2);
    let mixed = |larger: usize| {
        (0..count).map(move |dimension| if dimension < larger { side + 1 } else { side }).collect::<Vec<_>>()
    };
    let sides = (0..=count).map(mixed).find(|sides| product(sides.iter().copied()).is_some_and(|n| n >= nodes))?;
    Grid::new(&sides, wrap).ok().map(Topology::Grid)
}

/// The first of a growing row of topologies with at least so many nodes.
fn first(nodes: u64, member: impl Fn(u64) -> Option<Topology>) -> Option<Topology> {
    let enough = |index: u64| member(index).is_none_or(|topology| topology.nodes() >= nodes);
    let mut high = 1;
    while !enough(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    member(high)
}

impl FromStr for Family {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let unknown = || ModelError::Unknown { what: "family", name: text.into(), known: KNOWN };
        let dimensions = || {
            let number = text.split_once(':').and_then(|(_, number)| number.strip_suffix('d')?.parse().ok());
            number.filter(|number| (1..=MOST_DIMENSIONS).contains(number)).ok_or_else(unknown)
        };
        let grid = |dimensions, wrap| Ok(Self::Grid { dimensions, wrap });
        match text.split(':').next().unwrap_or(text) {
            "torus" => grid(dimensions()?, Wrap::Forward),
            "bitorus" => grid(dimensions()?, Wrap::Both),
            "mesh" => grid(dimensions()?, Wrap::Line),
            _ => match text {
                "ring" => grid(1, Wrap::Forward),
                "biring" => grid(1, Wrap::Both),
                "hypercube" => Ok(Self::Hypercube),
                "star" => Ok(Self::Star),
                "fattree2" => Ok(Self::FatTree { levels: 2 }),
                "fattree3" | "fattree" => Ok(Self::FatTree { levels: 3 }),
                "dragonfly" => Ok(Self::Dragonfly),
                _ => Err(unknown()),
            },
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grid { dimensions: 1, wrap: Wrap::Forward } => f.write_str("ring"),
            Self::Grid { dimensions: 1, wrap: Wrap::Both } => f.write_str("biring"),
            Self::Grid { dimensions, wrap } => {
                let name = match wrap {
                    Wrap::Forward => "torus",
                    Wrap::Both => "bitorus",
                    Wrap::Line => "mesh",
                };
                write!(f, "{name}:{dimensions}d")
            }
            Self::Hypercube => f.write_str("hypercube"),
            Self::Star => f.write_str("star"),
            Self::FatTree { levels } => write!(f, "fattree{levels}"),
            Self::Dragonfly => f.write_str("dragonfly"),
        }
    }
}
