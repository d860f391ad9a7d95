//! The queueing model against a simulation of the links, and its closed forms against listed
//! routes.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use cci_model::{Family, FirstTransmission, Flow, Link, ModelError, Overhead, Parameters, Pattern, Relay, Topology};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Frames of 100 bytes on links of a byte a nanosecond; everything else costs next to nothing.
fn parameters() -> Parameters {
    Parameters {
        overhead: Overhead::constant(1.0),
        propagation_ns: 1.0,
        forwarding_ns: 1.0,
        switching_ns: 1.0,
        link: Link {
            bytes_per_ns: Some(1.0),
            header_bytes: 20.0,
            relay: Relay::CutThrough,
            first: FirstTransmission::Apart,
        },
        message_bytes: 80.0,
    }
}

/// xorshift64*, for numbers in [0, 1).
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Mean wait of a message in front of links that serve first come, first served, in the time that
/// they take for a frame.
fn simulated_wait(topology: &Topology, pattern: Pattern, per_node: f64, messages: usize, seed: u64) -> f64 {
    let flows: Vec<Flow> = pattern.flows(topology).unwrap().collect();
    let total: f64 = flows.iter().map(|flow| flow.weight).sum();
    let bounds: Vec<_> = flows
        .iter()
        .scan(0.0, |sum, flow| {
            *sum += flow.weight / total;
            Some(*sum)
        })
        .collect();
    let mut random = Random(seed);
    let mut free: HashMap<(u64, u64), f64> = HashMap::new();
    let mut waited = vec![0.0; messages];
    let mut routes = Vec::with_capacity(messages);
    let mut events = BinaryHeap::new();
    let mut time = 0.0;
    for message in 0..messages {
        time -= (1.0 - random.unit()).ln() / (per_node * topology.nodes() as f64);
        let at = random.unit();
        let flow = flows[bounds.partition_point(|bound| *bound <= at).min(flows.len() - 1)];
        routes.push(topology.route(flow.source, flow.destination).links().collect::<Vec<_>>());
        // Times are positive, so that their bits are in their order.
        events.push(Reverse((f64::to_bits(time), message, 0)));
    }
    while let Some(Reverse((time, message, hop))) = events.pop() {
        let time = f64::from_bits(time);
        let link = free.entry(routes[message][hop]).or_insert(0.0);
        let start = time.max(*link);
        *link = start + 1.0;
        waited[message] += start - time;
        if hop + 1 < routes[message].len() {
            events.push(Reverse((f64::to_bits(start + 1.0), message, hop + 1)));
        }
    }
    // The first tenth finds an empty network.
    let steady = &waited[messages / 10..];
    steady.iter().sum::<f64>() / steady.len() as f64
}

/// Model and simulation at a utilisation of the busiest link.
fn compare(name: &str, pattern: Pattern, utilisation: f64, seed: u64) -> (f64, f64) {
    let topology: Topology = name.parse().unwrap();
    let rate = utilisation * pattern.saturation(&topology, &parameters()).unwrap();
    let loaded = pattern.loaded(&topology, &parameters(), rate).unwrap();
    assert!((loaded.utilisation - utilisation).abs() < 1e-9, "{name}: {loaded:?}");
    let frame = parameters().transmission_ns().unwrap();
    (loaded.wait_ns / frame, simulated_wait(&topology, pattern, rate * frame * 1e-9, 60_000, seed))
}

#[test]
fn waits_are_those_of_a_simulation_up_to_a_load_of_70_per_cent() {
    let uniform =
        ["ring:8", "ring:16", "torus:4x4", "torus:4x4x4", "biring:16", "bitorus:5x5", "hypercube:16", "star:16"];
    let listed = ["fattree2:k=6", "fattree3:k=4", "dragonfly:h=1", "mesh:4x4"];
    for (seed, name) in (1..).zip(uniform.into_iter().chain(listed)) {
        for utilisation in [0.4, 0.7] {
            let (model, simulation) = compare(name, Pattern::Average, utilisation, seed);
            let error = model / simulation - 1.0;
            assert!(error.abs() < 0.1, "{name} at {utilisation}: {model} instead of {simulation}");
        }
    }
}

