//! Requests of peers, and their handlers.

use super::Turn;
use super::incoming::{Violation, arguments_of, assembly, span_of};
use crate::errors::Status;
use crate::mapping::{Arrived, Mapping};
use crate::message::{Payload, Request};
use crate::wire::{HEADER, Header, Kind, MAX_ARGUMENTS};

impl<S, M: Mapping> Turn<'_, S, M> {
    /// A request has come: takes its credit, and finds whether it is accepted.
    #[inline]
    fn begin(&mut self, index: u32, at: u8) -> Result<Result<(), Status>, Violation> {
        let source = self.core.sources.get(index).ok_or(Violation)?;
        if !source.loan.begin() || source.assembly.is_some() {
            return Err(Violation);
        }
        if !source.is_accepted {
            return Ok(Err(Status::BadTag));
        }
        Ok(self.handlers.of_request(at).map(drop).ok_or(Status::BadHandler))
    }

    #[inline]
    pub(super) fn request(&mut self, index: u32, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut arguments = [0; MAX_ARGUMENTS];
        let (count, payload) = arguments_of(header, message, &mut arguments)?;
        match self.begin(index, header.handler)? {
            Ok(()) => self.serve(index, header, &arguments[..count], payload),
            Err(status) => self.refuse(index, header.id, status),
        }
        Ok(())
    }

    /// Runs the handler of a request, and sends its reply.
    #[inline]
    fn serve(&mut self, index: u32, header: Header, arguments: &[u32], payload: Payload<'_>) {
        let core = &mut *self.core;
        let Some((source, handler)) = core.sources.get(index).zip(self.handlers.of_request(header.handler)) else {
            return;
        };
        let segment = source.segment.as_ref().map_or((0, 0), |segment| (segment.len, segment.epoch));
        core.outbox.begin(header.id, segment);
        let (from, tag, outbox) = (&*source.name, source.tag, &mut core.outbox);
        handler(self.state, Request { arguments, payload, from, tag, outbox });
        if core.outbox.message.is_empty() { self.end_silently(index, header.id) } else { self.send_reply(index) }
    }

    pub(super) fn refuse(&mut self, index: u32, id: u32, status: Status) {
        self.core.outbox.begin(id, (0, 0));
        let header = Header { handler: status as u8, id, ..Header::new(Kind::Returned) };
        self.core.outbox.message.extend_from_slice(&header.emit());
        self.send_reply(index);
    }

    /// A request has ended without a reply. Its credit goes back with others, unless it is wanted
    /// elsewhere.
    fn end_silently(&mut self, index: u32, id: u32) {
        let core = &mut *self.core;
        let Some(source) = core.sources.get(index) else { return };
        let keeps = core.pool.keeps();
        core.pool.end(&mut source.loan, keeps);
        source.ended.push(id);
        source.kept += u32::from(keeps);
        let batch = (source.loan.lent / 4).clamp(1, 12);
        if source.ended.len() >= batch as usize {
            self.notify_source(index);
        } else if source.ended.len() == 1 {
            core.batching.push(index);
        }
        if !keeps {
            self.serve_waiting();
        }
    }

    pub(super) fn request_long(&mut self, index: u32, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut arguments = [0; MAX_ARGUMENTS];
        let (_, rest) = arguments_of(header, message, &mut arguments)?;
        let refused = self.begin(index, header.handler)?.err();
        let most = self.core.options.longest_medium;
        let source = self.core.sources.get(index).ok_or(Violation)?;
        source.assembly = Some(assembly(header, arguments, rest, most, refused)?);
        Ok(())
    }

    pub(super) fn request_part(&mut self, index: u32, message: Arrived<'_>) -> Result<(), Violation> {
        let source = self.core.sources.get(index).ok_or(Violation)?;
        let whole = source.assembly.as_mut().ok_or(Violation)?.add(message.0.from(HEADER))?;
        let Some(whole) = source.assembly.take_if(|_| whole) else { return Ok(()) };
        let arguments = &whole.arguments[..usize::from(whole.header.count)];
        match whole.refused {
            None => self.serve(index, whole.header, arguments, Payload::of_bytes(&whole.bytes)),
            Some(status) => self.refuse(index, whole.header.id, status),
        }
        Ok(())
    }

    pub(super) fn request_bulk(&mut self, index: u32, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut arguments = [0; MAX_ARGUMENTS];
        let (count, rest) = arguments_of(header, message, &mut arguments)?;
        let span = span_of(rest)?;
        let verdict = self.begin(index, header.handler)?;
        if span.epoch != self.core.segment.epoch && verdict.is_ok() {
            self.refuse(index, header.id, Status::BadOffset);
            return Ok(());
        }
        match verdict {
            Err(status) => self.refuse(index, header.id, status),
            Ok(()) => {
                let memory = self.core.segment.range(span.offset, span.len).cloned().ok_or(Violation)?;
                let payload = Payload::of_segment(&memory, span.offset, span.len);
                self.serve(index, header, &arguments[..count], payload);
            }
        }
        Ok(())
    }

    /// A bulk request that found no place in the segment as its requester knew it.
    pub(super) fn request_unplaced(&mut self, index: u32, header: Header) -> Result<(), Violation> {
        let place = [Status::BadOffset, Status::BadLength].into_iter().find(|status| *status as u8 == header.flags);
        let status = self.begin(index, header.handler)?.err().or(place).ok_or(Violation)?;
        self.refuse(index, header.id, status);
        Ok(())
    }
}
