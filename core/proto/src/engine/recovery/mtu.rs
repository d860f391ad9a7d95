//! A path may begin to drop frames of a size that it carried (RFC 8899).

use crate::engine::connection::conn::Conn;
use crate::engine::flow::Flow;

/// Limits the frames of a path to this size. Larger frames in flight are retransmitted in slices.
pub(crate) fn shrink(conn: &mut Conn, flow: Option<&mut Flow>, to: u16) {
    if conn.mtu <= to {
        return;
    }
    conn.mtu = to;
    if let Some(flow) = flow {
        flow.loss_detection.reset_above_base();
        flow.send_window.forget_sizes();
    }
}

/// Falls back to the base MTU, and probes the path anew.
pub(super) fn fall_back(conn: &mut Conn, flow: &mut Flow) {
    if conn.mtu > conn.base_mtu {
        flow.path_probing.restart();
        shrink(conn, Some(flow), conn.base_mtu);
    }
}
