//! Who sends to whom, and how long it takes: without contention, and with it.

use crate::error::ModelError;
use crate::family::Family;
use crate::parameters::Parameters;
use crate::topology::Topology;
use crate::topology::closed::Shape;
use crate::topology::route::Components;
use crate::traffic::{Flow, LinkLoads};
use std::fmt;
use std::str::FromStr;

const KNOWN: &str =
    "average, unicasts, multicast, all-to-all, neighbour, transpose and hot-spot=0.1 (with a share of your own)";

/// A traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One message from a random node to another: its mean latency.
    Average,
    /// One message from a random node to every other node, each sent when the one before it has
    /// arrived: the sum of their latencies, (N - 1) times the mean.
    Unicasts,
    /// One message to all nodes along a binomial tree from node 0: who has it sends it on, to the
    /// largest subtree first, a message each o. The time until the last node has it.
    Multicast,
    /// One message from every node to every other at once, in turn: the time until all have
    /// arrived, if the ends (2o for each message sent and received), or the busiest link, are busy
    /// without a gap, and the last message goes the longest way.
    AllToAll,
    /// From every node to its neighbours: mean latency. In networks of switches to the node of the
    /// next number.
    Neighbour,
    /// From node r·s + c to node c·s + r, for N = s²: the transposition of a matrix; mean latency.
    /// Nodes of the diagonal are silent.
    Transpose,
    /// As average, but every node sends this share of its messages to node 0.
    HotSpot(f64),
}

/// A time, and what of it is waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// Time with contention, ns.
    pub time_ns: f64,
    /// What contention adds, ns.
    pub wait_ns: f64,
    /// Utilisation of the busiest link.
    pub utilisation: f64,
}

/// Most links that the routes of all flows may take together: seconds.
const MOST_HOPS: f64 = 1e8;

/// Most nodes of a pattern that is enumerated.
const MOST_ENUMERATED: u64 = 1 << 22;

impl Pattern {
    /// How long it takes on an idle network, ns: mean latency, or time until it is complete.
    ///
    /// # Errors
    ///
    /// Transposition needs a square number of nodes; a tree or a transposition of millions of nodes
    /// takes too long to follow.
    pub fn time_ns(&self, topology: &Topology, parameters: &Parameters) -> Result<f64, ModelError> {
        match self {
            Self::Multicast => tree_time(topology, parameters, |_, _| 0.0),
            Self::Transpose => parameters.latency_ns(&self.enumerated_mean(topology)?),
            _ => self.closed_ns(&topology.shape(), parameters),
        }
    }

    /// How long it takes on an idle network that need not have a whole size, ns.
    ///
    /// # Errors
    ///
    /// Transposition has no closed form.
    pub fn closed_ns(&self, shape: &Shape, parameters: &Parameters) -> Result<f64, ModelError> {
        let nodes = shape.nodes();
        let mean = || parameters.latency_ns(&shape.mean());
        match self {
            Self::Average => mean(),
            Self::Unicasts => Ok((nodes - 1.0) * mean()?),
            Self::Multicast => {
                let (sum, rounds) = shape.tree();
                // Latency is linear in the components, but each round has two overheads.
                let once = parameters.latency_ns(&Components::default())?;
                Ok(parameters.latency_ns(&sum)? + (rounds - 1.0) * once)
            }
            Self::AllToAll => {
                let ends = (nodes - 2.0).max(0.0) * 2.0 * parameters.overhead_ns();
                Ok(ends + parameters.latency_ns(&shape.longest())?)
            }
            Self::Neighbour => parameters.latency_ns(&shape.neighbour()),
            Self::Transpose => Err(ModelError::NoAnswer(
                "transpose has no closed form: ask for whole sizes with a square number of nodes".into(),
            )),
            Self::HotSpot(share) => {
                // The hot node itself sends to all alike, from the corner.
                let corner = shape.mean_to_corner();
                let rest = shape.mean().plus(-1.0 / nodes, &corner);
                let hot = corner.times(share * (nodes - 1.0) / nodes);
                parameters.latency_ns(&hot.plus(1.0 - share, &rest).plus(1.0 / nodes, &corner))
            }
        }
    }

