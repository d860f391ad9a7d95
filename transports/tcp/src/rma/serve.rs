//! The side whose memory an operation of the peer is about.

use super::begin::allows;
use crate::frame::{self, Fields, HAS_MESSAGE, Header, IN_PARTS, Kind, Target, Violation};
use crate::lane::Lane;
use crate::lane::incoming::BytesOf;
use crate::lane::serving::{Served, ServedParts};
use crate::lane::shared::{Shared, name_of};
use crate::lane::sum::{Sum, store};
use cci_mem::memory::Piece;
use cci_proto::{Access, Failure, Registration};

impl Lane {
    /// Finds the memory that an operation of the peer names, if it may do this to all of it.
    fn resolve(&self, s: &Shared, header: &Header, target: &Target, access: Access) -> Result<Registration, Failure> {
        let refused = Failure::RemoteHandle;
        let cell = self.table.open_cell(header.connection).ok_or(refused)?;
        if !cell.attribute().is_reliable() {
            return Err(refused);
        }
        let (number, entry) = s.registrations.find(target.handle).ok_or(refused)?;
        let memory = entry.memory_for(name_of(cell)).ok_or(refused)?;
        if target.total > 0 && memory.contains(target.offset, target.total) && allows(entry.rights(), access) {
            Ok(number)
        } else {
            Err(refused)
        }
    }

    /// Enters an operation of the peer.
    pub(crate) fn serve(
        &mut self,
        s: &mut Shared,
        header: &Header,
        target: &Target,
        access: Access,
    ) -> Result<Served, Violation> {
        let resolved = self.resolve(s, header, target, access);
        let served = Served {
            number: target.operation,
            connection: header.connection,
            registration: resolved.unwrap_or(Registration { index: u32::MAX, generation: 0 }),
            is_read: access == Access::Read,
            at: target.offset,
            left: target.total,
            outcome: resolved.map(drop),
            has_message: header.flags & HAS_MESSAGE != 0,
            parts: (header.flags & IN_PARTS != 0 || header.kind == Kind::WritePart).then(|| ServedParts {
                offset: target.offset,
                total: target.total,
                ..ServedParts::default()
            }),
        };
        if self.work(s).serving.add(served) { Ok(served) } else { Err(Violation) }
    }

    /// The peer begins a write.
    pub(crate) fn on_write(
        &mut self,
        s: &mut Shared,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        let target = Target::parse(fields);
        let bytes = (header.len - header.needed()) as u64;
        if target.total == 0 || bytes > target.total {
            return Err(Violation);
        }
        self.serve(s, header, &target, Access::Write)?;
        self.expect_bytes(BytesOf::Write(target.operation), header, fields);
        if bytes == 0 {
            self.on_written(s, target.operation);
        }
        Ok(())
    }

    /// The peer goes on with a write.
    pub(crate) fn on_data(
        &mut self,
        s: &mut Shared,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        let number = fields.u32();
        let bytes = (header.len - header.needed()) as u64;
        let of = match self.served(number) {
            Some(served) if served.is_read || served.parts.is_some() || bytes > served.left => return Err(Violation),
            Some(_) => BytesOf::Write(number),
            None => {
                s.strays += 1;
                BytesOf::Nobody
            }
        };
        self.expect_bytes(of, header, fields);
        Ok(())
    }

    pub(crate) fn served(&mut self, number: u32) -> Option<&mut Served> {
        self.work.as_mut()?.serving.get_mut(number)
    }

    /// Where the next bytes of a write go; `None`: nowhere, because it was refused, or its memory
    /// is gone.
    pub(crate) fn write_target(&mut self, s: &Shared, number: u32, len: usize) -> Option<Piece> {
        let served = self.served(number)?;
        served.outcome.ok()?;
        // The registration may have ended since the last bytes.
        let entry = s.registrations.get(served.registration).filter(|entry| !entry.is_orphaned());
        let piece = entry.and_then(|entry| entry.memory()?.piece(served.at, len));
        if piece.is_none() {
            served.outcome = Err(Failure::RemoteHandle);
        }
        piece
    }

    /// Copies bytes of a write to where they go.
    pub(crate) fn write_bytes(&mut self, s: &Shared, number: u32, bytes: &[u8], sum: Option<&mut Sum>) {
        let Some(served) = self.served(number) else { return };
        let entry = s.registrations.get(served.registration).filter(|entry| !entry.is_orphaned());
        let memory = entry.and_then(|entry| entry.memory()).filter(|_| served.outcome.is_ok());
        if !memory.is_some_and(|memory| store(memory, served.at, bytes, sum)) {
            served.outcome = served.outcome.and(Err(Failure::RemoteHandle));
        }
        self.advance_write(number, bytes.len());
    }

