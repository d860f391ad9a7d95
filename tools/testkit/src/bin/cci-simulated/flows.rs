//! How much gets through a lossy path, and how two flows share one.

use cci_proto::Attribute;
use cci_proto::engine::Index;
use cci_sim::network::{Faults, Graph, LinkSettings};
use cci_testkit::simulation::lab::{Lab, ample};
use std::time::Duration;

/// Bytes of a message: it fills a frame.
const MESSAGE: usize = 8000;
/// 1 Gb/s, bytes per second.
const GIGABIT: u64 = 125_000_000;
/// Messages that wait or are in flight on each flow: more than any path here holds.
const DEEP: u64 = 1000;
/// Seconds that goodput is measured for.
const TIME: u32 = 5;

/// Keeps the queues of the senders full for a time.
fn stream(lab: &mut Lab, flows: &[(usize, Index)], time: Duration) {
    let end = lab.now() + time;
    while lab.now() < end {
        for (node, index) in flows {
            let player = &lab.players[*node];
            for _ in player.posted - player.notes.over..DEEP {
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

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn received(lab: &Lab, node: usize) -> f64 {
    lab.players[node].notes.bytes.iter().sum::<u64>() as f64
}

fn lab(graph: Graph, players: u32) -> Lab {
    let mut lab = Lab::new(7, graph, players, &ample(9000), 4096);
    lab.players.iter_mut().for_each(|player| player.notes.is_brief = true);
    lab
}

/// What one flow gets of a path of 1 Gb/s and 10 ms that loses so many frames in a million, after a second of warming up.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
pub(crate) fn goodput(loss: u32) -> f64 {
    let faults = Faults { loss, ..Faults::default() };
    let link = LinkSettings { delay: 5_000_000, bandwidth: GIGABIT, queue: 2 << 20, faults, ..LinkSettings::default() };
    let mut lab = lab(Graph::mesh(2, &link), 2);
    let [client, _] = lab.open(0, 1, Attribute::ReliableOrdered);
    stream(&mut lab, &[(0, client)], Duration::from_secs(1));
    let before = received(&lab, 1);
    stream(&mut lab, &[(0, client)], Duration::from_secs(TIME.into()));
    (received(&lab, 1) - before) / f64::from(TIME) / GIGABIT as f64
}

/// Jain's index (Jain, Chiu, Hawe 1984) of two flows over a bottleneck of 100 Mb/s, of which one comes a second later: over the last
/// half of 30 s.
pub(crate) fn fairness() -> f64 {
    let access = LinkSettings { delay: 500_000, bandwidth: GIGABIT, ..LinkSettings::default() };
    let bottleneck =
        LinkSettings { delay: 4_000_000, bandwidth: GIGABIT / 10, queue: 125_000, ..LinkSettings::default() };
    let mut lab = lab(Graph::dumbbell(2, 2, &access, &bottleneck), 4);
    let [first, _] = lab.open(0, 2, Attribute::ReliableOrdered);
    stream(&mut lab, &[(0, first)], Duration::from_secs(1));
    let [second, _] = lab.open(1, 3, Attribute::ReliableOrdered);
    let flows = [(0, first), (1, second)];
    stream(&mut lab, &flows, Duration::from_secs(14));
    let before = [2, 3].map(|node| received(&lab, node));
    stream(&mut lab, &flows, Duration::from_secs(15));
    let [a, b] = [received(&lab, 2) - before[0], received(&lab, 3) - before[1]];
    (a + b) * (a + b) / (2.0 * (a * a + b * b))
}
