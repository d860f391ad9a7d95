//! Bookkeeping of frames that leave.

use crate::Time;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::queue::FrameState;

/// Notes that a frame in flight leaves, with this many bytes on the wire.
pub(super) fn mark_sent(now: Time, conn: &mut Conn, flow: &mut Flow, at: usize, bytes: u64, is_large: bool) {
    let Some(frame) = flow.in_flight.get_mut(at) else { return };
    let first = frame.attempts == 0;
    frame.number = conn.number.wrapping_sub(1);
    frame.sent = now;
    frame.attempts = frame.attempts.saturating_add(1);
    if frame.state == FrameState::Lost {
        flow.lost -= 1;
    } else if !first {
        flow.bytes_in_flight = flow.bytes_in_flight.saturating_sub(u64::from(frame.bytes));
    }
    frame.state = FrameState::Sent;
    frame.is_large = is_large;
    frame.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let is_only = first && flow.in_flight.len() == 1;
    if is_only {
        flow.congestion.on_restart();
    }
    flow.resent += u64::from(!first);
    flow.probe_timeout.on_sent(now, is_only);
    flow.idle_probing.on_sent(now);
    flow.bytes_in_flight += bytes;
    flow.congestion.on_sent(now, bytes, conn.mtu.into());
    conn.clear(bit::CONFIRM);
}

/// Notes that one more slice of a frame in flight leaves.
pub(super) fn mark_slice_sent(now: Time, conn: &Conn, flow: &mut Flow, at: usize, bytes: u64) {
    let Some(frame) = flow.in_flight.get_mut(at) else { return };
    (frame.number, frame.sent) = (conn.number.wrapping_sub(1), now);
    if frame.state == FrameState::Lost {
        // It was declared lost too early: it had not left whole.
        flow.lost -= 1;
        flow.bytes_in_flight += u64::from(frame.bytes);
        frame.state = FrameState::Sent;
    }
    frame.bytes = frame.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    flow.probe_timeout.on_sent(now, false);
    flow.idle_probing.on_sent(now);
    flow.bytes_in_flight += bytes;
    flow.congestion.on_sent(now, bytes, 4 * u64::from(conn.mtu));
}