    /// Messages per second from each node at which the busiest link is never idle.
    ///
    /// # Errors
    ///
    /// Without a link rate there is none; too many nodes to list the routes of.
    pub fn saturation(&self, topology: &Topology, parameters: &Parameters) -> Result<f64, ModelError> {
        let busiest = if self.is_uniform() {
            topology.shape().busiest()
        } else {
            self.loads(topology)?.busiest().map_or(0.0, |(_, load)| load)
        };
        Ok(1e9 / (busiest * parameters.transmission_ns()?))
    }

    /// How long it takes when every node sends `rate` messages a second on average, all by this
    /// pattern.
    ///
    /// For all-to-all, all messages are there at once, whatever the rate.
    ///
    /// # Errors
    ///
    /// As [`Pattern::time_ns`]; more than the links can carry; too many nodes to list the routes
    /// of.
    pub fn loaded(&self, topology: &Topology, parameters: &Parameters, rate: f64) -> Result<Loaded, ModelError> {
        let shape = topology.shape();
        if *self == Self::AllToAll {
            return self.loaded_closed(&shape, parameters, rate);
        }
        let classes = self.is_uniform() && shape.link_classes().is_some();
        if classes {
            return self.loaded_closed(&shape, parameters, rate).map_err(|error| named(error, topology));
        }
        let (loads, frame) = (self.loads(topology)?, parameters.transmission_ns()?);
        let busiest = loads.busiest().map_or(0.0, |(_, load)| load);
        let scale = rate * frame * 1e-9;
        if busiest * scale >= 1.0 {
            return Err(saturated(topology.to_string(), rate, 1e9 / (busiest * frame)));
        }
        let waits = loads.waits(scale);
        let idle = self.time_ns(topology, parameters)?;
        let time_ns = match self {
            Self::Multicast => {
                let wait = |from, to| waits.along(&topology.route(from, to)) * frame;
                tree_time(topology, parameters, wait)?
            }
            _ => idle + self.messages(&shape) * waits.mean() * frame,
        };
        Ok(Loaded { time_ns, wait_ns: time_ns - idle, utilisation: busiest * scale })
    }

    /// The same in closed form, for uniform traffic.
    ///
    /// # Errors
    ///
    /// More than the links can carry; a pattern or a topology without closed form.
    pub fn loaded_closed(&self, shape: &Shape, parameters: &Parameters, rate: f64) -> Result<Loaded, ModelError> {
        let frame = parameters.transmission_ns()?;
        let idle = self.closed_ns(shape, parameters)?;
        let busiest = shape.busiest();
        if *self == Self::AllToAll {
            // All but the last of the frames on the busiest link are before the last one.
            let link = (busiest * (shape.nodes() - 1.0) - 1.0) * frame;
            let time_ns = idle.max(link + parameters.latency_ns(&shape.longest())?);
            return Ok(Loaded { time_ns, wait_ns: time_ns - idle, utilisation: 1.0 });
        }
        let scale = rate * frame * 1e-9;
        if busiest * scale >= 1.0 {
            return Err(saturated(format!("{:.1} nodes", shape.nodes()), rate, 1e9 / (busiest * frame)));
        }
        let wait = if self.is_uniform() { shape.mean_wait(scale) } else { None };
        let wait = wait.ok_or_else(|| {
            ModelError::NoAnswer(format!(
                "contention has no closed form for {self} here: ask for a topology of known size"
            ))
        })?;
        let wait_ns = self.messages(shape) * wait * frame;
        Ok(Loaded { time_ns: idle + wait_ns, wait_ns, utilisation: busiest * scale })
    }

    /// Whether all pairs of nodes exchange the same.
    fn is_uniform(&self) -> bool {
        matches!(self, Self::Average | Self::Unicasts | Self::AllToAll)
    }

    /// Messages, one after the other, whose latencies add up to the pattern's time.
    fn messages(&self, shape: &Shape) -> f64 {
        if *self == Self::Unicasts { shape.nodes() - 1.0 } else { 1.0 }
    }

