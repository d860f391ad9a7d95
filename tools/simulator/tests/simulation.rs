//! The simulation against the analysis.

use cci_model::Pattern;
use cci_model::Topology;
use cci_model::sci2000;
use cci_model::{FirstTransmission, Link, Overhead, Parameters, Relay};
use cci_proto::Attribute;
use cci_simulator::{Outcome, Setting, simulate};

fn fast(relay: Relay) -> Parameters {
    Parameters {
        overhead: Overhead { at_reference_ns: 300.0, reference_bytes: 8.0, per_byte_ns: 0.25 },
        propagation_ns: 5.0,
        forwarding_ns: 30.0,
        switching_ns: 90.0,
        link: Link { bytes_per_ns: Some(12.5), header_bytes: 60.0, relay, first: FirstTransmission::Apart },
        message_bytes: 64.0,
    }
}

fn run(topology: &str, pattern: &str, parameters: &Parameters, attribute: Attribute) -> Outcome {
    let (topology, pattern): (Topology, Pattern) = (topology.parse().unwrap(), pattern.parse().unwrap());
    let setting = Setting { topology: &topology, parameters, pattern, rate: None, attribute, messages: 500, seed: 1 };
    simulate(&setting).unwrap()
}

const TOPOLOGIES: [&str; 10] = [
    "ring:8",
    "biring:7",
    "torus:4x3x2",
    "bitorus:5x4",
    "mesh:4x3",
    "hypercube:16",
    "star:9",
    "fattree2:k=4",
    "fattree3:k=4",
    "dragonfly:p=2,a=2,h=1",
];

/// The bar: a message on an idle, connected network takes what the analysis says, to the
/// nanosecond.
#[test]
fn without_contention_every_message_takes_what_the_analysis_says() {
    for topology in TOPOLOGIES {
        for relay in [Relay::CutThrough, Relay::StoreAndForward] {
            for attribute in [Attribute::Unreliable, Attribute::ReliableOrdered] {
                let outcome = run(topology, "average", &fast(relay), attribute);
                assert_eq!(outcome.different, Some(0), "{topology} {relay:?} {attribute:?}: {outcome:?}");
                assert!(outcome.messages >= 42 && outcome.deviation().abs() < 2e-3, "{topology}: {outcome:?}");
            }
        }
    }
}

#[test]
fn the_published_system_is_simulated_to_the_nanosecond() {
    for message_bytes in [0.0, 1.0, 64.0, 1000.0] {
        let parameters = Parameters { message_bytes, ..sci2000().parameters };
        let outcome = run("torus:4x4", "average", &parameters, Attribute::Unreliable);
        assert_eq!(outcome.different, Some(0), "{outcome:?}");
        // Each of two overheads is rounded to a nanosecond.
        assert!((outcome.simulated_ns - outcome.analysis_ns).abs() <= 1.0, "{outcome:?}");
    }
}

#[test]
fn patterns_without_contention_take_what_the_analysis_says() {
    for pattern in ["unicasts", "multicast", "neighbour", "transpose", "hot-spot=0.3"] {
        let outcome = run("torus:4x4", pattern, &fast(Relay::CutThrough), Attribute::Unreliable);
        let whole = outcome.whole_ns.unwrap();
        assert!((outcome.simulated_ns - whole).abs() < 1e-6 * whole, "{pattern}: {outcome:?}");
        assert!(outcome.different.unwrap_or(0) == 0 && outcome.deviation().abs() < 2e-3, "{pattern}: {outcome:?}");
    }
}

/// With links that messages wait for.
fn slow() -> Parameters {
    let fast = fast(Relay::CutThrough);
    Parameters { link: Link { bytes_per_ns: Some(0.4), ..fast.link }, ..fast }
}

fn idle(topology: &str, pattern: &str) -> f64 {
    pattern.parse::<Pattern>().unwrap().time_ns(&topology.parse().unwrap(), &slow()).unwrap()
}

fn loaded(topology: &str, pattern: &str, load: f64) -> Outcome {
    let (topology, pattern): (Topology, Pattern) = (topology.parse().unwrap(), pattern.parse().unwrap());
    let parameters = slow();
    let rate = load * pattern.saturation(&topology, &parameters).unwrap();
    let setting = Setting {
        topology: &topology,
        parameters: &parameters,
        pattern,
        rate: Some(rate),
        attribute: Attribute::Unreliable,
        messages: 12_000,
        seed: 1,
    };
    simulate(&setting).unwrap()
}

