//! Sending parts: each stream with room pulls the next one.

use super::PART;
use crate::frame::{ANSWER_PART, CHECKED, HEADER, Header, Kind, SUM, Target, WRITE_PART, WritePart, emit_count};
use crate::lane::shared::Shared;
use crate::lane::work::{Fragment, FragmentOf};
use crate::lane::{Lane, Phase};
use crate::rma::local_piece;
use crate::sys;
use cci_mem::sync::Ordering;
use cci_proto::Failure;
use cci_transport::Core;
use rustix::io::Errno;

/// Bytes of a part that is copied and checked, and such parts of a stream in one call.
const CHECKED_PART: u64 = 64 << 10;
const CHECKED_PARTS: u32 = 4;

impl Lane {
    /// Has each further stream with room send, which takes a part in one call.
    #[cold]
    pub(crate) fn feed(&mut self, s: &mut Shared, core: &mut Core) {
        for index in 0..self.further.as_ref().map_or(0, |further| further.streams.len()) {
            self.flush_stream(s, core, index);
        }
    }

    /// A further stream has room again.
    pub(super) fn on_stream_room(&mut self, s: &mut Shared, core: &mut Core, index: usize) {
        if let Some(stream) = self.stream(index) {
            stream.is_blocked = false;
        }
        self.flush_stream(s, core, index);
        if self.stream(index).is_some_and(|stream| !stream.is_blocked) {
            self.watch_stream(s, index);
        }
    }

    /// Sends what a further stream has, and parts. The lane stays active if more could leave.
    fn flush_stream(&mut self, s: &mut Shared, core: &mut Core, index: usize) {
        let mut parts = if self.checks { CHECKED_PARTS } else { 1 };
        while self.phase == Phase::Open
            && let Some(stream) = self.stream(index).filter(|stream| stream.is_open() && !stream.is_blocked)
        {
            if let (Some(socket), Some(seal)) = (&stream.socket, &mut stream.seal)
                && let Err(error) = seal.push(s, socket)
            {
                self.on_stream_unsent(s, index, error);
                continue;
            }
            let (Some(socket), Some(fragment)) = (&stream.socket, &mut stream.fragment) else {
                if parts == 0 {
                    return self.activate(s);
                }
                parts -= 1;
                let Some(fragment) = self.next_part(s, core, false) else { return };
                if let Some(stream) = self.stream(index) {
                    stream.fragment = Some(fragment);
                }
                continue;
            };
            let of = fragment.of;
            let sent = match &mut stream.seal {
                Some(seal) => fragment.send_sealed(s, seal, socket),
                None => fragment.send(socket),
            };
            match sent {
                Ok(true) => {
                    if let Some(fragment) = stream.fragment.take() {
                        s.reuse(fragment.copy);
                    }
                    if let FragmentOf::AnswerPart(number) = of {
                        self.on_answer_part_left(s, number);
                    }
                }
                Ok(false) => {}
                Err(Errno::FAULT) => self.on_unreadable(s, core, of, Failure::Copy),
                Err(error) => self.on_stream_unsent(s, index, error),
            }
        }
    }

    /// A further stream takes no bytes now, or any more.
    fn on_stream_unsent(&mut self, s: &mut Shared, index: usize, error: Errno) {
        match error {
            Errno::INTR => {}
            Errno::AGAIN => {
                if let Some(stream) = self.stream(index) {
                    stream.is_blocked = true;
                }
                self.watch_stream(s, index);
            }
            Errno::KEYREJECTED => self.on_unsealed(s),
            error if sys::is_end_of_stream(error) => self.on_stream_ended(s, index),
            error => self.end_refused(s, "sendmsg", error),
        }
    }

    /// Begins a part on the first stream, once the others have theirs.
    pub(crate) fn begin_part(&mut self, s: &mut Shared, core: &mut Core) {
        self.feed(s, core);
        let part = self.next_part(s, core, true);
        if let Some(work) = &mut self.work {
            work.fragment = part;
        }
    }

    /// The part that leaves next: of writes and of answers in turn. `None`: there is none.
    fn next_part(&mut self, s: &mut Shared, core: &mut Core, is_first: bool) -> Option<Fragment> {
        loop {
            let most = self.operations;
            let work = self.work.as_mut()?;
            let (write, read) = (work.operations.next_in_parts(most), work.serving.next_in_parts());
            let answers = read.is_some() && (write.is_none() || !work.answered);
            work.answered = answers;
            let cut = match (answers, read, write) {
                (true, Some(number), _) => self.cut_answer(s, number, is_first),
                (_, _, Some(place)) => self.cut_write(s, core, place, is_first),
                _ => return None,
            };
            if cut.is_some() {
                return cut;
            }
        }
    }

