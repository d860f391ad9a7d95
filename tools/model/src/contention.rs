//! What messages wait for each other: links as queues.
//!
//! Every node sends at random times (Poisson), every frame occupies a link for the same time t, and
//! a link serves first come, first served. A link of load ρ on which frames arrive at random is a
//! queue M/D/1, of mean wait t ρ / (2 (1 - ρ)) (Pollaczek and Khinchine). On a ring that is two to
//! three times too much, since frames that have come over one link cannot come at once: their
//! contention among each other is over. For frames that go on together over links of equal service
//! time, M. Shalmon and M. A. Kaplan, "A tandem network of queues with deterministic service and
//! intermediate arrivals", Operations Research 32 (4), 1984, give the exact result: the first link
//! might as well be a mere delay, so that the waits on both add up to that of one queue. In the
//! units of a frame's time, with ρ_i for what comes over the link i before,
//!
//! ```text
//! ρ w = q(ρ, ρ) - sum over i of q(ρ_i, ρ_i)        q(a, b) = a² / (2 (1 - b))
//! ```
//!
//! Where only a part ρ_i of the load ρ_u of the link before comes on and the rest leaves, no exact
//! result is known. The frames that leave also kept the others apart: we take q(ρ_i, (ρ_i + ρ_u) /
//! 2), which is exact where nothing leaves. Two formulas enclose it: q(ρ_i, ρ_i) waits too long,
//! q(ρ_i, ρ), that of C. P. Kruskal and M. Snir, "The performance of multistage interconnection
//! networks for multiprocessors", IEEE Transactions on Computers C-32 (12), 1983, too short. The
//! choice between them is ours, and is tested against a simulation of the links
//! (`tests/contention.rs`).
//!
//! The closed forms are exact but for bidirectional rings of 6, 10, 14 ... nodes, whose even and
//! odd links have slightly different loads (see [`Wrap::Both`]): they take the mean.
//!
//! The ends are not queues here: a node that sends and receives faster than its overhead allows is
//! not noticed.

use crate::topology::Wrap;
use crate::topology::closed::{Shape, mean_hops};

/// Links that carry the same, for messages from every node to uniformly random other nodes.
///
/// Loads are frames on the link for each message that a node sends: multiplied by messages per
/// second and seconds per frame they are utilisations.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkClass {
    /// Links of this class for each node.
    pub per_node: f64,
    /// Load of each.
    pub load: f64,
    /// Kinds of links that feed into each.
    pub feeds: Vec<Feed>,
}

/// Links before a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feed {
    /// How many.
    pub links: f64,
    /// What comes over each of them and goes on over the link.
    pub share: f64,
    /// Load of each of them.
    pub load: f64,
}

/// Mean wait of a frame in front of a link, in units of the time that it occupies the link.
///
/// `scale` turns loads into utilisations; that of the link is below 1.
pub(crate) fn wait(load: f64, feeds: impl IntoIterator<Item = Feed>, scale: f64) -> f64 {
    if load <= 0.0 {
        return 0.0;
    }
    let contention = |load: f64, limit: f64| load * load / (2.0 * (1.0 - limit));
    let settled: f64 = feeds
        .into_iter()
        .map(|feed| {
            let (share, load) = (feed.share * scale, feed.load * scale);
            feed.links * contention(share, f64::midpoint(share, load))
        })
        .sum();
    let load = load * scale;
    ((contention(load, load) - settled) / load).max(0.0)
}

/// Most feeds of the links of a mesh, which grow with the square of its sides.
const MOST_FEEDS: f64 = 2e7;

impl Shape {
    /// The classes of links under uniform traffic; none for meshes and hypercubes of broken sizes,
    /// nor for meshes of thousands of nodes along a side, whose links all differ.
    #[must_use]
    pub fn link_classes(&self) -> Option<Vec<LinkClass>> {
        match self {
            Self::Grid { wrap: Wrap::Line, sides, .. } => {
                let whole = sides.iter().all(|side| side.fract() == 0.0);
                (whole && sides.iter().sum::<f64>().powi(2) < MOST_FEEDS).then(|| mesh(sides))
            }
            Self::Grid { sides, wrap, whole } => Some(grid(sides, *wrap, *whole)),
            Self::Hypercube { nodes } => {
                let dimensions = nodes.log2().round();
                (dimensions.exp2() == *nodes).then(|| grid(&vec![2.0; dimensions as usize], Wrap::Forward, true))
            }
            Self::Star { nodes } => {
                let others = nodes - 1.0;
                Some(vec![
                    LinkClass { per_node: 1.0, load: 1.0, feeds: vec![] },
                    LinkClass {
                        per_node: 1.0,
                        load: 1.0,
                        feeds: vec![Feed { links: others, share: 1.0 / others, load: 1.0 }],
                    },
                ])
            }
            Self::FatTree { ports, levels } => Some(fat_tree(self.nodes(), *ports, *levels)),
            Self::Dragonfly { nodes, routers, globals } => Some(dragonfly(self.nodes(), *nodes, *routers, *globals)),
        }
    }

