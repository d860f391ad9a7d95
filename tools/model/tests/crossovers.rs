//! Crossovers over real and whole sizes, what moves them, and what cannot be asked.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use cci_model::{
    Change, Comparison, Family, Grid, MOST_NODES, ModelError, Parameter, Parameters, Pattern, Topology, Wrap,
    elasticity, sci2000,
};

fn tori(pattern: Pattern) -> Comparison {
    Comparison { families: sci2000().families, pattern, parameters: sci2000().parameters, rate: None }
}

fn everything() -> Vec<Family> {
    let names = [
        "ring",
        "biring",
        "torus:2d",
        "torus:3d",
        "torus:4d",
        "bitorus:2d",
        "bitorus:3d",
        "mesh:2d",
        "mesh:3d",
        "hypercube",
        "star",
        "fattree2",
        "fattree3",
        "dragonfly",
    ];
    names.map(|name| name.parse().unwrap()).into()
}

#[test]
fn both_are_equal_at_a_crossover_and_nowhere_between() {
    for pattern in [Pattern::Average, Pattern::Unicasts, Pattern::AllToAll, Pattern::HotSpot(0.1)] {
        let comparison = Comparison { families: everything(), pattern, ..tori(pattern) };
        let found = comparison.crossovers(1e6).unwrap();
        let time = |family: Family, nodes| family.time_ns(pattern, nodes, &comparison.parameters, None).unwrap();
        for change in &found {
            // Or the next one has its least size there.
            let (below, above) = (time(change.from, change.nodes), time(change.to, change.nodes));
            let begins = change.to.least() <= change.nodes && change.to.least() >= change.nodes * (1.0 - 1e-9);
            assert!((below - above).abs() < 1e-6 * below || begins, "{pattern}: {change:?} {below} {above}");
        }
        assert!(found.windows(2).all(|pair| pair[0].nodes < pair[1].nodes && pair[0].to == pair[1].from));
    }
}

#[test]
fn whole_sizes_change_near_the_real_ones() {
    let real = tori(Pattern::Average).crossovers(4000.0).unwrap();
    let whole = tori(Pattern::Average).whole_crossovers(4000).unwrap();
    assert_eq!(whole.len(), 3);
    for (real, whole) in real.iter().zip(&whole) {
        assert_eq!((real.from, real.to), (whole.from, whole.to));
        let settled = whole.settled.unwrap();
        assert!(whole.first <= settled);
        assert!((whole.first as f64) < 1.25 * real.nodes && settled as f64 > 0.75 * real.nodes, "{real:?} {whole:?}");
    }
}

#[test]
fn whole_sizes_are_compared_as_they_can_be_built() {
    // By trying every size and every family.
    let comparison = Comparison { families: everything(), ..tori(Pattern::Average) };
    let found = comparison.whole_crossovers(300).unwrap();
    let mut before = Family::Star;
    let mut all = vec![];
    for nodes in 2..=300u64 {
        let time = |family: &Family| {
            let topology = family.at_least(nodes).unwrap();
            Pattern::Average.time_ns(&topology, &comparison.parameters).unwrap()
        };
        let least = comparison.families.iter().map(time).fold(f64::INFINITY, f64::min);
        // Equal but for rounding; who was the best already stays it.
        let good: Vec<_> = comparison.families.iter().filter(|family| time(family) < least * (1.0 + 1e-12)).collect();
        before = if good.contains(&&before) { before } else { *good[0] };
        all.push((nodes, before));
    }
    for change in found {
        assert_eq!(all.iter().find(|(_, family)| *family == change.to).unwrap().0, change.first);
        let last = all.iter().rfind(|(_, family)| *family == change.from).unwrap().0;
        assert_eq!(change.settled, (last < 300).then_some(last + 1));
    }
}

#[test]
fn who_is_as_good_as_the_best_does_not_replace_it() {
    // Of four nodes a hypercube is a torus of two dimensions.
    let families = ["torus:2d", "hypercube"].map(|name| name.parse().unwrap()).into();
    let comparison = Comparison { families, ..tori(Pattern::Multicast) };
    assert_eq!(comparison.whole_crossovers(4).unwrap(), []);
}

#[test]
fn contention_moves_crossovers_down() {
    let idle = tori(Pattern::Average).crossovers(4000.0).unwrap();
    let loaded = Comparison { rate: Some(1e5), ..tori(Pattern::Average) }.crossovers(4000.0).unwrap();
    // Rings fill up first.
    assert_eq!(loaded.len(), idle.len());
    assert!(loaded.iter().zip(&idle).all(|(loaded, idle)| loaded.nodes < idle.nodes), "{loaded:?}");
}

