//! Nodes, each with an engine, over a virtual network.

use super::attacker::Attacker;
use super::messages::Stream;
use super::plan::{End, NODES, Plan};
use super::reports::Reports;
use super::side::{Oracle, Registration, Side};
use super::tamper::{Tamper, Tampering};
use cci_proto::Address;
use cci_proto::engine::{Config, Engine, Index, Security, Stats, ToySealer};
use cci_sim::Random;
use cci_sim::network::{Graph, Network, Time};

/// Where a side of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not asked for yet.
    Before,
    /// Asked for, or accepted.
    Opening,
    /// Open.
    Open,
    /// The engine said that it is broken.
    Broken,
    /// Over, for this side.
    Over,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionEnd {
    pub(super) index: Index,
    pub(super) stage: Stage,
    pub(super) messages: u32,
    pub(super) transfers: u32,
    pub(super) posted: u32,
}

/// A node: its engine, and what the engine is driven with.
pub(super) struct Node {
    pub(super) engine: Engine,
    pub(super) side: Side,
    pub(super) random: Random,
    pub(super) step_at: Option<Time>,
    /// What routers say to it, and the generator of that.
    pub(super) reports: Reports,
    pub(super) router: Random,
    /// Requests that the program has not answered.
    pub(super) requests: Vec<(Index, u32)>,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages posted.
    pub messages: u32,
    /// RMAs posted.
    pub transfers: u32,
    /// Those that change a word.
    pub atomics: u32,
    /// Those that ask for their memory.
    pub large: u32,
    /// Frames handed to the network.
    pub frames: u64,
    /// Frames sent again.
    pub resent: u64,
    /// Slices of frames that the path did not carry any more.
    pub slices: u64,
    /// Messages that left by the fast path.
    pub at_once: u64,
    /// Frames of somebody on the path.
    pub attacks: u32,
    /// Clients that went where a broker sent them.
    pub redirected: u32,
    /// Frames whose bytes were in memory before they were checked.
    pub copied_unchecked: u32,
    /// Those of them that were broken.
    pub copied_broken: u32,
    /// Connections that ended because a router said that nobody is there.
    pub refused: u32,
    /// Virtual time, nanoseconds.
    pub time: u64,
    /// Occurrences handled, but for steps of programs that found nothing to do.
    pub occurrences: u32,
}

/// A world.
pub struct World {
    pub(super) plan: Plan,
    pub(super) network: Network,
    pub(super) nodes: Vec<Node>,
    pub(super) oracle: Oracle,
    pub(super) connections: Vec<[ConnectionEnd; 2]>,
    /// Where the next RMA's memory lies, for each node.
    pub(super) arena_next: Vec<usize>,
    /// Where the next read of each node's pattern begins.
    pub(super) read_next: Vec<u64>,
    pub(super) totals: Totals,
    pub(super) buffer: Vec<u8>,
    pub(super) tampering: Tampering,
    /// Who is on the path of sealed connections.
    pub(super) attacker: Option<Attacker>,
    /// The moment of the last occurrence, and how many it has had before.
    pub(super) at_once: (Time, u32),
}

/// The address of a node.
pub(super) fn address(node: u32) -> Address {
    let mut address = Address::default();
    address.0[..4].copy_from_slice(&(node + 1).to_be_bytes());
    address
}

pub(super) fn node_of(address: &Address) -> u32 {
    u32::from_be_bytes([address.0[0], address.0[1], address.0[2], address.0[3]]).wrapping_sub(1)
}

fn registrations(random: &mut Random, node: u32) -> Vec<Registration> {
    let mut make = |index: u64, arena, read, write| Registration {
        handle: [u64::from(node) << 32 | index, random.next()],
        arena,
        read,
        write,
        alive: true,
    };
    vec![
        make(0, true, false, true),
        make(1, false, true, false),
        make(2, true, false, true),
        make(3, false, true, false),
        make(4, true, false, false),
        make(5, true, true, false),
    ]
}

impl World {
    /// The world of a plan, in which nothing has happened.
    #[must_use]
    pub fn new(plan: Plan, tamper: Tamper) -> Self {
        let network = Network::new(plan.seed, Graph::mesh(NODES, &plan.link));
        let nodes = (0..NODES).map(|number| {
            let mut random = Random::of(plan.seed, 0x90de, u64::from(number));
            let mut side = Side::new(number, plan.slots, plan.config.operations);
            side.registrations = registrations(&mut random, number);
            side.sealer = plan.sealed.then(|| {
                let mut sealer = ToySealer::new(Security::Sealed, 0x5EC2E7, number.into());
                sealer.frames_per_key = plan.frames_per_key;
                sealer
            });
            side.turn_away = u32::try_from(random.below(3)).unwrap_or(0);
            let secrets = std::array::from_fn(|_| random.next());
            // Two hosts with two of them each.
            let config = Config { machine: u64::from(1 + number / 2), ..plan.config };
            Node {
                engine: Engine::new(&config, secrets),
                side,
                random,
                step_at: Some(Time(0)),
                reports: Reports::default(),
                router: Random::of(plan.seed, 0x90df, u64::from(number)),
                requests: Vec::new(),
            }
        });
        let nodes = nodes.collect();
        let mut oracle = Oracle::default();
        let mut connections = Vec::new();
        for planned in &plan.connections {
            connections.push([0, 1].map(|side| ConnectionEnd {
                index: Index(u32::MAX),
                stage: Stage::Before,
                messages: planned.messages[side],
                transfers: planned.transfers[side],
                posted: 0,
            }));
            for _ in 0..2 {
                oracle.streams.push(Stream::new(planned.attribute));
                let is_cut = matches!(planned.end, End::Rejected | End::Nobody | End::Unreachable { .. });
                oracle.excused.push(planned.send_timeout > 0 || is_cut);
                oracle.over.push(false);
            }
        }
        Self {
            network,
            nodes,
            oracle,
            connections,
            arena_next: vec![0; NODES as usize],
            read_next: vec![0; NODES as usize],
            totals: Totals::default(),
            buffer: vec![0; usize::from(plan.config.mtu).max(2048)],
            tampering: Tampering::new(tamper),
            attacker: plan.sealed.then(|| Attacker::new(plan.seed)),
            at_once: (Time(0), 0),
            plan,
        }
    }

    /// What the run did.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            attacks: self.attacker.as_ref().map_or(0, Attacker::attacks),
            copied_unchecked: self.oracle.copied_unchecked,
            copied_broken: self.oracle.copied_unchecked - self.oracle.accepted,
            ..self.totals
        }
    }

    /// Counters of a node's engine.
    #[must_use]
    pub fn stats(&self, node: usize) -> Stats {
        *self.nodes[node].engine.stats()
    }
}
