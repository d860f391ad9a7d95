//! The side that begins an operation.

use crate::frame::{self, BEGIN, Fields, HAS_MESSAGE, Header, IN_PARTS, Kind, SUM, Target, Violation};
use crate::lane::incoming::BytesOf;
use crate::lane::operation::{Local, Operation, Stage};
use crate::lane::posted::Data;
use crate::lane::shared::{Cause, OUT, Shared, name_of};
use crate::lane::sum::{Sum, copy_checked, store};
use crate::lane::{Lane, Phase, send};
use cci_mem::memory::{Memory, Piece};
use cci_mem::sync::Ordering;
use cci_proto::{Access, Atomic, Failure, Rights, RmaError};
use cci_transport::{Connection, Core, Message, Posted, Rma, Slot};

/// Writes of at most so many bytes are copied behind what leaves next, so that many share a system
/// call.
const COPIED: u64 = 4 << 10;

impl Lane {
    /// Starts an RMA of an open connection.
    pub(crate) fn rma(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        cell: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        if self.phase != Phase::Open {
            return Err(RmaError::Disconnected);
        }
        let (local, entry) = s.registrations.find(rma.local.name()).ok_or(RmaError::LocalHandle)?;
        let memory = entry.memory_for(name_of(cell)).ok_or(RmaError::LocalHandle)?;
        if !memory.contains(rma.local_offset, rma.len) {
            return Err(RmaError::LocalHandle);
        }
        let slot = core.take_rma().ok_or(RmaError::NoBuffers)?;
        let message = rma.message.map(|message| Data::copy(&Message::One(message), || s.buffer()));
        cell.on_begun();
        s.open_operations += 1;
        let in_parts = self.goes_in_parts(rma.access, rma.len);
        let ending = send::ending(slot, cell, posted);
        if let Some(deadline) = ending.deadline {
            s.check_by(deadline);
        }
        let place = self.work(s).operations.add(Operation {
            ending,
            access: rma.access,
            local: Local::Registered(local),
            local_offset: rma.local_offset,
            handle: rma.remote.name(),
            remote_offset: rma.remote_offset,
            len: rma.len,
            message,
            fence: rma.fence,
            stage: Stage::Waiting,
            done: 0,
            number: None,
            in_parts,
            outcome: None,
            order: 0,
        });
        self.queue_operation(s, core, place);
        Ok((posted == Posted::Waited).then_some(slot))
    }

    /// Gives the operations that are ready numbers and begins them, as far as the peer allows. What
    /// is short is copied behind what leaves next. True: a long write is to be sent.
    pub(super) fn begin_ready(&mut self, s: &mut Shared, core: &mut Core) -> Option<u32> {
        let most = self.operations;
        while self.out.left().len() < OUT {
            let work = self.work.as_mut()?;
            let at = work.operations.next_ready()?;
            let place = work.operations.ready[at];
            let Some(operation) = work.operations.get(place) else {
                work.operations.ready.remove(at);
                continue;
            };
            if operation.stage == Stage::Sending {
                return Some(place);
            }
            let is_large = operation.access == Access::Large;
            if operation.number.is_none() {
                if is_large && !work.operations.may_ask(place) {
                    work.operations.ready.remove(at);
                    continue;
                }
                if work.operations.number(place, most).is_none() {
                    if is_large {
                        work.operations.unask();
                    }
                    // One ends some time, and its answer comes here.
                    return None;
                }
            }
            if self.begin_operation(s, core, place) {
                return Some(place);
            }
            let ready = &mut self.work.as_mut()?.operations.ready;
            if ready.get(at) == Some(&place) {
                ready.remove(at);
            }
        }
        None
    }

