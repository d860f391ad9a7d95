//! Receiving: from the stream into slots and registered memory.
//!
//! A stream is read into one buffer of the endpoint, and a frame is handled there. The first bytes
//! of one that has come in part are kept until the rest is there. The data of an RMA that are not
//! in the buffer go from the stream into registered memory.

use super::incoming::BytesOf;
use super::shared::{Cause, SCRATCH, Shared};
use super::sum::Sum;
use super::{Lane, Phase};
use crate::frame::{
    BEGIN, Fields, HEADER, HELLO, Header, Hello, Kind, OF_OPERATION, OPERATION, RESULT, Violation, WANT,
};
use crate::seal::SHARE;
use crate::sys;
use cci_mem::memory::Piece;
use cci_proto::Failure;
use cci_transport::Core;
use rustix::io::{Errno, Result};

/// Bytes taken from one lane in one call: others have their turn then.
pub(crate) const BUDGET: usize = 1 << 20;
/// Bytes read behind a long fragment: the heads that are likely to follow it, so that the bytes of
/// the next fragment need no copy. Where the operation goes on: its next head.
const HEAD_OF_REST: usize = HEADER + OPERATION;
/// Behind the last one of a write: the head of another.
const HEAD_OF_WRITE: usize = HEADER + BEGIN;
/// Behind the last one of a read: its RESULT, and the head of another answer.
const RESULT_AND_HEAD: usize = HEADER + RESULT + HEAD_OF_REST;
/// Bytes of a fragment from which on the next one is likely to be long too.
const LONG: usize = 32 << 10;

/// How a frame was handled.
pub(crate) enum Handled {
    Done,
    /// No slot is free for it.
    Stalled,
}

