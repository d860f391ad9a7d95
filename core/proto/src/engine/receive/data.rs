//! Input: frames of the sequence, in order, out of order and repeated.

use super::context::{FrameOutcome, RecvCtx};
use crate::engine::connection::conn::{Conn, NONE, State, bit};
use crate::engine::connection::rtt::ack_deadline;
use crate::engine::connection::timer::DelayedAck;
use crate::engine::flow::batch::Ops;
use crate::engine::flow::continuation::Continuation;
use crate::engine::flow::limits::{LEAST_COPY_VERIFY, WINDOW};
use crate::engine::host::Host;
use crate::engine::send::schedule::has_work;
use crate::engine::serial::{distance, low_half};
use crate::engine::state::{Engine, flow_of, mark_conn_ready};
use crate::wire::{self, Data, Header, Kind, Malformed, Record, Records, Sack, SealedHeader, flags};
use crate::{Address, Time};

/// A DATA frame for a connection of this endpoint, from its peer. It is parsed once: whoever holds
/// one need not check identifiers, sender or framing again.
pub(crate) struct DataFrame<'a> {
    /// The connection.
    pub(super) index: u32,
    pub(super) data: Data,
    pub(super) sack: Sack<'a>,
    pub(super) records: Records<'a>,
    /// Bytes of the whole frame, without a tag.
    pub(super) len: usize,
}

