//! Fragments: long writes and the answers to reads leave in parts, each with a head, from where
//! they lie.

use super::begin::local_piece;
use crate::frame::{
    BEGIN, CHECKED, HAS_MESSAGE, HEADER, Header, Kind, OPERATION, RESULT, SUM, Target, emit_result, pack,
};
use crate::lane::Lane;
use crate::lane::shared::Shared;
use crate::lane::sum::copy_checked;
use crate::lane::work::{Fragment, FragmentOf};
use cci_mem::memory::Piece;
use cci_mem::sync::Ordering;
use cci_proto::Failure;
use cci_transport::Core;
use rustix::io::{Errno, Result};

/// Bytes of a fragment, at most: calls of 64 KiB cost a fifth of the throughput.
const FRAGMENT: u64 = 1 << 20;
/// Bytes of one that is copied and checked.
const CHECKED_FRAGMENT: u64 = 64 << 10;

impl Lane {
    /// Whether an RMA has something to send.
    pub(crate) fn has_rma_to_send(&self) -> bool {
        self.work.as_ref().is_some_and(|work| {
            let is_allowed = work.operations.on_wire() < self.operations as usize;
            let may_begin = work.operations.ready.front().is_some_and(|place| {
                is_allowed || work.operations.get(*place).is_none_or(|operation| operation.number.is_some())
            });
            may_begin || !work.serving.reads.is_empty()
        })
    }

    /// Begins what is ready: short operations all at once, and one fragment. False: there is none.
    pub(crate) fn begin_fragment(&mut self, s: &mut Shared, core: &mut Core) -> bool {
        let write = self.begin_ready(s, core);
        let Some(work) = &mut self.work else { return false };
        let read = work.serving.next_read();
        let answers = read.is_some() && (write.is_none() || !work.answered);
        work.answered = answers;
        match (answers, read, write) {
            (true, Some(number), _) => self.begin_answer(s, core, number),
            (_, _, Some(place)) => self.begin_write(s, core, place),
            _ => return !self.out.is_empty(),
        }
        true
    }

    /// Begins the next fragment of a long write.
    fn begin_write(&mut self, s: &mut Shared, core: &mut Core, place: u32) {
        let Some(operation) = self.operation(place) else { return };
        if operation.in_parts {
            return self.begin_part(s, core);
        }
        let (at, len) = (operation.done, (operation.len - operation.done).min(self.longest()));
        let (number, cell) = (operation.number.unwrap_or(0), operation.ending.cell);
        let Some(memory) = local_piece(s, operation, at, len) else {
            // The program has deregistered its memory.
            self.cancel(s, place, number, None);
            return self.end_operation(s, core, place, Err(Failure::RemoteHandle));
        };
        let connection = cell.remote.load(Ordering::Relaxed);
        let flags = if operation.has_follower() { HAS_MESSAGE } else { 0 };
        let target = Target {
            operation: number,
            handle: operation.handle,
            offset: operation.remote_offset,
            total: operation.len,
        };
        let (kind, prefix) = if at == 0 { (Kind::Write, BEGIN) } else { (Kind::Data, OPERATION) };
        let header = self.head(kind, flags, connection, prefix + memory.len());
        let mut head = [0; Fragment::HEAD];
        head[..HEADER].copy_from_slice(&header.emit());
        head[HEADER..HEADER + BEGIN].copy_from_slice(&target.emit());
        self.set_fragment(s, (head, HEADER + prefix), memory, FragmentOf::Write(place), None);
        if let Some(work) = &mut self.work {
            work.operations.on_served(place);
        }
    }

    /// Begins the next fragment of the answer to a read.
    fn begin_answer(&mut self, s: &mut Shared, core: &mut Core, number: u32) {
        let longest = self.longest();
        let Some(work) = &mut self.work else { return };
        let Some(served) = work.serving.get_mut(number).copied() else {
            work.serving.reads.retain(|other| *other != number);
            return;
        };
        if served.parts.is_some() {
            return self.begin_part(s, core);
        }
        let len = served.left.min(longest);
        let memory = s.registrations.get(served.registration).and_then(|entry| entry.memory());
        let piece = memory.filter(|_| served.outcome.is_ok());
        let piece = piece.and_then(|memory| memory.piece(served.at, usize::try_from(len).ok()?));
        let Some(piece) = piece else {
            if let Some(served) = work.serving.get_mut(number) {
                served.outcome = served.outcome.and(Err(Failure::RemoteHandle));
            }
            return self.end_served(s, number);
        };
        work.serving.on_served(served.connection);
        let header = self.head(Kind::Answer, 0, 0, OPERATION + piece.len());
        let mut head = [0; Fragment::HEAD];
        head[..HEADER].copy_from_slice(&header.emit());
        head[HEADER..HEADER + OPERATION].copy_from_slice(&number.to_le_bytes());
        // The RESULT leaves with the last bytes: by itself it would be a system call, and a
        // segment.
        let result = (len == served.left).then(|| self.result_of_read(number));
        self.set_fragment(s, (head, HEADER + OPERATION), piece, FragmentOf::Answer(number), result);
    }

    /// The RESULT of a read whose bytes all leave.
    fn result_of_read(&self, number: u32) -> [u8; Fragment::TAIL] {
        let header = Header { len: RESULT, kind: Kind::Result, flags: 0, connection: 0, taken: self.given.taken };
        pack(&[&header.emit(), &emit_result(number, Ok(()), 0)])
    }

    /// Bytes of a fragment of this lane, at most.
    fn longest(&self) -> u64 {
        if self.checks { CHECKED_FRAGMENT } else { FRAGMENT }
    }

