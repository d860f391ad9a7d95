//! A peer whose kernel acknowledges nothing: its cable is pulled, or its host stands still.

use crate::fixture::{End, NUMBER, OPTIONS, Script};
use crate::frame::Kind;
use crate::lane::Phase;
use crate::sys::{drop_arrivals, info};
use cci_proto::{EventKind, Status, Time};
use cci_transport::{Connection, CoreOptions, monotonic};
use std::time::Duration;

/// Without an acknowledgement for so long a peer is gone to an endpoint that is not patient.
const GONE_AFTER: Duration = Duration::from_millis(300);
/// Nanoseconds.
const A_MINUTE: u64 = 60_000_000_000;

/// An endpoint that has sent a message to a peer whose kernel drops everything.
fn silent(patient: bool) -> (End, Script, &'static Connection) {
    let mut end = End::with(&[], CoreOptions { patient, ..OPTIONS });
    let (mut script, cell) = Script::connect(&mut end);
    script.put(&mut end, Kind::Grant, 0, 0, &[&4_u32.to_le_bytes()]);
    end.calls(50);
    drop_arrivals(&script.stream, true).expect("a filter");
    end.send(cell, b"waits", 5);
    end.calls(3);
    end.tcp.shared.gone_after = end.tcp.shared.gone_after.map(|_| GONE_AFTER);
    (end, script, cell)
}

/// Has the endpoint look at the lane as if nothing had come on it for a minute.
fn look(end: &mut End, cell: &'static Connection) {
    let now = monotonic();
    let long_ago = Time(now.0.saturating_sub(A_MINUTE));
    let Some((lane, shared)) = end.tcp.lane_of(cell) else { return };
    (lane.heard, lane.pinged) = (long_ago, long_ago);
    shared.check_by(now);
}

#[test]
fn a_peer_whose_kernel_is_silent_is_given_up() {
    let (mut end, _script, cell) = silent(false);
    let mut ended = None;
    end.until("its end", |end| {
        look(end, cell);
        ended = end.core.pop();
        ended.is_some()
    });
    let ended = ended.expect("just seen");
    assert_eq!((ended.kind(), ended.words()[1]), (EventKind::Send as u32, 5));
    assert_ne!(ended.detail(), Status::Success as u32);
}

#[test]
fn a_patient_endpoint_waits_for_it_and_goes_on() {
    let (mut end, mut script, cell) = silent(true);
    end.until("a long silence", |end| {
        let (lane, _) = end.tcp.lane_of(cell).expect("a lane");
        lane.socket.as_ref().and_then(info).is_some_and(|info| info.last_acknowledged >= 2 * GONE_AFTER)
    });
    for _ in 0..3 {
        look(&mut end, cell);
        end.calls(3);
    }
    assert_eq!(end.tcp.lane_of(cell).expect("a lane").0.phase, Phase::Open);
    drop_arrivals(&script.stream, false).expect("no filter");
    let (header, body) = script.find(&mut end, Kind::Message);
    assert_eq!((header.connection, body.as_slice()), (NUMBER, &b"waits"[..]));
}
