//! How much gets through a lossy path, and how two flows share one.

use super::lab::{Lab, ample};
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
fn stream(lab: &mut Lab, flows: &[(usize, Index)], time: Duration) {
    let end = lab.now() + time;
    while lab.now() < end {
        for (node, index) in flows {
            let player = &lab.players[*node];
            for _ in player.open..DEEP {
                if lab.send(*node, *index, 0, MESSAGE).is_err() {
                    break;
                }
            }
            lab.settle(*node);
        }
        let pause = end.min(lab.now() + Duration::from_millis(1));
        while lab.step(pause) {}
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
    let mut lab = Lab::new(7, Graph::mesh(2, link), 2, config, SLOTS);
    let [client, _] = lab.open(0, 1, Attribute::ReliableOrdered);
    stream(&mut lab, &[(0, client)], warm);
    let before = lab.players[1].bytes;
    stream(&mut lab, &[(0, client)], time);
    (lab.players[1].bytes - before) * 1000 / u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes of two flows over a bottleneck of 100 Mb/s in the last half of 30 s. The first has the
/// path for itself for a second before the other comes.
#[must_use]
pub fn shares() -> [u64; 2] {
    let access = LinkSettings { delay: 500_000, bandwidth: GIGABIT, ..LinkSettings::default() };
    let bottleneck =
        LinkSettings { delay: 4_000_000, bandwidth: GIGABIT / 10, queue: 125_000, ..LinkSettings::default() };
    let mut lab = Lab::new(3, Graph::dumbbell(2, 2, &access, &bottleneck), 4, &ample(9000), SLOTS);
    let [first, _] = lab.open(0, 2, Attribute::ReliableOrdered);
    stream(&mut lab, &[(0, first)], Duration::from_secs(1));
    let [second, _] = lab.open(1, 3, Attribute::ReliableOrdered);
    let flows = [(0, first), (1, second)];
    stream(&mut lab, &flows, Duration::from_secs(14));
    let before = [2, 3].map(|node| lab.players[node].bytes);
    stream(&mut lab, &flows, Duration::from_secs(15));
    [lab.players[2].bytes - before[0], lab.players[3].bytes - before[1]]
}

/// Jain's index (Jain, Chiu, Hawe 1984) of two shares.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
#[must_use]
pub fn jain(shares: [u64; 2]) -> f64 {
    let [a, b] = shares.map(|share| share as f64);
    (a + b) * (a + b) / (2.0 * (a * a + b * b))
}