    /// The header of a fragment whose body has so many bytes, without a sum.
    pub(crate) fn head(&mut self, kind: Kind, flags: u8, connection: u32, len: usize) -> Header {
        self.on_told();
        let (flags, len) = if self.checks { (flags | CHECKED, len + SUM) } else { (flags, len) };
        Header { len, kind, flags, connection, taken: self.given.taken }
    }

    fn set_fragment(
        &mut self,
        s: &mut Shared,
        head: ([u8; Fragment::HEAD], usize),
        memory: Piece,
        of: FragmentOf,
        tail: Option<[u8; Fragment::TAIL]>,
    ) {
        let fragment = self.fragment(s, head, memory, of, tail);
        if let Some(work) = &mut self.work {
            work.fragment = Some(fragment);
        }
    }

    /// A fragment that is about to leave.
    pub(crate) fn fragment(
        &self,
        s: &mut Shared,
        (head, head_len): ([u8; Fragment::HEAD], usize),
        memory: Piece,
        of: FragmentOf,
        tail: Option<[u8; Fragment::TAIL]>,
    ) -> Fragment {
        let (len, tail_len) = (memory.len(), if tail.is_some() { Fragment::TAIL } else { 0 });
        let tail = tail.unwrap_or([0; Fragment::TAIL]);
        let mut copy = Vec::new();
        if self.checks {
            copy = s.buffer();
            copy.clear();
            copy.extend_from_slice(&head[..head_len]);
            copy.resize(head_len + SUM + len, 0);
            copy_checked(&memory, &mut copy[head_len..]);
            copy.extend_from_slice(&tail[..tail_len]);
        }
        Fragment { head, head_len, tail, tail_len, sent: 0, memory: Some(memory), len, copy, of }
    }

    /// Sends the rest of the fragment that has begun to leave. True: all of it has left.
    pub(crate) fn flush_fragment(&mut self, s: &mut Shared, core: &mut Core) -> Result<bool> {
        let Some(socket) = &self.socket else { return Err(Errno::PIPE) };
        let Some(fragment) = self.work.as_mut().and_then(|work| work.fragment.as_mut()) else { return Ok(true) };
        let sent = match &mut self.seal {
            Some(seal) => fragment.send_sealed(s, seal, socket),
            None => fragment.send(socket),
        };
        match sent {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            Err(Errno::FAULT) => {
                // The program has unmapped registered memory.
                let of = fragment.of;
                self.on_unreadable(s, core, of, Failure::Copy);
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        let (of, len, has_result) = (fragment.of, fragment.len as u64, fragment.tail_len > 0);
        if let Some(fragment) = self.work.as_mut().and_then(|work| work.fragment.take()) {
            s.reuse(fragment.copy);
        }
        match of {
            FragmentOf::Write(place) => self.on_sent_bytes(s, core, place, len),
            FragmentOf::Answer(number) => self.on_answered_bytes(s, number, len, has_result),
            FragmentOf::WritePart(_) => {}
            FragmentOf::AnswerPart(number) => self.on_answer_part_left(s, number),
        }
        Ok(true)
    }

    /// Memory that was about to leave cannot be read any more, for this reason: zeros leave in its
    /// place, on each stream, and its operation fails.
    #[cold]
    pub(crate) fn on_unreadable(&mut self, s: &mut Shared, core: &mut Core, of: FragmentOf, failure: Failure) {
        let mut has_bytes = false;
        for fragment in self.fragments_mut().filter(|fragment| fragment.of == of) {
            if fragment.drop_tail() {
                (fragment.memory, has_bytes) = (None, true);
            }
        }
        if !has_bytes {
            // Only the RESULT is left of it, which is right.
            return;
        }
        match of {
            FragmentOf::Write(place) | FragmentOf::WritePart(place) => {
                let operation = self.operation(place);
                if let Some((number, handed)) = operation.and_then(|other| Some((other.number?, other.handed()))) {
                    self.cancel(s, place, number, handed);
                }
                self.end_operation(s, core, place, Err(failure));
            }
            FragmentOf::Answer(number) | FragmentOf::AnswerPart(number) => {
                if let Some(served) = self.work.as_mut().and_then(|work| work.serving.get_mut(number)) {
                    served.outcome = Err(failure);
                }
            }
        }
    }

    /// The bytes of a write that are still to leave are gone: zeros leave in their place.
    pub(super) fn blank_fragment(&mut self, place: u32) {
        let is_its = |fragment: &&mut Fragment| {
            fragment.of == FragmentOf::Write(place) || fragment.of == FragmentOf::WritePart(place)
        };
        for fragment in self.fragments_mut().filter(is_its) {
            // Its place may be another's by the time it has left.
            (fragment.memory, fragment.of) = (None, FragmentOf::Write(u32::MAX));
        }
    }

    /// Memory of this endpoint is deregistered: it is not read any more.
    pub(crate) fn forget_memory(&mut self, s: &mut Shared, core: &mut Core) {
        while let Some(of) = self.unreadable(s) {
            self.on_unreadable(s, core, of, Failure::RemoteHandle);
        }
    }

    /// Whose fragment is about to be read from memory that was deregistered.
    fn unreadable(&mut self, s: &Shared) -> Option<FragmentOf> {
        let all = self.fragments().filter(|fragment| fragment.memory.is_some() && fragment.has_bytes());
        let is_there = |of: &FragmentOf| match *of {
            FragmentOf::Write(place) | FragmentOf::WritePart(place) => {
                let operation = self.operation(place);
                operation.is_some_and(|operation| local_piece(s, operation, 0, operation.len).is_some())
            }
            FragmentOf::Answer(number) | FragmentOf::AnswerPart(number) => {
                let served = self.work.as_ref().and_then(|work| work.serving.get(number));
                served.is_some_and(|served| s.registrations.get(served.registration).is_some())
            }
        };
        all.map(|fragment| fragment.of).find(|of| !is_there(of))
    }
}
