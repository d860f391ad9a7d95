//! Input: frames of the sequence, in order, out of order and repeated.

use super::conn::{NONE, State, bit};
use super::copy_verify::Continuation;
use super::flow::{Ops, ReorderEntry, WINDOW};
use super::host::Host;
use super::records::{FrameOutcome, RecvCtx, RmaEnd};
use super::timer::DelayedAck;
use super::transmit::{LARGE, ack_deadline, has_work};
use super::{Engine, flow_of, get_ready, mtu};
use crate::wire::{Data, Header, Kind, Record, Records, flags};
use crate::{Address, Failure, Time};

/// Hold buffers reserved for the next in-order frame.
const IN_ORDER_RESERVE: usize = 8;
/// Connections in a row without a slot after which `refill` stops. The others are tried next time.
const MOST_REFUSED: u32 = 4;

impl Engine {
    /// Handles a verified frame. `congested`: a router marked it.
    pub(super) fn handle_verified<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) {
        let Some(header) = Header::parse(frame) else {
            self.stats.malformed += 1;
            return;
        };
        match header.kind {
            Kind::Data => self.handle_data(now, from, &header, frame, congested, host),
            Kind::Multicast => {}
            _ => self.handle_opening(now, from, &header, frame, host),
        }
    }

    fn handle_data<H: Host>(
        &mut self,
        now: Time,
        from: &Address,
        header: &Header,
        frame: &[u8],
        congested: bool,
        host: &mut H,
    ) {
        let Some(index) = self.table.find(header.to) else { return self.stray(now, from, header, frame.len()) };
        let Some(conn) = self.table.get_mut(index) else { return };
        if conn.peer != header.from || conn.to != *from {
            self.stats.strays += 1;
            return;
        }
        if conn.state == State::Accepting {
            self.confirm(now, index, host);
        }
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Open) else { return };
        let Some((data, sack, records)) = Data::parse(frame) else {
            self.stats.malformed += 1;
            return;
        };
        if data.flags & flags::UNCHECKED != 0 && !conn.has(bit::UNCHECKED) {
            self.stats.malformed += 1;
            return;
        }
        self.stats.received += 1;
        let is_new = conn.is_reliable() || conn.is_new(header.number);
        conn.note_number(header.number, header.time, now.micros());
        conn.clear(bit::SILENCE_REPORTED | bit::PINGED);
        if !self.refusals.is_empty() {
            self.refusals.remove(&index);
        }
        conn.marks = conn.marks.wrapping_add(u16::from(congested));
        let done = if conn.flow == NONE { Ops::NONE } else { self.handle_ack(now, index, &data, &sack) };
        if data.flags & flags::SEQUENCED != 0 && records.is_slice() {
            self.handle_slice(now, index, &data, records, host);
        } else if data.flags & flags::SEQUENCED != 0 {
            self.handle_sequenced(now, index, &data, records, frame.len(), host);
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
            (flow.used_at, flow.asked) = (now, 0);
            if core::mem::take(&mut flow.moved) {
                flow.moved_at = now;
            }
        }
        if has_work(conn, flow.as_deref()) {
            get_ready(conn, index, &mut self.ready);
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
                        ctx.flow.assembly_at = now;
                    }
                }
                Record::Probe { size } => {
                    if let Some(flow) = flow_of(&mut self.flows, conn, index) {
                        flow.probing.on_probe(size);
                        conn.set(bit::ACK_NOW);
                    }
                }
                Record::ProbeReply { size } => {
                    let largest = self.config.mtu.min(conn.peer_mtu);
                    if let Some(flow) = self.flows.get_mut(conn.flow)
                        && flow.probing.on_reply(size)
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
    pub(super) fn recv_ctx_of_flow(&mut self, index: u32) -> Option<RecvCtx<'_>> {
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
        #[expect(clippy::cast_possible_wrap, reason = "distance modulo 2^32")]
        let gap = data.seq.wrapping_sub(conn.recv_next) as i32;
        let Ok(gap) = usize::try_from(gap) else {
            self.stats.duplicates += 1;
            conn.set(bit::ACK_NOW);
            return;
        };
        if gap >= WINDOW {
            self.stats.unheld += 1;
            return;
        }
        if gap == 0 && self.deliver_single(index, records, host) {
            return self.owe_ack(now, index, bytes, false);
        }
        self.note_continuation(index, gap, records, bytes);
        if !self.has_room(index, records) {
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
            FrameOutcome::NoSlot => self.await_slot(index, Some(records)),
            FrameOutcome::NoRoom => {}
        }
        self.owe_ack(now, index, bytes, had_gap || was_refused);
    }

    /// Notes the continuation of a frame, if the frame is newer than all accepted frames.
    fn note_continuation(&mut self, index: u32, gap: usize, records: Records<'_>, bytes: usize) {
        let continuation = if (bytes as u64) < LARGE { None } else { Continuation::after(records) };
        let Some(conn) = self.table.get_mut(index).filter(|conn| continuation.is_some() || conn.flow != NONE) else {
            return;
        };
        if let Some(flow) = flow_of(&mut self.flows, conn, index).filter(|flow| gap >= flow.reorder_queue.len()) {
            flow.continuation = continuation;
        }
    }

    /// Schedules the acknowledgement of an in-order frame of this many bytes: at once, or when the
    /// program had its chance to answer.
    fn owe_ack(&mut self, now: Time, index: u32, bytes: usize, at_once: bool) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let is_full = bytes * 2 > usize::from(conn.mtu);
        if at_once || conn.has(bit::RNR) || is_full && conn.has(bit::FULL) {
            conn.set(bit::ACK_NOW);
        } else if !conn.has(bit::ACK_DELAYED | bit::ACK_NOW) {
            conn.set(bit::ACK_DELAYED);
            conn.ack_number = conn.newest;
            self.timers.ack_at(DelayedAck { deadline: ack_deadline(now), index, number: conn.newest });
        }
        if is_full {
            conn.set(bit::FULL);
        }
    }

    /// Returns whether there is room for the requests of a frame. A peer that does not acknowledge
    /// results gets no more of them.
    fn has_room(&mut self, index: u32, records: Records<'_>) -> bool {
        let asked = records.filter(|record| matches!(record, Record::Read { .. } | Record::Write { .. })).count();
        asked == 0 || self.flow_mut(index).is_none_or(|flow| flow.has_room_for(asked))
    }

    /// Applies the records of the next in-order frame.
    fn apply_next<H: Host>(&mut self, index: u32, records: Records<'_>, host: &mut H) -> FrameOutcome {
        let mut ended = RmaEnds::default();
        let Some(mut ctx) = self.recv_ctx(index) else { return FrameOutcome::NoRoom };
        if let Some(ReorderEntry::Held { .. }) = ctx.flow.reorder_queue.front() {
            // A duplicate of the frame that is held and waits for a slot. A slot may be free by
            // now.
            self.stats.duplicates += 1;
            self.drain(index, host);
            return FrameOutcome::NoRoom;
        }
        let outcome = ctx.apply(records, host, &mut |end| ended.push(end));
        self.end_parts(index, ended, host);
        outcome
    }

    /// Advances past the in-order frame, and applies the held frames behind it up to the first gap.
    fn advance<H: Host>(&mut self, index: u32, host: &mut H) {
        if let Some(mut ctx) = self.recv_ctx(index) {
            ctx.finish_frame();
        }
        self.drain(index, host);
    }

    /// Applies the frames at the front of the reorder queue, up to the first gap.
    fn drain<H: Host>(&mut self, index: u32, host: &mut H) {
        loop {
            let mut ended = RmaEnds::default();
            let Some(conn) = self.table.get_mut(index) else { return };
            let Some(flow) = self.flows.get_mut(conn.flow) else { return };
            let max_send_size = self.config.max_send_size;
            let front = flow.reorder_queue.front().copied();
            let mut ctx = RecvCtx { conn, flow, index, rmas: &mut self.rmas, max_send_size, is_held: true };
            match front {
                None | Some(ReorderEntry::Missing) => return,
                Some(ReorderEntry::Done) => {}
                Some(ReorderEntry::WriteEnd { op }) => ctx.end_write(op),
                Some(ReorderEntry::Held { buffer, len }) => {
                    let bytes = &self.holds.bytes(buffer)[..usize::from(len)];
                    let outcome = match Records::again(bytes) {
                        Some(records) => ctx.apply(records, host, &mut |end| ended.push(end)),
                        None => FrameOutcome::Done,
                    };
                    if outcome != FrameOutcome::NoSlot {
                        self.holds.give(buffer);
                    }
                    self.end_parts(index, ended, host);
                    match outcome {
                        FrameOutcome::Done | FrameOutcome::NoRoom => {}
                        FrameOutcome::NoSlot => return self.await_slot(index, None),
                    }
                }
            }
            let Some(mut ctx) = self.recv_ctx(index) else { return };
            ctx.finish_frame();
        }
    }

    /// Handles a frame that came `gap` frames before its turn.
    fn handle_out_of_order<H: Host>(&mut self, index: u32, gap: usize, records: Records<'_>, host: &mut H) {
        let room = host.room();
        let can_hold = self.holds.left() > 0;
        let mut ended = RmaEnds::default();
        let Some(mut ctx) = self.recv_ctx(index) else { return };
        if ctx.flow.reorder_queue.get(gap).is_some_and(|entry| !matches!(entry, ReorderEntry::Missing)) {
            self.stats.duplicates += 1;
            return;
        }
        let messages = records.filter(|record| matches!(record, Record::Message { .. })).count();
        // A message may still find no slot. The rest is then held.
        let has_room = messages == 0 || messages <= room as usize && can_hold;
        let (mut passed, mut left) = (ReorderEntry::Done, Some(records));
        if has_room && records.clone().all(|record| ctx.may_apply_out_of_order(&record)) {
            (passed, left) = ctx.apply_out_of_order(records, host, &mut |end| ended.push(end));
        }
        let entry = match left {
            None => Some(passed),
            Some(left) => {
                self.hold(left, if left.bytes().len() < records.bytes().len() { 0 } else { IN_ORDER_RESERVE })
            }
        };
        match entry {
            None => self.stats.unheld += 1,
            Some(entry) => {
                if let Some(ctx) = self.recv_ctx(index) {
                    while ctx.flow.reorder_queue.len() <= gap {
                        ctx.flow.reorder_queue.push_back(ReorderEntry::Missing);
                    }
                    ctx.flow.reorder_queue[gap] = entry;
                }
            }
        }
        self.end_parts(index, ended, host);
    }

    /// Copies the records of a frame to a hold buffer. Returns `None` if there is none to spare.
    fn hold(&mut self, records: Records<'_>, reserve: usize) -> Option<ReorderEntry> {
        let bytes = records.bytes();
        if self.holds.left() <= reserve || bytes.len() > self.holds.stride() {
            return None;
        }
        let buffer = self.holds.take(NONE)?;
        self.holds.bytes_mut(buffer)[..bytes.len()].copy_from_slice(bytes);
        Some(ReorderEntry::Held { buffer, len: u16::try_from(bytes.len()).unwrap_or(u16::MAX) })
    }

    /// Handles a next in-order frame that found no slot: it is held, or the peer retransmits it
    /// when there are slots.
    fn await_slot(&mut self, index: u32, records: Option<Records<'_>>) {
        self.stats.rnr += 1;
        let held = records.and_then(|records| self.hold(records, 0));
        let Some(ctx) = self.recv_ctx(index) else { return };
        if let Some(held) = held {
            if ctx.flow.reorder_queue.is_empty() {
                ctx.flow.reorder_queue.push_back(held);
            } else {
                ctx.flow.reorder_queue[0] = held;
            }
        }
        ctx.conn.set(bit::RNR | bit::ACK_NOW);
        if !core::mem::replace(&mut ctx.flow.awaits_slot, true) {
            self.awaiting_slot.push_back(index);
        }
        self.make_ready(index);
    }

    /// Delivers messages that awaited a slot after slots became free, and notifies refused peers.
    /// The connections take turns.
    pub fn refill<H: Host>(&mut self, _now: Time, host: &mut H) {
        let mut refused = 0;
        for _ in 0..self.awaiting_slot.len() {
            let Some(index) = self.awaiting_slot.pop_front() else { return };
            if self.flow_mut(index).is_some_and(|flow| core::mem::take(&mut flow.awaits_slot))
                && !self.resume(index, host)
            {
                refused += 1;
                if refused >= MOST_REFUSED && host.room() == 0 {
                    return;
                }
            }
        }
        if self.awaiting_slot.len() > 1 {
            // The next call begins with another connection.
            self.awaiting_slot.rotate_left(1);
        }
    }

    /// Delivers the held frames of one connection, and acknowledges them so that the peer goes on.
    /// Returns false if nothing was delivered.
    fn resume<H: Host>(&mut self, index: u32, host: &mut H) -> bool {
        let Some(ctx) = self.recv_ctx(index) else { return false };
        let was_owed = ctx.conn.has(bit::ACK_NOW);
        let before = (ctx.conn.recv_next, ctx.flow.partial);
        ctx.conn.clear(bit::RNR);
        ctx.conn.set(bit::ACK_NOW);
        self.drain(index, host);
        let Some(ctx) = self.recv_ctx(index) else { return false };
        let moved = !ctx.flow.awaits_slot || (ctx.conn.recv_next, ctx.flow.partial) != before;
        if !moved && !was_owed {
            // Nothing new for the peer.
            ctx.conn.clear(bit::ACK_NOW);
        }
        self.make_ready(index);
        moved
    }

    /// Handles the parts of operations that have ended.
    fn end_parts<H: Host>(&mut self, index: u32, ended: RmaEnds, host: &mut H) {
        for (op, outcome) in ended.into_iter() {
            self.end_rma_part(index, op, outcome, host);
        }
    }

    /// Handles a report that the path to `to` refused one of our frames as unreachable. It counts
    /// only if it quotes both identifiers of a connection to that address. `is_own`: an address of
    /// this host reports it, and an open connection ends at once. Otherwise the peer is probed for
    /// a while.
    pub fn handle_refusal<H: Host>(&mut self, now: Time, to: &Address, quoted: &[u8], is_own: bool, host: &mut H) {
        let Some(index) = self.quoted(to, quoted) else { return };
        match self.table.get(index).map(|conn| conn.state) {
            Some(State::Asking) => self.refuse(now, index, Failure::Refused, host),
            Some(State::Open) if !is_own => self.doubt(now, index, host),
            Some(State::Open | State::Accepting) => self.break_connection(now, index, Failure::Disconnected, host),
            Some(State::Closing) => self.remove(now, index),
            _ => {}
        }
    }

    /// Handles a report that the path to `to` carries frames of at most `limit` bytes, with a
    /// quoted frame of ours. Limits below `Config::base_mtu` count as `base_mtu`.
    pub fn handle_too_big(&mut self, to: &Address, quoted: &[u8], limit: u16) {
        let base = self.config.base_mtu;
        if let Some(index) = self.quoted(to, quoted)
            && let Some(conn) = self.table.get_mut(index)
        {
            mtu::shrink(conn, self.flows.get_mut(conn.flow), limit.max(base));
        }
    }

    /// Returns the connection whose frame the network quotes.
    fn quoted(&self, to: &Address, quoted: &[u8]) -> Option<u32> {
        let header = Header::parse(quoted)?;
        let index = self.table.find(header.from)?;
        let conn = self.table.get(index)?;
        (conn.to == *to && conn.peer == header.to).then_some(index)
    }
}

/// Parts of operations that ended with one frame: nearly always one or none, more only with many
/// results.
#[derive(Default)]
struct RmaEnds {
    first: Option<RmaEnd>,
    others: alloc::vec::Vec<RmaEnd>,
}

impl RmaEnds {
    fn push(&mut self, end: RmaEnd) {
        if self.first.is_none() {
            self.first = Some(end);
        } else {
            self.others.push(end);
        }
    }

    fn into_iter(self) -> impl Iterator<Item = RmaEnd> {
        self.first.into_iter().chain(self.others)
    }
}
