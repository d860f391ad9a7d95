//! Rings, tori, meshes and hypercubes: nodes at the points of a grid, linked along its dimensions.

use super::product::product;
use crate::error::ModelError;
use crate::topology::route::{Component, Components, Route};

/// How the nodes of one dimension are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// In a ring with links in one direction.
    Forward,
    /// In a ring with links in both directions. The shorter way is taken; of two equal ways, nodes
    /// of an even coordinate take the ascending one, the others the descending one, so that both
    /// carry the same.
    Both,
    /// In a line, with links in both directions.
    Line,
}

/// A grid of nodes. Node 0 is the corner; the first dimension varies fastest in the numbering, and
/// is travelled first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    sides: Vec<u64>,
    wrap: Wrap,
}

impl Grid {
    /// A grid of these sides.
    ///
    /// # Errors
    ///
    /// Every side has at least two nodes, and there are not too many in all.
    pub fn new(sides: &[u64], wrap: Wrap) -> Result<Self, ModelError> {
        let grid = Self { sides: sides.to_vec(), wrap };
        if sides.is_empty() || sides.iter().any(|side| *side < 2) {
            let kept: Vec<_> = sides.iter().map(|side| (*side).max(2).to_string()).collect();
            return Err(ModelError::Size {
                kind: "a grid".into(),
                asked: "a side of fewer than two nodes".into(),
                instead: format!("the nearest is {}, or leave that dimension out", kept.join("x")),
            });
        }
        match product(sides.iter().copied()) {
            Some(_) => Ok(grid),
            None => Err(ModelError::TooLarge { topology: grid.name() }),
        }
    }

    /// Nodes along each dimension.
    #[must_use]
    pub fn sides(&self) -> &[u64] {
        &self.sides
    }

    /// How each dimension is linked.
    #[must_use]
    pub fn wrap(&self) -> Wrap {
        self.wrap
    }

    pub(crate) fn kind(&self) -> &'static str {
        match (self.wrap, self.sides.len()) {
            (Wrap::Line, _) if self.sides.iter().all(|side| *side == 2) => "hypercube",
            (Wrap::Line, _) => "mesh",
            (Wrap::Forward, 1) => "ring",
            (Wrap::Forward, _) => "torus",
            (Wrap::Both, 1) => "biring",
            (Wrap::Both, _) => "bitorus",
        }
    }

    /// As its topology is written.
    pub(super) fn name(&self) -> String {
        let kind = self.kind();
        if kind == "hypercube" {
            return format!("hypercube:{}", self.nodes());
        }
        let sides: Vec<_> = self.sides.iter().map(u64::to_string).collect();
        format!("{kind}:{}", sides.join("x"))
    }

    pub(super) fn nodes(&self) -> u64 {
        self.sides.iter().product()
    }

    /// Hops from one coordinate to another, and whether they ascend.
    fn hops(&self, from: u64, to: u64, side: u64) -> (u64, bool) {
        let up = if to >= from { to - from } else { side - from + to };
        match self.wrap {
            Wrap::Forward => (up, true),
            Wrap::Line => (to.abs_diff(from), to > from),
            Wrap::Both => {
                let down = side - up;
                let ascend = up < down || (up == down && from.is_multiple_of(2));
                if up == 0 { (0, true) } else { (up.min(down), ascend) }
            }
        }
    }

    pub(super) fn count(&self, mut source: u64, mut destination: u64) -> Components {
        let (mut propagations, mut dimensions) = (0, 0u32);
        for side in &self.sides {
            let (hops, _) = self.hops(source % side, destination % side, *side);
            propagations += hops;
            dimensions += u32::from(hops > 0);
            source /= side;
            destination /= side;
        }
        Components::of(propagations as f64, f64::from(dimensions) - 1.0)
    }

    pub(super) fn walk(&self, source: u64, destination: u64, route: &mut Route) {
        let (mut at, mut stride) = (source, 1);
        for side in &self.sides {
            let (mut here, there) = (at / stride % side, destination / stride % side);
            let (hops, ascend) = self.hops(here, there, *side);
            for hop in 0..hops {
                let next = step(here, *side, ascend);
                at = at - here * stride + next * stride;
                here = next;
                route.on(if hop == 0 { Component::Switching } else { Component::Forwarding }, at);
            }
            stride *= side;
        }
    }

    pub(super) fn neighbours(&self, node: u64) -> Vec<u64> {
        let (mut found, mut stride) = (vec![], 1);
        for side in &self.sides {
            let here = node / stride % side;
            let moved = |ascend| node - here * stride + step(here, *side, ascend) * stride;
            if self.wrap != Wrap::Line || here + 1 < *side {
                found.push(moved(true));
            }
            // Of two nodes in a ring both directions lead to the same one.
            let down = match self.wrap {
                Wrap::Forward => false,
                Wrap::Both => *side > 2,
                Wrap::Line => here > 0,
            };
            if down {
                found.push(moved(false));
            }
            stride *= side;
        }
        found
    }
}

/// The next coordinate along a ring.
fn step(here: u64, side: u64, ascend: bool) -> u64 {
    match (ascend, here) {
        (true, here) if here + 1 == side => 0,
        (true, here) => here + 1,
        (false, 0) => side - 1,
        (false, here) => here - 1,
    }
}
