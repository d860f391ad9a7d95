//! Memory over peers and over connections to one peer, as figure 6 of the CCI paper draws it: of
//! the transports, of bare sockets with buffers of their own, and computed of InfiniBand's reliable
//! connections. Each curve is measured in a process of its own.
//!
//! ```text
//!  this process       measuring process             processes of the peers
//!  curves, notes <--- one endpoint      <=========> an endpoint for each peer,
//!                     or bare sockets               or one with all connections
//! ```

mod measured;
mod other_end;
mod population;
mod sockets;
mod subject;

pub(crate) use subject::CurveTask;

use super::Found;
use super::footprint::figures;
use crate::device::real_transport;
use crate::interrupt;
use crate::machine;
use crate::task;
use cci::{Context, Scope};
use cci_report::finding::Finding;
use cci_report::memory_curves::{MemoryCurvePoint, MemoryCurves, Over, Space};
use cci_report::{UserError, while_doing};
use measured::Measured;
use std::time::Duration;
use subject::Subject;

/// The least memory of a queue pair: its queues begin on a page of their own. The CCI paper draws
/// reliable connections as a line through the origin, with no figure for one of them.
const QUEUE_PAIR: f64 = 4096.0;
const VERBS: &str = "verbs RC";

/// Measures from the least to the most peers and connections, `time` at most for each curve; over
/// each transport between processes that there is, or over the one that is named.
///
/// # Errors
///
/// There is no such device, or no process can be started. A curve that fails is a note.
pub fn memory_curves(transport: Option<&str>, [least, most]: [u32; 2], time: Duration) -> Result<Found, UserError> {
    let environment = machine::here(None);
    let stops = stops(least, most);
    let mut found = MemoryCurves::default();
    for subject in subjects(transport)? {
        let task = CurveTask::new(subject.clone(), stops.clone(), time);
        match figures::<Measured>(task::command(&task)?) {
            Ok(measured) => add(&mut found, &subject, &measured, &stops),
            Err(_) if interrupt::is_asked() => {}
            Err(why) => found.notes.push(about(&subject, &format!("nothing was measured: {}", why.0))),
        }
        if interrupt::is_asked() {
            break;
        }
    }
    found.points.extend(stops.iter().map(|stop| queue_pairs(*stop)));
    found.notes.extend(SOURCES.map(String::from));
    Ok(Found { environment, finding: Finding::MemoryCurves(found), interrupted: interrupt::why() })
}

/// What is known beside the figures of every run.
const SOURCES: [&str; 4] = [
    "User: pages of one end's process that are of no file (/proc/self/smaps_rollup), and shared memory that it has mapped, \
     whoever touched it (mincore); a lane counts in full at either end",
    "Kernel, one end of both: objects in use (/proc/slabinfo), buffers of sockets (/proc/net/sockstat), page tables (VmPTE); \
     of the whole machine, so that other programs disturb it",
    "bare sockets: one TCP socket a peer with a page to send from and a page to receive into",
    "verbs RC: one queue pair a peer, computed with one page of 4096 bytes for its queues, the least possible; the CCI paper \
     (figure 6) and what it cites (Shipman et al., X-SRQ, 2008) draw it linear in the peers, and the paper gives no bytes",
];

fn queue_pairs(count: u32) -> MemoryCurvePoint {
    let one = MemoryCurvePoint {
        curve: VERBS.into(),
        over: Over::Peers,
        space: Space::User,
        count: 1,
        bytes: QUEUE_PAIR,
        computed: true,
    };
    one.in_proportion(count.into())
}

/// Peers of each transport and of bare sockets, then connections of each transport.
fn subjects(transport: Option<&str>) -> Result<Vec<Subject>, UserError> {
    let transports = match transport {
        Some(name) => vec![real_transport(Some(name))?],
        None => transports()?,
    };
    let peers = transports.iter().cloned().map(Subject::Peers);
    let connections = transports.iter().cloned().map(Subject::Connections);
    Ok(peers.chain([Subject::Sockets]).chain(connections).collect())
}

/// The transports of this host's devices that join processes and stand on their own.
fn transports() -> Result<Vec<String>, UserError> {
    let context = Context::new().map_err(while_doing("cannot find the devices"))?;
    let mut names: Vec<String> = Vec::new();
    for device in context.devices().iter().filter(|device| device.up) {
        let stands_alone =
            cci::driver(&device.transport).is_some_and(|driver| driver.scope > Scope::Process && driver.over.is_none());
        if stands_alone && !names.contains(&device.transport) {
            names.push(device.transport.clone());
        }
    }
    Ok(names)
}

/// Adds the curves of a subject: what was measured, and in proportion what lies beyond.
fn add(found: &mut MemoryCurves, subject: &Subject, measured: &Measured, stops: &[u32]) {
    for space in [Space::User, Space::Kernel] {
        let bytes = |point: &measured::Point| match space {
            Space::User => Some(point.user),
            Space::Kernel => point.kernel,
        };
        let of = |point: &measured::Point| {
            Some(MemoryCurvePoint {
                curve: subject.name(),
                over: subject.over(),
                space,
                count: point.count.into(),
                bytes: bytes(point)?,
                computed: false,
            })
        };
        let points: Vec<_> = measured.points.iter().filter_map(of).collect();
        let last = points.last().cloned();
        found.points.extend(points);
        if let Some(last) = last.filter(|last| last.bytes > 0.0) {
            let beyond = stops.iter().map(|stop| u64::from(*stop)).filter(|stop| *stop > last.count);
            found.points.extend(beyond.map(|stop| last.in_proportion(stop)));
        }
    }
    found.notes.extend(measured.notes.iter().map(|note| about(subject, note)));
}

fn about(subject: &Subject, note: &str) -> String {
    format!("{}, {}: {}", subject.name(), subject.over().name(), note.trim_end_matches('.'))
}

/// The least, each power of ten above it, and the most.
fn stops(least: u32, most: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(1_u32), |stop| stop.checked_mul(10));
    let between = powers.skip_while(|stop| *stop <= least).take_while(|stop| *stop < most);
    let mut stops: Vec<_> = std::iter::once(least).chain(between).chain([most]).collect();
    stops.dedup();
    stops
}

#[cfg(test)]
mod tests {
    use super::*;
    use measured::Point;

    #[test]
    fn figures_are_given_at_both_ends_and_at_powers_of_ten() {
        assert_eq!(stops(1, 1000), [1, 10, 100, 1000]);
        assert_eq!(stops(5, 2500), [5, 10, 100, 1000, 2500]);
        assert_eq!(stops(7, 7), [7]);
    }

    #[test]
    fn what_lies_beyond_the_measured_is_computed_from_the_last_and_of_the_kernel_only_where_it_was_read() {
        let points =
            vec![Point { count: 10, user: 4096.0, kernel: None }, Point { count: 90, user: 9000.0, kernel: None }];
        let mut found = MemoryCurves::default();
        let measured = Measured { points, notes: vec!["stopped".into()] };
        add(&mut found, &Subject::Peers("sm".into()), &measured, &[10, 100, 1000]);
        let told: Vec<_> = found.points.iter().map(|point| (point.count, point.bytes, point.computed)).collect();
        assert_eq!(told, [(10, 4096.0, false), (90, 9000.0, false), (100, 10_000.0, true), (1000, 100_000.0, true)]);
        assert!(found.points.iter().all(|point| point.space == Space::User));
        assert_eq!(found.notes, ["sm, peers: stopped"]);
    }
}
