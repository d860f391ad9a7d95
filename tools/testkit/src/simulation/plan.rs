//! What a seed determines: the network, the engines, the connections and what is done on them.

use cci_proto::Attribute;
use cci_proto::engine::Config;
use cci_sim::Random;
use cci_sim::network::{Faults, LinkSettings, Time};
use std::time::Duration;

/// Nodes of a world.
pub const NODES: u32 = 4;
/// Messages sent in every run, at least.
pub const MESSAGES: u32 = 1000;
/// RMAs in every run, at least.
pub const TRANSFERS: u32 = 50;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// When all is done.
    Done,
    /// One side (0: the client) closes it when it has sent so many messages.
    Early {
        /// Which side.
        side: usize,
        /// After so many.
        after: u32,
    },
    /// The system of one side's peer says that nobody is there, when that side has sent so many
    /// messages.
    Unreachable {
        /// Which side hears it.
        side: usize,
        /// After so many.
        after: u32,
    },
    /// The server rejects it.
    Rejected,
    /// Nobody is there; it times out.
    Nobody,
}

/// A connection of the plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Client and server.
    pub nodes: [u32; 2],
    /// A node that is asked in the server's place, and sends the client there.
    pub broker: Option<u32>,
    /// What it promises.
    pub attribute: Attribute,
    /// Its end.
    pub end: End,
    /// Messages that each side sends.
    pub messages: [u32; 2],
    /// RMAs that each side starts.
    pub transfers: [u32; 2],
    /// When it is opened, nanoseconds.
    pub opens: u64,
    /// Send timeout, microseconds; 0 = none.
    pub send_timeout: u32,
    /// Keepalive timeout, microseconds; 0 = none.
    pub keepalive: u32,
    /// How long its client waits for the answer.
    pub timeout: Option<Duration>,
}

/// Everything that a seed determines.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// What every link is like.
    pub link: LinkSettings,
    /// How the engines are made.
    pub config: Config,
    /// Receive slots of each node.
    pub slots: u32,
    /// Longest time that a program takes from one step to the next, nanoseconds.
    pub think: u64,
    /// Of a million chances for a program to return an event, it takes so many.
    pub returns: u32,
    /// Of a million outputs, so many are asked for before the program had its chance to answer.
    pub hasty: u32,
    /// When all links come to carry no longer frames than this, bytes.
    pub shrinks: Option<(Time, usize)>,
    /// Of a million frames that are too big or go nowhere, a router speaks of so many to their
    /// sender.
    pub tells: u32,
    /// Of a million times that a node does something, it is told something untrue so often.
    pub lies: u32,
    /// Longest message that is sent.
    pub longest: u32,
    /// Longest RMA.
    pub longest_transfer: u32,
    /// Whether connections are sealed; then somebody on the path attacks them.
    pub sealed: bool,
    /// Frames under one key of a sealed connection.
    pub frames_per_key: u32,
    /// The connections.
    pub connections: Vec<Planned>,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::of(seed, 0x91a, 0);
        let random = &mut random;
        let link = link(random);
        let scarce = random.below(3) == 0;
        let slots = narrow(if scarce { random.between(2, 12) } else { random.between(32, 256) });
        let mut config = config(random, link.mtu);
        let long = random.below(4) == 0;
        let mut connections = connections(random, link.delay);
        // What came later draws from a generator of its own, so that the rest of a seed stays as it
        // was.
        let later = &mut Random::of(seed, 0x91b, 0);
        // Damage to what no check covers is not seen by anybody.
        config.unchecked_on_host = link.faults.corrupt == 0 && later.below(2) == 0;
        let shrinks = shrinks(later, &link, &config);
        connections.iter_mut().for_each(|planned| divert(later, planned));
        let latest = &mut Random::of(seed, 0x91c, 0);
        let sealed = latest.below(3) == 0;
        if sealed {
            connections.iter_mut().for_each(seal);
        }
        Self {
            seed,
            config,
            slots,
            think: [20_000, 200_000, 2_000_000][pick(random, 3)],
            returns: [50_000, 500_000, 1_000_000][pick(random, 3)],
            hasty: [0, 300_000, 900_000][pick(random, 3)],
            shrinks,
            tells: [0, 500_000, 1_000_000][pick(later, 3)],
            lies: [0, 20_000][pick(later, 2)],
            longest: config.max_send_size.min(if long { 16_384 } else { 3000 }),
            longest_transfer: if long { 32_768 } else { 6000 },
            link,
            sealed,
            frames_per_key: [1 << 22, 9000][pick(latest, 2)],
            connections,
        }
    }

    /// Messages of the plan.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.connections.iter().flat_map(|planned| planned.messages).sum()
    }

    /// The same with a good network: what fails then does not fail for the network.
    #[must_use]
    pub fn calm(mut self) -> Self {
        self.link.faults = Faults::default();
        self.link.jitter = 0;
        self.link.queue = u64::MAX;
        self
    }
}

/// A number that fits, by construction.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn pick(random: &mut Random, of: u64) -> usize {
    usize::try_from(random.below(of)).unwrap_or(0)
}