#[test]
fn a_change_moves_the_crossover_to_where_it_was_asked() {
    let comparison = tori(Pattern::Average);
    let (ring, torus) = (Family::torus(1), Family::torus(2));
    for nodes in [8.0, 12.0, 18.21, 60.0, 500.0] {
        let changes = comparison.changes(ring, torus, nodes).unwrap();
        assert!(changes.windows(2).all(|pair| pair[0].cost() <= pair[1].cost()));
        assert!(changes.iter().any(|change| change.parameter == Parameter::Switching), "{nodes}: {changes:?}");
        // Both have two overheads.
        assert!(changes.iter().all(|change| ![Parameter::Overhead, Parameter::PerByte].contains(&change.parameter)));
        for Change { parameter, factor } in changes {
            let changed =
                Comparison { parameters: parameter.scaled(&comparison.parameters, factor), ..comparison.clone() };
            let found = changed.crossing(ring, torus, 4000.0).unwrap().unwrap();
            assert!((found - nodes).abs() < 1e-6 * nodes, "{parameter:?} by {factor}: {found} instead of {nodes}");
        }
    }
}

#[test]
fn halving_the_switching_latency_is_the_thesis_s_enhanced_system() {
    let enhanced =
        Comparison { parameters: Parameter::Switching.scaled(&sci2000().parameters, 0.5), ..tori(Pattern::Average) };
    let at = enhanced.crossing(Family::torus(2), Family::torus(3), 4000.0).unwrap().unwrap();
    let changes = tori(Pattern::Average).changes(Family::torus(2), Family::torus(3), at).unwrap();
    let switching = changes.iter().find(|change| change.parameter == Parameter::Switching).unwrap();
    assert!((switching.factor - 0.5).abs() < 1e-9, "{changes:?}");
}

#[test]
fn a_crossover_cannot_be_moved_to_where_there_are_no_such_sizes() {
    let why = tori(Pattern::Average).changes(Family::torus(1), Family::torus(3), 3.0).unwrap_err().to_string();
    assert!(why.contains("8 nodes"), "{why}");
}

#[test]
fn elasticities_of_a_latency_add_up_to_one() {
    let mut parameters = sci2000().parameters;
    parameters.message_bytes = 256.0;
    parameters.overhead.reference_bytes = 0.0;
    let latency =
        |parameters: &Parameters| Pattern::Average.time_ns(&"torus:5x5x5".parse().unwrap(), parameters).map(Some);
    let all = Parameter::ALL.map(|parameter| elasticity(parameter, &parameters, latency).unwrap().unwrap());
    assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{all:?}");
    assert!(all[..5].iter().all(|share| *share > 0.0));
}

#[test]
fn the_whole_range_of_sizes_is_looked_at_in_both_ways() {
    // 14 families; what it costs is measured by `cci model crossover`, not here.
    let comparison = Comparison { families: everything(), ..tori(Pattern::Average) };
    assert!(!comparison.crossovers(1e6).unwrap().is_empty());
    assert!(!comparison.whole_crossovers(100_000).unwrap().is_empty());
}

#[test]
fn sizes_that_a_topology_cannot_have_are_refused_with_the_nearest() {
    for (name, nearest) in [
        ("ring:1", "ring:2"),
        ("torus:4x1", "4x2"),
        ("hypercube:1000", "hypercube:512 with 512 nodes or hypercube:1024"),
        ("hypercube:0", "hypercube:2"),
        ("star:1", "star:2"),
        ("fattree3:k=7", "k=6 or k=8"),
        ("fattree2:k=1", "k=2"),
        ("dragonfly:h=0", "dragonfly:p=1,a=2,h=1"),
        ("torus:4x", "torus:10x10x10"),
        ("mesh:3x-2", "whole numbers"),
        ("ring:eight", "ring:8"),
        ("ring", "ring:8"),
        ("moebius:8", "biring:8"),
        ("fattree3:8", "fattree3:k=8"),
        ("dragonfly:h=2,q=1", "dragonfly:p=2,a=4,h=2"),
    ] {
        let why = name.parse::<Topology>().unwrap_err().to_string();
        assert!(why.contains(nearest), "{name}: {why}");
    }
    for (family, nodes, nearest) in [
        ("torus:3d", 31, "torus:3x3x3 with 27 nodes or torus:4x3x3 with 36 nodes"),
        ("fattree3", 100, "fattree3:k=6 with 54 nodes or fattree3:k=8 with 128 nodes"),
        ("dragonfly", 70, "with 6 nodes or dragonfly:p=2,a=4,h=2 with 72 nodes"),
        ("hypercube", 3, "hypercube:2 with 2 nodes or hypercube:4"),
        ("ring", 1, "ring:2"),
        ("torus:4d", 3, "torus:2x2x2x2"),
    ] {
        let why = family.parse::<Family>().unwrap().exactly(nodes).unwrap_err().to_string();
        assert!(why.contains(nearest), "{family} {nodes}: {why}");
    }
}

