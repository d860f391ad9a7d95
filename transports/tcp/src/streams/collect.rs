//! Receiving parts: from any stream of a lane into registered memory, in any order.

use crate::frame::{self, Fields, HAS_MESSAGE, HEADER, Header, Kind, Violation, WritePart};
use crate::lane::further::{HEAD, Part, Stream};
use crate::lane::receive::BUDGET;
use crate::lane::serving::{Served, ServedParts};
use crate::lane::shared::{Cause, SCRATCH, Shared};
use crate::lane::sum::{Sum, store};
use crate::lane::{Lane, Phase};
use crate::rma::{local_memory, local_piece};
use crate::sys;
use cci_mem::memory::Piece;
use cci_proto::{Access, Failure, Registration};
use cci_transport::Core;
use rustix::io::Errno;

impl Lane {
    /// The head of a part has come.
    pub(crate) fn on_part(
        &mut self,
        s: &mut Shared,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<Part, Violation> {
        if self.further.is_none() {
            return Err(Violation);
        }
        let len = (header.len - header.needed()) as u64;
        match header.kind {
            Kind::WritePart => self.on_write_part(s, header, WritePart::parse(fields), len),
            _ => self.on_answer_part(frame::parse_count(fields), len),
        }
    }

    fn on_write_part(&mut self, s: &mut Shared, header: &Header, part: WritePart, len: u64) -> Result<Part, Violation> {
        let WritePart { target, position } = part;
        let is_inside = position.checked_add(len).is_some_and(|end| end <= target.total);
        if !is_inside || header.flags & HAS_MESSAGE != 0 {
            return Err(Violation);
        }
        if self.served(target.operation).is_none() {
            self.serve(s, header, &target, Access::Write)?;
        }
        let served = self.served(target.operation).filter(|served| !served.is_read).ok_or(Violation)?;
        let parts = served.parts.as_mut().ok_or(Violation)?;
        let is_same =
            served.connection == header.connection && (parts.offset, parts.total) == (target.offset, target.total);
        if !is_same && !parts.is_abandoned {
            return Err(Violation);
        }
        served.left = served.left.checked_sub(len).ok_or(Violation)?;
        parts.moving += 1;
        Ok(Part { is_write: true, operation: target.operation, at: target.offset.wrapping_add(position), len })
    }

    fn on_answer_part(&mut self, (operation, position): (u32, u64), len: u64) -> Result<Part, Violation> {
        let begun = self.place_of(operation).and_then(|place| self.operation(place));
        let is_inside = begun.is_none_or(|begun| position.checked_add(len).is_some_and(|end| end <= begun.len));
        let is_expected = self.work.as_mut().is_some_and(|work| work.operations.on_part(operation, len));
        if is_inside && is_expected {
            Ok(Part { is_write: false, operation, at: position, len })
        } else {
            Err(Violation)
        }
    }

    /// Where the next bytes of a part go; `None`: nowhere, because its operation was refused or has
    /// ended, or its memory is gone.
    pub(crate) fn part_piece(&mut self, s: &mut Shared, core: &mut Core, part: Part, len: usize) -> Option<Piece> {
        let piece = if part.is_write {
            let served = self.served(part.operation)?;
            served.outcome.ok()?;
            // The registration may have ended since the last bytes.
            let entry = s.registrations.get(served.registration).filter(|entry| !entry.is_orphaned());
            entry.and_then(|entry| entry.memory()?.piece(part.at, len))
        } else {
            local_piece(s, self.operation(self.place_of(part.operation)?)?, part.at, len as u64)
        };
        if piece.is_none() {
            self.fail_part(s, core, part, Failure::RemoteHandle);
        }
        piece
    }

    /// Copies bytes of a part to where they go.
    pub(crate) fn store_part(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        part: Part,
        bytes: &[u8],
        sum: Option<&mut Sum>,
    ) {
        let is_stored = if part.is_write {
            let Some(served) = self.served(part.operation).filter(|served| served.outcome.is_ok()) else { return };
            let entry = s.registrations.get(served.registration).filter(|entry| !entry.is_orphaned());
            let memory = entry.and_then(|entry| entry.memory());
            memory.is_some_and(|memory| store(memory, part.at, bytes, sum))
        } else {
            let Some(begun) = self.place_of(part.operation).and_then(|place| self.operation(place)) else { return };
            local_memory(s, begun).is_some_and(|memory| store(memory, begun.local_offset + part.at, bytes, sum))
        };
        if !is_stored {
            self.fail_part(s, core, part, Failure::RemoteHandle);
        }
    }

    /// The operation of a part fails: what comes of it goes to nowhere.
    pub(crate) fn fail_part(&mut self, s: &mut Shared, core: &mut Core, part: Part, failure: Failure) {
        if !part.is_write {
            self.fail_read(s, core, part.operation, failure);
        } else if let Some(served) = self.served(part.operation) {
            served.outcome = served.outcome.and(Err(failure));
        }
    }

    /// All bytes of a part have come.
    pub(crate) fn on_part_done(&mut self, s: &mut Shared, core: &mut Core, part: Part, is_spoilt: bool) {
        if is_spoilt {
            self.fail_part(s, core, part, Failure::Copy);
        }
        if part.is_write {
            if let Some(parts) = self.served(part.operation).and_then(|served| served.parts.as_mut()) {
                parts.moving = parts.moving.saturating_sub(1);
            }
            return self.end_write_in_parts(s, part.operation);
        }
        let place = self.place_of(part.operation);
        let Some(work) = &mut self.work else { return };
        work.operations.on_part_done(part.operation);
        if let Some(begun) = place.and_then(|place| work.operations.get_mut(place)) {
            begun.done += part.len;
        }
        self.end_read_in_parts(s, core, part.operation);
    }

    /// RESULT of a write, if all of its bytes have come, or all that come.
    fn end_write_in_parts(&mut self, s: &mut Shared, operation: u32) {
        let is_moving = |parts: ServedParts| parts.moving > 0;
        if self.served(operation).is_some_and(|served| served.left == 0 && !served.parts.is_some_and(is_moving)) {
            self.end_served(s, operation);
        }
    }

    /// The peer gives a write up of which so many bytes were handed to streams.
    pub(crate) fn on_abandon(&mut self, s: &mut Shared, fields: &mut Fields<'_>) -> Result<(), Violation> {
        if self.further.is_none() {
            return Err(Violation);
        }
        let (number, handed) = frame::parse_count(fields);
        let outcome = Err(Failure::RemoteHandle);
        let abandoned = ServedParts { total: handed, is_abandoned: true, ..ServedParts::default() };
        if let Some(served) = self.served(number) {
            let begun = served.parts.filter(|parts| !served.is_read && !parts.is_abandoned).ok_or(Violation)?;
            let come = begun.total - served.left;
            served.left = handed.checked_sub(come).ok_or(Violation)?;
            (served.outcome, served.parts) = (outcome, Some(ServedParts { moving: begun.moving, ..abandoned }));
        } else {
            let registration = Registration { index: u32::MAX, generation: 0 };
            let parts = Some(abandoned);
            let (connection, is_read, at, left, has_message) = (0, false, 0, handed, false);
            let served = Served { number, connection, registration, is_read, at, left, outcome, has_message, parts };
            if !self.work(s).serving.add(served) {
                return Err(Violation);
            }
        }
        self.end_write_in_parts(s, number);
        Ok(())
    }

    /// RESULT of a read whose answer comes in parts, of which so many bytes were handed to streams.
    pub(crate) fn on_result_of_parts(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        number: u32,
        outcome: Result<(), Failure>,
        handed: u64,
    ) {
        let place = self.place_of(number);
        let is_other = place.and_then(|place| self.operation(place)).is_some_and(|begun| handed != begun.len);
        let is_right = self.work.as_mut().is_some_and(|work| work.operations.on_total(number, handed));
        if !is_right || outcome.is_ok() && is_other {
            return self.end(s, Cause::Violation);
        }
        if let (Err(failure), Some(place)) = (outcome, place) {
            // What is still to come goes to nowhere.
            self.end_operation(s, core, place, Err(failure));
        }
        self.end_read_in_parts(s, core, number);
    }

    /// Frees the number of a read whose RESULT and parts have all come, and ends the read.
    fn end_read_in_parts(&mut self, s: &mut Shared, core: &mut Core, number: u32) {
        let place = self.place_of(number);
        let Some(work) = &mut self.work else { return };
        if !work.operations.has_all_parts(number) {
            return;
        }
        work.operations.answered(number);
        self.activate_ready(s);
        if let Some(place) = place {
            self.on_ended_there(s, core, place, Ok(()), 0);
        }
    }

    /// Reads what has come on a further stream, up to a budget. Returns how many bytes there were.
    pub(super) fn receive_parts(&mut self, s: &mut Shared, core: &mut Core, index: usize) -> usize {
        let mut total = 0;
        while total < BUDGET && self.phase == Phase::Open {
            let Some(stream) = self.stream(index) else { break };
            let received = if stream.seal.is_some() {
                self.receive_sealed_parts(s, core, index)
            } else if stream.left > 0 {
                self.receive_part_bytes(s, core, index)
            } else {
                self.receive_part_head(s, index)
            };
            match received {
                Ok(count @ 1..) => total += count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::PROTO) => self.end(s, Cause::Violation),
                Ok(0) => self.on_stream_ended(s, index),
                Err(error) if sys::is_end_of_stream(error) => self.on_stream_ended(s, index),
                Err(error) => self.end_refused(s, "recvfrom", error),
            }
        }
        if total > 0 {
            self.heard = s.now;
        }
        total
    }