impl Lane {
    /// Reads what has arrived, up to a budget. Returns how many bytes there were.
    #[inline]
    pub(crate) fn receive(&mut self, s: &mut Shared, core: &mut Core) -> usize {
        let mut total = 0;
        self.has_more = false;
        while total < BUDGET && matches!(self.phase, Phase::Greeting | Phase::Open) && !self.incoming.stalled {
            let has_target = self.incoming.left > 0 && self.incoming.sum.is_none();
            let received = if self.is_sealed() {
                self.receive_records(s, core)
            } else if has_target {
                self.receive_bytes(s, core)
            } else {
                self.receive_frames(s, core)
            };
            match received {
                Ok((0, _)) => self.end(s, Cause::Gone),
                Ok((count, is_all)) => {
                    total += count;
                    if is_all {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) if sys::is_end_of_stream(error) => self.end(s, Cause::Gone),
                Err(error) => self.end_refused(s, "recvfrom", error),
            }
        }
        if total > 0 {
            self.on_heard(s, core, total);
        }
        total
    }

    fn on_heard(&mut self, s: &mut Shared, core: &mut Core, total: usize) {
        self.heard = s.now;
        if total >= BUDGET {
            self.has_more = true;
            self.activate(s);
        }
        if self.phase == Phase::Open {
            self.top_up(s, core);
            let is_urgent = self.given.is_urgent();
            if is_urgent && !self.may_answer {
                self.pay(s);
            } else if self.is_owing() {
                self.owe(s);
                // By a call of its own only if the program does not answer at once.
                if is_urgent {
                    s.urgent.push(self.number);
                }
            }
        }
    }

    /// Reads frames. Returns the number of bytes, and whether the stream has no more.
    fn receive_frames(&mut self, s: &mut Shared, core: &mut Core) -> Result<(usize, bool)> {
        let Some(mut scratch) = s.take_scratch() else { return Err(Errno::AGAIN) };
        let carried = self.incoming.carry.len();
        let heads = self.incoming.heads;
        let end = if heads > 0 { carried + heads } else { scratch.len() };
        let socket = self.socket.as_ref();
        let received = socket.ok_or(Errno::PIPE).and_then(|socket| sys::receive(socket, &mut scratch[carried..end]));
        if let Ok(count @ 1..) = received {
            scratch[..carried].copy_from_slice(&self.incoming.carry);
            self.incoming.heads = heads.saturating_sub(count);
            let bytes = &scratch[..carried + count];
            let used = self.handle_bytes(s, core, bytes);
            self.keep(s, &bytes[used..]);
        }
        s.put_scratch(scratch);
        // Records that came with the answer of a handshake are looked at next.
        received.map(|count| (count, carried + count < end && self.seal.is_none()))
    }

    /// Takes the first bytes of a frame, which were kept, to the beginning of a buffer. Returns how
    /// many.
    pub(crate) fn take_carry(&mut self, buffer: &mut [u8]) -> usize {
        let carry = &self.incoming.carry;
        buffer[..carry.len()].copy_from_slice(carry);
        carry.len()
    }

    /// Keeps the first bytes of a frame.
    pub(crate) fn keep(&mut self, s: &mut Shared, bytes: &[u8]) {
        let carry = &mut self.incoming.carry;
        if bytes.is_empty() {
            if carry.capacity() > 0 {
                s.reuse(std::mem::take(carry));
            }
            return;
        }
        if carry.capacity() == 0 {
            *carry = s.buffer();
        }
        carry.clear();
        carry.extend_from_slice(bytes);
    }

    /// Handles the message that found no slot, and what came with it.
    pub(crate) fn resume(&mut self, s: &mut Shared, core: &mut Core) {
        if !std::mem::take(&mut self.incoming.stalled) {
            return;
        }
        let carry = std::mem::take(&mut self.incoming.carry);
        let used = self.handle_bytes(s, core, &carry);
        self.keep(s, &carry[used..]);
        if !self.incoming.stalled {
            self.watch(s);
            self.on_heard(s, core, 0);
            self.has_more = true;
            self.activate(s);
        }
    }

    /// No slot is free for a message, although it had a grant: the program has lowered the number
    /// of its receive buffers. The stream waits for the return of an event.
    #[cold]
    fn stall(&mut self, s: &mut Shared, core: &mut Core) {
        self.incoming.stalled = true;
        core.counters().on_refused();
        if s.inbox.starve(core) {
            self.activate(s);
        }
        self.watch(s);
    }

    /// Whether a message waits for a slot.
    pub(crate) fn is_stalled(&self) -> bool {
        self.incoming.stalled
    }

    /// Handles bytes of the stream. Returns how many; the others are the beginning of a frame.
    pub(crate) fn handle_bytes(&mut self, s: &mut Shared, core: &mut Core, bytes: &[u8]) -> usize {
        let mut at = 0;
        while matches!(self.phase, Phase::Greeting | Phase::Open) {
            let rest = &bytes[at..];
            let used = if !self.incoming.has_greeted {
                self.handle_hello(s, rest)
            } else if self.incoming.left > 0 {
                Ok(self.copy_bytes(s, core, rest))
            } else {
                self.handle_frame(s, core, rest)
            };
            match used {
                Ok(0) => return at,
                Ok(used) => at += used,
                Err(Violation) => self.end(s, Cause::Violation),
            }
        }
        // Nothing of it is needed any more.
        bytes.len()
    }

    fn handle_hello(&mut self, s: &mut Shared, bytes: &[u8]) -> std::result::Result<usize, Violation> {
        let Some((raw, rest)) = bytes.split_first_chunk::<HELLO>() else {
            return if Hello::may_begin(bytes) { Ok(0) } else { Err(Violation) };
        };
        let hello = Hello::parse(raw);
        let is_sealed = hello.is_ok_and(|hello| hello.sealed && hello.refusal.is_none());
        let share = rest.first_chunk::<SHARE>().filter(|_| is_sealed);
        if is_sealed && share.is_none() {
            return Ok(0);
        }
        self.on_hello(s, hello, (raw, share))?;
        self.incoming.has_greeted = true;
        let used = HELLO + if is_sealed { SHARE } else { 0 };
        if let Some(seal) = &mut self.seal {
            seal.keep(s, &bytes[used..]);
            return Ok(bytes.len());
        }
        Ok(used)
    }

    /// Handles one frame, or as much of it as must be there at once. 0: it is not.
    #[inline]
    fn handle_frame(&mut self, s: &mut Shared, core: &mut Core, bytes: &[u8]) -> std::result::Result<usize, Violation> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(0) };
        let header = Header::parse(header, s.max_send_size)?;
        let Some(body) = rest.get(..header.needed()) else { return Ok(0) };
        self.on_taken(s, core, header.taken);
        let handled = match header.kind {
            Kind::Message => self.on_message(s, core, &header, body)?,
            _ => self.on_other(s, core, &header, body).map(|()| Handled::Done)?,
        };
        match handled {
            Handled::Done => Ok(HEADER + body.len()),
            Handled::Stalled => {
                self.stall(s, core);
                Ok(0)
            }
        }
    }

    #[inline]
    fn on_message(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        header: &Header,
        body: &[u8],
    ) -> std::result::Result<Handled, Violation> {
        if !self.given.is_expected() {
            return Err(Violation);
        }
        let mut fields = Fields(body);
        let write = (header.flags & OF_OPERATION != 0).then(|| fields.u32());
        if write.is_some_and(|number| self.is_reading(number)) {
            return Err(Violation);
        }
        match self.table.open_cell(header.connection) {
            Some(cell) => {
                let is_wanted = write.is_none_or(|number| self.is_written(number));
                if is_wanted && !s.inbox.message(core, cell, fields.rest()) {
                    return Ok(Handled::Stalled);
                }
                self.may_answer = true;
            }
            None => s.strays += 1,
        }
        self.given.on_received();
        self.given.taken = self.given.taken.wrapping_add(1);
        self.untold = true;
        s.inbox.ungrant(1);
        if let Some(number) = write {
            self.end_served(s, number);
        }
        Ok(Handled::Done)
    }

    fn on_other(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        header: &Header,
        body: &[u8],
    ) -> std::result::Result<(), Violation> {
        let mut fields = Fields(body);
        match header.kind {
            Kind::Message => {}
            Kind::Datagram => self.on_datagram(s, core, header, body),
            Kind::Connect => self.on_connect(s, core, header, &mut fields)?,
            Kind::Accept => self.on_accept(s, core, header, &mut fields),
            Kind::Reject => self.on_reject(s, core, header),
            Kind::Redirect => self.on_redirect(s, core, header, &mut fields),
            Kind::Busy => self.on_busy(s, header),
            Kind::Disconnect => self.on_disconnect(s, core, header),
            Kind::Ping => self.pings = true,
            Kind::Pong => {
                if header.flags & WANT != 0 {
                    self.on_want(s);
                }
            }
            Kind::Write => self.on_write(s, header, &mut fields)?,
            Kind::Read => self.on_read(s, header, &mut fields)?,
            Kind::Data => self.on_data(s, header, &mut fields)?,
            Kind::Answer => self.on_answer(s, header, &mut fields)?,
            Kind::Result => self.on_result(s, core, &mut fields),
            Kind::Cancel => self.on_cancel(s, fields.u32())?,
            Kind::Atomic => self.on_atomic(s, header, &mut fields)?,
            Kind::Grant => {
                if header.flags & WANT != 0 {
                    self.on_want(s);
                }
                self.on_grant(s, fields.u32());
            }
            Kind::Recall => {
                let sent = self.credit.give_back();
                self.answer(s, Kind::Return, 0, &[&sent.to_le_bytes()]);
            }
            Kind::Return => {
                let back = self.given.on_returned(fields.u32()).ok_or(Violation)?;
                s.inbox.ungrant(back);
                s.grants_due = true;
                if std::mem::take(&mut self.wanted_in_recall) {
                    self.on_want(s);
                }
            }
            Kind::Large => self.on_large(s, core, header, &mut fields),
            Kind::Landing => self.on_landing(s, core, &mut fields),
            Kind::Landed => self.on_landed(s, core, header, &mut fields)?,
            Kind::WritePart | Kind::AnswerPart => {
                let part = self.on_part(s, header, &mut fields)?;
                self.expect_bytes(BytesOf::Part(part), header, &mut fields);
            }
            Kind::Abandon => self.on_abandon(s, &mut fields)?,
        }
        Ok(())
    }

    /// A message of an unreliable connection: dropped where no slot is to spare.
    fn on_datagram(&mut self, s: &mut Shared, core: &mut Core, header: &Header, body: &[u8]) {
        let Some(cell) = self.table.open_cell(header.connection) else {
            s.strays += 1;
            return;
        };
        self.may_answer = true;
        if s.inbox.spare(core) == 0 || !s.inbox.message(core, cell, body) {
            cell.counters.on_dropped();
            core.counters().on_dropped();
        }
    }

    /// The peer wants grants.
    fn on_want(&mut self, s: &mut Shared) {
        // The answer says at least that somebody is there.
        self.owe(s);
        self.want_grants(s);
    }

    /// Has the lane get grants in its turn.
    pub(super) fn want_grants(&mut self, s: &mut Shared) {
        if self.given.recalled {
            self.wanted_in_recall = true;
        } else if !self.is_wanting && self.given.wanted() > 0 {
            self.is_wanting = true;
            s.wanting.push_back(self.number);
            s.grants_due = true;
        }
    }

    /// The bytes of an RMA follow. `fields`: their sum, if they are checked.
    pub(crate) fn expect_bytes(&mut self, of: BytesOf, header: &Header, fields: &mut Fields<'_>) {
        self.incoming.left = header.len - header.needed();
        self.incoming.of = Some(of);
        self.incoming.is_long = self.incoming.left >= LONG;
        self.incoming.sum = Sum::of(header, fields);
    }

    /// Copies bytes of RMA from the buffer. Returns how many.
    fn copy_bytes(&mut self, s: &mut Shared, core: &mut Core, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.incoming.left);
        if count == 0 {
            return 0;
        }
        let mut sum = self.incoming.sum.take();
        match self.incoming.of {
            Some(BytesOf::Write(number)) => self.write_bytes(s, number, &bytes[..count], sum.as_mut()),
            Some(BytesOf::Read(number)) => self.read_bytes(s, core, number, &bytes[..count], sum.as_mut()),
            Some(BytesOf::Part(part)) => {
                self.store_part(s, core, part, &bytes[..count], sum.as_mut());
                self.incoming.of = Some(BytesOf::Part(part.after(count)));
            }
            Some(BytesOf::Nobody) | None => {}
        }
        self.incoming.sum = sum;
        self.on_bytes(s, core, count);
        count
    }

    /// Bytes of RMA have come.
    fn on_bytes(&mut self, s: &mut Shared, core: &mut Core, count: usize) {
        self.incoming.left -= count;
        if self.incoming.left > 0 {
            return;
        }
        if self.incoming.is_long && self.incoming.sum.is_none() {
            let of = self.incoming.of;
            self.incoming.heads = match of {
                Some(BytesOf::Write(number)) if self.is_written_to_its_end(number) => HEAD_OF_WRITE,
                Some(BytesOf::Read(number)) if self.is_read_to_its_end(number) => RESULT_AND_HEAD,
                Some(BytesOf::Part(part)) => part.head_len(),
                _ => HEAD_OF_REST,
            };
        }
        let is_spoilt = self.incoming.sum.take().is_some_and(|sum| sum.is_wrong());
        match self.incoming.of.take() {
            Some(BytesOf::Write(number)) => {
                if is_spoilt {
                    self.fail_write(number);
                }
                self.on_written(s, number);
            }
            Some(BytesOf::Read(number)) if is_spoilt => self.fail_read(s, core, number, Failure::Copy),
            Some(BytesOf::Part(part)) => self.on_part_done(s, core, part, is_spoilt),
            _ => {}
        }
    }

    /// Reads bytes of RMA from the stream, into registered memory or to nowhere. Returns their
    /// number, and whether the stream has no more.
    fn receive_bytes(&mut self, s: &mut Shared, core: &mut Core) -> Result<(usize, bool)> {
        let left = self.incoming.left.min(BUDGET);
        let target: Option<Piece> = match self.incoming.of {
            Some(BytesOf::Write(number)) => self.write_target(s, number, left),
            Some(BytesOf::Read(number)) => self.read_target(s, core, number, left),
            Some(BytesOf::Part(part)) => self.part_piece(s, core, part, left),
            Some(BytesOf::Nobody) | None => None,
        };
        let Some(socket) = &self.socket else { return Err(Errno::PIPE) };
        let wanted = if target.is_some() { left } else { left.min(SCRATCH) };
        let received = match &target {
            Some(piece) => sys::receive_into(socket, piece),
            None => {
                let Some(mut scratch) = s.take_scratch() else { return Err(Errno::AGAIN) };
                let received = sys::receive(socket, &mut scratch[..wanted]);
                s.put_scratch(scratch);
                received
            }
        };
        if received == Err(Errno::FAULT) {
            // The program has unmapped registered memory: what comes for it goes to nowhere.
            self.fault(s, core);
            return Err(Errno::INTR);
        }
        let count = received?;
        if count > 0 {
            match self.incoming.of {
                Some(BytesOf::Write(number)) => self.advance_write(number, count),
                Some(BytesOf::Read(number)) => self.advance_read(number, count),
                Some(BytesOf::Part(part)) => self.incoming.of = Some(BytesOf::Part(part.after(count))),
                Some(BytesOf::Nobody) | None => {}
            }
            self.on_bytes(s, core, count);
        }
        Ok((count, count < wanted))
    }

    /// The memory that bytes come for cannot be written.
    #[cold]
    fn fault(&mut self, s: &mut Shared, core: &mut Core) {
        match self.incoming.of {
            Some(BytesOf::Write(number)) => self.fail_write(number),
            Some(BytesOf::Read(number)) => self.fail_read(s, core, number, Failure::Copy),
            Some(BytesOf::Part(part)) => self.fail_part(s, core, part, Failure::Copy),
            Some(BytesOf::Nobody) | None => {}
        }
    }
}

const _: () = assert!(OPERATION < BEGIN && HEAD_OF_WRITE < SCRATCH && RESULT_AND_HEAD < SCRATCH);
