//! Frames that await a receive slot.

use crate::engine::connection::conn::bit;
use crate::engine::host::Host;
use crate::engine::index::Index;
use crate::engine::state::Engine;
use crate::wire::Records;

/// Connections in a row without a slot after which `refill` stops. The others are tried next time.
const MOST_WITHOUT_SLOT: u32 = 4;

impl Engine {
    /// Handles a next in-order frame that found no slot: it is held, or the peer retransmits it
    /// when there are slots. A paused connection awaits its resumption, and no slot.
    pub(super) fn await_slot<H: Host>(&mut self, index: u32, records: Option<Records<'_>>, host: &H) {
        self.stats.refused += 1;
        let held = records.and_then(|records| self.hold(records, 0));
        let Some(ctx) = self.recv_ctx(index) else { return };
        if let Some(held) = held {
            ctx.flow.reorder_queue.put(0, held);
        }
        ctx.conn.set(bit::RNR | bit::ACK_NOW);
        if ctx.flow.next_frame.await_slot() && !host.is_paused(ctx.conn.host_cookie) {
            self.awaiting_slot.push_back(index);
        }
        self.mark_ready(index);
    }

    /// Delivers messages that awaited a slot after slots became free, and notifies refused peers.
    /// The connections take turns.
    pub fn refill<H: Host>(&mut self, host: &mut H) {
        let mut without_slot = 0;
        for _ in 0..self.awaiting_slot.len() {
            let Some(index) = self.awaiting_slot.pop_front() else { return };
            if self.flow_mut(index).is_some_and(|flow| flow.next_frame.take_awaits_slot()) && !self.resume(index, host)
            {
                without_slot += 1;
                if without_slot >= MOST_WITHOUT_SLOT && host.credit() == 0 {
                    return;
                }
            }
        }
        if self.awaiting_slot.len() > 1 {
            // The next call begins with another connection.
            self.awaiting_slot.rotate_left(1);
        }
    }

    /// Delivers messages of a connection that the host takes again, and notifies its peer.
    pub fn resume_paused<H: Host>(&mut self, index: Index, host: &mut H) {
        let Index(index) = index;
        // It may have waited for a slot before the pause.
        self.awaiting_slot.retain(|other| *other != index);
        let Some(ctx) = self.recv_ctx_of_flow(index) else { return };
        if ctx.flow.next_frame.take_awaits_slot() {
            self.resume(index, host);
        }
    }

    /// Delivers the held frames of one connection, and acknowledges them so that the peer goes on.
    /// Returns false if nothing was delivered.
    fn resume<H: Host>(&mut self, index: u32, host: &mut H) -> bool {
        let Some(ctx) = self.recv_ctx(index) else { return false };
        let was_owed = ctx.conn.has(bit::ACK_NOW);
        let before = (ctx.conn.recv_next, ctx.flow.next_frame.records());
        ctx.conn.clear(bit::RNR);
        ctx.conn.set(bit::ACK_NOW);
        self.drain(index, host);
        let Some(ctx) = self.recv_ctx(index) else { return false };
        let moved = !ctx.flow.next_frame.awaits_slot() || (ctx.conn.recv_next, ctx.flow.next_frame.records()) != before;
        if !moved && !was_owed {
            // Nothing new for the peer.
            ctx.conn.clear(bit::ACK_NOW);
        }
        self.mark_ready(index);
        moved
    }
}