    /// Reads the head of a part, or what is left of it. `PROTO`: it is none.
    fn receive_part_head(&mut self, s: &mut Shared, index: usize) -> Result<usize, Errno> {
        let stream = self.stream(index).ok_or(Errno::PIPE)?;
        let socket = stream.socket.as_ref().ok_or(Errno::PIPE)?;
        let wanted = wanted_head(stream, s.max_send_size)?;
        let count = sys::receive(socket, &mut stream.head[stream.head_len..wanted])?;
        stream.head_len += count;
        self.on_part_head(s, index)?;
        Ok(count)
    }

    /// More of the head of a part has come, maybe all of it.
    pub(super) fn on_part_head(&mut self, s: &mut Shared, index: usize) -> Result<(), Errno> {
        let stream = self.stream(index).ok_or(Errno::PIPE)?;
        let Some(header) = stream.head.first_chunk().filter(|_| stream.head_len >= HEAD) else { return Ok(()) };
        let header = part_header(header, s.max_send_size)?;
        if stream.head_len == HEADER + header.needed() {
            let head = stream.head;
            stream.head_len = 0;
            let mut fields = Fields(&head[HEADER..HEADER + header.needed()]);
            let part = self.on_part(s, &header, &mut fields).map_err(|Violation| Errno::PROTO)?;
            if let Some(stream) = self.stream(index) {
                stream.left = header.len - header.needed();
                (stream.part, stream.sum) = (Some(part), Sum::of(&header, &mut fields));
            }
        }
        Ok(())
    }