    /// The loads of all links, by listing every route.
    ///
    /// # Errors
    ///
    /// As [`Pattern::flows`]; too many routes.
    pub fn loads(&self, topology: &Topology) -> Result<LinkLoads, ModelError> {
        let shape = topology.shape();
        let nodes = shape.nodes();
        let hops = match self {
            Self::Average | Self::Unicasts | Self::AllToAll | Self::HotSpot(_) => {
                nodes * nodes * shape.mean().propagations
            }
            Self::Neighbour => nodes * shape.neighbour().propagations,
            Self::Multicast | Self::Transpose => nodes * shape.longest().propagations,
        };
        if hops > MOST_HOPS {
            return Err(ModelError::TooMuchWork {
                what: format!("listing the routes of {self} on {topology}"),
                instead: "give fewer nodes".into(),
            });
        }
        Ok(LinkLoads::new(topology, self.flows(topology)?))
    }

    /// Mean components by listing every flow.
    ///
    /// # Errors
    ///
    /// As [`Pattern::flows`].
    pub fn enumerated_mean(&self, topology: &Topology) -> Result<Components, ModelError> {
        let (mut sum, mut weight) = (Components::default(), 0.0);
        for flow in self.flows(topology)? {
            sum = sum.plus(flow.weight, &topology.count(flow.source, flow.destination));
            weight += flow.weight;
        }
        Ok(sum.times(1.0 / weight))
    }

    /// Who sends how much to whom; one message from each node on average.
    ///
    /// # Errors
    ///
    /// Transposition needs a square number of nodes; too many nodes.
    pub fn flows<'a>(&self, topology: &'a Topology) -> Result<Box<dyn Iterator<Item = Flow> + 'a>, ModelError> {
        let nodes = topology.nodes();
        if nodes > MOST_ENUMERATED {
            return Err(ModelError::TooMuchWork {
                what: format!("{self} on {topology}"),
                instead: format!("give at most {MOST_ENUMERATED} nodes"),
            });
        }
        let others = (nodes - 1) as f64;
        let pairs = move || {
            let to = move |source| (0..nodes).filter(move |to| *to != source).map(move |to| (source, to));
            (0..nodes).flat_map(to)
        };
        let flow = |source, destination, weight| Flow { source, destination, weight };
        Ok(match *self {
            Self::Average | Self::Unicasts | Self::AllToAll => {
                Box::new(pairs().map(move |(from, to)| flow(from, to, 1.0 / others)))
            }
            Self::Multicast => {
                let weight = nodes as f64 / others;
                Box::new(tree_edges(nodes).map(move |(from, to)| flow(from, to, weight)))
            }
            Self::Neighbour => Box::new((0..nodes).flat_map(move |from| {
                let to = topology.neighbours(from);
                let weight = 1.0 / to.len() as f64;
                to.into_iter().map(move |to| flow(from, to, weight))
            })),
            Self::Transpose => {
                let side = square_side(topology)?;
                let turned = move |node: u64| node % side * side + node / side;
                let weight = nodes as f64 / (nodes - side) as f64;
                let moved = (0..nodes).filter(move |node| turned(*node) != *node);
                Box::new(moved.map(move |node| flow(node, turned(node), weight)))
            }
            Self::HotSpot(share) => Box::new(pairs().map(move |(from, to)| {
                let alike = if from == 0 { 1.0 } else { 1.0 - share };
                let hot = if to == 0 { share } else { 0.0 };
                flow(from, to, alike / others + hot)
            })),
        })
    }
}

impl Family {
    /// Time of a pattern at a size that need not be whole, with contention if a rate is given
    /// (messages per second from each node), ns.
    ///
    /// # Errors
    ///
    /// As [`Pattern::closed_ns`] and [`Pattern::loaded_closed`].
    pub fn time_ns(
        &self,
        pattern: Pattern,
        nodes: f64,
        parameters: &Parameters,
        rate: Option<f64>,
    ) -> Result<f64, ModelError> {
        let shape = self.shape(nodes);
        match rate {
            None => pattern.closed_ns(&shape, parameters),
            Some(rate) => Ok(pattern.loaded_closed(&shape, parameters, rate)?.time_ns),
        }
    }
}

