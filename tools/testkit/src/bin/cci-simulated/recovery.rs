//! What the loss of one frame costs.

use cci_proto::Attribute;
use cci_sim::network::{Graph, LinkSettings};
use cci_testkit::simulation::lab::{Lab, Sent, ample};
use std::time::Duration;

/// Half a round trip, nanoseconds.
const HALF: u64 = 5_000_000;
const LIMIT: Duration = Duration::from_secs(60);
/// Frames that are sent in a row.
pub(crate) const FRAMES: usize = 20;

/// The time from the sending of [`FRAMES`] messages that fill a frame each to the delivery of the last, in round trips, when this one of
/// them is lost. Infinite if they do not come.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
pub(crate) fn of_frame(lost: usize) -> f64 {
    let link = LinkSettings { delay: HALF, bandwidth: 125_000_000, ..LinkSettings::default() };
    let mut lab = Lab::new(1, Graph::mesh(2, &link), 2, &ample(1500), 1024);
    let [client, _] = lab.open(0, 1, Attribute::ReliableOrdered);
    // So that the connection knows its round-trip time.
    for number in 0..20 {
        let sent = lab.send(0, client, number, 100).is_ok();
        lab.settle(0);
        let count = lab.players[1].notes.delivered.len() + usize::from(sent);
        lab.run(LIMIT, |lab| lab.players[1].notes.delivered.len() == count);
    }
    lab.run_for(Duration::from_millis(100));
    let mut seen: Vec<u32> = Vec::new();
    lab.filter = Some(Box::new(move |sent: &Sent| {
        let Some(seq) = sent.seq().filter(|seq| sent.from == 0 && !seen.contains(seq)) else { return true };
        seen.push(seq);
        seen.len() != lost + 1
    }));
    let want = lab.players[1].notes.delivered.len() + FRAMES;
    let begun = lab.now();
    for number in 0..FRAMES {
        if lab.send(0, client, u32::try_from(number).unwrap_or(0), 1400).is_err() {
            return f64::INFINITY;
        }
    }
    lab.settle(0);
    if !lab.run(LIMIT, |lab| lab.players[1].notes.delivered.len() == want) {
        return f64::INFINITY;
    }
    (lab.now().0 - begun.0) as f64 / (2 * HALF) as f64
}
