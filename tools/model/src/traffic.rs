//! Traffic as flows between nodes, and the load of every link that they take.

use crate::contention::{Feed, wait};
use crate::topology::Topology;
use crate::topology::route::{Route, Vertex};
use std::collections::HashMap;

/// Messages from one node to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Source.
    pub source: u64,
    /// Destination.
    pub destination: u64,
    /// Messages for each message that a node sends on average.
    pub weight: f64,
}

/// One directed link under traffic.
#[derive(Clone, Debug)]
struct LinkLoad {
    ends: (Vertex, Vertex),
    load: f64,
    /// Links before it, and what comes on from each.
    from: Vec<(usize, f64)>,
}

/// The load of every link that flows take, by listing their routes.
///
/// Loads are frames for each message that a node sends on average, as in
/// [`LinkClass`](crate::contention::LinkClass).
#[derive(Clone, Debug)]
pub struct LinkLoads {
    links: Vec<LinkLoad>,
    index: HashMap<(Vertex, Vertex), usize>,
    /// Sum over all flows of weight.
    weight: f64,
}

impl LinkLoads {
    /// Of these flows over a topology.
    #[must_use]
    pub fn new(topology: &Topology, flows: impl IntoIterator<Item = Flow>) -> Self {
        let mut loads = Self { links: vec![], index: HashMap::new(), weight: 0.0 };
        let mut between: HashMap<(usize, usize), usize> = HashMap::new();
        for flow in flows {
            loads.weight += flow.weight;
            let route = topology.route(flow.source, flow.destination);
            let mut before = None;
            for ends in route.links() {
                let link = loads.link(ends);
                loads.links[link].load += flow.weight;
                if let Some(before) = before {
                    let from = &mut loads.links[link].from;
                    let place = *between.entry((before, link)).or_insert_with(|| {
                        from.push((before, 0.0));
                        from.len() - 1
                    });
                    from[place].1 += flow.weight;
                }
                before = Some(link);
            }
        }
        loads
    }

    fn link(&mut self, ends: (Vertex, Vertex)) -> usize {
        *self.index.entry(ends).or_insert_with(|| {
            self.links.push(LinkLoad { ends, load: 0.0, from: vec![] });
            self.links.len() - 1
        })
    }

    /// Every link with its load, in the order in which the flows first took them.
    pub fn links(&self) -> impl Iterator<Item = ((Vertex, Vertex), f64)> + '_ {
        self.links.iter().map(|link| (link.ends, link.load))
    }

    /// The busiest link and its load.
    #[must_use]
    pub fn busiest(&self) -> Option<((Vertex, Vertex), f64)> {
        self.links().fold(None, |most, link| most.filter(|(_, load)| *load >= link.1).or(Some(link)))
    }

    /// The wait in front of each link, in units of the time that a frame occupies it.
    ///
    /// `scale` is messages per node in that time; the busiest link's load times it must be below 1.
    #[must_use]
    pub fn waits(&self, scale: f64) -> Waits<'_> {
        let of = |link: &LinkLoad| {
            let feed = |(from, share): &(usize, f64)| Feed { links: 1.0, share: *share, load: self.links[*from].load };
            wait(link.load, link.from.iter().map(feed), scale)
        };
        Waits { loads: self, waits: self.links.iter().map(of).collect() }
    }
}

/// Mean waits at one rate.
#[derive(Clone, Debug)]
pub struct Waits<'a> {
    loads: &'a LinkLoads,
    waits: Vec<f64>,
}

impl Waits<'_> {
    /// Of a message along a route, in units of the time that it occupies a link.
    #[must_use]
    pub fn along(&self, route: &Route) -> f64 {
        route.links().filter_map(|ends| self.loads.index.get(&ends)).map(|link| self.waits[*link]).sum()
    }

    /// Of all messages on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let all: f64 = self.loads.links.iter().zip(&self.waits).map(|(link, wait)| link.load * wait).sum();
        if self.loads.weight > 0.0 { all / self.loads.weight } else { 0.0 }
    }
}
