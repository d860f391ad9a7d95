//! The fast path of a single message: nothing else of its connection waits, and the frames in
//! flight need no action. Requests, answers, and messages to one endpoint after the other take it.
//! Its result is that of the general path (`send` and `poll_transmit`; `apply_next` and `advance`),
//! which handles all other cases.

use super::departure::mark_sent;
use super::frame::{emit_data, plain};
use super::message::saturating_u16;
use super::schedule::{fits_window, has_credit};
use super::seal::next_seal;
use crate::engine::api::{Post, Transmit};
use crate::engine::connection::conn::{Conn, NONE, State, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::batch::{Batch, Ops, link};
use crate::engine::flow::frame_pool::SHORT;
use crate::engine::host::{Host, Index};
use crate::engine::state::{Engine, mark_conn_ready};
use crate::wire::{DATA, MESSAGE_HEAD, emit_message, flags};
use crate::{Gather, SendError, Time};

impl Engine {
    /// Sends a message as [`Engine::send`] does, and transmits it at once if nothing has to leave
    /// before it. Its frame is written to the start of `buffer`, which holds at least `Config::mtu`
    /// bytes, and passed to `leave` before the engine notes it in flight. So that work does not
    /// delay the message. `leave` may seal the frame where it lies. Returns the frame, or `None` if the message waits for `poll_transmit`.
    ///
    /// # Errors
    ///
    /// As [`Engine::send`].
    pub fn send_now<H: Host, M: Gather + ?Sized>(
        &mut self,
        now: Time,
        index: Index,
        post: &Post<'_, M>,
        buffer: &mut [u8],
        host: &mut H,
        leave: impl FnOnce(&Transmit<H::Piece>, &mut [u8], &mut H),
    ) -> Result<Option<Transmit<H::Piece>>, SendError> {
        match self.send_immediate(now, index.0, post, buffer, host, leave) {
            None => self.send(now, index, post.parts, post.op, post.prompt).map(|()| None),
            sent => Ok(sent),
        }
    }

    #[inline]
    fn send_immediate<H: Host, M: Gather + ?Sized>(
        &mut self,
        now: Time,
        index: u32,
        post: &Post<'_, M>,
        buffer: &mut [u8],
        host: &mut H,
        leave: impl FnOnce(&Transmit<H::Piece>, &mut [u8], &mut H),
    ) -> Option<Transmit<H::Piece>> {
        if self.may_transmit(now, false) {
            return None;
        }
        let is_only_conn = self.table.len() < 2;
        let conn = self.table.get_mut(index).filter(|conn| conn.state == State::Open && conn.is_reliable())?;
        let flow = self.flows.get_mut(conn.flow).filter(|flow| is_free(now, conn, flow))?;
        let len = post.parts.total();
        let payload = MESSAGE_HEAD + len;
        let largest = self.small_peers.largest(conn, index, self.config.max_send_size);
        let fits = len <= largest as usize && payload <= self.frames.stride();
        if !fits || DATA + payload > usize::from(conn.mtu) {
            return None;
        }
        // Every operation has a descriptor, which lies on one page. Buffers are shared among flows.
        let kept = if len <= SHORT {
            self.frames.descriptor(post.op)?
        } else if self.frames.ensure(1) && (is_only_conn || self.frames.is_fair(conn.flow, 1)) {
            self.frames.take(conn.flow)?
        } else {
            return None;
        };
        let seal = if conn.has(bit::SEALED) {
            let number = conn.number;
            let Some(seal) = next_seal(&mut self.sealed, now, index, conn, number, host) else {
                self.frames.give(kept);
                return None;
            };
            Some(seal)
        } else {
            None
        };
        let seq = conn.next_seq;
        conn.next_seq = seq.wrapping_add(1);
        let bits = if post.prompt { flags::ASK | flags::PROMPT } else { flags::ASK };
        let at = emit_data(conn, Some(flow), Some(seq), bits, payload, now, host.credit(), buffer);
        let end = emit_message(buffer, at, false, post.parts);
        let transmit = Transmit { seal, ..plain(conn, end) };
        if seal.is_some() {
            // A sealed frame is encrypted where it lies.
            self.frames.bytes_mut(kept)[..payload].copy_from_slice(&buffer[at..end]);
            leave(&transmit, buffer, host);
            if conn.has(bit::PING) {
                mark_conn_ready(conn, index, &mut self.ready);
            }
        } else {
            leave(&transmit, buffer, host);
            self.frames.bytes_mut(kept)[..payload].copy_from_slice(&buffer[at..end]);
        }
        link(&mut self.links, post.op, NONE);
        let at = flow.send_window.push_single(Batch {
            buffer: kept,
            len: saturating_u16(payload),
            messages: 1,
            ops: Ops { head: post.op.0, tail: post.op.0 },
            of: post.op.0,
            is_open: false,
            prompt: post.prompt,
            since: now,
        });
        flow.requests.give_turn();
        let is_above_base = end > usize::from(conn.base_mtu);
        mark_sent(now, conn, flow, at, end as u64, is_above_base);
        self.stats.sent += 1;
        self.arm(now, index);
        Some(transmit)
    }
}

/// Returns whether a message may leave now, with nothing to wait for or to share a frame with.
fn is_free(now: Time, conn: &Conn, flow: &Flow) -> bool {
    !flow.has_unsent()
        && flow.end_order.is_empty()
        && flow.open_rmas.barrier().is_none()
        && flow.peer.is_ready()
        && flow.slicing.is_none()
        && !flow.send_window.has_lost()
        && !flow.probe_timeout.is_due()
        && has_credit(conn, flow, 1)
        && fits_window(now, conn, flow)
}

#[cfg(test)]
mod tests;