    /// Reads bytes of a part into registered memory, or to nowhere.
    fn receive_part_bytes(&mut self, s: &mut Shared, core: &mut Core, index: usize) -> Result<usize, Errno> {
        let stream = self.stream(index).ok_or(Errno::PIPE)?;
        let part = stream.part.ok_or(Errno::PIPE)?;
        let (left, mut sum) = (stream.left.min(BUDGET), stream.sum.take());
        let piece = if sum.is_some() { None } else { self.part_piece(s, core, part, left) };
        let socket = self.stream(index).and_then(|stream| stream.socket.as_ref());
        let received = match (&piece, socket) {
            (_, None) => Err(Errno::PIPE),
            (Some(piece), Some(socket)) => sys::receive_into(socket, piece),
            (None, Some(socket)) => {
                let mut scratch = s.take_scratch().ok_or(Errno::AGAIN)?;
                let received = sys::receive(socket, &mut scratch[..left.min(SCRATCH)]);
                if let (Ok(count), Some(sum)) = (received, &mut sum) {
                    self.store_part(s, core, part, &scratch[..count], Some(sum));
                }
                s.put_scratch(scratch);
                received
            }
        };
        if received == Err(Errno::FAULT) {
            // The program has unmapped registered memory.
            self.fail_part(s, core, part, Failure::Copy);
            return Err(Errno::INTR);
        }
        let stream = self.stream(index).ok_or(Errno::PIPE)?;
        let count = received.inspect_err(|_| stream.sum = sum.take())?;
        self.on_part_bytes(s, core, index, (part, count, sum));
        Ok(count)
    }

    /// Bytes of a part have come, and were stored.
    pub(super) fn on_part_bytes(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        index: usize,
        (part, count, sum): (Part, usize, Option<Sum>),
    ) {
        let Some(stream) = self.stream(index) else { return };
        stream.left -= count;
        (stream.part, stream.sum) = (Some(part.after(count)), sum);
        if stream.left == 0 && count > 0 {
            let is_spoilt = stream.sum.take().is_some_and(|sum| sum.is_wrong());
            stream.part = None;
            self.on_part_done(s, core, part, is_spoilt);
        }
    }
}

/// Bytes of a part's head that are needed, as far as is known. `PROTO`: it is none.
pub(super) fn wanted_head(stream: &Stream, max_send_size: u32) -> Result<usize, Errno> {
    let header = stream.head.first_chunk().filter(|_| stream.head_len >= HEADER);
    let header = header.map(|bytes| part_header(bytes, max_send_size)).transpose()?;
    // Each head is as long as the shortest at least.
    Ok(header.map_or(HEAD, |header| HEADER + header.needed()))
}

/// The header of a part. `PROTO`: it is that of another frame.
fn part_header(bytes: &[u8; HEADER], max_send_size: u32) -> Result<Header, Errno> {
    let header = Header::parse(bytes, max_send_size).map_err(|Violation| Errno::PROTO)?;
    let is_part = matches!(header.kind, Kind::WritePart | Kind::AnswerPart);
    if is_part { Ok(header) } else { Err(Errno::PROTO) }
}
