//! A single switch with all nodes on it.

use crate::error::{MOST_NODES, ModelError};
use crate::topology::route::{Component, Route};

/// A single switch. Every way has two links, and the switch between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Star {
    nodes: u64,
}

impl Star {
    /// A switch with as many ports as nodes.
    ///
    /// # Errors
    ///
    /// There are at least two nodes, and not too many.
    pub fn new(nodes: u64) -> Result<Self, ModelError> {
        if nodes < 2 {
            return Err(ModelError::Size {
                kind: "a star".into(),
                asked: format!("{nodes} nodes"),
                instead: "the nearest is star:2".into(),
            });
        }
        if nodes > MOST_NODES {
            return Err(ModelError::TooLarge { topology: format!("star:{nodes}") });
        }
        Ok(Self { nodes })
    }

    pub(super) fn nodes(self) -> u64 {
        self.nodes
    }

    pub(super) fn walk(self, destination: u64, route: &mut Route) {
        route.on(Component::Switching, self.nodes);
        route.on(Component::Switching, destination);
    }
}
