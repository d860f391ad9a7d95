//! What a loss costs: how long messages take some of whose frames are lost.

use super::fixture::{Fixture, Sent, ample};
use cci_proto::Attribute;
use cci_proto::engine::Index;
use cci_sim::network::{Graph, LinkSettings};
use std::time::Duration;

/// The round trip of the path, nanoseconds.
pub const ROUND_TRIP: u64 = 10_000_000;
const LIMIT: Duration = Duration::from_secs(60);

/// Two nodes and a connection that knows its round-trip time.
fn pair() -> Option<(Fixture, Index)> {
    let link = LinkSettings { delay: ROUND_TRIP / 2, bandwidth: 125_000_000, ..LinkSettings::default() };
    let mut fixture = Fixture::new(1, Graph::mesh(2, &link), 2, &ample(1500), 1024);
    let [client, _] = fixture.open(0, 1, Attribute::ReliableOrdered);
    for number in 0..20 {
        fixture.send(0, client, number, 100).ok()?;
        fixture.settle(0);
        let count = fixture.players[1].delivered.len() + 1;
        fixture.run(LIMIT, |fixture| fixture.players[1].delivered.len() == count).then_some(())?;
    }
    fixture.run_for(Duration::from_millis(100));
    Some((fixture, client))
}

/// Sends `count` messages that fill a frame each, of which those frames are lost that `is_lost`
/// names by how many sequenced frames and copies of it came before. Says how long after the first
/// was sent the last was delivered, nanoseconds; none if they do not come.
pub fn deliver(count: usize, is_lost: impl Fn(usize, usize) -> bool + 'static) -> Option<u64> {
    let (mut fixture, client) = pair()?;
    let mut seen: Vec<(u32, usize)> = Vec::new();
    fixture.filter = Some(Box::new(move |sent: &Sent| {
        let Some(seq) = sent.seq().filter(|_| sent.from == 0) else { return true };
        let at = seen.iter().position(|(known, _)| *known == seq).unwrap_or_else(|| {
            seen.push((seq, 0));
            seen.len() - 1
        });
        seen[at].1 += 1;
        !is_lost(at, seen[at].1 - 1)
    }));
    let before = fixture.players[1].delivered.len();
    let begun = fixture.now();
    for number in 0..count {
        fixture.send(0, client, u32::try_from(number).ok()?, 1400).ok()?;
    }
    fixture.settle(0);
    fixture.run(LIMIT, |fixture| fixture.players[1].delivered.len() == before + count).then_some(())?;
    Some(fixture.now().0 - begun.0)
}