fn saturated(topology: String, rate: f64, most: f64) -> ModelError {
    ModelError::Saturated { topology, rate, most }
}

/// With the topology's name instead of its size.
fn named(error: ModelError, topology: &Topology) -> ModelError {
    match error {
        ModelError::Saturated { rate, most, .. } => saturated(topology.to_string(), rate, most),
        other => other,
    }
}

/// The square root of the number of nodes.
fn square_side(topology: &Topology) -> Result<u64, ModelError> {
    let nodes = topology.nodes();
    let side = nodes.isqrt();
    if side * side == nodes {
        return Ok(side);
    }
    Err(ModelError::Size {
        kind: "a transposition".into(),
        asked: format!("{nodes} nodes ({topology})"),
        instead: format!(
            "it needs a square number of them; the nearest are {} and {}",
            side * side,
            (side + 1) * (side + 1)
        ),
    })
}

/// Parent and child: a node's parent has its lowest bit cleared.
fn tree_edges(nodes: u64) -> impl Iterator<Item = (u64, u64)> {
    (1..nodes).map(|child| (child & (child - 1), child))
}

/// The children of a node, the one with the largest subtree first.
fn tree_children(parent: u64, nodes: u64) -> impl Iterator<Item = u64> {
    let bits = if parent == 0 { nodes.next_power_of_two().trailing_zeros() } else { parent.trailing_zeros() };
    (0..bits).rev().map(move |bit| parent + (1 << bit)).filter(move |child| *child < nodes)
}

/// When the last node of a binomial tree has the message. A node sends to its largest subtree
/// first, a message each o.
fn tree_time(topology: &Topology, parameters: &Parameters, wait: impl Fn(u64, u64) -> f64) -> Result<f64, ModelError> {
    let nodes = topology.nodes();
    if nodes > MOST_ENUMERATED {
        return Err(ModelError::TooMuchWork {
            what: format!("a multicast over {topology}"),
            instead: format!("give at most {MOST_ENUMERATED} nodes"),
        });
    }
    let overhead = parameters.overhead_ns();
    let mut arrival = vec![0.0; nodes as usize];
    let mut last = 0.0f64;
    // A parent has a lower number than its children.
    for parent in 0..nodes {
        for (place, child) in tree_children(parent, nodes).enumerate() {
            let latency = parameters.latency_ns(&topology.count(parent, child))? + wait(parent, child);
            let time = arrival[parent as usize] + place as f64 * overhead + latency;
            arrival[child as usize] = time;
            last = last.max(time);
        }
    }
    Ok(last)
}

impl FromStr for Pattern {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let unknown = || ModelError::Unknown { what: "pattern", name: text.into(), known: KNOWN };
        match text.split_once('=').unwrap_or((text, "")) {
            ("average", "") => Ok(Self::Average),
            ("unicasts", "") => Ok(Self::Unicasts),
            ("multicast", "") => Ok(Self::Multicast),
            ("all-to-all", "") => Ok(Self::AllToAll),
            ("neighbour", "") => Ok(Self::Neighbour),
            ("transpose", "") => Ok(Self::Transpose),
            ("hot-spot", share) => match share.parse() {
                Ok(share) if share > 0.0 && share <= 1.0 => Ok(Self::HotSpot(share)),
                _ => Err(ModelError::Parameter {
                    name: "hot-spot",
                    wrong: format!("has the share `{share}`; give one above 0 and up to 1, as in hot-spot=0.1"),
                }),
            },
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Average => f.write_str("average"),
            Self::Unicasts => f.write_str("unicasts"),
            Self::Multicast => f.write_str("multicast"),
            Self::AllToAll => f.write_str("all-to-all"),
            Self::Neighbour => f.write_str("neighbour"),
            Self::Transpose => f.write_str("transpose"),
            Self::HotSpot(share) => write!(f, "hot-spot={share}"),
        }
    }
}