fn link(random: &mut Random) -> LinkSettings {
    let bad = random.below(4) != 0;
    let faults = if bad {
        Faults {
            loss: [0, 1000, 10_000, 50_000, 100_000, 300_000][pick(random, 6)],
            duplicate: [0, 10_000, 100_000][pick(random, 3)],
            corrupt: [0, 10_000, 50_000][pick(random, 3)],
            script: Vec::new(),
        }
    } else {
        Faults::default()
    };
    let delay = [1000, 20_000, 200_000, 5_000_000][pick(random, 4)];
    let bandwidth = [12_500_000, 125_000_000, 1_250_000_000, 0][pick(random, 4)];
    LinkSettings {
        delay,
        bandwidth,
        queue: [8_000, 30_000, 200_000, u64::MAX][pick(random, 4)],
        mark: [u64::MAX, 10_000][pick(random, 2)],
        mtu: [1200, 1400, 1500, 4000, 9000][pick(random, 5)],
        jitter: [0, 0, delay / 4, delay * 2][pick(random, 4)],
        faults,
        ..LinkSettings::default()
    }
}

fn config(random: &mut Random, path: usize) -> Config {
    let path = u16::try_from(path).unwrap_or(u16::MAX);
    Config {
        mtu: [path, path, 9000][pick(random, 3)],
        base_mtu: if random.below(2) == 0 { 1200 } else { path },
        max_send_size: [4096, 16_384][pick(random, 2)],
        recv_buffer: [16_384, 65_536, 1 << 20][pick(random, 3)],
        frames: [32, 128, 1024][pick(random, 3)],
        holds: [8, 32, 256][pick(random, 3)],
        operations: 256,
        machine: 0,
        unchecked_on_host: false,
        patient: false,
        first_seq: match random.below(3) {
            0 => None,
            1 => Some(u32::MAX - narrow(random.below(300))),
            _ => Some((u32::MAX >> 1) - narrow(random.below(300))),
        },
    }
}

/// Half of the paths whose frames may have grown come to carry less after a while.
fn shrinks(random: &mut Random, link: &LinkSettings, config: &Config) -> Option<(Time, usize)> {
    let least = u64::from(config.base_mtu);
    let most = (link.mtu as u64).min(config.mtu.into());
    if most <= least || random.below(2) == 0 {
        return None;
    }
    let at = random.below(2_000_000 + 40 * link.delay);
    Some((Time(at), usize::try_from(random.between(least, most - 1)).unwrap_or(1200)))
}

/// Some connections go through a broker, and some of those that end early are cut.
fn divert(random: &mut Random, planned: &mut Planned) {
    if let End::Early { side, after } = planned.end
        && random.below(4) == 0
    {
        planned.end = End::Unreachable { side, after };
    }
    let is_answered = !matches!(planned.end, End::Rejected | End::Nobody);
    if is_answered && random.below(4) == 0 {
        planned.broker = (0..NODES).filter(|node| !planned.nodes.contains(node)).nth(pick(random, 2));
    }
}

/// Nobody cuts a sealed connection by a report of the network.
fn seal(planned: &mut Planned) {
    if let End::Unreachable { side, after } = planned.end {
        planned.end = End::Early { side, after };
    }
}

fn connections(random: &mut Random, delay: u64) -> Vec<Planned> {
    let count = random.between(5, 12);
    let mut planned: Vec<_> = (0..count).map(|number| connection(random, number, delay)).collect();
    // What is promised to every run goes to connections that live until all is done.
    let lasting: Vec<_> = (0..planned.len()).filter(|at| planned[*at].end == End::Done).collect();
    let reliable: Vec<_> = lasting.iter().copied().filter(|at| planned[*at].attribute.is_reliable()).collect();
    for _ in 0..MESSAGES / 10 {
        planned[lasting[pick(random, lasting.len() as u64)]].messages[pick(random, 2)] += 10;
    }
    for _ in 0..TRANSFERS + narrow(random.below(20)) {
        planned[reliable[pick(random, reliable.len() as u64)]].transfers[pick(random, 2)] += 1;
    }
    planned
}

/// The first one is reliable and lasts.
fn connection(random: &mut Random, number: u64, delay: u64) -> Planned {
    let client = random.below(u64::from(NODES));
    let server = (client + random.between(1, u64::from(NODES) - 1)) % u64::from(NODES);
    let attributes = [Attribute::ReliableOrdered, Attribute::ReliableUnordered, Attribute::Unreliable];
    let attribute = attributes[pick(random, if number == 0 { 2 } else { 3 })];
    let end = match random.below(12) {
        _ if number == 0 => End::Done,
        0 | 1 => End::Early { side: pick(random, 2), after: narrow(random.between(0, 30)) },
        2 => End::Rejected,
        3 => End::Nobody,
        _ => End::Done,
    };
    let early = matches!(end, End::Early { .. });
    let timed = early && random.below(2) == 0;
    Planned {
        nodes: [narrow(client), narrow(server)],
        broker: None,
        attribute,
        end,
        messages: if early { [40; 2] } else { [0; 2] },
        transfers: if early && attribute.is_reliable() { [4; 2] } else { [0; 2] },
        opens: random.below(2_000_000),
        send_timeout: if timed { narrow((20 * delay / 1000).max(10_000)) } else { 0 },
        keepalive: if random.below(4) == 0 { narrow((10 * delay / 1000).max(20_000)) } else { 0 },
        timeout: (end == End::Nobody).then(|| Duration::from_millis(random.between(5, 50))),
    }
}