impl Engine {
    /// Verifies a received frame as [`wire::verify`] does, and handles it. `congested`: a router
    /// marked it.
    ///
    /// # Errors
    ///
    /// The reason why the frame was dropped.
    pub fn handle_frame<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) -> Result<(), Malformed> {
        let header = match wire::verify_head(frame) {
            Ok(header) => header,
            Err(Malformed::Kind) => return self.handle_sealed(now, from, frame, congested, host),
            Err(malformed) => return Err(malformed),
        };
        // Parsed before its check is verified, since the check of a large frame is computed while
        // its bytes are copied. Parsing changes nothing.
        let Some(data) = self.parse_data(from, header, frame) else {
            wire::verify_check(&header, frame)?;
            self.handle_other(now, from, header, frame, host);
            return Ok(());
        };
        if frame.len() < LEAST_COPY_VERIFY
            || !self.copy_and_verify(data.index, (data.data.seq, data.data.flags), data.records, frame, host)?
        {
            wire::verify_check(&header, frame)?;
        }
        self.handle_data(now, &data, congested, host);
        Ok(())
    }

    /// Returns whether a frame that arrived where nobody may ask is for a connection with its
    /// sender, and no request. Counts others as strays. The frame is not verified.
    pub fn is_for_peer(&mut self, from: &Address, frame: &[u8]) -> bool {
        let sealed = || SealedHeader::verify(frame).map(|sealed| sealed.header);
        let is_for_peer = wire::verify_head(frame).or_else(|_| sealed()).is_ok_and(|header| {
            let index = self.table.find(header.to).filter(|_| header.kind != Kind::Connect);
            index.is_some_and(|index| {
                let is_peer = self.table.get(index).is_some_and(|conn| conn.to == *from);
                is_peer || self.may_answer(index, from) || self.note_moved(index, from, &header)
            })
        });
        self.stats.strays += u64::from(!is_for_peer);
        is_for_peer
    }

    /// Counts a frame that is dropped for its sender's address, if the peer of the connection can
    /// have sent it: the frame has both identifiers. Returns false.
    #[cold]
    pub(crate) fn note_moved(&mut self, index: u32, from: &Address, header: &Header) -> bool {
        let is_of_peer = |conn: &Conn| conn.peer != 0 && conn.peer == header.from && conn.to != *from;
        if self.table.get(index).is_some_and(is_of_peer) {
            self.moved.note(index, from);
        }
        false
    }

    /// Parses a DATA frame for a connection of this endpoint, from its peer. Returns `None` for
    /// every other frame. The check of the frame is not verified.
    #[inline]
    pub(crate) fn parse_data<'a>(&self, from: &Address, header: Header, frame: &'a [u8]) -> Option<DataFrame<'a>> {
        if header.kind != Kind::Data {
            return None;
        }
        let index = self.table.find(header.to)?;
        self.table.get(index).filter(|conn| conn.peer == header.from && conn.to == *from && !conn.has(bit::SEALED))?;
        let (data, sack, records) = Data::parse_after(header, frame)?;
        Some(DataFrame { index, data, sack, records, len: frame.len() })
    }

    /// Handles a verified frame that is not DATA, or DATA that [`Engine::parse_data`] refused.
    #[cold]
    pub(crate) fn handle_other<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        header: Header,
        frame: &[u8],
        host: &mut H,
    ) {
        match header.kind {
            Kind::Multicast => return,
            Kind::Data => {}
            _ => return self.handle_control(now, from, &header, frame, host),
        }
        let Some(index) = self.table.find(header.to) else { return self.stray(now, from, &header, frame.len()) };
        let Some(conn) = self.table.get(index) else { return };
        if conn.peer != header.from || conn.to != *from {
            self.stats.strays += 1;
            self.note_moved(index, from, &header);
            return;
        }
        if conn.has(bit::SEALED) {
            return self.handle_clear(index, header.kind);
        }
        self.confirm_accepting(now, index, host);
        if self.table.get(index).is_some_and(|conn| conn.state == State::Open) {
            self.stats.malformed += 1;
        }
    }

    /// Opens a connection whose client has received the ACCEPT, if this one waits for that.
    #[inline]
    fn confirm_accepting<H: Host>(&mut self, now: Time, index: u32, host: &mut H) {
        if self.table.get(index).is_some_and(|conn| conn.state == State::Accepting) {
            self.confirm(now, index, host);
        }
    }

    /// Handles a verified DATA frame: its acknowledgement, then its records.
    #[inline]
    pub(crate) fn handle_data<H: Host>(&mut self, now: Time, frame: &DataFrame<'_>, congested: bool, host: &mut H) {
        let DataFrame { index, ref data, ref sack, records, len } = *frame;
        self.confirm_accepting(now, index, host);
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Open) else { return };
        if data.flags & flags::UNCHECKED != 0 && !conn.has(bit::UNCHECKED) {
            self.stats.malformed += 1;
            return;
        }
        self.stats.received += 1;
        let header = &data.header;
        // A sealed frame was compared with all that have come before it was opened.
        let is_new = conn.is_reliable() || conn.has(bit::SEALED) || conn.is_new(header.number);
        conn.track_number(header.number, header.time, now.micros());
        conn.clear(bit::SILENCE_REPORTED | bit::PINGED);
        if !self.unreachable.is_empty() {
            self.unreachable.remove(&index);
        }
        conn.marks = conn.marks.wrapping_add(u16::from(congested));
        let done = if conn.flow == NONE { Ops::NONE } else { self.handle_ack(now, index, data, sack) };
        if data.flags & flags::SEQUENCED != 0 && records.is_slice() {
            self.handle_slice(now, index, data, records, host);
        } else if data.flags & flags::SEQUENCED != 0 {
            self.handle_sequenced(now, index, data, records, len, host);
        } else if is_new {
            self.handle_loose(now, index, records, host);
        } else {
            self.stats.duplicates += 1;
        }
        // After the records of the frame, so that an answer is delivered before the end of its
        // request is reported.
        self.end_list(index, done, Ok(()), host);
        let Some(conn) = self.table.get_mut(index) else { return };
        if data.flags & flags::PROMPT != 0 {
            conn.set(bit::ACK_NOW);
        }
        let mut flow = self.flows.get_mut(conn.flow);
        if let Some(flow) = &mut flow {
            flow.idle_probing.on_received(now);
            flow.open_rmas.on_received(now);
        }
        if has_work(conn, flow.as_deref()) {
            mark_conn_ready(conn, index, &mut self.ready);
        } else {
            self.arm(now, index);
        }
    }

    /// Applies the records of a frame without a sequence number.
    fn handle_loose<H: Host>(&mut self, now: Time, index: u32, records: Records<'_>, host: &mut H) {
        for record in records {
            let Some(conn) = self.table.get_mut(index) else { return };
            match record {
                Record::Message { bytes, .. }
                    if !conn.is_reliable() && bytes.len() <= self.config.max_send_size as usize =>
                {
                    host.message(conn.host_cookie, bytes);
                }
                Record::Part { message, total, at, bytes } if !conn.is_reliable() => {
                    if let Some(mut ctx) = self.recv_ctx(index) {
                        ctx.loose_part(message, total, at, bytes, host);
                        ctx.flow.message_parts.on_part(now);
                    }
                }
                Record::Probe { size } => {
                    if let Some(flow) = flow_of(&mut self.flows, conn, index) {
                        flow.path_probing.on_probe(size);
                        conn.set(bit::ACK_NOW);
                    }
                }
                Record::ProbeReply { size } => {
                    let largest = self.config.mtu.min(conn.peer_mtu);
                    if let Some(flow) = self.flows.get_mut(conn.flow)
                        && flow.path_probing.on_reply(size)
                        && size <= largest
                    {
                        conn.mtu = conn.mtu.max(size);
                    }
                }
                _ => self.stats.malformed += 1,
            }
        }
    }

    /// Returns the receive context of a connection. Takes a flow if it has none.
    pub(super) fn recv_ctx(&mut self, index: u32) -> Option<RecvCtx<'_>> {
        let conn = self.table.get_mut(index)?;
        let flow = flow_of(&mut self.flows, conn, index)?;
        let max_send_size = self.config.max_send_size;
        Some(RecvCtx { conn, flow, index, rmas: &mut self.rmas, max_send_size, is_held: false })
    }

    /// As [`Engine::recv_ctx`], but only if the connection has a flow.
    pub(crate) fn recv_ctx_of_flow(&mut self, index: u32) -> Option<RecvCtx<'_>> {
        if self.table.get(index)?.flow == NONE { None } else { self.recv_ctx(index) }
    }

    pub(super) fn handle_sequenced<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        data: &Data,
        records: Records<'_>,
        bytes: usize,
        host: &mut H,
    ) {
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.is_reliable()) else {
            self.stats.malformed += 1;
            return;
        };
        let Ok(gap) = usize::try_from(distance(data.seq, conn.recv_next)) else {
            self.stats.duplicates += 1;
            conn.set(bit::ACK_NOW);
            return;
        };
        if gap >= WINDOW {
            self.stats.unheld += 1;
            return;
        }
        if gap == 0 && self.deliver_single(index, records, host) {
            return self.schedule_ack(now, index, bytes, false);
        }
        self.set_continuation(index, gap, records, bytes);
        if !self.may_accept_requests(index, records) {
            self.stats.unheld += 1;
            return;
        }
        let Some(conn) = self.table.get_mut(index) else { return };
        if gap > 0 {
            conn.set(bit::ACK_NOW);
            return self.handle_out_of_order(index, gap, records, host);
        }
        let was_refused = conn.has(bit::RNR);
        let had_gap = self.flow_mut(index).is_some_and(|flow| !flow.reorder_queue.is_empty());
        match self.apply_next(index, records, host) {
            FrameOutcome::Done => self.advance(index, host),
            FrameOutcome::NoSlot => self.await_slot(index, Some(records), host),
            FrameOutcome::Dropped => {}
        }
        self.schedule_ack(now, index, bytes, had_gap || was_refused);
    }

    /// Delivers the message of the next in-order frame, if it carries a single message and nothing
    /// else is to be done. Returns false if nothing was done.
    pub(super) fn deliver_single<H: Host>(&mut self, index: u32, records: Records<'_>, host: &mut H) -> bool {
        let Some(Record::Message { after: false, bytes }) = records.only() else { return false };
        let Some(conn) = self.table.get_mut(index).filter(|conn| !conn.has(bit::RNR)) else { return false };
        let Some(flow) = self.flows.get(conn.flow) else { return false };
        let taken = flow.is_in_order()
            && bytes.len() <= self.config.max_send_size as usize
            && host.message(conn.host_cookie, bytes);
        if taken {
            conn.recv_next = conn.recv_next.wrapping_add(1);
        }
        taken
    }

    /// Notes the continuation of a frame, if the frame is newer than all accepted frames.
    fn set_continuation(&mut self, index: u32, gap: usize, records: Records<'_>, bytes: usize) {
        let continuation = if bytes < LEAST_COPY_VERIFY { None } else { Continuation::after(records) };
        let Some(conn) = self.table.get_mut(index).filter(|conn| continuation.is_some() || conn.flow != NONE) else {
            return;
        };
        if let Some(flow) = flow_of(&mut self.flows, conn, index).filter(|flow| flow.reorder_queue.is_newest(gap)) {
            flow.copy_verify.set_next(continuation);
        }
    }

    /// Schedules the acknowledgement of an in-order frame of this many bytes: at once, or when the
    /// program had its chance to answer.
    fn schedule_ack(&mut self, now: Time, index: u32, bytes: usize, at_once: bool) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let is_full = bytes * 2 > usize::from(conn.mtu);
        if at_once || conn.has(bit::RNR) || is_full && conn.has(bit::FULL) {
            conn.set(bit::ACK_NOW);
        } else if !conn.has(bit::ACK_DELAYED | bit::ACK_NOW) {
            conn.set(bit::ACK_DELAYED);
            conn.ack_number = low_half(conn.newest);
            self.timers.ack_at(DelayedAck { deadline: ack_deadline(now), index, number: conn.ack_number });
        }
        if is_full {
            conn.set(bit::FULL);
        }
    }

    /// Returns whether there is room for the requests of a frame. A peer that does not acknowledge
    /// results gets no more of them. A peer that has too many refused writes unfinished may only
    /// go on with those.
    fn may_accept_requests(&mut self, index: u32, records: Records<'_>) -> bool {
        let count = records.filter(Record::is_answered).count();
        if count == 0 {
            return true;
        }
        let Some(flow) = self.flow_mut(index) else { return true };
        let refused = &flow.refused_writes;
        let is_new_write = || matches!(records.last(), Some(Record::Write { op, .. }) if !refused.contains(op));
        flow.requests.has_room_for(count) && (!refused.is_full() || !is_new_write())
    }
}
