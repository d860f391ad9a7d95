//! Dragonflies: groups of routers, each linked to all in its group; every two groups joined by one
//! link.

use super::product::product;
use crate::error::ModelError;
use crate::topology::closed::Shape;
use crate::topology::route::{Component, Components, Route, Vertex};

/// A dragonfly of full size: p nodes at each router, a routers in each group, h links from each
/// router to other groups, and a h + 1 groups (J. Kim, W. J. Dally, S. Scott, D. Abts,
/// "Technology-driven, highly-scalable dragonfly topology", ISCA 2008).
///
/// Global links are laid in the absolute arrangement: port j of group i, at its router j / h, leads
/// to group j, or j + 1 from i on. Routes are minimal: within the group to the router with the
/// global link, over it, and within the other group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    nodes_per_router: u64,
    routers_per_group: u64,
    globals_per_router: u64,
}

impl Dragonfly {
    /// With p, a and h.
    ///
    /// # Errors
    ///
    /// p and h are at least one, a at least two, and the nodes are not too many.
    pub fn new(p: u64, a: u64, h: u64) -> Result<Self, ModelError> {
        if p < 1 || a < 2 || h < 1 {
            return Err(ModelError::Size {
                kind: "a dragonfly".into(),
                asked: format!("p={p}, a={a}, h={h}"),
                instead: format!("the nearest is dragonfly:p={},a={},h={}", p.max(1), a.max(2), h.max(1)),
            });
        }
        let dragonfly = Self { nodes_per_router: p, routers_per_group: a, globals_per_router: h };
        let groups = a.checked_mul(h).and_then(|ports| ports.checked_add(1));
        let routers = groups.and_then(|groups| product([a, groups]));
        match routers.and_then(|routers| product([p, routers])) {
            Some(_) => Ok(dragonfly),
            None => Err(ModelError::TooLarge { topology: dragonfly.name() }),
        }
    }

    /// p, a and h.
    #[must_use]
    pub fn measures(self) -> (u64, u64, u64) {
        (self.nodes_per_router, self.routers_per_group, self.globals_per_router)
    }

    /// As its topology is written.
    pub(super) fn name(self) -> String {
        let (p, a, h) = self.measures();
        format!("dragonfly:p={p},a={a},h={h}")
    }

    fn groups(self) -> u64 {
        self.routers_per_group * self.globals_per_router + 1
    }

    pub(super) fn routers(self) -> u64 {
        self.routers_per_group * self.groups()
    }

    pub(super) fn nodes(self) -> u64 {
        self.nodes_per_router * self.routers()
    }

    pub(super) fn shape(self) -> Shape {
        Shape::Dragonfly {
            nodes: self.nodes_per_router as f64,
            routers: self.routers_per_group as f64,
            globals: self.globals_per_router as f64,
        }
    }

    /// The router, counted through all groups, at which the link from one group to another begins.
    fn gate(self, group: u64, other: u64) -> u64 {
        let port = if other < group { other } else { other - 1 };
        group * self.routers_per_group + port / self.globals_per_router
    }

    /// The routers passed in order, without repetition.
    fn routers_between(self, source: u64, destination: u64) -> impl Iterator<Item = u64> {
        let (from, to) = (source / self.nodes_per_router, destination / self.nodes_per_router);
        let (group, other) = (from / self.routers_per_group, to / self.routers_per_group);
        let gates = if group == other { [from, to] } else { [self.gate(group, other), self.gate(other, group)] };
        let mut last = None;
        [from, gates[0], gates[1], to].into_iter().filter(move |router| last.replace(*router) != Some(*router))
    }

    pub(super) fn count(self, source: u64, destination: u64) -> Components {
        let routers = self.routers_between(source, destination).count() as f64;
        Components::of(routers + 1.0, routers)
    }

    pub(super) fn walk(self, source: u64, destination: u64, route: &mut Route) {
        for router in self.routers_between(source, destination) {
            route.on(Component::Switching, self.nodes() + router);
        }
        route.on(Component::Switching, destination);
    }

    /// Pairs of vertices that a cable joins.
    pub(super) fn cables(self) -> Vec<(Vertex, Vertex)> {
        let (nodes, routers) = (self.nodes(), self.routers_per_group);
        let mut cables: Vec<_> = (0..nodes).map(|node| (node, nodes + node / self.nodes_per_router)).collect();
        for group in 0..self.groups() {
            let first = nodes + group * routers;
            let pairs = (0..routers).flat_map(|one| (0..one).map(move |other| (first + other, first + one)));
            cables.extend(pairs);
            let others = (0..group).map(|other| (nodes + self.gate(other, group), nodes + self.gate(group, other)));
            cables.extend(others);
        }
        cables
    }
}