    fn longest_part(&self) -> u64 {
        if self.checks { CHECKED_PART } else { PART }
    }

    /// The next part of a write. `None`: its memory is gone, and it has ended.
    fn cut_write(&mut self, s: &mut Shared, core: &mut Core, place: u32, is_first: bool) -> Option<Fragment> {
        let longest = self.longest_part();
        let operation = self.operation(place)?;
        let (at, len) = (operation.done, (operation.len - operation.done).min(longest));
        let (number, cell) = (operation.number.unwrap_or(0), operation.ending.cell);
        let Some(memory) = local_piece(s, operation, at, len) else {
            // The program has deregistered its memory.
            self.cancel(s, place, number, Some(at));
            self.end_operation(s, core, place, Err(Failure::RemoteHandle));
            return None;
        };
        let (handle, offset, total) = (operation.handle, operation.remote_offset, operation.len);
        let part = WritePart { target: Target { operation: number, handle, offset, total }, position: at };
        let operations = &mut self.work.as_mut()?.operations;
        operations.on_served(place);
        operations.get_mut(place)?.done += len;
        if at + len >= total {
            operations.on_handed(place);
        }
        let connection = cell.remote.load(Ordering::Relaxed);
        let header = self.part_header(Kind::WritePart, connection, WRITE_PART + memory.len(), is_first);
        let mut head = [0; Fragment::HEAD];
        head[..HEADER].copy_from_slice(&header.emit());
        head[HEADER..].copy_from_slice(&part.emit());
        Some(self.fragment(s, (head, HEADER + WRITE_PART), memory, FragmentOf::WritePart(place), None))
    }

    /// The next part of the answer to a read. `None`: its memory is gone, or its connection.
    fn cut_answer(&mut self, s: &mut Shared, number: u32, is_first: bool) -> Option<Fragment> {
        let longest = self.longest_part();
        let serving = &mut self.work.as_mut()?.serving;
        let served = serving.get_mut(number)?;
        let parts = served.parts.as_mut()?;
        let (position, len) = (served.at - parts.offset, served.left.min(longest));
        let memory = s.registrations.get(served.registration).and_then(|entry| entry.memory());
        let memory = memory.filter(|_| served.outcome.is_ok());
        let memory = memory.and_then(|memory| memory.piece(served.at, usize::try_from(len).ok()?));
        if memory.is_some() {
            parts.moving += 1;
            (served.at, served.left) = (served.at + len, served.left - len);
        } else {
            served.outcome = served.outcome.and(Err(Failure::RemoteHandle));
        }
        let (is_over, is_moving) = (memory.is_none() || served.left == 0, parts.moving > 0);
        if is_over {
            serving.reads.retain(|other| *other != number);
        }
        if !is_moving {
            self.end_served(s, number);
        }
        let memory = memory?;
        let header = self.part_header(Kind::AnswerPart, 0, ANSWER_PART + memory.len(), is_first);
        let mut head = [0; Fragment::HEAD];
        head[..HEADER].copy_from_slice(&header.emit());
        head[HEADER..HEADER + ANSWER_PART].copy_from_slice(&emit_count(number, position));
        Some(self.fragment(s, (head, HEADER + ANSWER_PART), memory, FragmentOf::AnswerPart(number), None))
    }

    /// Part of an answer has left. RESULT follows when no part is about to be read from memory any
    /// more: whether all could be is known then.
    pub(crate) fn on_answer_part_left(&mut self, s: &mut Shared, number: u32) {
        let Some(served) = self.served(number) else { return };
        let Some(parts) = &mut served.parts else { return };
        parts.moving = parts.moving.saturating_sub(1);
        if parts.moving == 0 && (served.left == 0 || served.outcome.is_err()) {
            self.end_served(s, number);
        }
    }

    /// The header of a part. Only the first stream says what was taken.
    fn part_header(&mut self, kind: Kind, connection: u32, len: usize, is_first: bool) -> Header {
        if is_first {
            return self.head(kind, 0, connection, len);
        }
        let (flags, len) = if self.checks { (CHECKED, len + SUM) } else { (0, len) };
        Header { len, kind, flags, connection, taken: 0 }
    }
}