#[test]
fn sizes_beyond_all_numbers_are_refused_and_never_wrap() {
    for name in [
        "ring:18446744073709551616",
        "ring:18446744073709551615",
        "torus:4294967296x4294967296",
        "torus:4294967296x4294967296x2",
        "bitorus:2097152x2097152x2097152x2097152",
        "star:99999999999999999999999",
        "fattree3:k=9007199254740992",
        "fattree2:k=4294967296",
        "dragonfly:h=9007199254740992",
        "dragonfly:p=4294967296,a=4294967296,h=1",
        "hypercube:18446744073709551616",
    ] {
        let why = name.parse::<Topology>().unwrap_err();
        assert!(matches!(why, ModelError::TooLarge { .. }), "{name}: {why}");
        assert!(why.to_string().contains("smaller size"), "{why}");
    }
    // The largest that there are count exactly.
    let largest = Topology::Grid(Grid::new(&[MOST_NODES], Wrap::Forward).unwrap());
    assert_eq!(largest.mean().propagations, MOST_NODES as f64 / 2.0);
    assert_eq!(largest.count(MOST_NODES - 1, MOST_NODES - 2).propagations, (MOST_NODES - 1) as f64);
    for family in everything() {
        let largest = family.at_most(MOST_NODES).unwrap();
        assert!(largest.nodes() <= MOST_NODES && largest.nodes() > MOST_NODES / 64, "{largest}");
        assert!(largest.mean().propagations.is_finite());
        assert!(largest.mean_by_enumeration().is_err() && largest.links().is_err());
        assert!(Pattern::Multicast.time_ns(&largest, &sci2000().parameters).is_err());
        assert!(family.at_least(MOST_NODES + 1).is_none(), "{family}");
    }
}

#[test]
fn names_are_read_back() {
    for name in [
        "ring:8",
        "biring:9",
        "torus:10x10x10",
        "bitorus:4x3",
        "mesh:4x5x6",
        "hypercube:64",
        "star:24",
        "fattree2:k=8",
        "fattree3:k=16",
        "dragonfly:p=2,a=4,h=2",
    ] {
        assert_eq!(name.parse::<Topology>().unwrap().to_string(), name);
    }
    for family in everything() {
        assert_eq!(family.to_string().parse::<Family>().unwrap(), family);
    }
    for name in ["average", "unicasts", "multicast", "all-to-all", "neighbour", "transpose", "hot-spot=0.25"] {
        assert_eq!(name.parse::<Pattern>().unwrap().to_string(), name);
    }
    for name in ["hot-spot", "hot-spot=0", "hot-spot=1.5", "hot-spot=much"] {
        assert!(name.parse::<Pattern>().unwrap_err().to_string().contains("hot-spot=0.1"), "{name}");
    }
    assert!("gossip".parse::<Pattern>().unwrap_err().to_string().contains("all-to-all"));
    for name in ["torus", "torus:0d", "torus:17d", "ring:2d", "cube"] {
        assert!(name.parse::<Family>().unwrap_err().to_string().contains("torus:2d"), "{name}");
    }
}

#[test]
fn at_most_and_at_least_are_the_nearest_members() {
    for family in everything() {
        let sizes: Vec<u64> = {
            let mut all: Vec<_> = (2..=600).map(|nodes| family.at_least(nodes).unwrap().nodes()).collect();
            all.dedup();
            all
        };
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{family}: {sizes:?}");
        for nodes in 2..=500 {
            assert!(family.at_least(nodes).unwrap().nodes() >= nodes);
            let below = family.at_most(nodes).map(|topology| topology.nodes());
            assert_eq!(below, sizes.iter().copied().rfind(|size| *size <= nodes), "{family} {nodes}");
        }
    }
}

#[test]
fn parameters_that_are_none_are_refused_by_name() {
    let refused = |change: fn(&mut Parameters)| {
        let mut parameters = sci2000().parameters;
        change(&mut parameters);
        parameters.check().unwrap_err().to_string()
    };
    assert!(refused(|p| p.propagation_ns = 0.0).contains("l_p is 0"));
    assert!(refused(|p| p.forwarding_ns = -1.0).contains("l_f is -1"));
    assert!(refused(|p| p.switching_ns = f64::NAN).contains("670ns"));
    assert!(refused(|p| p.overhead.at_reference_ns = f64::INFINITY).contains("o_0"));
    assert!(refused(|p| p.overhead.per_byte_ns = -2.0).contains("c is -2"));
    assert!(refused(|p| p.link.bytes_per_ns = Some(0.0)).contains("3.2Gb/s"));
    assert!(
        refused(|p| {
            p.message_bytes = 0.0;
            p.overhead.per_byte_ns = 40.0
        })
        .contains("larger m")
    );
    assert!(tori(Pattern::Average).parameters.check().is_ok());
    let one = Comparison { families: vec![Family::Star], ..tori(Pattern::Average) };
    assert!(one.crossovers(100.0).unwrap_err().to_string().contains("name another"));
    assert!(tori(Pattern::Transpose).crossovers(100.0).unwrap_err().to_string().contains("no closed form"));
}

#[test]
fn a_transposition_needs_a_square() {
    let torus: Topology = "torus:4x5".parse().unwrap();
    let why = Pattern::Transpose.time_ns(&torus, &sci2000().parameters).unwrap_err().to_string();
    assert!(why.contains("16 and 25"), "{why}");
    // Nodes (r, c) and (c, r) of a square torus: n hops in both dimensions together, and a turn.
    let square: Topology = "torus:5x5".parse().unwrap();
    let mean = Pattern::Transpose.enumerated_mean(&square).unwrap();
    assert!((mean.propagations - 5.0).abs() < 1e-12 && (mean.switchings - 1.0).abs() < 1e-12, "{mean:?}");
}
