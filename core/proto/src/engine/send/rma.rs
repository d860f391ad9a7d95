//! The beginning of an RMA.

use super::message::OutboundMessage;
use crate::engine::api::Rma;
use crate::engine::connection::conn::NONE;
use crate::engine::connection::conn::State;
use crate::engine::flow::batch::link;
use crate::engine::flow::rma_state::{OP_BITS, OP_MASK, RmaState};
use crate::engine::index::Index;
use crate::engine::state::{Engine, flow_of, mark_conn_ready};
use crate::wire::DATA;
use crate::{Access, Atomic, Attribute, RmaError, Time};

impl Engine {
    /// Begins an RMA.
    ///
    /// # Errors
    ///
    /// Refused: nothing was copied, and the operation has not begun.
    pub fn rma(&mut self, now: Time, index: Index, rma: &Rma<'_>) -> Result<(), RmaError> {
        let index = index.0;
        let is_only_conn = self.table.len() < 2;
        let conn = self.table.get_mut(index).filter(|conn| conn.state == State::Open).ok_or(RmaError::Disconnected)?;
        if !conn.is_reliable() {
            return Err(RmaError::Unreliable);
        }
        if rma.target.len == 0 {
            return Err(RmaError::ZeroLength);
        }
        if matches!(rma.access, Access::Atomic(_)) && !Atomic::is_word(rma.target.len) {
            return Err(RmaError::WordLength);
        }
        let is_request = rma.access.is_request();
        let len = rma.message.map_or(0, <[u8]>::len);
        if len > self.small_peers.largest(conn, index, self.config.max_send_size) as usize {
            return Err(RmaError::MessageTooLong);
        }
        let capacity = (usize::from(conn.mtu) - DATA).min(self.frames.stride());
        let flow = flow_of(&mut self.flows, conn, index).ok_or(RmaError::NoBuffers)?;
        let op = rma.op;
        let before = flow.last_send();
        flow.queue.push_rma(op);
        if let Some(message) = rma.message {
            // The message of an RMA that brings bytes is queued when they have come, so the peer
            // need not check an earlier RMA.
            let (parts, owner) = (&[message], conn.flow);
            let after = !is_request;
            let message = OutboundMessage {
                parts,
                len,
                is_rma: true,
                after,
                op,
                prompt: false,
                now,
                capacity,
                owner,
                is_only_conn,
            };
            let queue = &mut flow.queue;
            let push = |batch| if is_request { queue.defer(op, batch) } else { queue.push_batch(batch) };
            if !message.write_batches(&mut self.frames, &mut self.parts, push) {
                flow.queue.cancel_rma();
                mark_conn_ready(conn, index, &mut self.ready);
                return Err(RmaError::NoBuffers);
            }
        }
        link(&mut self.links, op, NONE);
        let at = op.0 as usize;
        if self.rmas.len() <= at {
            self.rmas.resize(at + 1, None);
        }
        self.rmas[at] = Some(RmaState {
            conn: index,
            wire: op.0 & OP_MASK | self.lives << OP_BITS,
            target: rma.target,
            access: rma.access,
            fence: rma.fence,
            has_message: rma.message.is_some(),
            is_granted: false,
            at: 0,
            received: 0,
            answered: false,
            left: 1 + u8::from(rma.message.is_some()),
            failed: None,
        });
        self.lives = self.lives.wrapping_add(1);
        flow.open_rmas.begin(now);
        if conn.attribute() == Attribute::ReliableOrdered {
            // Sends end in order by themselves: the newest one stands for all.
            before.into_iter().chain([op]).for_each(|op| flow.end_order.push(op, &mut self.ordered_ends));
        }
        mark_conn_ready(conn, index, &mut self.ready);
        Ok(())
    }
}