    /// Begins an operation that has a number. True: its bytes are to be sent in fragments.
    fn begin_operation(&mut self, s: &mut Shared, core: &mut Core, place: u32) -> bool {
        let Some(operation) = self.work.as_mut().and_then(|work| work.operations.get_mut(place)) else { return false };
        let connection = operation.ending.cell.remote.load(Ordering::Relaxed);
        let number = operation.number.unwrap_or(0);
        let target = Target {
            operation: number,
            handle: operation.handle,
            offset: operation.remote_offset,
            total: operation.len,
        };
        match operation.access {
            Access::Large if operation.stage == Stage::Waiting => {
                operation.stage = Stage::AwaitMemory;
                let len = operation.len;
                let (number, len) = (u64::from(number).to_le_bytes(), len.to_le_bytes());
                self.put(s, Kind::Large, 0, connection, &[&number, &len]);
                false
            }
            Access::Read => {
                operation.stage = Stage::AwaitResult;
                let flags = if operation.in_parts { IN_PARTS } else { 0 };
                if operation.in_parts
                    && let Some(work) = &mut self.work
                {
                    work.operations.expect_parts(number);
                }
                self.put(s, Kind::Read, flags, connection, &[&target.emit()]);
                false
            }
            Access::Atomic(atomic) => {
                operation.stage = Stage::AwaitResult;
                self.put(s, Kind::Atomic, 0, connection, &[&target.emit(), &frame::emit_atomic(atomic)]);
                false
            }
            Access::Write | Access::Large => {
                operation.stage = Stage::Sending;
                operation.len > COPIED || !self.copy_write(s, core, place, connection, &target)
            }
        }
    }

    /// Copies a short write behind what leaves next. False: its memory is gone.
    fn copy_write(&mut self, s: &mut Shared, core: &mut Core, place: u32, connection: u32, target: &Target) -> bool {
        let Some(operation) = self.work.as_ref().and_then(|work| work.operations.get(place)) else { return false };
        let Some(piece) = local_piece(s, operation, 0, operation.len) else { return false };
        let flags = if operation.has_follower() { HAS_MESSAGE } else { 0 };
        if self.out.is_bare() {
            self.out.set_buffer(s.buffer());
        }
        let len = piece.len();
        let header = self.head(Kind::Write, flags, connection, BEGIN + len);
        self.out.frame(&header, &[&target.emit()]);
        if self.checks {
            copy_checked(&piece, self.out.room(SUM + len));
        } else {
            piece.copy_to(0, self.out.room(len));
        }
        self.activate(s);
        self.on_sent_bytes(s, core, place, len as u64);
        true
    }

    /// Bytes of a write were handed to the stream.
    pub(super) fn on_sent_bytes(&mut self, s: &mut Shared, core: &mut Core, place: u32, bytes: u64) {
        let Some(operation) = self.work.as_mut().and_then(|work| work.operations.get_mut(place)) else { return };
        operation.done += bytes;
        if operation.done >= operation.len {
            operation.stage = Stage::AwaitResult;
            let follows = operation.has_follower();
            if let Some(work) = &mut self.work {
                work.operations.ready.retain(|other| *other != place);
            }
            if follows {
                self.send_follower(s, core, place);
            }
        }
    }

    /// What follows the bytes of a write: its message, or the word that a large one is there.
    fn send_follower(&mut self, s: &mut Shared, core: &mut Core, place: u32) {
        let Some(operation) = self.work.as_mut().and_then(|work| work.operations.get_mut(place)) else { return };
        if operation.access == Access::Large {
            let connection = operation.ending.cell.remote.load(Ordering::Relaxed);
            let number = operation.number.unwrap_or(0).to_le_bytes();
            self.put(s, Kind::Landed, 0, connection, &[&number, &frame::emit_outcome(Ok(()))]);
        } else {
            let cell = operation.ending.cell;
            self.send_of_operation(s, core, place);
            self.release_hold(s, core, cell, place);
        }
    }

    /// The memory of this side that the bytes of an operation come from or go to.
    pub(crate) fn operation(&self, place: u32) -> Option<&Operation> {
        self.work.as_ref()?.operations.get(place)
    }

    pub(crate) fn place_of(&self, number: u32) -> Option<u32> {
        self.work.as_ref()?.operations.place_of(number)
    }

    /// Bytes of a read arrive.
    pub(crate) fn on_answer(
        &mut self,
        s: &mut Shared,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        let number = fields.u32();
        let bytes = (header.len - header.needed()) as u64;
        let operation = self.place_of(number).and_then(|place| self.operation(place));
        let of = match operation {
            Some(operation)
                if operation.access != Access::Read || operation.in_parts || operation.done + bytes > operation.len =>
            {
                return Err(Violation);
            }
            Some(_) => BytesOf::Read(number),
            None => {
                s.strays += 1;
                BytesOf::Nobody
            }
        };
        self.expect_bytes(of, header, fields);
        Ok(())
    }