    /// Load of the busiest link under uniform traffic, in frames per message of each node.
    #[must_use]
    pub fn busiest(&self) -> f64 {
        if let Self::Grid { sides, wrap: Wrap::Line, whole } = self {
            // In the middle of a line half of the messages pass to the other half.
            let middle = |side: &f64| if *whole { (side * side / 4.0).floor() / side } else { side / 4.0 };
            return sides.iter().map(middle).fold(0.0, f64::max) * self.nodes() / (self.nodes() - 1.0);
        }
        if let Some(classes) = self.link_classes() {
            return classes.iter().map(|class| class.load).fold(0.0, f64::max);
        }
        // A hypercube of a broken size: half of all messages travel each dimension.
        self.nodes() / (self.nodes() - 1.0) / 2.0
    }

    /// Mean wait of a message under uniform traffic in units of the time that it occupies a link;
    /// none for too large meshes.
    ///
    /// `scale` is messages per node in that time; the busiest link's load times it is below 1.
    #[must_use]
    pub(crate) fn mean_wait(&self, scale: f64) -> Option<f64> {
        let Some(classes) = self.link_classes() else { return self.wait_between(scale) };
        let of = |class: &LinkClass| class.per_node * class.load * wait(class.load, class.feeds.iter().copied(), scale);
        Some(classes.iter().map(of).sum())
    }

    /// Between the waits of the whole sizes below and above, for shapes that only have classes of
    /// links there.
    fn wait_between(&self, scale: f64) -> Option<f64> {
        let (at, least, whole): (f64, f64, Box<dyn Fn(f64) -> Self + '_>) = match self {
            Self::Hypercube { nodes } => (nodes.log2(), 1.0, Box::new(|whole| Self::Hypercube { nodes: whole.exp2() })),
            Self::Grid { sides, wrap, .. } if sides.iter().all(|side| *side == sides[0]) => {
                let sides_of = |whole| Self::Grid { sides: vec![whole; sides.len()], wrap: *wrap, whole: true };
                (sides[0], 2.0, Box::new(sides_of))
            }
            _ => return None,
        };
        let below = at.floor().max(least);
        if at == below {
            return None;
        }
        // The larger one is fuller: it may be full already.
        if whole(below + 1.0).busiest() * scale >= 1.0 {
            return whole(below).mean_wait(scale);
        }
        let (low, high) = (whole(below).mean_wait(scale)?, whole(below + 1.0).mean_wait(scale)?);
        Some(low + (at - below) * (high - low))
    }
}

/// What of a dimension's traffic goes which way round, as nodes see it.
///
/// In a bidirectional ring of an even number of nodes, even nodes send what is equally far up, odd
/// nodes down.
fn portions(side: f64, wrap: Wrap, whole: bool) -> Vec<f64> {
    if wrap != Wrap::Both || side == 2.0 {
        return vec![1.0];
    }
    let even = whole && side % 2.0 == 0.0;
    let more = if even { side / 2.0 / (side - 1.0) } else { 0.5 };
    vec![more, 1.0 - more]
}

/// Tori, and grids whose sides are two.
fn grid(sides: &[f64], wrap: Wrap, whole: bool) -> Vec<LinkClass> {
    let nodes = sides.iter().product::<f64>();
    let scale = nodes / (nodes - 1.0);
    let load = |side: f64| {
        let one_way = side == 2.0 || wrap == Wrap::Forward;
        scale * if one_way { (side - 1.0) / 2.0 } else { mean_hops(side, wrap, whole) / 2.0 }
    };
    let travelled = |side: f64| 1.0 - 1.0 / side;
    let class = |dimension: usize, portion: f64| {
        let side = sides[dimension];
        let entering = scale * travelled(side) * portion;
        let mut feeds = vec![Feed { links: 1.0, share: load(side) - entering, load: load(side) }];
        // From a dimension before, when all in between need no hop.
        let mut still = 1.0;
        for before in sides[..dimension].iter().rev() {
            let turns = entering * travelled(*before) * still;
            let from = |portion: f64| Feed { links: 1.0, share: turns * portion, load: load(*before) };
            feeds.extend(portions(*before, wrap, whole).into_iter().map(from));
            still /= before;
        }
        feeds.retain(|feed| feed.share > 0.0);
        LinkClass { per_node: 1.0, load: load(side), feeds }
    };
    let classes = |dimension: usize| {
        let ways = portions(sides[dimension], wrap, whole);
        ways.into_iter().map(move |portion| class(dimension, portion)).collect::<Vec<_>>()
    };
    (0..sides.len()).flat_map(classes).collect()
}

