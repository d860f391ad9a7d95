//! Topologies of known size: their nodes, links and routes.

pub(crate) mod closed;
mod dragonfly;
mod fat_tree;
mod grid;
mod name;
mod product;
pub(crate) mod route;
mod star;

pub use closed::Shape;
pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use grid::{Grid, Wrap};
pub(crate) use product::product;
pub use route::{Component, Components, Route, Transaction, Vertex};
pub use star::Star;

use crate::error::ModelError;

/// A network of known size.
///
/// It is written, and parsed, as `ring:8`, `biring:8`, `torus:10x10x10` (unidirectional),
/// `bitorus:4x4`, `mesh:4x3`, `hypercube:64`, `star:24`, `fattree2:k=8`, `fattree3:k=8`,
/// `dragonfly:h=2` or `dragonfly:p=2,a=4,h=2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Rings, tori, meshes, hypercubes.
    Grid(Grid),
    /// A single switch.
    Star(Star),
    /// Two or three levels of equal switches.
    FatTree(FatTree),
    /// Groups of routers, every two of them linked.
    Dragonfly(Dragonfly),
}

impl Topology {
    /// Number of nodes; numbered from 0.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        match self {
            Self::Grid(grid) => grid.nodes(),
            Self::Star(star) => star.nodes(),
            Self::FatTree(tree) => tree.nodes(),
            Self::Dragonfly(dragonfly) => dragonfly.nodes(),
        }
    }

    /// Number of switches; numbered from the number of nodes on.
    #[must_use]
    pub fn switches(&self) -> u64 {
        match self {
            Self::Grid(_) => 0,
            Self::Star(_) => 1,
            Self::FatTree(tree) => tree.switches(),
            Self::Dragonfly(dragonfly) => dragonfly.routers(),
        }
    }

    /// The way of a message from one node to another: dimension order in grids, the upward port by
    /// destination in fat trees, minimal in dragonflies. A route to itself has no link.
    ///
    /// # Panics
    ///
    /// When the topology has no such nodes.
    #[must_use]
    pub fn route(&self, source: u64, destination: u64) -> Route {
        assert!(source.max(destination) < self.nodes(), "{self} has nodes below {}", self.nodes());
        let mut route = Route::from(source);
        if source != destination {
            match self {
                Self::Grid(grid) => grid.walk(source, destination, &mut route),
                Self::Star(star) => star.walk(destination, &mut route),
                Self::FatTree(tree) => tree.walk(source, destination, &mut route),
                Self::Dragonfly(dragonfly) => dragonfly.walk(source, destination, &mut route),
            }
        }
        route
    }

    /// How many components the route between two different nodes has, without listing it.
    #[must_use]
    pub fn count(&self, source: u64, destination: u64) -> Components {
        match self {
            Self::Grid(grid) => grid.count(source, destination),
            Self::Star(_) => Components::of(2.0, 1.0),
            Self::FatTree(tree) => tree.count(source, destination),
            Self::Dragonfly(dragonfly) => dragonfly.count(source, destination),
        }
    }

    /// The nodes that this one's messages reach over one link; in networks of switches the node of
    /// the next number.
    #[must_use]
    pub fn neighbours(&self, node: u64) -> Vec<u64> {
        match self {
            Self::Grid(grid) => grid.neighbours(node),
            _ => vec![(node + 1) % self.nodes()],
        }
    }

    /// Every directed link that a route may take.
    ///
    /// # Errors
    ///
    /// A topology of millions of links has too many to list.
    pub fn links(&self) -> Result<Vec<(Vertex, Vertex)>, ModelError> {
        const MOST: u64 = 1 << 24;
        if self.nodes().max(self.switches()) > MOST {
            return Err(ModelError::TooMuchWork {
                what: format!("the list of links of {self}"),
                instead: format!("give a topology of at most {MOST} nodes"),
            });
        }
        Ok(match self {
            Self::Grid(grid) => {
                (0..grid.nodes()).flat_map(|node| grid.neighbours(node).into_iter().map(move |to| (node, to))).collect()
            }
            Self::Star(star) => both_ways((0..star.nodes()).map(|node| (node, star.nodes()))),
            Self::FatTree(tree) => both_ways(tree.cables().into_iter()),
            Self::Dragonfly(dragonfly) => both_ways(dragonfly.cables().into_iter()),
        })
    }

    /// Mean components over all pairs of different nodes, in closed form.
    #[must_use]
    pub fn mean(&self) -> Components {
        self.shape().mean()
    }

    /// The same by counting every pair.
    ///
    /// # Errors
    ///
    /// Above 2^16 nodes there are too many pairs.
    pub fn mean_by_enumeration(&self) -> Result<Components, ModelError> {
        const MOST: u64 = 1 << 16;
        let nodes = self.nodes();
        if nodes > MOST {
            return Err(ModelError::TooMuchWork {
                what: format!("counting all pairs of {self}"),
                instead: format!("give at most {MOST} nodes, or take the closed form"),
            });
        }
        let (mut propagations, mut switchings) = (0.0, 0.0);
        for source in 0..nodes {
            for destination in (0..nodes).filter(|destination| *destination != source) {
                let count = self.count(source, destination);
                propagations += count.propagations;
                switchings += count.switchings;
            }
        }
        let pairs = nodes as f64 * (nodes - 1) as f64;
        Ok(Components::of(propagations / pairs, switchings / pairs))
    }

    /// The measures of the closed forms.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Grid(grid) => {
                let sides = grid.sides().iter().map(|side| *side as f64).collect();
                Shape::Grid { sides, wrap: grid.wrap(), whole: true }
            }
            Self::Star(star) => Shape::Star { nodes: star.nodes() as f64 },
            Self::FatTree(tree) => Shape::FatTree { ports: tree.ports() as f64, levels: tree.levels() },
            Self::Dragonfly(dragonfly) => dragonfly.shape(),
        }
    }
}

impl Transaction {
    /// Between two nodes of a topology.
    #[must_use]
    pub fn between(topology: &Topology, source: u64, destination: u64) -> Self {
        Self { request: topology.route(source, destination), response: topology.route(destination, source) }
    }
}

/// Each cable is two links.
fn both_ways(cables: impl Iterator<Item = (Vertex, Vertex)>) -> Vec<(Vertex, Vertex)> {
    cables.flat_map(|(one, other)| [(one, other), (other, one)]).collect()
}
