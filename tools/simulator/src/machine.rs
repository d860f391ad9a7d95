//! What is simulated: nodes, directed links, and how frames pass from one link to the next.

use cci_proto::Attribute;
use cci_sim::network::{Graph, LinkIndex, LinkSettings, NodeIndex, Processor};

/// What a frame passes between two links of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A node or switch passes it on in the same dimension.
    Forward,
    /// A node passes it on into another dimension.
    Switch,
}

/// One link of a route, and what comes after it; nothing after the last.
pub type Route = Vec<(u32, Option<Passage>)>;

/// Nodes and links, all alike.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Nodes that have an engine.
    pub nodes: u32,
    /// Directed links.
    pub links: u32,
    /// What each link is like.
    pub link: LinkSettings,
    /// What [`Passage::Forward`] takes, nanoseconds.
    pub forward: u64,
    /// What [`Passage::Switch`] takes, nanoseconds.
    pub switch: u64,
    /// What each node's processor takes.
    pub processor: Processor,
    /// What sender and receiver add without being busy with it, nanoseconds.
    pub ends: [u64; 2],
    /// What connections promise.
    pub attribute: Attribute,
    /// Bytes of the longest message.
    pub message: u32,
    /// Determines identifiers, and all chances.
    pub seed: u64,
}

/// Links of the graph for one of the machine: itself, and the two ways past the node at its end.
/// These have no bandwidth to share.
const LINKS: u32 = 3;

impl Machine {
    /// The graph, without routes. Where links lead, only routes say.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for _ in 0..self.nodes {
            graph.add_node(self.processor);
        }
        let passing = |delay| LinkSettings { delay, forward: self.link.forward, ..LinkSettings::default() };
        let anywhere = NodeIndex(0);
        for _ in 0..self.links {
            graph.add_link(anywhere, anywhere, &self.link);
            graph.add_link(anywhere, anywhere, &passing(self.forward));
            graph.add_link(anywhere, anywhere, &passing(self.switch));
        }
        for end in self.ends {
            graph.add_link(anywhere, anywhere, &passing(end));
        }
        graph
    }

    /// The graph's link for one of the machine.
    pub(crate) fn link(link: u32) -> LinkIndex {
        LinkIndex(LINKS * link)
    }

    /// The graph's links of a route.
    pub(crate) fn hops(&self, route: &Route, into: &mut Vec<LinkIndex>) {
        into.clear();
        let end = |at: u32, delay: u64| (delay > 0).then_some(LinkIndex(LINKS * self.links + at));
        into.extend(end(0, self.ends[0]));
        for (link, passage) in route {
            into.push(Self::link(*link));
            match passage {
                Some(Passage::Forward) if self.forward > 0 => into.push(LinkIndex(LINKS * link + 1)),
                Some(Passage::Switch) if self.switch > 0 => into.push(LinkIndex(LINKS * link + 2)),
                _ => {}
            }
        }
        into.extend(end(1, self.ends[1]));
    }
}