/// Meshes: a class for each place in each dimension, both directions at their mirrored places. What
/// feeds a link from a dimension before depends on the node's place there; it is taken over all
/// places, which gives the mean of the waits, since feeds add up.
fn mesh(sides: &[f64]) -> Vec<LinkClass> {
    let nodes = sides.iter().product::<f64>();
    let scale = nodes / (nodes - 1.0);
    // Behind the link that ascends from `place`: those below it send to those above it.
    let load = |side: f64, place: f64| scale * (place + 1.0) * (side - 1.0 - place) / side;
    let places = |side: f64| (0..side as u64).map(|place| place as f64);
    let class = |dimension: usize, place: f64| {
        let side = sides[dimension];
        let above = side - 1.0 - place;
        let mut feeds = vec![Feed { links: 1.0, share: scale * place * above / side, load: load(side, place - 1.0) }];
        let mut still = 1.0;
        for before in sides[..dimension].iter().rev() {
            let turned = |from: f64| Feed {
                links: 2.0 / before,
                share: scale * from / before * still * above / side,
                load: load(*before, from - 1.0),
            };
            feeds.extend(places(*before).map(turned));
            still /= before;
        }
        feeds.retain(|feed| feed.share > 0.0);
        LinkClass { per_node: 2.0 / side, load: load(side, place), feeds }
    };
    let classes =
        |dimension: usize| places(sides[dimension] - 1.0).map(move |place| class(dimension, place)).collect::<Vec<_>>();
    (0..sides.len()).flat_map(classes).collect()
}

fn fat_tree(nodes: f64, ports: f64, levels: u8) -> Vec<LinkClass> {
    let half = ports / 2.0;
    let others = nodes - 1.0;
    let leaves_switch = (nodes - half) / others;
    let class = |load, feeds| LinkClass { per_node: 1.0, load, feeds };
    let feed = |links: f64, share, load| Feed { links: links.max(0.0), share, load };
    let mut classes = vec![
        class(1.0, vec![]),
        class(leaves_switch, vec![feed(half, leaves_switch / half, 1.0)]),
        // Down to a node: over the one upper link that serves it, and from the others on its
        // switch.
        class(1.0, vec![feed(1.0, leaves_switch, leaves_switch), feed(half - 1.0, 1.0 / others, 1.0)]),
    ];
    if levels == 2 {
        classes.push(class(leaves_switch, vec![feed(ports - 1.0, leaves_switch / (ports - 1.0), leaves_switch)]));
        return classes;
    }
    let leaves_pod = (nodes - half * half) / others;
    let turns = leaves_switch - leaves_pod;
    classes.push(class(leaves_pod, vec![feed(half, leaves_pod / half, leaves_switch)]));
    classes.push(class(leaves_pod, vec![feed(ports - 1.0, leaves_pod / (ports - 1.0), leaves_pod)]));
    let mut down = vec![feed(1.0, leaves_pod, leaves_pod)];
    if half > 1.0 {
        down.push(feed(half - 1.0, turns / (half - 1.0), leaves_switch));
    }
    classes.push(class(leaves_switch, down));
    classes
}

fn dragonfly(all: f64, nodes: f64, routers: f64, globals: f64) -> Vec<LinkClass> {
    let pair = 1.0 / (all - 1.0);
    let group = nodes * routers;
    // To another router of the group: its own nodes, those of the groups it leads to, and messages
    // from other groups.
    let local = nodes * nodes * pair * (1.0 + 2.0 * routers * globals);
    let global = group * group * pair;
    let feed = |links: f64, share, load| Feed { links: links.max(0.0), share, load };
    vec![
        LinkClass { per_node: 1.0, load: 1.0, feeds: vec![] },
        LinkClass {
            per_node: (routers - 1.0) / nodes,
            load: local,
            feeds: vec![
                feed(nodes, (nodes + globals * group) * pair, 1.0),
                feed(globals, group * nodes * pair, global),
            ],
        },
        LinkClass {
            per_node: globals / nodes,
            load: global,
            feeds: vec![feed(routers - 1.0, nodes * group * pair, local), feed(nodes, group * pair, 1.0)],
        },
        LinkClass {
            per_node: 1.0,
            load: 1.0,
            feeds: vec![
                feed(nodes - 1.0, pair, 1.0),
                feed(routers - 1.0, nodes * (1.0 + routers * globals) * pair, local),
                feed(globals, group * pair, global),
            ],
        },
    ]
}
