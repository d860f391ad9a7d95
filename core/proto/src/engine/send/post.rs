//! The beginning of a send: the message joins the queue of its connection's flow.

use super::message::OutboundMessage;
use crate::engine::connection::conn::{NONE, State};
use crate::engine::flow::batch::link;
use crate::engine::host::Op;
use crate::engine::index::Index;
use crate::engine::state::{Engine, flow_of, mark_conn_ready};
use crate::wire::{DATA, MESSAGE_HEAD, emit_message};
use crate::{Gather, SendError, Time};

/// Most messages in one frame. Each needs a slot of the peer.
const MAX_MESSAGES: u16 = 512;

impl Engine {
    /// Sets frame buffers aside for answers: so many answers of at most one frame find room
    /// whatever else is sent.
    pub fn reserve_answers(&mut self, count: u32) {
        self.frames.reserve_answers(count);
    }

    /// Says whether the messages that are sent from now on are answers.
    pub fn set_answering(&mut self, on: bool) {
        self.frames.set_answering(on);
    }

    /// Sends a message: the concatenation of `parts`, which are copied. `prompt`: request an
    /// acknowledgement at once. On a reliable connection the operation ends when the peer has
    /// delivered the message, on another when it has left.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent, and the operation has not begun.
    pub fn send(
        &mut self,
        now: Time,
        index: Index,
        parts: &(impl Gather + ?Sized),
        op: Op,
        prompt: bool,
    ) -> Result<(), SendError> {
        let len = parts.total();
        let index = index.0;
        let is_only_conn = self.table.len() < 2;
        let conn = self.table.get_mut(index).filter(|conn| conn.state == State::Open).ok_or(SendError::Disconnected)?;
        if len > self.small_peers.largest(conn, index, self.config.max_send_size) as usize {
            return Err(SendError::TooLong);
        }
        let capacity = (usize::from(conn.mtu) - DATA).min(self.frames.stride());
        let flow = flow_of(&mut self.flows, conn, index).ok_or(SendError::NoBuffers)?;
        link(&mut self.links, op, NONE);
        if let Some(batch) = flow.queue.open_batch()
            && usize::from(batch.len) + MESSAGE_HEAD + len <= capacity
            && batch.messages < MAX_MESSAGES
        {
            let end = emit_message(self.frames.bytes_mut(batch.buffer), usize::from(batch.len), false, parts);
            batch.len = u16::try_from(end).unwrap_or(u16::MAX);
            batch.messages += 1;
            batch.prompt |= prompt;
            link(&mut self.links, Op(batch.ops.tail), op.0);
            batch.ops.tail = op.0;
        } else {
            let owner = conn.flow;
            let message = OutboundMessage {
                parts,
                len,
                is_rma: false,
                after: false,
                op,
                prompt,
                now,
                capacity,
                owner,
                is_only_conn,
            };
            let queue = &mut flow.queue;
            if !message.write_batches(&mut self.frames, &mut self.parts, |batch| queue.push_batch(batch)) {
                // A flow taken above stays without use, and is given back by the timer.
                mark_conn_ready(conn, index, &mut self.ready);
                return Err(SendError::NoBuffers);
            }
        }
        if !flow.end_order.is_empty() {
            flow.end_order.push(op, &mut self.ordered_ends);
        }
        mark_conn_ready(conn, index, &mut self.ready);
        Ok(())
    }
}
