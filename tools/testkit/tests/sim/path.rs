//! A path that comes to carry less under a connection and tells nobody, in virtual time.

use cci_proto::Attribute;
use cci_proto::engine::{Config, Index, PathMtu};
use cci_sim::network::{Graph, LinkIndex, LinkSettings, NodeIndex};
use cci_testkit::simulation::fixture::{Fixture, ample};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
/// Bytes of a message: it fills a frame of a wide path.
const MESSAGE: usize = 8000;

fn link() -> LinkSettings {
    LinkSettings { delay: 100_000, bandwidth: 12_500_000, mtu: 9000, ..LinkSettings::default() }
}

/// A connection whose frames have grown to what the path carries.
fn grown() -> (Fixture, Index) {
    let config = Config { base_mtu: 1200, ..ample(9000) };
    let mut fixture = Fixture::new(1, Graph::mesh(2, &link()), 2, &config, 1024);
    let [client, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    let mut number = 0;
    while fixture.players[0].engine.report(client).mtu < 9000 {
        assert!(number < 10_000, "frames do not grow");
        for _ in 0..20 {
            fixture.send(0, client, number, MESSAGE).expect("room");
            number += 1;
        }
        fixture.settle(0);
        let count = number as usize;
        assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == count));
    }
    fixture.players[1].delivered.clear();
    (fixture, client)
}

/// Sends messages, of which some are under way when all links become as `narrow`; all of them
/// arrive, in order.
fn shrink(narrow: &LinkSettings) -> Duration {
    let (mut fixture, client) = grown();
    for number in 0..50 {
        fixture.send(0, client, number, MESSAGE).expect("room");
    }
    fixture.settle(0);
    fixture.run_for(Duration::from_micros(2500));
    assert!((1..45).contains(&fixture.players[1].delivered.len()), "messages are under way");
    for number in (0..fixture.network.graph().links()).map(LinkIndex) {
        fixture.network.set_link(number, narrow);
    }
    let begun = fixture.now();
    assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == 50), "what was under way is lost");
    assert!(fixture.players[1].delivered.iter().copied().eq(0..50));
    assert!(usize::from(fixture.players[0].engine.report(client).mtu) <= narrow.mtu);
    fixture.now() - begun
}

#[test]
fn what_is_under_way_arrives() {
    let time = shrink(&LinkSettings { mtu: 1500, ..link() });
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[test]
fn what_is_under_way_arrives_through_a_queue_for_two_small_frames() {
    // The first slices of a frame take all the room that there is.
    shrink(&LinkSettings { mtu: 1500, queue: 2500, ..link() });
}

#[test]
fn a_path_that_does_not_shrink_keeps_its_frames() {
    // The twin.
    let (mut fixture, client) = grown();
    for number in 0..50 {
        fixture.send(0, client, number, MESSAGE).expect("room");
    }
    fixture.settle(0);
    assert!(fixture.run(LONG, |fixture| fixture.players[1].delivered.len() == 50));
    assert_eq!(fixture.players[0].engine.report(client).mtu, 9000);
}

#[test]
fn a_path_that_is_known_to_carry_less_than_others_gets_frames_of_its_own_size() {
    // All paths carry 9,000 bytes for certain, but that from the first node to the third.
    let mut fixture = Fixture::new(1, Graph::mesh(3, &link()), 3, &ample(9000), 1024);
    let narrow = LinkSettings { mtu: 1500, ..link() };
    let graph = fixture.network.graph();
    let between = [(0, 2), (2, 0)].map(|(from, to)| graph.route(NodeIndex(from), NodeIndex(to)).to_vec());
    between.concat().iter().for_each(|link| fixture.network.set_link(*link, &narrow));
    let [wide, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    let far = fixture.ask(0, 2, Attribute::ReliableOrdered, None);
    fixture.players[0].engine.set_path(far, PathMtu { base: 1200, largest: 9000 });
    assert!(fixture.run(LONG, |fixture| fixture.players[2].host.opened.len() == 1));
    assert_eq!(fixture.players[0].engine.report(wide).mtu, 9000);
    assert_eq!(fixture.players[0].engine.report(far).mtu, 1200);
    for number in 0..50 {
        fixture.send(0, wide, number, MESSAGE).expect("room");
        fixture.send(0, far, number, MESSAGE).expect("room");
    }
    fixture.settle(0);
    let has_come = |fixture: &Fixture| (1..3).all(|node| fixture.players[node].delivered.len() == 50);
    assert!(fixture.run(LONG, has_come), "messages are lost");
    assert_eq!(fixture.players[0].engine.report(wide).mtu, 9000);
    let mtu = fixture.players[0].engine.report(far).mtu;
    assert!((1201..=1500).contains(&mtu), "larger frames are probed: {mtu}");
    fixture.players[0].engine.set_path(far, PathMtu { base: 9000, largest: 9000 });
    assert_eq!(fixture.players[0].engine.report(far).mtu, mtu, "an open connection keeps its path");
}
