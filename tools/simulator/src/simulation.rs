//! A pattern on a topology, simulated, beside its analysis.

use crate::plan::{Ends, Plan, with_header};
use crate::programs::{self, Broken, Load, cumulative, draw};
use crate::world::World;
use cci_model::Flow;
use cci_model::ModelError;
use cci_model::Parameters;
use cci_model::Pattern;
use cci_model::Topology;
use cci_model::fit::{CONFIDENCE, quantile};
use cci_proto::Attribute;
use cci_sim::Random;
use std::fmt;

/// Connections of one run at most. Each takes about 1,500 bytes with its two sides, its route and a
/// message: 6 GiB.
pub const MOST_CONNECTIONS: u64 = 4_000_000;
/// Batches of a run under load.
const BATCHES: u32 = 20;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// Its components; the header is the engine's.
    pub parameters: &'a Parameters,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// Messages per second that each node posts at random times (Poisson), instead of one after the
    /// other.
    pub rate: Option<f64>,
    /// What connections promise. Acknowledgements of reliable ones load links and processors, which
    /// the analysis does not know.
    pub attribute: Attribute,
    /// Messages that are measured, where the pattern does not say how many there are.
    pub messages: u64,
    /// Determines everything that happens.
    pub seed: u64,
}

/// What came out, beside the analysis.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The analysis, ns.
    pub analysis_ns: f64,
    /// The analysis of the same messages in the whole nanoseconds that the simulation counts.
    pub whole_ns: Option<f64>,
    /// The simulation, ns.
    pub simulated_ns: f64,
    /// Half the width of its interval of 95 %; none of what is no mean.
    pub half_width_ns: Option<f64>,
    /// Messages that did not take what the analysis says to the nanosecond; none where messages
    /// meet.
    pub different: Option<u64>,
    /// Messages measured.
    pub messages: u64,
    /// Connections.
    pub connections: u64,
    /// Virtual time of their set-up, ns.
    pub set_up_ns: u64,
    /// Utilisation of the busiest link by the analysis, under load.
    pub utilisation: Option<f64>,
    /// All deliveries in one number.
    pub trace: u64,
}

impl Outcome {
    /// How far the simulation is from the analysis, relative.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.simulated_ns / self.analysis_ns - 1.0
    }
}

/// Why there is no outcome.
#[derive(Debug)]
pub enum SimulationError {
    /// The question.
    Model(ModelError),
    /// A connection ended, which happens only to reliable ones on a network that is far too slow
    /// for them.
    Broken(Broken),
}

impl From<ModelError> for SimulationError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Broken> for SimulationError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::Broken((connection, why)) => write!(
                f,
                "connection {connection} of the simulated network ended ({why:?}): give a faster network, or unreliable connections"
            ),
        }
    }
}

impl std::error::Error for SimulationError {}

type Result<T> = std::result::Result<T, SimulationError>;

/// Simulates.
///
/// # Errors
///
/// The pattern or the parameters cannot be, here or at all; or a connection ended.
pub fn simulate(setting: &Setting<'_>) -> Result<Outcome> {
    match (setting.rate, setting.pattern) {
        (Some(rate), Pattern::Average | Pattern::Neighbour | Pattern::Transpose | Pattern::HotSpot(_)) => {
            under_load(setting, rate)
        }
        (Some(_), pattern) => Err(ModelError::NoAnswer(format!(
            "{pattern} has its own times of sending: leave the rate or load out, or take average, neighbour, transpose or hot-spot"
        ))
        .into()),
        (None, Pattern::AllToAll) => all_to_all(setting),
        (None, Pattern::Multicast) => multicast(setting),
        (None, Pattern::Unicasts) => unicasts(setting),
        (None, _) => one_by_one(setting),
    }
}

/// A world whose connections are open.
struct Ready {
    plan: Plan,
    world: World,
    flows: Vec<Flow>,
    set_up_ns: u64,
}

