//! The figures of the thesis that the model is from.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use cci_model::{Comparison, Family, Parameter, Parameters, Pattern, Topology, Transaction, sci2000};

fn comparison(parameters: Parameters, pattern: Pattern) -> Comparison {
    Comparison { families: sci2000().families, pattern, parameters, rate: None }
}

fn halved() -> Parameters {
    Parameter::Switching.scaled(&sci2000().parameters, 0.5)
}

#[test]
fn crossovers_of_the_average_latency_within_2_per_cent_or_one_node() {
    let published = sci2000().published;
    for (parameters, enhanced) in [(sci2000().parameters, false), (halved(), true)] {
        let found = comparison(parameters, Pattern::Average).crossovers(4000.0).unwrap();
        assert_eq!(found.len(), 3);
        for (ours, theirs) in found.iter().zip(&published) {
            let bar = f64::from(if enhanced { theirs.average_enhanced } else { theirs.average });
            assert_eq!((ours.from, ours.to), theirs.families);
            assert!((ours.nodes - bar).abs() <= (0.02 * bar).max(1.0), "{} instead of {bar}", ours.nodes);
        }
    }
}

#[test]
fn the_sum_of_unicasts_crosses_where_the_average_does() {
    let average = comparison(halved(), Pattern::Average).crossovers(4000.0).unwrap();
    let unicasts = comparison(halved(), Pattern::Unicasts).crossovers(4000.0).unwrap();
    assert_eq!(average.len(), unicasts.len());
    for (one, other) in average.iter().zip(&unicasts) {
        assert!((one.nodes - other.nodes).abs() < 1e-6 * one.nodes, "{one:?} {other:?}");
    }
}

#[test]
fn the_paths_that_were_measured() {
    let parameters = sci2000().parameters;
    let latency = |topology: &str, from, to| {
        let topology: Topology = topology.parse().unwrap();
        parameters.latency_ns(&topology.route(from, to).count()).unwrap()
    };
    // Equations 22 to 25, by hand.
    assert_eq!(latency("ring:2", 0, 1), 4177.0);
    assert_eq!(latency("ring:4", 0, 2), 4244.0);
    assert_eq!(latency("ring:6", 0, 3), 4311.0);
    assert_eq!(latency("ring:8", 0, 4), 4378.0);
    // Equation 20: switching in place of nothing, and a hop more.
    assert_eq!(latency("torus:3x3", 0, 5) - latency("torus:3x3", 0, 2), 677.0);
}

#[test]
fn equations_8_and_9_for_every_pair_of_a_torus() {
    let torus: Topology = "torus:3x4x2".parse().unwrap();
    let parameters = sci2000().parameters;
    let sides = [3u64, 4, 2];
    let digits = |mut node: u64| sides.map(|side| (node % side, node /= side).0);
    for from in 0..torus.nodes() {
        for to in (0..torus.nodes()).filter(|to| *to != from) {
            let (a, b) = (digits(from), digits(to));
            let hops: Vec<_> = (0..3).map(|k| (b[k] + sides[k] - a[k]) % sides[k]).collect();
            let there: u64 = hops.iter().sum();
            let turned = hops.iter().filter(|hops| **hops > 0).count() as u64;
            let back: u64 = (0..3).filter(|k| hops[*k] > 0).map(|k| sides[k] - hops[k]).sum();
            let formula = |hops: u64| {
                2.0 * 2085.0 + hops as f64 * 7.0 + (hops - turned) as f64 * 60.0 + (turned - 1) as f64 * 670.0
            };
            let ways = Transaction::between(&torus, from, to);
            assert_eq!(parameters.latency_ns(&ways.request.count()).unwrap(), formula(there));
            assert_eq!(parameters.latency_ns(&ways.response.count()).unwrap(), formula(back));
        }
    }
}

#[test]
fn equations_14_and_15_as_printed() {
    for dimensions in 1..=4u32 {
        for side in [2u32, 3, 5, 8] {
            let (d, n) = (f64::from(dimensions), f64::from(side));
            let nodes = n.powi(dimensions as i32);
            let choose = |i: u32| (0..i).map(|k| f64::from(dimensions - k) / f64::from(k + 1)).product::<f64>();
            let switches: f64 = (1..=dimensions).map(|i| f64::from(i - 1) * choose(i) * (n - 1.0).powi(i as i32)).sum();
            let mean = Family::torus(dimensions).exactly(u64::from(side).pow(dimensions)).unwrap().mean();
            assert!((mean.propagations - d / 2.0 * nodes * (n - 1.0) / (nodes - 1.0)).abs() < 1e-9);
            assert!((mean.switchings - switches / (nodes - 1.0)).abs() < 1e-9);
        }
    }
}

#[test]
fn the_overhead_grows_with_the_message() {
    let parameters = sci2000().parameters;
    assert_eq!(parameters.overhead.at(64.0), 2085.0);
    assert!((parameters.overhead.at(512.0) - 7281.8).abs() < 1e-9);
}
