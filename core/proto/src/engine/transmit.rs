//! Output: the next frame that may leave.

use super::conn::{Conn, NONE, State, bit};
use super::flow::{Batch, Flow, FrameState, InFlight, MAX_REQUESTS, Ops, Payload, Queued, Serve, WINDOW};
use super::frame::{MemoryLoss, build, emit_data, header, payload_len, plain};
use super::frame_pool::FramePool;
use super::host::{Host, Source};
use super::send::saturating_u32;
use super::slices::{Slice, Slicing, note_slice, sliced};
use super::{Engine, QUANTUM, Transmit, rtt};
use crate::wire::{self, DATA, Kind, READ_BYTES_HEAD, RESULT, WRITE_HEAD, emit_read, emit_result, flags};
use crate::{Failure, Time};
use alloc::collections::VecDeque;

/// Bytes of a cache line, and of a word that leaves in one frame.
const LINE: u64 = 64;
const WORD: u64 = 8;
/// Room, bytes, from which a frame of memory ends at a cache line: the unused part of a line costs
/// it little.
pub(super) const LARGE: u64 = 4096;
/// Transmissions after which a frame is sent with no other in flight behind it.
const MOST_ATTEMPTS: u8 = 6;

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
        if let Some(reply) = self.replies.pop_front() {
            self.stats.sent += 1;
            return Some(reply.emit(now, buffer));
        }
        if core::mem::take(&mut self.freed) && !self.awaiting_slot.is_empty() {
            self.refill(now, host);
        }
        self.resume_awaiting_frame();
        self.release_delayed_acks(now, idle);
        while let Some(index) = self.ready.front().copied() {
            if self.in_a_row < QUANTUM
                && let Some(transmit) = self.transmit(now, index, buffer, host)
            {
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
                self.make_ready(index);
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
                super::get_ready(conn, index, &mut self.ready);
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
                super::get_ready(conn, ack.index, &mut self.ready);
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
            State::Asking | State::Accepting | State::Closing => return self.transmit_opening(now, index, buffer),
            State::Requested | State::Broken => return None,
        }
        if let Some(transmit) = self.transmit_sequenced(now, index, buffer, host) {
            return Some(transmit);
        }
        let conn = self.table.get_mut(index)?;
        if conn.take(bit::CONFIRM) {
            let len = wire::Confirm { header: header(conn, Kind::Confirm, now) }.emit(buffer);
            return Some(plain(conn, len));
        }
        let flow = self.flows.get_mut(conn.flow);
        if let Some(flow) = flow
            && flow.wants_to_send()
            && let Some(size) = flow.probing.due(now, conn, self.config.mtu)
        {
            // A path probe may be lost, so its acknowledgement is repeated in another frame.
            let owed = conn.flags;
            let at = emit_data(conn, Some(flow), None, flags::PROMPT, usize::from(conn.mtu), now, host.room(), buffer);
            conn.flags = owed;
            let len = wire::emit_probe(buffer, at, size);
            return Some(Transmit { probe: true, ..plain(conn, len) });
        }
        if conn.has(bit::ACK_NOW | bit::PING) || self.flows.get(conn.flow).is_some_and(|flow| flow.probing.has_reply())
        {
            let ask = if conn.take(bit::PING) {
                conn.set(bit::PINGED);
                flags::PROMPT
            } else {
                0
            };
            conn.clear(bit::ACK_NOW | bit::ACK_DELAYED | bit::FULL);
            let flow = self.flows.get(conn.flow);
            let mut len = emit_data(conn, flow, None, ask, 0, now, host.room(), buffer);
            if let Some(size) = self.flows.get_mut(conn.flow).and_then(|flow| flow.probing.take_reply()) {
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
                let frame = self.next_new(now, index, host)?;
                let flow = self.flow_mut(index)?;
                flow.in_flight.push_back(frame);
                flow.in_flight.len() - 1
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

    /// Writes the frame at this index of `in_flight`, or its next slice if the path no longer
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
        let Some(frame) = flow.in_flight.get(at).copied() else { return Ok(None) };
        #[expect(clippy::cast_possible_truncation, reason = "at most WINDOW")]
        let back = (flow.in_flight.len() - at) as u32;
        let first = frame.attempts == 0;
        if first {
            conn.next_seq = conn.next_seq.wrapping_add(1);
        }
        let seq = conn.next_seq.wrapping_sub(back);
        let mut bits = if flow.wants_to_send() { 0 } else { flags::ASK };
        let payload_len = payload_len(&frame.payload);
        let smallest = self.config.base_mtu.min(conn.peer_mtu);
        let slicing = (DATA + payload_len > usize::from(conn.mtu))
            .then(|| flow.slicing.unwrap_or_else(|| Slicing::new(seq, frame.attempts, payload_len, smallest)));
        let slice = slicing.map_or(Slice::whole(payload_len), |slicing| slicing.slice(payload_len, smallest));
        if slicing.is_some_and(|slicing| !slicing.is_last()) {
            bits = 0;
        } else if !first || matches!(frame.payload, Payload::Batch(Batch { prompt: true, .. })) {
            bits |= flags::PROMPT;
        }
        let built =
            build(conn, flow, seq, bits, &frame.payload, slice, !first, now, &self.frames, &self.rmas, buffer, host);
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
            let is_large = slicing.is_none() && bytes > u64::from(self.config.base_mtu);
            note_sent(now, conn, flow, at, bytes, is_large);
            self.stats.resent += u64::from(!first);
        } else {
            note_slice(now, conn, flow, at, bytes);
        }
        Ok(Some(Transmit {
            to: conn.to,
            len: built.len,
            piece: built.piece,
            piece_len: built.piece_len,
            checked: built.flags & flags::UNCHECKED == 0,
            probe: false,
        }))
    }

    /// Returns the next new frame: results first, then served reads and the program's queue in
    /// turn.
    fn next_new<H: Host>(&mut self, now: Time, index: u32, host: &mut H) -> Option<InFlight> {
        let conn = self.table.get_mut(index)?;
        let flow = self.flows.get_mut(conn.flow)?;
        let room = u32::from(conn.mtu) - saturating_u32(DATA);
        if !flow.results.is_empty() {
            match results(&mut self.frames, conn.flow, flow, room, now) {
                Some(batch) => return Some(fresh(Payload::Batch(batch))),
                None => await_frame(conn, index, &mut self.awaiting_frame),
            }
        }
        let has_queued = has_queued(flow, conn, &self.rmas);
        if !flow.serves.is_empty() && (!has_queued || flow.serve_next) {
            flow.serve_next = false;
            return serve(flow, room, host).map(fresh);
        }
        if !has_queued {
            return None;
        }
        flow.serve_next = true;
        match *flow.queue.front()? {
            Queued::Batch(batch) => {
                flow.queue.pop_front();
                flow.messages_in_flight += u32::from(batch.messages);
                Some(fresh(Payload::Batch(batch)))
            }
            Queued::Rma(op) => {
                let state = self.rmas.get_mut(op.0 as usize)?.as_mut()?;
                // Taken before any state changes: without a buffer, nothing is sent now.
                let buffer = if state.read { self.frames.take(conn.flow) } else { None };
                if state.read && buffer.is_none() {
                    await_frame(conn, index, &mut self.awaiting_frame);
                    return None;
                }
                if state.at == 0 {
                    flow.running += 1;
                    if state.fence || state.read && state.has_message {
                        flow.barrier = Some(op);
                    }
                }
                if let Some(buffer) = buffer {
                    state.at = state.target.len;
                    flow.queue.pop_front();
                    let len = emit_read(self.frames.bytes_mut(buffer), 0, state.wire, &state.target);
                    return Some(fresh(Payload::Batch(control(buffer, len, now))));
                }
                let at = state.at;
                let phase = || if at == 0 { host.phase(&Source::Local(op)) } else { 0 };
                let len = memory_len(room - saturating_u32(WRITE_HEAD), state.target.len - at, phase);
                state.at += len;
                if state.at == state.target.len {
                    flow.queue.pop_front();
                }
                let is_last = state.at == state.target.len;
                Some(fresh(Payload::Write { op: state.wire, at, len: saturating_u32(len), is_last }))
            }
            Queued::Aborted(op) => {
                flow.queue.pop_front();
                Some(fresh(Payload::Aborted { op, is_last: true }))
            }
        }
    }

    /// Fails the operation of a frame whose memory is no longer registered. The frame's number is
    /// sent all the same. A write is sent as aborted: the target refuses the whole, and its message
    /// is not delivered.
    fn lose_memory<H: Host>(&mut self, index: u32, at: usize, failure: Failure, host: &mut H) {
        let Some(flow) = self.flow_mut(index) else { return };
        let Some(frame) = flow.in_flight.get_mut(at) else { return };
        let payload = core::mem::replace(&mut frame.payload, Payload::Empty);
        match payload {
            Payload::Write { op, is_last, .. } => {
                frame.payload = Payload::Aborted { op, is_last };
                self.abort_write(index, op, failure, host);
            }
            Payload::ReadBytes { op, .. } => {
                flow.serves.retain(|serve| serve.op != op);
                flow.results.push_back((op, status(failure)));
            }
            Payload::Empty | Payload::Batch(_) | Payload::Aborted { .. } => {}
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
        let Some(Queued::Batch(batch)) = flow.queue.pop_front() else { return None };
        let at = emit_data(conn, None, None, 0, usize::from(batch.len), now, host.room(), buffer);
        let len = at + usize::from(batch.len);
        buffer[at..len].copy_from_slice(&self.frames.bytes(batch.buffer)[..usize::from(batch.len)]);
        conn.clear(bit::CONFIRM);
        let transmit = plain(conn, len);
        self.frames.give(batch.buffer);
        self.end_list(index, batch.ops, Ok(()), host);
        Some(transmit)
    }

    /// Returns the flow of a connection, if it has one.
    pub(super) fn flow_mut(&mut self, index: u32) -> Option<&mut Flow> {
        let flow = self.table.get(index)?.flow;
        self.flows.get_mut(flow)
    }
}

/// Notes that a frame in flight leaves, with this many bytes on the wire.
pub(super) fn note_sent(now: Time, conn: &mut Conn, flow: &mut Flow, at: usize, bytes: u64, is_large: bool) {
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
    if first && flow.in_flight.len() == 1 {
        flow.progress_at = now;
        flow.congestion.on_restart();
    }
    flow.resent += u64::from(!first);
    (flow.sent_at, flow.used_at) = (now, now);
    flow.bytes_in_flight += bytes;
    flow.congestion.on_sent(now, bytes, conn.mtu.into());
    conn.clear(bit::CONFIRM);
}

/// Returns the index in `in_flight` of the frame to retransmit now, if any.
fn again(now: Time, conn: &Conn, flow: &mut Flow) -> Option<usize> {
    if core::mem::take(&mut flow.probe_due)
        && let Some(at) = flow.in_flight.iter().position(|frame| frame.state != FrameState::Accepted)
    {
        return Some(at);
    }
    if flow.lost == 0 || flow.congestion.next_at() > now {
        return None;
    }
    if sends_oldest_only(flow) {
        return (flow.in_flight.front()?.state == FrameState::Lost).then_some(0);
    }
    let fits = flow.bytes_in_flight < window(conn, flow);
    let is_lost = |at: &usize| flow.in_flight[*at].state == FrameState::Lost;
    let first = (flow.lost_from..flow.in_flight.len()).find(is_lost)?;
    // Messages wait for slots. Other frames do not: the peer's program may need them before it
    // returns a slot.
    let may_go = |at: &usize| flow.rnr_since.is_none() || !flow.in_flight[*at].payload.is_message();
    let at = (first..flow.in_flight.len()).find(|at| is_lost(at) && may_go(at));
    flow.lost_from = first;
    at.filter(|_| fits)
}

/// Returns whether only the oldest frame may leave. It was lost so often that its followers may be
/// the reason, for example by filling a queue. RFC 9002, section 7.6, uses the minimum window in
/// that case.
fn sends_oldest_only(flow: &Flow) -> bool {
    let is_unlucky = |front: &InFlight| front.attempts > MOST_ATTEMPTS && front.state != FrameState::Accepted;
    flow.rnr_since.is_none() && flow.in_flight.front().is_some_and(is_unlucky)
}

/// Returns how many bytes may be in flight.
fn window(conn: &Conn, flow: &Flow) -> u64 {
    flow.congestion.window(conn.mtu.into()).min(u64::from(conn.peer_buffer)).max(u64::from(conn.mtu))
}

fn may_send_new(now: Time, conn: &Conn, flow: &Flow) -> bool {
    flow.wants_to_send() && has_room(now, conn, flow)
}

/// Returns whether another sequenced frame may be in flight now.
pub(super) fn has_room(now: Time, conn: &Conn, flow: &Flow) -> bool {
    flow.in_flight.len() < WINDOW
        && !sends_oldest_only(flow)
        && flow.congestion.next_at() <= now
        && (flow.in_flight.is_empty() || flow.bytes_in_flight + u64::from(conn.mtu) <= window(conn, flow))
}

/// Returns whether the front of the queue may be sent: no earlier operation blocks it, and the peer
/// has credit for its messages (see `has_credit`).
pub(super) fn has_queued(flow: &Flow, conn: &Conn, rmas: &[Option<super::send::RmaState>]) -> bool {
    match flow.queue.front() {
        None => false,
        Some(Queued::Batch(batch)) => {
            let barred = flow.barrier.is_some_and(|op| batch.of != op.0);
            !barred && flow.rnr_since.is_none() && has_credit(conn, flow, batch.messages)
        }
        Some(Queued::Rma(op)) => match flow.barrier {
            Some(barrier) => barrier == *op,
            None => {
                let Some(rma) = rmas.get(op.0 as usize).and_then(Option::as_ref) else { return true };
                // The peer keeps at most this many requests.
                let crowded = rma.read && flow.running as usize >= MAX_REQUESTS;
                !crowded && (!rma.fence || flow.messages_in_flight == 0 && flow.running == 0)
            }
        },
        Some(Queued::Aborted(_)) => true,
    }
}

/// Returns whether the peer has room for this many more messages. With no message in flight one may
/// always leave, since its acknowledgement brings new credit.
pub(super) fn has_credit(conn: &Conn, flow: &Flow, messages: u16) -> bool {
    let wanted = flow.messages_in_flight + u32::from(messages);
    wanted <= u32::from(conn.credit) || messages == 0 || flow.messages_in_flight == 0
}

/// Returns whether `transmit` may find something on an open connection. Entries that wait for a
/// time are the timer's.
pub(super) fn has_work(conn: &Conn, flow: Option<&Flow>) -> bool {
    let moves = |flow: &Flow| {
        flow.wants_to_send() || flow.lost > 0 || flow.probe_due || flow.slicing.is_some() || flow.probing.has_reply()
    };
    conn.has(bit::ACK_NOW | bit::PING | bit::CONFIRM) || flow.is_some_and(moves)
}

/// Appends a connection that found no frame buffer to the list of those that wait for one.
fn await_frame(conn: &mut Conn, index: u32, awaiting_frame: &mut VecDeque<u32>) {
    if !conn.has(bit::AWAITING_FRAME) {
        conn.set(bit::AWAITING_FRAME);
        awaiting_frame.push_back(index);
    }
}

pub(super) const fn fresh(payload: Payload) -> InFlight {
    InFlight {
        payload,
        sent: Time(0),
        number: 0,
        bytes: 0,
        attempts: 0,
        is_large: false,
        was_lost: false,
        state: FrameState::Sent,
    }
}

fn control(buffer: super::frame_pool::Buffer, len: usize, now: Time) -> Batch {
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    Batch { buffer, len, messages: 0, ops: Ops::NONE, of: NONE, is_open: false, prompt: false, since: now }
}

/// Moves waiting results into one frame.
fn results(frames: &mut FramePool, owner: u32, flow: &mut Flow, room: u32, now: Time) -> Option<Batch> {
    let buffer = frames.take(owner)?;
    let capacity = (room as usize).min(frames.stride());
    let bytes = frames.bytes_mut(buffer);
    let mut len = 0;
    while len + RESULT <= capacity
        && let Some((op, status)) = flow.results.pop_front()
    {
        len = emit_result(bytes, len, op, status);
    }
    Some(control(buffer, len, now))
}

/// Returns the next bytes of the read that is being served.
fn serve<H: Host>(flow: &mut Flow, room: u32, host: &mut H) -> Option<Payload> {
    let Serve { op, target, at } = *flow.serves.front()?;
    let phase = || if at == 0 { host.phase(&Source::Served(target)) } else { 0 };
    let len = memory_len(room - saturating_u32(READ_BYTES_HEAD), target.len - at, phase);
    if at + len == target.len {
        flow.serves.pop_front();
    } else if let Some(serve) = flow.serves.front_mut() {
        serve.at += len;
    }
    Some(Payload::ReadBytes { op, target, at, len: saturating_u32(len) })
}

/// Returns how many of the `left` bytes of memory a frame with this room carries. A frame that is
/// not the last ends at a word of 8 bytes, so that no word is sent in two frames. A large one ends
/// at a cache line: a copy that starts inside a word takes three times as long. `phase`: address of
/// the first byte modulo a line; 0 after an earlier frame.
pub(super) fn memory_len(room: u32, left: u64, phase: impl FnOnce() -> u8) -> u64 {
    let room = u64::from(room);
    if left <= room {
        return left;
    }
    let (unit, phase) = (if room < LARGE { WORD } else { LINE }, u64::from(phase()));
    room - (phase + room) % unit
}

pub(super) fn status(failure: Failure) -> u8 {
    if failure == Failure::Copy { 2 } else { 1 }
}

/// Returns the latest time at which an acknowledgement leaves.
pub(super) fn ack_deadline(now: Time) -> Time {
    now.plus_micros(rtt::MAX_ACK_DELAY)
}