#[test]
fn waits_of_other_patterns_are_those_of_a_simulation() {
    for (name, pattern) in [
        ("torus:4x4", Pattern::Neighbour),
        ("torus:6x6", Pattern::Transpose),
        ("bitorus:4x4", Pattern::HotSpot(0.2)),
        ("ring:9", Pattern::HotSpot(0.1)),
        ("torus:4x4", Pattern::Multicast),
    ] {
        // The time of a multicast is not the mean of its messages': their mean is compared here.
        let topology: Topology = name.parse().unwrap();
        let frame = parameters().transmission_ns().unwrap();
        let scale = 0.6 * pattern.saturation(&topology, &parameters()).unwrap() * frame * 1e-9;
        let model = pattern.loads(&topology).unwrap().waits(scale).mean();
        let simulation = simulated_wait(&topology, pattern, scale, 60_000, 77);
        assert!((model / simulation - 1.0).abs() < 0.12, "{pattern} on {name}: {model} instead of {simulation}");
    }
}

#[test]
fn a_ring_is_not_a_row_of_independent_queues() {
    // What the correction is for: M/D/1 at each of the 8 hops would be 9.3 frames.
    let (model, simulation) = compare("ring:16", Pattern::Average, 0.7, 5);
    assert!(model < 4.0 && simulation < 4.0, "{model} {simulation}");
}

#[test]
fn closed_forms_of_link_loads_are_those_of_listed_routes() {
    let names = [
        "mesh:4x4",
        "mesh:5x3",
        "mesh:7",
        "mesh:3x4x2",
        "mesh:2x2",
        "ring:2",
        "ring:7",
        "torus:3x5",
        "torus:4x3x2",
        "biring:9",
        "biring:8",
        "bitorus:5x4",
        "bitorus:2x4",
        "hypercube:32",
        "star:9",
        "fattree2:k=4",
        "fattree2:k=8",
        "fattree3:k=4",
        "fattree3:k=6",
        "dragonfly:h=1",
        "dragonfly:p=2,a=4,h=2",
        "dragonfly:p=1,a=3,h=2",
        "fattree2:k=2",
        "fattree3:k=2",
    ];
    for name in names {
        let topology: Topology = name.parse().unwrap();
        let loads = Pattern::Average.loads(&topology).unwrap();
        let busiest = loads.busiest().unwrap().1;
        assert!((topology.shape().busiest() - busiest).abs() < 1e-9, "{name}: {busiest}");
        let frame = parameters().transmission_ns().unwrap();
        for utilisation in [0.1, 0.9] {
            let rate = utilisation / busiest / frame * 1e9;
            let closed = Pattern::Average.loaded_closed(&topology.shape(), &parameters(), rate).unwrap();
            let listed = loads.waits(utilisation / busiest).mean() * frame;
            assert!(
                (closed.wait_ns - listed).abs() < 1e-9 * listed.max(1e-9),
                "{name}: {closed:?} instead of {listed}"
            );
        }
    }
}

#[test]
fn traffic_among_neighbours_waits_as_one_queue() {
    // Each link carries one node's messages only: M/D/1, ρ / (2 (1 - ρ)) = 0.5 at one half.
    let (model, _) = compare("torus:4x4", Pattern::Neighbour, 0.5, 1);
    assert!((model - 0.5).abs() < 1e-9, "{model}");
}

#[test]
fn waits_grow_with_the_load_without_end() {
    let topology: Topology = "torus:4x4".parse().unwrap();
    let most = Pattern::Average.saturation(&topology, &parameters()).unwrap();
    let wait = |share: f64| Pattern::Average.loaded(&topology, &parameters(), share * most).unwrap().wait_ns;
    let waits: Vec<_> = [0.0, 0.2, 0.5, 0.8, 0.95, 0.999].map(wait).into();
    assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    assert!(waits[0] == 0.0 && waits[5] > 100.0 * waits[1]);
    let full = Pattern::Average.loaded(&topology, &parameters(), most * 1.0001).unwrap_err();
    assert!(matches!(full, ModelError::Saturated { .. }));
    assert!(full.to_string().contains("lower rate"), "{full}");
}

#[test]
fn all_to_all_is_bound_by_the_ends_or_by_the_links() {
    let ring: Topology = "ring:32".parse().unwrap();
    let slow_links = Pattern::AllToAll.loaded(&ring, &parameters(), 1.0).unwrap();
    // 31 messages of each of 32 nodes over 16 hops each, 100 ns each, on 32 links.
    let least = 31.0 * 16.0 * 100.0;
    assert!((slow_links.time_ns - least).abs() < 0.02 * least, "{slow_links:?}");
    let slow_ends = Parameters { overhead: Overhead::constant(1e6), ..parameters() };
    assert_eq!(Pattern::AllToAll.loaded(&ring, &slow_ends, 1.0).unwrap().wait_ns, 0.0);
}

