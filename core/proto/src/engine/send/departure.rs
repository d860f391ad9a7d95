//! What changes when a frame in flight leaves: the window, the timers, congestion control.

use crate::Time;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::flow::Flow;

/// Notes that a frame in flight leaves, with this many bytes on the wire.
pub(super) fn mark_sent(now: Time, conn: &mut Conn, flow: &mut Flow, at: usize, bytes: u64, is_above_base: bool) {
    let number = conn.number.wrapping_sub(1);
    let Some(is_only) = flow.send_window.on_sent(now, at, number, bytes, is_above_base) else { return };
    if is_only {
        flow.congestion.on_restart();
    }
    flow.probe_timeout.on_sent(now, is_only);
    flow.idle_probing.on_sent(now);
    flow.congestion.on_sent(now, bytes, conn.mtu.into());
    conn.clear(bit::CONFIRM);
}

/// Notes that one more slice of a frame in flight leaves.
pub(super) fn mark_slice_sent(now: Time, conn: &Conn, flow: &mut Flow, at: usize, bytes: u64) {
    if !flow.send_window.on_slice_sent(now, at, conn.number.wrapping_sub(1), bytes) {
        return;
    }
    flow.probe_timeout.on_sent(now, false);
    flow.idle_probing.on_sent(now);
    flow.congestion.on_sent(now, bytes, 4 * u64::from(conn.mtu));
}
