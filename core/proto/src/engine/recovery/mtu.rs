//! Black-hole detection (RFC 8899): a path may begin to drop frames of a size that it carried.

use crate::engine::connection::conn::Conn;
use crate::engine::flow::Flow;

/// Losses in a row of large frames which had been lost before, while no large frame arrived: the
/// path is a black hole for them (RFC 8899, section 4.3). Where three in ten frames are lost for
/// other reasons, twelve in a row are one case in two million.
pub(super) const BLACK_HOLE_LOSSES: u32 = 12;

/// Limits the frames of a path to this size. Larger frames in flight are retransmitted in slices.
pub(crate) fn shrink(conn: &mut Conn, flow: Option<&mut Flow>, to: u16) {
    if conn.mtu <= to {
        return;
    }
    conn.mtu = to;
    if let Some(flow) = flow {
        flow.large_lost = 0;
        // Their fate says nothing more.
        flow.send_window.forget_sizes();
    }
}

/// Falls back to the base MTU, and probes the path anew.
pub(super) fn fall_back(conn: &mut Conn, flow: &mut Flow, base: u16) {
    if conn.mtu > base {
        flow.path_probing.restart();
        shrink(conn, Some(flow), base);
    }
}