    /// Bytes of a write have come.
    pub(crate) fn advance_write(&mut self, number: u32, bytes: usize) {
        if let Some(served) = self.served(number) {
            // What was refused may begin anywhere.
            served.at = served.at.wrapping_add(bytes as u64);
            served.left = served.left.saturating_sub(bytes as u64);
        }
    }

    /// The memory of a write cannot be written, or its bytes are not those that were sent.
    pub(crate) fn fail_write(&mut self, number: u32) {
        if let Some(served) = self.served(number) {
            served.outcome = served.outcome.and(Err(Failure::Copy));
        }
    }

    /// A fragment of a write has come as a whole. RESULT, if that was all.
    pub(crate) fn on_written(&mut self, s: &mut Shared, number: u32) {
        if self.served(number).is_some_and(|served| served.left == 0 && !served.has_message) {
            self.end_served(s, number);
        }
    }

    /// Whether all bytes of a write have come.
    pub(crate) fn is_written_to_its_end(&mut self, number: u32) -> bool {
        self.served(number).is_none_or(|served| served.left == 0)
    }

    /// Whether a write has come as a whole, so that its message may be shown.
    pub(crate) fn is_written(&mut self, number: u32) -> bool {
        self.served(number).is_some_and(|served| served.left == 0 && served.outcome.is_ok())
    }

    /// Ends an operation of the peer: RESULT.
    pub(crate) fn end_served(&mut self, s: &mut Shared, number: u32) {
        let Some(served) = self.work.as_mut().and_then(|work| work.serving.take(number)) else {
            s.strays += 1;
            return;
        };
        let outcome = if served.left == 0 { served.outcome } else { served.outcome.and(Err(Failure::RemoteHandle)) };
        // Of a read in parts, the bytes that were handed to streams.
        let handed = served.parts.map_or(0, |parts| parts.total - served.left);
        self.send_result(s, number, outcome, handed);
    }

    pub(super) fn send_result(&mut self, s: &mut Shared, number: u32, outcome: Result<(), Failure>, old: u64) {
        self.answer(s, Kind::Result, 0, &[&frame::emit_result(number, outcome, old)]);
    }

    /// The rest of a write does not come. RESULT frees its number, also where nothing of it is left
    /// here.
    pub(crate) fn on_cancel(&mut self, s: &mut Shared, number: u32) -> Result<(), Violation> {
        match self.served(number) {
            Some(served) if served.is_read || served.parts.is_some() => return Err(Violation),
            Some(served) => {
                served.outcome = Err(Failure::RemoteHandle);
                self.end_served(s, number);
            }
            None => self.send_result(s, number, Err(Failure::RemoteHandle), 0),
        }
        Ok(())
    }

    /// Whether the peer reads by this number, or writes in parts: what belongs to other writes must
    /// not name it, or memory would be used after its end.
    pub(crate) fn is_reading(&mut self, number: u32) -> bool {
        self.served(number).is_some_and(|served| served.is_read || served.parts.is_some())
    }

    /// The peer reads.
    pub(crate) fn on_read(
        &mut self,
        s: &mut Shared,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        let target = Target::parse(fields);
        if header.flags & IN_PARTS != 0 && self.further.is_none() {
            return Err(Violation);
        }
        let served = self.serve(s, header, &target, Access::Read)?;
        if served.outcome.is_err() {
            self.end_served(s, target.operation);
        } else {
            self.work(s).serving.reads.push_back(target.operation);
            self.activate(s);
        }
        Ok(())
    }

    /// Bytes of the answer to a read have left. `has_result`: the last of them, with the RESULT.
    pub(super) fn on_answered_bytes(&mut self, s: &mut Shared, number: u32, bytes: u64, has_result: bool) {
        if has_result {
            if let Some(work) = &mut self.work {
                work.serving.take(number);
            }
            return;
        }
        self.advance_write(number, usize::try_from(bytes).unwrap_or(usize::MAX));
        if self.served(number).is_some_and(|served| served.left == 0 || served.outcome.is_err()) {
            self.end_served(s, number);
        }
    }

    /// The peer changes a word.
    pub(crate) fn on_atomic(
        &mut self,
        s: &mut Shared,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        let target = Target::parse(fields);
        let atomic = frame::parse_atomic(fields).ok_or(Violation)?;
        let served = self.serve(s, header, &target, Access::Atomic(atomic))?;
        let memory = s.registrations.get(served.registration).and_then(|entry| entry.memory());
        let len = usize::try_from(target.total).unwrap_or(0);
        let old = memory
            .filter(|_| served.outcome.is_ok())
            .and_then(|memory| memory.update(target.offset, len, |old| atomic.apply(old, target.total)));
        self.work(s).serving.take(target.operation);
        let outcome = served.outcome.and(old.map(drop).ok_or(Failure::RemoteHandle));
        self.send_result(s, target.operation, outcome, old.unwrap_or(0));
        Ok(())
    }
}
