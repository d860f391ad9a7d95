//! What a loss costs: how long messages take some of whose frames are lost.

use super::lab::{Lab, Sent, ample};
use cci_proto::Attribute;
use cci_proto::engine::Index;
use cci_sim::network::{Graph, LinkSettings};
use std::time::Duration;

/// The round trip of the path, nanoseconds.
pub const ROUND_TRIP: u64 = 10_000_000;
const LIMIT: Duration = Duration::from_secs(60);

/// Two nodes and a connection that knows its round-trip time.
fn pair() -> Option<(Lab, Index)> {
    let link = LinkSettings { delay: ROUND_TRIP / 2, bandwidth: 125_000_000, ..LinkSettings::default() };
    let mut lab = Lab::new(1, Graph::mesh(2, &link), 2, &ample(1500), 1024);
    let [client, _] = lab.open(0, 1, Attribute::ReliableOrdered);
    for number in 0..20 {
        lab.send(0, client, number, 100).ok()?;
        lab.settle(0);
        let count = lab.players[1].delivered.len() + 1;
        lab.run(LIMIT, |lab| lab.players[1].delivered.len() == count).then_some(())?;
    }
    lab.run_for(Duration::from_millis(100));
    Some((lab, client))
}

/// Sends `count` messages that fill a frame each, of which those frames are lost that `is_lost`
/// names by how many sequenced frames and copies of it came before. Says how long after the first
/// was sent the last was delivered, nanoseconds; none if they do not come.
pub fn deliver(count: usize, is_lost: impl Fn(usize, usize) -> bool + 'static) -> Option<u64> {
    let (mut lab, client) = pair()?;
    let mut seen: Vec<(u32, usize)> = Vec::new();
    lab.filter = Some(Box::new(move |sent: &Sent| {
        let Some(seq) = sent.seq().filter(|_| sent.from == 0) else { return true };
        let at = seen.iter().position(|(known, _)| *known == seq).unwrap_or_else(|| {
            seen.push((seq, 0));
            seen.len() - 1
        });
        seen[at].1 += 1;
        !is_lost(at, seen[at].1 - 1)
    }));
    let before = lab.players[1].delivered.len();
    let begun = lab.now();
    for number in 0..count {
        lab.send(0, client, u32::try_from(number).ok()?, 1400).ok()?;
    }
    lab.settle(0);
    lab.run(LIMIT, |lab| lab.players[1].delivered.len() == before + count).then_some(())?;
    Some(lab.now().0 - begun.0)
}