/// The bar: with contention, within 10 % of the queueing model up to a load of 70 %.
#[test]
fn with_contention_the_queueing_model_is_within_a_tenth() {
    for (topology, pattern) in
        [("torus:6x6", "average"), ("ring:8", "average"), ("fattree3:k=4", "average"), ("torus:5x5", "transpose")]
    {
        for load in [0.3, 0.7] {
            let outcome = loaded(topology, pattern, load);
            assert!((outcome.utilisation.unwrap() - load).abs() < 1e-9, "{outcome:?}");
            assert!(outcome.deviation().abs() <= 0.1, "{topology} {pattern} at {load}: {outcome:?}");
            // The wait is a good part of it, so that a model without waits would not pass.
            assert!(load < 0.5 || outcome.simulated_ns > 1.2 * idle(topology, pattern), "{outcome:?}");
        }
    }
}

#[test]
fn the_seed_determines_everything() {
    let run = |seed| {
        let (topology, parameters) = ("torus:3x3".parse().unwrap(), fast(Relay::CutThrough));
        let setting = Setting {
            topology: &topology,
            parameters: &parameters,
            pattern: Pattern::Average,
            rate: Some(1e5),
            attribute: Attribute::ReliableUnordered,
            messages: 2000,
            seed,
        };
        let outcome = simulate(&setting).unwrap();
        (outcome.trace, outcome.simulated_ns.to_bits())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn all_to_all_brings_every_message() {
    for attribute in [Attribute::Unreliable, Attribute::ReliableOrdered] {
        let outcome = run("torus:4x3", "all-to-all", &fast(Relay::CutThrough), attribute);
        assert_eq!((outcome.messages, outcome.connections), (12 * 11, 12 * 11));
        let ends = 2.0 * 11.0 * 314.0;
        assert!(outcome.simulated_ns >= ends, "each node sends 11 messages and receives as many: {outcome:?}");
    }
    // Overheads that contain the transmission occupy the ends no less.
    let outcome = run("torus:4x3", "all-to-all", &sci2000().parameters, Attribute::Unreliable);
    assert!(outcome.simulated_ns >= 2.0 * 11.0 * 2085.0 && outcome.deviation().abs() < 0.05, "{outcome:?}");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_what_to_give_instead() {
    let refused = |change: &dyn Fn(&mut Parameters, &mut Pattern, &mut Option<f64>), topology: &str| {
        let (mut parameters, mut pattern, mut rate) = (fast(Relay::CutThrough), Pattern::Average, None);
        change(&mut parameters, &mut pattern, &mut rate);
        let setting = Setting {
            topology: &topology.parse().unwrap(),
            parameters: &parameters,
            pattern,
            rate,
            attribute: Attribute::Unreliable,
            messages: 10,
            seed: 1,
        };
        simulate(&setting).unwrap_err().to_string()
    };
    assert!(refused(&|of, _, _| of.message_bytes = 9000.0, "ring:4").contains("up to 8192"));
    assert!(refused(&|of, _, _| of.message_bytes = 1.5, "ring:4").contains("whole number"));
    assert!(refused(&|of, _, _| of.propagation_ns = 1e15, "ring:4").contains("too long"));
    assert!(refused(&|of, _, _| of.propagation_ns = -1.0, "ring:4").contains("l_p"));
    assert!(refused(&|of, _, _| of.link.bytes_per_ns = Some(1e-12), "ring:4").contains("rate"));
    assert!(refused(&|of, _, rate| (of.link.bytes_per_ns, *rate) = (None, Some(1.0)), "ring:4").contains("rate"));
    assert!(refused(&|_, _, rate| *rate = Some(1e12), "ring:4").contains("lower rate"));
    assert!(
        refused(&|_, pattern, rate| (*pattern, *rate) = (Pattern::AllToAll, Some(1.0)), "ring:4").contains("own times")
    );
    assert!(refused(&|_, pattern, _| *pattern = Pattern::AllToAll, "torus:20x20x20").contains("fewer nodes"));
    assert!(refused(&|_, pattern, _| *pattern = Pattern::Transpose, "ring:5").contains("square"));
    let within = |of: &mut Parameters| {
        of.link.first = FirstTransmission::InOverhead;
        of.link.bytes_per_ns = Some(0.01);
    };
    assert!(refused(&|of, _, _| within(of), "ring:4").contains("transmission"));
}
