//! Nodes, directed links, and routes over them.

use super::Faults;

/// A node's number in its graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// A directed link's number in its graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(pub u32);

/// When a frame starts on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// When its last byte has arrived in front of it.
    #[default]
    Store,
    /// When its first byte has.
    CutThrough,
}

/// What a directed link is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// From one end to the other, nanoseconds.
    pub delay: u64,
    /// Bytes per second; 0 = unlimited.
    pub bandwidth: u64,
    /// Bytes that may wait in front of it.
    pub queue: u64,
    /// A frame that finds more bytes waiting than this is marked.
    pub mark: u64,
    /// Bytes of the longest frame that it carries; a longer one is lost.
    pub mtu: usize,
    /// When a frame starts on it.
    pub forward: Forward,
    /// Each frame is late by up to so many nanoseconds.
    pub jitter: u64,
    /// What goes wrong on it.
    pub faults: Faults,
}

impl Default for LinkSettings {
    /// A good link: 1 µs, nothing is lost.
    fn default() -> Self {
        Self {
            delay: 1000,
            bandwidth: 0,
            queue: u64::MAX,
            mark: u64::MAX,
            mtu: usize::MAX,
            forward: Forward::Store,
            jitter: 0,
            faults: Faults::default(),
        }
    }
}

/// What a node's processor and its network interface take for a frame (LogP), nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Of the processor, to send one (o_s).
    pub send_overhead: u64,
    /// Of the processor, to receive one (o_r).
    pub recv_overhead: u64,
    /// Between two that are sent, and between two that are received (g).
    pub gap: u64,
    /// What each byte of a frame adds to either overhead, picoseconds.
    pub per_byte: u64,
    /// Bytes of the frame that takes just the overhead; a shorter one takes less.
    pub base: u64,
    /// The part of the send overhead in which the frame is on its first link already: overheads
    /// that were measured end to end contain its transmission.
    pub overlap: u64,
}

impl Processor {
    /// What a frame of `len` bytes takes whose overhead this is, to the nearest nanosecond.
    pub(super) fn overhead(&self, overhead: u64, len: usize) -> u64 {
        let len = len as u64;
        let of = |bytes: u64| (u128::from(bytes) * u128::from(self.per_byte) + 500) / 1000;
        let (more, less) = (of(len.saturating_sub(self.base)), of(self.base.saturating_sub(len)));
        let sum = (u128::from(overhead) + more).saturating_sub(less);
        u64::try_from(sum).unwrap_or(u64::MAX >> 1)
    }
}

/// A directed link: its ends and what it is like.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: NodeIndex,
    pub(super) to: NodeIndex,
    pub(super) settings: LinkSettings,
}

/// A part of the list of all routes' links.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    len: u32,
}

/// Nodes, directed links, and a route for each pair of nodes that can speak.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(super) nodes: Vec<Processor>,
    pub(super) links: Vec<Edge>,
    /// For each source, for each target: where its route lies in `hops`.
    routes: Vec<Vec<Span>>,
    hops: Vec<LinkIndex>,
}

impl Graph {
    /// No node, no link.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every node joined to every other by a link of its own each way.
    #[must_use]
    pub fn mesh(nodes: u32, link: &LinkSettings) -> Self {
        let mut graph = Self::new();
        for _ in 0..nodes {
            graph.add_to_mesh(Processor::default(), link);
        }
        graph
    }

    /// Two groups of nodes joined by one link each way: `left` nodes, then `right` nodes, then the
    /// two ends of the bottleneck.
    #[must_use]
    pub fn dumbbell(left: u32, right: u32, access: &LinkSettings, bottleneck: &LinkSettings) -> Self {
        let mut graph = Self::new();
        for _ in 0..left + right + 2 {
            graph.add_node(Processor::default());
        }
        let ends = [NodeIndex(left + right), NodeIndex(left + right + 1)];
        let across = [graph.add_link(ends[0], ends[1], bottleneck), graph.add_link(ends[1], ends[0], bottleneck)];
        let side = |node: u32| usize::from(node >= left);
        let gates: Vec<_> = (0..left + right)
            .map(|node| {
                let end = ends[side(node)];
                (graph.add_link(NodeIndex(node), end, access), graph.add_link(end, NodeIndex(node), access))
            })
            .collect();
        for (from, gate) in (0..).zip(&gates) {
            for (to, other) in (0..).zip(&gates).filter(|(to, _)| *to != from) {
                let (from_side, to_side) = (side(from), side(to));
                if from_side == to_side {
                    graph.set_route(NodeIndex(from), NodeIndex(to), &[gate.0, other.1]);
                } else {
                    graph.set_route(NodeIndex(from), NodeIndex(to), &[gate.0, across[from_side], other.1]);
                }
            }
        }
        graph
    }

    /// Another node, joined to nothing.
    pub fn add_node(&mut self, processor: Processor) -> NodeIndex {
        self.nodes.push(processor);
        self.routes.push(Vec::new());
        NodeIndex(index(self.nodes.len() - 1))
    }

    /// Another node, joined to itself and to every other node by a link each way.
    pub fn add_to_mesh(&mut self, processor: Processor, link: &LinkSettings) -> NodeIndex {
        let node = self.add_node(processor);
        for other in (0..=node.0).map(NodeIndex) {
            let there = self.add_link(node, other, link);
            self.set_route(node, other, &[there]);
            if other != node {
                let back = self.add_link(other, node, link);
                self.set_route(other, node, &[back]);
            }
        }
        node
    }

    /// Another directed link. It carries nothing before a route uses it.
    pub fn add_link(&mut self, from: NodeIndex, to: NodeIndex, settings: &LinkSettings) -> LinkIndex {
        self.links.push(Edge { from, to, settings: settings.clone() });
        LinkIndex(index(self.links.len() - 1))
    }

    /// The links that frames take from one node to another, in order. Replaces an earlier route.
    pub fn set_route(&mut self, from: NodeIndex, to: NodeIndex, links: &[LinkIndex]) {
        let span = Span { start: index(self.hops.len()), len: index(links.len()) };
        self.hops.extend_from_slice(links);
        let Some(row) = self.routes.get_mut(from.0 as usize) else { return };
        if row.len() <= to.0 as usize {
            row.resize(to.0 as usize + 1, Span::default());
        }
        row[to.0 as usize] = span;
    }

    /// The links that frames take from one node to another; none when they cannot speak.
    #[must_use]
    pub fn route(&self, from: NodeIndex, to: NodeIndex) -> &[LinkIndex] {
        let Some(span) = self.routes.get(from.0 as usize).and_then(|row| row.get(to.0 as usize)) else { return &[] };
        &self.hops[span.start as usize..(span.start + span.len) as usize]
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        index(self.nodes.len())
    }

    /// How many directed links there are.
    #[must_use]
    pub fn links(&self) -> u32 {
        index(self.links.len())
    }

    /// The ends of a link.
    #[must_use]
    pub fn ends(&self, link: LinkIndex) -> Option<(NodeIndex, NodeIndex)> {
        self.links.get(link.0 as usize).map(|edge| (edge.from, edge.to))
    }
}

/// A place in a list as a number of 32 bits; no list here comes near that limit.
pub(super) fn index(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
