//! How much gets through a lossy path, and how two flows share one.

use super::fixture::{Fixture, ample};
use cci_proto::Attribute;
use cci_proto::engine::{Config, Index};
use cci_sim::network::{Faults, Graph, LinkSettings};
use std::time::Duration;

/// Bytes of a message: it fills a frame.
const MESSAGE: usize = 8000;
/// 1 Gb/s, bytes per second.
pub const GIGABIT: u64 = 125_000_000;
/// Messages that wait or are in flight on each flow: more than any path here holds.
const DEEP: u64 = 1000;
/// Slots of each receiver: more than any path here holds.
const SLOTS: u32 = 4096;

/// Keeps the queues of the senders full for a time.
fn stream(fixture: &mut Fixture, flows: &[(usize, Index)], time: Duration) {
    let end = fixture.now() + time;
    while fixture.now() < end {
        for (node, index) in flows {
            let player = &fixture.players[*node];
            for _ in player.open..DEEP {
                if fixture.send(*node, *index, 0, MESSAGE).is_err() {
                    break;
                }
            }
            fixture.settle(*node);
        }
        let pause = end.min(fixture.now() + Duration::from_millis(1));
        while fixture.step(pause) {}
    }
}

/// A path of 1 Gb/s with so much delay, nanoseconds one way, that loses so many frames in a
/// million.
#[must_use]
pub fn lossy(delay: u64, loss: u32) -> LinkSettings {
    let faults = Faults { loss, ..Faults::default() };
    LinkSettings { delay, bandwidth: GIGABIT, queue: 2 << 20, faults, ..LinkSettings::default() }
}

/// Bytes per second of one flow, in a time after one of warming up.
#[must_use]
pub fn goodput(link: &LinkSettings, config: &Config, warm: Duration, time: Duration) -> u64 {
    let mut fixture = Fixture::new(7, Graph::mesh(2, link), 2, config, SLOTS);
    let [client, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    stream(&mut fixture, &[(0, client)], warm);
    let before = fixture.players[1].bytes;
    stream(&mut fixture, &[(0, client)], time);
    (fixture.players[1].bytes - before) * 1000 / u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes of two flows over a bottleneck of 100 Mb/s in the last half of 30 s. The first has the
/// path for itself for a second before the other comes.
#[must_use]
pub fn shares() -> [u64; 2] {
    let access = LinkSettings { delay: 500_000, bandwidth: GIGABIT, ..LinkSettings::default() };
    let bottleneck =
        LinkSettings { delay: 4_000_000, bandwidth: GIGABIT / 10, queue: 125_000, ..LinkSettings::default() };
    let mut fixture = Fixture::new(3, Graph::dumbbell(2, 2, &access, &bottleneck), 4, &ample(9000), SLOTS);
    let [first, _] = fixture.open(0, 2, Attribute::ReliableOrdered);
    stream(&mut fixture, &[(0, first)], Duration::from_secs(1));
    let [second, _] = fixture.open(1, 3, Attribute::ReliableOrdered);
    let flows = [(0, first), (1, second)];
    stream(&mut fixture, &flows, Duration::from_secs(14));
    let before = [2, 3].map(|node| fixture.players[node].bytes);
    stream(&mut fixture, &flows, Duration::from_secs(15));
    [fixture.players[2].bytes - before[0], fixture.players[3].bytes - before[1]]
}

/// Jain's index (Jain, Chiu, Hawe 1984) of two shares.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
#[must_use]
pub fn jain(shares: [u64; 2]) -> f64 {
    let [a, b] = shares.map(|share| share as f64);
    (a + b) * (a + b) / (2.0 * (a * a + b * b))
}