    /// Where the next bytes of a read go; `None`: nowhere, because its memory is gone.
    pub(crate) fn read_target(&mut self, s: &mut Shared, core: &mut Core, number: u32, len: usize) -> Option<Piece> {
        let operation = self.operation(self.place_of(number)?)?;
        let piece = local_piece(s, operation, operation.done, len as u64);
        if piece.is_none() {
            self.fail_read(s, core, number, Failure::RemoteHandle);
        }
        piece
    }

    /// Copies bytes of a read to where they go.
    pub(crate) fn read_bytes(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        number: u32,
        bytes: &[u8],
        sum: Option<&mut Sum>,
    ) {
        let Some(operation) = self.place_of(number).and_then(|place| self.operation(place)) else { return };
        let at = operation.local_offset + operation.done;
        let is_copied = local_memory(s, operation).is_some_and(|memory| store(memory, at, bytes, sum));
        if is_copied {
            self.advance_read(number, bytes.len());
        } else {
            self.fail_read(s, core, number, Failure::RemoteHandle);
        }
    }

    /// Bytes of a read are in its memory.
    pub(crate) fn advance_read(&mut self, number: u32, bytes: usize) {
        let Some(place) = self.place_of(number) else { return };
        if let Some(operation) = self.work.as_mut().and_then(|work| work.operations.get_mut(place)) {
            operation.done += bytes as u64;
        }
    }

    /// Whether all bytes of a read have come.
    pub(crate) fn is_read_to_its_end(&self, number: u32) -> bool {
        let operation = self.place_of(number).and_then(|place| self.operation(place));
        operation.is_none_or(|operation| operation.done >= operation.len)
    }

    /// A read cannot go on, for this reason: it fails at once, and what comes for it goes to
    /// nowhere.
    pub(crate) fn fail_read(&mut self, s: &mut Shared, core: &mut Core, number: u32, failure: Failure) {
        if let Some(place) = self.place_of(number) {
            self.end_operation(s, core, place, Err(failure));
        }
    }

    /// An operation has ended at the peer.
    pub(crate) fn on_result(&mut self, s: &mut Shared, core: &mut Core, fields: &mut Fields<'_>) {
        let number = fields.u32();
        let (outcome, old) = (frame::parse_outcome(fields), fields.u64());
        let place = self.place_of(number);
        // A target of ours answers when it has all bytes, or learns that no more come.
        if place.and_then(|place| self.operation(place)).is_some_and(|other| other.stage != Stage::AwaitResult) {
            return self.end(s, Cause::Violation);
        }
        let Some(work) = &mut self.work else { return s.strays += 1 };
        if work.operations.expects_parts(number) {
            return self.on_result_of_parts(s, core, number, outcome, old);
        }
        if !work.operations.answered(number) {
            return s.strays += 1;
        }
        self.activate_ready(s);
        let Some(place) = place else { return };
        self.on_ended_there(s, core, place, outcome, old);
    }

    pub(crate) fn on_ended_there(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        place: u32,
        outcome: Result<(), Failure>,
        old: u64,
    ) {
        let Some(operation) = self.operation(place) else { return };
        let outcome = outcome.and_then(|()| match operation.access {
            Access::Read if operation.done < operation.len => Err(Failure::Copy),
            Access::Atomic(_) => {
                let len = usize::try_from(operation.len).unwrap_or(0).min(8);
                let bytes = Atomic::bytes(old, operation.len);
                let is_copied = local_memory(s, operation)
                    .is_some_and(|memory| memory.copy_in(operation.local_offset, &bytes[..len]));
                if is_copied { Ok(()) } else { Err(Failure::RemoteHandle) }
            }
            _ => Ok(()),
        });
        if outcome.is_ok() && operation.message.is_some() {
            let cell = operation.ending.cell;
            if let Some(operation) = self.work.as_mut().and_then(|work| work.operations.get_mut(place)) {
                operation.stage = Stage::AwaitTaken;
            }
            self.send_of_operation(s, core, place);
            self.release_hold(s, core, cell, place);
        } else {
            self.end_operation(s, core, place, outcome);
        }
    }