impl Ready {
    /// Opens a connection for each flow, each node in the order given.
    fn new(setting: &Setting<'_>, ends: Ends, flows: Vec<Flow>) -> Result<Self> {
        if flows.len() as u64 > MOST_CONNECTIONS {
            return Err(too_many(setting, flows.len() as u64));
        }
        let plan = Plan::new(setting.topology, setting.parameters, ends, setting.attribute, setting.seed)?;
        let mut world = World::new(&plan.machine);
        let pair = |flow: &Flow| (node(flow.source), node(flow.destination));
        for (from, to) in flows.iter().map(pair) {
            world.set_route(from, to, &plan.route(from, to));
            world.set_route(to, from, &plan.route(to, from));
        }
        world.connect(flows.iter().map(pair))?;
        let set_up_ns = world.now().0;
        Ok(Self { plan, world, flows, set_up_ns })
    }

    /// Connections of each node, in order.
    fn by_node(&self) -> Vec<Vec<u32>> {
        let mut turns = vec![Vec::new(); self.plan.machine.nodes as usize];
        for (flow, number) in self.flows.iter().zip(0..) {
            turns[node(flow.source) as usize].push(number);
        }
        turns
    }

    fn outcome(&self, analysis_ns: f64, simulated_ns: f64, messages: u64) -> Outcome {
        Outcome {
            analysis_ns,
            whole_ns: None,
            simulated_ns,
            half_width_ns: None,
            different: None,
            messages,
            connections: self.flows.len() as u64,
            set_up_ns: self.set_up_ns,
            utilisation: None,
            trace: self.world.trace(),
        }
    }
}

fn too_many(setting: &Setting<'_>, connections: u64) -> SimulationError {
    ModelError::TooMuchWork {
        what: format!("simulating {} on {} with {connections} connections", setting.pattern, setting.topology),
        instead: format!("give fewer nodes; there may be {MOST_CONNECTIONS} connections"),
    }
    .into()
}

/// Nodes have numbers of 32 bits here; a plan refuses more.
fn node(vertex: u64) -> u32 {
    u32::try_from(vertex).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "virtual times and counts below 2^53")]
fn double(number: u64) -> f64 {
    number as f64
}

/// The analysis with the engine's header.
fn analysis(setting: &Setting<'_>) -> Result<f64> {
    Ok(setting.pattern.time_ns(setting.topology, &with_header(setting.parameters))?)
}

/// Each flow once, if there are not many more than messages to be measured; otherwise so many,
/// drawn by their weights. And whether all are there.
fn chosen(setting: &Setting<'_>) -> Result<(Vec<Flow>, bool)> {
    let all: Vec<Flow> = setting.pattern.flows(setting.topology)?.collect();
    if all.len() as u64 <= setting.messages {
        return Ok((all, true));
    }
    let mut random = Random::of(setting.seed, 0, 1);
    let sums = cumulative(all.iter().map(|flow| flow.weight));
    let mut drawn: Vec<Flow> = (0..setting.messages).map(|_| all[draw(&sums, &mut random)]).collect();
    drawn.sort_by_key(|flow| (flow.source, flow.destination));
    drawn.dedup_by_key(|flow| (flow.source, flow.destination));
    // What was drawn stands for itself.
    drawn.iter_mut().for_each(|flow| flow.weight = 1.0);
    Ok((drawn, false))
}

/// One message after the other on an idle network.
fn one_by_one(setting: &Setting<'_>) -> Result<Outcome> {
    let (flows, is_all) = chosen(setting)?;
    let mut ready = Ready::new(setting, Ends::Busy, flows)?;
    let (mut sum, mut expected, mut weight, mut different) = (0.0, 0.0, 0.0, 0);
    for (number, flow) in (0..).zip(ready.flows.clone()) {
        let took = double(programs::alone(&mut ready.world, number)?);
        let whole = ready.plan.analysis(flow.source, flow.destination)?;
        sum += flow.weight * took;
        expected += flow.weight * whole;
        weight += flow.weight;
        // Sums of whole numbers, but for the rounding of the rate.
        different += u64::from((took - whole).abs() > 1e-6 * whole);
    }
    let sampled = expected / weight;
    let analysis_ns = if is_all { analysis(setting)? } else { sampled };
    let outcome = ready.outcome(analysis_ns, sum / weight, ready.flows.len() as u64);
    Ok(Outcome { whole_ns: Some(sampled), different: Some(different), ..outcome })
}