#[test]
fn closed_forms_of_patterns_are_those_of_listed_flows() {
    for name in [
        "ring:9",
        "torus:4x4",
        "bitorus:3x5",
        "mesh:4x5",
        "hypercube:16",
        "star:7",
        "fattree2:k=6",
        "fattree3:k=4",
        "dragonfly:h=2",
    ] {
        let topology: Topology = name.parse().unwrap();
        for pattern in [Pattern::Average, Pattern::Neighbour, Pattern::HotSpot(0.3)] {
            let listed = parameters().latency_ns(&pattern.enumerated_mean(&topology).unwrap()).unwrap();
            let closed = pattern.time_ns(&topology, &parameters()).unwrap();
            assert!((listed - closed).abs() < 1e-9 * listed, "{pattern} on {name}: {closed} instead of {listed}");
        }
    }
}

#[test]
fn the_closed_form_of_a_tree_is_exact_for_powers_of_two() {
    for name in [
        "ring:16",
        "torus:4x4x4",
        "torus:8x2",
        "bitorus:8x8",
        "mesh:4x8",
        "hypercube:64",
        "star:32",
        "fattree2:k=8",
        "fattree3:k=8",
    ] {
        let topology: Topology = name.parse().unwrap();
        for parameters in [parameters(), cci_model::sci2000().parameters] {
            let followed = Pattern::Multicast.time_ns(&topology, &parameters).unwrap();
            let closed = Pattern::Multicast.closed_ns(&topology.shape(), &parameters).unwrap();
            assert!((followed - closed).abs() < 1e-9 * followed, "{name}: {closed} instead of {followed}");
        }
    }
}

#[test]
fn a_multicast_under_load_waits_along_its_tree() {
    let torus: Topology = "torus:4x4".parse().unwrap();
    let most = Pattern::Multicast.saturation(&torus, &parameters()).unwrap();
    let idle = Pattern::Multicast.time_ns(&torus, &parameters()).unwrap();
    let loaded = Pattern::Multicast.loaded(&torus, &parameters(), 0.8 * most).unwrap();
    assert!(loaded.time_ns > idle && loaded.wait_ns == loaded.time_ns - idle);
    assert!((loaded.utilisation - 0.8).abs() < 1e-9);
}

#[test]
fn without_a_link_rate_nothing_is_said_of_contention() {
    let mut parameters = parameters();
    parameters.link.bytes_per_ns = None;
    parameters.link.first = FirstTransmission::InOverhead;
    let ring: Topology = "ring:8".parse().unwrap();
    assert!(Pattern::Average.time_ns(&ring, &parameters).is_ok());
    let why = Pattern::Average.loaded(&ring, &parameters, 1.0).unwrap_err().to_string();
    assert!(why.contains("rate=3.2Gb/s"), "{why}");
    parameters.link.relay = Relay::StoreAndForward;
    assert!(Pattern::Average.time_ns(&ring, &parameters).unwrap_err().to_string().contains("rate="));
}

#[test]
fn what_would_take_for_ever_is_refused() {
    for name in ["mesh:1000000x1000000", "mesh:5000x5000"] {
        let topology: Topology = name.parse().unwrap();
        assert!(Pattern::Average.saturation(&topology, &parameters()).unwrap() > 0.0);
        let why = Pattern::Average.loaded(&topology, &parameters(), 1.0).unwrap_err();
        assert!(matches!(why, ModelError::TooMuchWork { .. }), "{name}: {why}");
    }
    let ring: Topology = "ring:100000".parse().unwrap();
    let why = Pattern::HotSpot(0.1).saturation(&ring, &parameters()).unwrap_err();
    assert!(why.to_string().contains("fewer nodes"), "{why}");
    assert!(Pattern::Average.loaded(&ring, &parameters(), 1.0).is_ok());
}

#[test]
fn a_broken_size_waits_between_its_neighbours() {
    let mesh = |side: f64| {
        let shape = "mesh:2d".parse::<Family>().unwrap().shape(side * side);
        Pattern::Average.loaded_closed(&shape, &parameters(), 1e6).unwrap().wait_ns
    };
    assert!(mesh(4.0) < mesh(4.5) && mesh(4.5) < mesh(5.0));
    let at =
        |nodes| Pattern::Average.loaded_closed(&Family::Hypercube.shape(nodes), &parameters(), 1e6).unwrap().wait_ns;
    assert!(at(16.0) < at(20.0) && at(20.0) < at(32.0));
}
