//! Closed forms against the counting of every pair, and routes against counts.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use cci_model::{Component, Components, Family, Grid, Topology, Wrap};

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

fn same(one: &Components, other: &Components) -> bool {
    // Forwardings are a difference, and zero where every vertex switches.
    let near = |one: f64, other: f64| close(one, other) || (one - other).abs() < 1e-9;
    close(one.propagations, other.propagations)
        && near(one.switchings, other.switchings)
        && near(one.forwardings, other.forwardings)
}

fn families() -> Vec<Family> {
    let grids = [Wrap::Forward, Wrap::Both, Wrap::Line]
        .into_iter()
        .flat_map(|wrap| (1..=5).map(move |dimensions| Family::Grid { dimensions, wrap }));
    let switched = [Family::Hypercube, Family::Star, Family::FatTree { levels: 2 }, Family::FatTree { levels: 3 }];
    grids.chain(switched).chain([Family::Dragonfly]).collect()
}

/// Every member with at most so many nodes, or those near the sizes given.
fn members(family: Family, most: u64) -> Vec<Topology> {
    let mut found = vec![];
    let mut next = 2;
    while let Some(topology) = family.at_least(next).filter(|topology| topology.nodes() <= most) {
        next = topology.nodes() + 1;
        found.push(topology);
    }
    found
}

#[test]
fn every_family_of_every_size_up_to_80_nodes() {
    let mut checked = 0;
    for family in families() {
        for topology in members(family, 80) {
            let (closed, counted) = (topology.mean(), topology.mean_by_enumeration().unwrap());
            assert!(same(&closed, &counted), "{topology}: {closed:?}, counted {counted:?}");
            checked += 1;
        }
    }
    assert!(checked > 400, "only {checked} topologies");
}

#[test]
fn the_largest_member_of_every_family_up_to_4096_nodes() {
    for family in families() {
        let topology = family.at_most(4096).unwrap();
        assert!(topology.nodes() > 1000, "{topology}");
        let (closed, counted) = (topology.mean(), mean_from_some(&topology));
        assert!(same(&closed, &counted), "{topology}: {closed:?}, counted {counted:?}");
    }
}

/// From every node in lines, where nodes differ; from three elsewhere.
fn mean_from_some(topology: &Topology) -> Components {
    let nodes = topology.nodes();
    if matches!(topology, Topology::Grid(grid) if grid.wrap() == Wrap::Line) {
        return topology.mean_by_enumeration().unwrap();
    }
    let sources = [0, nodes / 3, nodes - 1];
    let mut sum = Components::default();
    for source in sources {
        for destination in (0..nodes).filter(|destination| *destination != source) {
            sum = sum.plus(1.0, &topology.count(source, destination));
        }
    }
    sum.times(1.0 / (sources.len() as f64 * (nodes - 1) as f64))
}

#[test]
fn unequal_sides() {
    for wrap in [Wrap::Forward, Wrap::Both, Wrap::Line] {
        for sides in [[2, 3, 7], [9, 2, 4], [5, 5, 2], [3, 16, 3], [2, 2, 2]] {
            let topology = Topology::Grid(Grid::new(&sides, wrap).unwrap());
            assert!(same(&topology.mean(), &topology.mean_by_enumeration().unwrap()), "{topology}");
        }
    }
    for name in
        ["dragonfly:p=1,a=2,h=1", "dragonfly:p=3,a=2,h=2", "dragonfly:p=1,a=5,h=3", "fattree3:k=2", "fattree2:k=2"]
    {
        let topology: Topology = name.parse().unwrap();
        assert!(same(&topology.mean(), &topology.mean_by_enumeration().unwrap()), "{topology}");
    }
}

#[test]
fn a_hypercube_is_a_torus_of_sides_of_two() {
    for dimensions in 1..=8 {
        let hypercube = Family::Hypercube.exactly(1 << dimensions).unwrap();
        for wrap in [Wrap::Forward, Wrap::Both] {
            let torus = Topology::Grid(Grid::new(&vec![2; dimensions], wrap).unwrap());
            assert!(same(&hypercube.mean(), &torus.mean()), "{dimensions}");
            for node in 0..hypercube.nodes() {
                assert_eq!(hypercube.route(0, node).count(), torus.route(0, node).count());
            }
        }
    }
}

#[test]
fn closed_forms_of_whole_sizes_are_those_of_real_ones() {
    for family in families() {
        for nodes in [64u64, 256, 1024, 4096] {
            let Ok(topology) = family.exactly(nodes) else { continue };
            // Near-equal sides have no real-valued counterpart.
            if matches!(&topology, Topology::Grid(grid) if grid.sides().windows(2).any(|pair| pair[0] != pair[1])) {
                continue;
            }
            assert!(same(&topology.mean(), &family.shape(nodes as f64).mean()), "{topology}");
        }
    }
}

#[test]
fn routes_take_links_that_there_are_and_have_the_components_counted() {
    for family in families() {
        for topology in members(family, 40) {
            let links = topology.links().unwrap();
            for source in 0..topology.nodes() {
                for destination in (0..topology.nodes()).filter(|destination| *destination != source) {
                    let route = topology.route(source, destination);
                    assert_eq!((route.vertices[0], *route.vertices.last().unwrap()), (source, destination));
                    assert_eq!(route.count(), topology.count(source, destination), "{topology} {source} {destination}");
                    assert!(route.links().all(|link| links.contains(&link)), "{topology} {route:?}");
                    let nodes = topology.nodes() + topology.switches();
                    assert!(route.vertices.iter().all(|vertex| *vertex < nodes));
                }
            }
            let mut sorted = links.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), links.len(), "{topology} has a link twice");
        }
    }
}

#[test]
fn the_longest_route_is_the_longest() {
    for family in families() {
        for topology in members(family, 80).into_iter().filter(|topology| topology.nodes() > 2) {
            let pairs = (0..topology.nodes()).flat_map(|from| (0..topology.nodes()).map(move |to| (from, to)));
            let counts = pairs.filter(|(from, to)| from != to).map(|(from, to)| topology.count(from, to));
            let most = counts.fold(0.0, |most: f64, count| most.max(count.propagations));
            assert_eq!(topology.shape().longest().propagations, most, "{topology}");
        }
    }
}

#[test]
fn a_route_lists_its_components_in_the_order_of_travel() {
    use Component::{Forwarding, Overhead, Propagation, Switching};
    let torus: Topology = "torus:4x4".parse().unwrap();
    // Two hops in the first dimension, one in the second.
    let components = torus.route(0, 6).components();
    assert_eq!(components, [Overhead, Propagation, Forwarding, Propagation, Switching, Propagation, Overhead],);
    assert_eq!(torus.route(3, 3).components(), [Overhead, Overhead]);
}

#[test]
fn a_response_goes_the_rest_of_the_way_round() {
    let ring: Topology = "ring:6".parse().unwrap();
    let transaction = cci_model::Transaction::between(&ring, 1, 3);
    assert_eq!(transaction.request.vertices, [1, 2, 3]);
    assert_eq!(transaction.response.vertices, [3, 4, 5, 0, 1]);
    let biring: Topology = "biring:6".parse().unwrap();
    assert_eq!(cci_model::Transaction::between(&biring, 1, 3).response.vertices, [3, 2, 1]);
}

#[test]
fn both_equal_ways_of_a_bidirectional_ring_carry_as_much() {
    let ring: Topology = "biring:8".parse().unwrap();
    let loads = cci_model::Pattern::Average.loads(&ring).unwrap();
    assert!(loads.links().all(|(_, load)| close(load, loads.busiest().unwrap().1)));
}