/// Node 0 to every other, each when the one before has arrived.
fn unicasts(setting: &Setting<'_>) -> Result<Outcome> {
    let flow = |destination| Flow { source: 0, destination, weight: 1.0 };
    let nodes = setting.topology.nodes();
    if nodes > MOST_CONNECTIONS {
        return Err(too_many(setting, nodes));
    }
    let mut ready = Ready::new(setting, Ends::Busy, (1..nodes).map(flow).collect())?;
    let (mut sum, mut expected, mut different) = (0.0, 0.0, 0);
    for (number, destination) in (0..).zip(1..nodes) {
        let took = double(programs::alone(&mut ready.world, number)?);
        let whole = ready.plan.analysis(0, destination)?;
        (sum, expected) = (sum + took, expected + whole);
        different += u64::from((took - whole).abs() > 1e-6 * whole);
    }
    let outcome = ready.outcome(analysis(setting)?, sum, nodes - 1);
    Ok(Outcome { whole_ns: Some(expected), different: Some(different), ..outcome })
}

/// Every node to every other, in turn from its own number on, so that no node gets all at once.
fn all_to_all(setting: &Setting<'_>) -> Result<Outcome> {
    let nodes = setting.topology.nodes();
    let connections = nodes.saturating_mul(nodes - 1);
    if connections > MOST_CONNECTIONS {
        return Err(too_many(setting, connections));
    }
    let flow = |source, shift| Flow { source, destination: (source + shift) % nodes, weight: 1.0 };
    let flows = (1..nodes).flat_map(|shift| (0..nodes).map(move |source| flow(source, shift))).collect();
    let mut ready = Ready::new(setting, Ends::Busy, flows)?;
    let turns = ready.by_node();
    let round = programs::round(&mut ready.world, &turns)?;
    let bound = |parameters: &Parameters| match parameters.link.bytes_per_ns {
        Some(_) => Ok(setting.pattern.loaded(setting.topology, parameters, 0.0)?.time_ns),
        None => setting.pattern.time_ns(setting.topology, parameters),
    };
    let (analysis, whole) = (bound(&with_header(setting.parameters))?, bound(&ready.plan.whole)?);
    Ok(Outcome { whole_ns: Some(whole), ..ready.outcome(analysis, double(round.completion), round.messages) })
}

/// The binomial tree from node 0.
fn multicast(setting: &Setting<'_>) -> Result<Outcome> {
    let flows: Vec<Flow> = setting.pattern.flows(setting.topology)?.collect();
    let mut ready = Ready::new(setting, Ends::Busy, flows)?;
    // Children of larger subtrees have the higher numbers, and come first.
    let mut children = ready.by_node();
    children.iter_mut().for_each(|children| children.reverse());
    let mut turns = vec![Vec::new(); children.len()];
    turns[0].clone_from(&children[0]);
    let destinations: Vec<usize> = ready.flows.iter().map(|flow| node(flow.destination) as usize).collect();
    let round = programs::relay(&mut ready.world, &turns, |number| &children[destinations[number as usize]])?;
    let whole = setting.pattern.time_ns(setting.topology, &ready.plan.whole)?;
    let outcome = ready.outcome(analysis(setting)?, double(round.completion), round.messages);
    Ok(Outcome { whole_ns: Some(whole), ..outcome })
}

/// All nodes at random times.
fn under_load(setting: &Setting<'_>, rate: f64) -> Result<Outcome> {
    let loaded = setting.pattern.loaded(setting.topology, &with_header(setting.parameters), rate)?;
    let flows: Vec<Flow> = setting.pattern.flows(setting.topology)?.collect();
    let mut ready = Ready::new(setting, Ends::Delay, flows)?;
    let connections = ready.by_node();
    let weights: Vec<Vec<f64>> = connections
        .iter()
        .map(|own| cumulative(own.iter().map(|number| ready.flows[*number as usize].weight)))
        .collect();
    let batch = (setting.messages / u64::from(BATCHES)).max(1);
    let load = Load { rate: rate * 1e-9, warm_up: setting.messages / 10, batch, batches: BATCHES };
    let means = programs::load(&mut ready.world, &connections, &weights, &load, setting.seed)?;
    let count = f64::from(BATCHES);
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half_width = quantile(CONFIDENCE, BATCHES - 1) * (variance / count).sqrt();
    let outcome = ready.outcome(loaded.time_ns, mean, batch * u64::from(BATCHES));
    Ok(Outcome { half_width_ns: Some(half_width), utilisation: Some(loaded.utilisation), ..outcome })
}