    /// Ends an operation of this side.
    pub(crate) fn end_operation(&mut self, s: &mut Shared, core: &mut Core, place: u32, outcome: Result<(), Failure>) {
        // What is half sent of it must not be read after its end.
        self.blank_fragment(place);
        if self.waits_in_row(place, outcome) {
            return;
        }
        let Some(operation) = self.work.as_mut().and_then(|work| work.operations.take(place)) else { return };
        let cell = operation.ending.cell;
        if outcome.is_ok() && operation.access != Access::Large {
            cell.counters.on_rma(operation.len);
            core.counters().on_rma(operation.len);
        }
        if let Some(message) = operation.message {
            s.reuse(message.into_buffer());
        }
        s.end(core, operation.ending, outcome);
        if let Some((next, outcome)) = self.next_in_row(cell, place) {
            self.end_operation(s, core, next, outcome);
        } else {
            self.release_hold(s, core, cell, place);
        }
        self.check_holds(s, core);
        self.activate_ready(s);
    }

    /// Has the next call begin what is ready.
    pub(crate) fn activate_ready(&mut self, s: &mut Shared) {
        if self.work.as_ref().is_some_and(|work| !work.operations.ready.is_empty()) {
            self.activate(s);
        }
    }

    /// Ends an operation whose connection is over. The peer is told to stop waiting for its bytes.
    pub(crate) fn abandon_operation(&mut self, s: &mut Shared, core: &mut Core, place: u32, failure: Failure) {
        let Some(operation) = self.work.as_mut().and_then(|work| work.operations.take(place)) else { return };
        if operation.in_parts {
            self.blank_fragment(place);
        }
        if let Some(number) = operation.number {
            let is_unfinished = match operation.access {
                Access::Write if operation.in_parts => operation.stage == Stage::Sending,
                Access::Write => operation.stage == Stage::Sending || operation.message.is_some(),
                Access::Large => matches!(operation.stage, Stage::Sending | Stage::AwaitMemory),
                Access::Read | Access::Atomic(_) => false,
            };
            if is_unfinished {
                self.cancel(s, place, number, operation.handed());
            }
        }
        s.end(core, operation.ending, operation.outcome.unwrap_or(Err(failure)));
    }

    /// Tells the peer that the rest of a write does not come. A fragment that is half sent ends in
    /// zeros. `handed`: bytes that were handed to streams, if it goes in parts.
    pub(crate) fn cancel(&mut self, s: &mut Shared, place: u32, number: u32, handed: Option<u64>) {
        self.blank_fragment(place);
        match handed {
            None => self.put(s, Kind::Cancel, 0, 0, &[&number.to_le_bytes()]),
            Some(handed) => self.put(s, Kind::Abandon, 0, 0, &[&frame::emit_count(number, handed)]),
        }
    }
}

impl Operation {
    /// Whether something follows its bytes.
    pub(super) fn has_follower(&self) -> bool {
        self.message.is_some() || self.access == Access::Large
    }

    /// Bytes of an operation in parts that were handed to streams; `None`: it does not go in parts.
    pub(crate) fn handed(&self) -> Option<u64> {
        self.in_parts.then_some(self.done)
    }
}

/// The memory of this side that an operation is about.
pub(crate) fn local_memory<'a>(s: &'a Shared, operation: &'a Operation) -> Option<&'a Memory> {
    match &operation.local {
        Local::Registered(number) => s.registrations.get(*number)?.memory(),
        Local::Own(memory) => Some(memory),
    }
}

/// Part of that memory, from this byte of the operation on.
pub(crate) fn local_piece(s: &Shared, operation: &Operation, at: u64, len: u64) -> Option<Piece> {
    local_memory(s, operation)?.piece(operation.local_offset + at, usize::try_from(len).ok()?)
}

/// Whether memory with these rights allows an access.
pub(super) fn allows(rights: Rights, access: Access) -> bool {
    rights.has(access.rights())
}
