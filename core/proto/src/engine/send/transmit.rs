//! Output: the next frame that may leave.

use super::departure::{mark_sent, mark_slice_sent};
use super::frame::{MemoryLoss, build, emit_data, header, payload_len, plain};
use super::schedule::{again, may_send_new, sliced};
use crate::engine::api::Transmit;
use crate::engine::connection::conn::{State, bit};
use crate::engine::flow::batch::Batch;
use crate::engine::flow::in_flight::Payload;
use crate::engine::flow::rma_state::RmaAnswer;
use crate::engine::flow::send_queue::Queued;
use crate::engine::flow::slicing::{Slice, Slicing};
use crate::engine::host::Host;
use crate::engine::state::{Engine, mark_conn_ready};
use crate::wire::{self, DATA, Kind, flags};
use crate::{Failure, Time};

/// Frames of one connection in a row, before other connections get their turn.
const QUANTUM: u32 = 64;

impl Engine {
    /// Returns whether `poll_transmit` may find something now. Cheap, for callers that ask often.
    #[inline]
    #[must_use]
    pub fn may_transmit(&self, now: Time, idle: bool) -> bool {
        self.has_output() || self.timers.next_ack().is_some_and(|at| idle || at <= now)
    }

    /// Writes the next frame that may leave now to the start of `buffer`, which holds at least
    /// `Config::mtu` bytes. `idle`: the program had its chance to answer, so delayed
    /// acknowledgements leave now.
    pub fn poll_transmit<H: Host>(
        &mut self,
        now: Time,
        idle: bool,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Option<Transmit<H::Piece>> {
        while let Some(reply) = self.replies.pop_front() {
            if let Some(transmit) =
                reply.emit(now, buffer).or_else(|| self.emit_sealed_reply(now, &reply, buffer, host))
            {
                self.stats.sent += 1;
                return Some(transmit);
            }
        }
        if core::mem::take(&mut self.freed) && !self.awaiting_slot.is_empty() {
            self.refill(host);
        }
        self.resume_awaiting_frame();
        self.release_delayed_acks(now, idle);
        while let Some(index) = self.ready.front().copied() {
            if self.in_a_row < QUANTUM
                && let Some(mut transmit) = self.transmit(now, index, buffer, host)
            {
                if !self.sealed.is_empty() && !self.seal(now, index, &mut transmit, host) {
                    continue;
                }
                self.in_a_row += 1;
                self.stats.sent += 1;
                return Some(transmit);
            }
            self.ready.pop_front();
            let had_enough = core::mem::take(&mut self.in_a_row) >= QUANTUM;
            if let Some(conn) = self.table.get_mut(index) {
                conn.clear(bit::READY);
            }
            if had_enough {
                self.mark_ready(index);
            } else {
                self.arm(now, index);
            }
        }
        None
    }

    /// Makes connections ready that wait for a frame buffer, one for each buffer that was given
    /// back.
    fn resume_awaiting_frame(&mut self) {
        while self.frames.left() > 0
            && let Some(index) = self.awaiting_frame.pop_front()
        {
            if let Some(conn) = self.table.get_mut(index)
                && conn.take(bit::AWAITING_FRAME)
            {
                mark_conn_ready(conn, index, &mut self.ready);
            }
        }
    }

    /// Makes delayed acknowledgements due whose deadline has passed, or all of them when `idle`.
    fn release_delayed_acks(&mut self, now: Time, idle: bool) {
        while let Some(ack) = self.timers.first_ack() {
            let conn = self.table.get_mut(ack.index).filter(|conn| conn.ack_number == ack.number);
            if let Some(conn) = conn.filter(|conn| conn.has(bit::ACK_DELAYED)) {
                if !idle && ack.deadline > now {
                    break;
                }
                conn.clear(bit::ACK_DELAYED);
                conn.set(bit::ACK_NOW);
                mark_conn_ready(conn, ack.index, &mut self.ready);
            }
            self.timers.drop_ack();
        }
    }

    /// Writes the next frame of one connection.
    fn transmit<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Option<Transmit<H::Piece>> {
        let state = self.table.get(index)?.state;
        match state {
            State::Open => {}
            State::Asking | State::Accepting | State::Closing => {
                return self.transmit_exchange(now, index, buffer, host);
            }
            State::Requested | State::Broken => return None,
        }
        if let Some(transmit) = self.transmit_sequenced(now, index, buffer, host) {
            return Some(transmit);
        }
        let conn = self.table.get_mut(index)?;
        if conn.take(bit::CONFIRM) {
            let header = header(conn, Kind::Confirm, now);
            let len = match host.sealer().filter(|_| conn.has(bit::SEALED)) {
                Some(sealer) => wire::SealedConfirm { header, token: sealer.reset_token(conn.id) }.emit(buffer),
                None => wire::Confirm { header }.emit(buffer),
            };
            return Some(plain(conn, len));
        }
        let flow = self.flows.get_mut(conn.flow);
        if let Some(flow) = flow
            && flow.has_unsent()
            && let Some(size) = flow.path_probing.due(now, conn, self.config.mtu)
        {
            // A path probe may be lost, so its acknowledgement is repeated in another frame.
            let owed = conn.flags;
            let at =
                emit_data(conn, Some(flow), None, flags::PROMPT, usize::from(conn.mtu), now, host.credit(), buffer);
            conn.flags = owed;
            let len = wire::emit_probe(buffer, at, size);
            return Some(Transmit { probe: true, ..plain(conn, len) });
        }
        if conn.has(bit::ACK_NOW | bit::PING)
            || self.flows.get(conn.flow).is_some_and(|flow| flow.path_probing.has_reply())
        {
            let bits = if conn.take(bit::PING) {
                conn.set(bit::PINGED);
                flags::PROMPT
            } else {
                0
            };
            conn.clear(bit::ACK_NOW | bit::ACK_DELAYED | bit::FULL);
            let flow = self.flows.get(conn.flow);
            let mut len = emit_data(conn, flow, None, bits, 0, now, host.credit(), buffer);
            if let Some(size) = self.flows.get_mut(conn.flow).and_then(|flow| flow.path_probing.take_reply()) {
                len = wire::emit_probe_reply(buffer, len, size);
            }
            return Some(plain(conn, len));
        }
        None
    }

    /// Writes a sequenced frame: a probe, a retransmission, or a new frame.
    fn transmit_sequenced<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Option<Transmit<H::Piece>> {
        let conn = self.table.get_mut(index)?;
        let flow = self.flows.get_mut(conn.flow)?;
        if !conn.is_reliable() {
            return self.transmit_unreliable(now, index, buffer, host);
        }
        let place_of_slice = sliced(conn, flow);
        if place_of_slice.is_some() && flow.congestion.next_at() > now {
            return None;
        }
        let at = match place_of_slice.or_else(|| again(now, conn, flow)) {
            Some(at) => at,
            None => {
                if !may_send_new(now, conn, flow) {
                    return None;
                }
                let payload = self.next_new(now, index, host)?;
                self.flow_mut(index)?.send_window.push(payload)
            }
        };
        match self.send_in_flight(now, index, at, buffer, host) {
            Ok(transmit) => transmit,
            Err(MemoryLoss(failure)) => {
                self.lose_memory(index, at, failure, host);
                self.send_in_flight(now, index, at, buffer, host).ok().flatten()
            }
        }
    }

    /// Writes the frame at this index of the send window, or its next slice if the path no longer
    /// carries it whole.
    fn send_in_flight<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        at: usize,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Result<Option<Transmit<H::Piece>>, MemoryLoss> {
        let Some(conn) = self.table.get_mut(index) else { return Ok(None) };
        let Some(flow) = self.flows.get_mut(conn.flow) else { return Ok(None) };
        let Some(frame) = flow.send_window.get(at) else { return Ok(None) };
        let first = frame.attempts() == 0;
        if first {
            conn.next_seq = conn.next_seq.wrapping_add(1);
        }
        let seq = flow.send_window.seq(at, conn.next_seq);
        let mut bits = if flow.has_unsent() { 0 } else { flags::ASK };
        let payload_len = payload_len(frame.payload());
        let smallest = conn.base_mtu.min(conn.peer_mtu);
        let slicing = (DATA + payload_len > usize::from(conn.mtu))
            .then(|| flow.slicing.unwrap_or_else(|| Slicing::new(seq, frame.attempts(), payload_len, smallest)));
        let slice = slicing.map_or(Slice::whole(payload_len), |slicing| slicing.slice(payload_len, smallest));
        if slicing.is_some_and(|slicing| !slicing.is_last()) {
            bits = 0;
        } else if !first || matches!(frame.payload(), Payload::Batch(Batch { prompt: true, .. })) {
            bits |= flags::PROMPT;
        }
        let built =
            build(conn, flow, seq, bits, frame.payload(), slice, !first, now, &self.frames, &self.rmas, buffer, host);
        let built = match built {
            Ok(built) => built,
            Err(gone) => {
                if first {
                    conn.next_seq = conn.next_seq.wrapping_sub(1);
                }
                return Err(gone);
            }
        };
        let bytes = u64::try_from(built.len).unwrap_or(0) + u64::from(built.piece_len);
        flow.slicing = slicing.and_then(Slicing::next);
        if slicing.is_none_or(|slicing| slicing.is_first()) {
            let is_above_base = slicing.is_none() && bytes > u64::from(conn.base_mtu);
            mark_sent(now, conn, flow, at, bytes, is_above_base);
            self.stats.resent += u64::from(!first);
        } else {
            mark_slice_sent(now, conn, flow, at, bytes);
        }
        Ok(Some(Transmit {
            to: conn.to,
            len: built.len,
            piece: built.piece,
            piece_len: built.piece_len,
            checked: built.flags & flags::UNCHECKED == 0,
            probe: false,
            seal: None,
        }))
    }

    /// Fails the operation of a frame whose memory is no longer registered. The frame's number is
    /// sent all the same. A write is sent as aborted: the target refuses the whole, and its message
    /// is not delivered.
    fn lose_memory<H: Host>(&mut self, index: u32, at: usize, failure: Failure, host: &mut H) {
        let Some(flow) = self.flow_mut(index) else { return };
        match flow.send_window.lose_memory(at) {
            Some(Payload::Write { op, .. }) => self.abort_write(index, op, failure, host),
            Some(Payload::ReadBytes { op, .. }) => flow.requests.refuse_read(op, RmaAnswer::refusal(failure)),
            _ => {}
        }
    }

    /// Writes a frame of messages on an unreliable connection. It is sent once and not kept.
    fn transmit_unreliable<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        buffer: &mut [u8],
        host: &mut H,
    ) -> Option<Transmit<H::Piece>> {
        let conn = self.table.get_mut(index)?;
        let flow = self.flows.get_mut(conn.flow)?;
        let Some(Queued::Batch(batch)) = flow.queue.pop() else { return None };
        flow.idle_probing.on_sent(now);
        let at = emit_data(conn, None, None, 0, usize::from(batch.len), now, host.credit(), buffer);
        let len = at + usize::from(batch.len);
        buffer[at..len].copy_from_slice(&self.frames.bytes(batch.buffer)[..usize::from(batch.len)]);
        conn.clear(bit::CONFIRM);
        let transmit = plain(conn, len);
        self.frames.give(batch.buffer);
        self.end_list(index, batch.ops, Ok(()), host);
        Some(transmit)
    }
}
