//! Requests of peers, and their handlers.

use super::incoming::{Violation, arguments_of, assembly, span_of};
use super::{Context, Turn};
use crate::errors::Status;
use crate::mapping::{Arrived, Mapping};
use crate::message::{Payload, Request};
use crate::peers::Peer;
use crate::wire::{HEADER, Header, MAX_ARGUMENTS};

/// A handler of requests.
type Handler<S> = fn(&mut S, Request<'_>);

impl<S, M: Mapping> Turn<'_, S, M> {
    /// A request has come: takes its credit, and finds its handler if it is accepted.
    fn begin(&mut self, index: u32, at: u8) -> Result<Result<Handler<S>, Status>, Violation> {
        let source = self.core.sources.at_mut(index).ok_or(Violation)?;
        if !source.loan.begin() || source.assembly.is_some() {
            return Err(Violation);
        }
        if !source.is_accepted {
            return Ok(Err(Status::BadTag));
        }
        Ok(self.handlers.of_request(at).ok_or(Status::BadHandler))
    }

    /// Takes the credit of a request, whose arguments have been read, runs its handler, and sends
    /// its reply.
    #[inline(always)]
    pub(super) fn request(
        &mut self,
        from: Peer,
        header: Header,
        count: usize,
        payload: Payload<'_>,
    ) -> Result<(), Violation> {
        let core = &mut *self.core;
        let Some(source) = core.sources.get_mut(from) else { return Ok(()) };
        if !source.loan.begin() || source.assembly.is_some() {
            return Err(Violation);
        }
        let handler = self.handlers.of_request(header.handler).filter(|_| source.is_accepted);
        let Some(handler) = handler else {
            let status = if source.is_accepted { Status::BadHandler } else { Status::BadTag };
            self.refuse(from, header.id, status);
            return Ok(());
        };
        let segment = source.segment.as_ref().map_or((0, 0), |segment| (segment.len, segment.epoch));
        core.outbox.begin(header.id, segment);
        let (name, tag, outbox) = (&*source.name, source.tag, &mut core.outbox);
        let arguments = &core.arguments[..count];
        handler(self.state, Request { arguments, payload, from: name, tag, outbox });
        // A short reply leaves at once, unless others wait.
        if let (Some(channel), Some(reply)) = (source.channel, core.outbox.short(core.pool.keeps()))
            && self.mapping.send(channel, reply, Context::Source(from).pack()).is_ok()
        {
            let keeps = core.pool.keeps();
            core.pool.end(&mut source.loan, keeps);
            if !keeps {
                self.serve_waiting();
            }
            return Ok(());
        }
        self.end_request(from, header.id);
        Ok(())
    }

    /// The handler of a request has run: its reply leaves, if there is one.
    #[inline(never)]
    fn end_request(&mut self, source: Peer, id: u32) {
        if self.core.outbox.is_empty() { self.end_silently(source.index(), id) } else { self.send_reply(source) }
    }

    /// Runs the handler of a request, and sends its reply.
    fn serve(&mut self, source: Peer, id: u32, handler: Handler<S>, arguments: &[u32], payload: Payload<'_>) {
        let core = &mut *self.core;
        let Some(known) = core.sources.get_mut(source) else { return };
        let segment = known.segment.as_ref().map_or((0, 0), |segment| (segment.len, segment.epoch));
        core.outbox.begin(id, segment);
        let (from, tag, outbox) = (&*known.name, known.tag, &mut core.outbox);
        handler(self.state, Request { arguments, payload, from, tag, outbox });
        self.end_request(source, id);
    }

    #[inline(never)]
    pub(super) fn refuse(&mut self, source: Peer, id: u32, status: Status) {
        self.core.outbox.begin(id, (0, 0));
        self.core.outbox.refuse(status);
        self.send_reply(source);
    }

    /// A request has ended without a reply. Its credit goes back with others, unless it is wanted
    /// elsewhere.
    fn end_silently(&mut self, index: u32, id: u32) {
        let core = &mut *self.core;
        let Some(source) = core.sources.at_mut(index) else { return };
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
        let source = self.core.sources.at_mut(index).ok_or(Violation)?;
        source.assembly = Some(assembly(header, arguments, rest, most, refused)?);
        self.core.count_part();
        Ok(())
    }

    pub(super) fn request_part(&mut self, from: Peer, message: Arrived<'_>) -> Result<(), Violation> {
        let source = self.core.sources.get_mut(from).ok_or(Violation)?;
        let whole = source.assembly.as_mut().ok_or(Violation)?.add(message.0.from(HEADER))?;
        let Some(whole) = source.assembly.take_if(|_| whole) else {
            self.core.count_part();
            return Ok(());
        };
        let arguments = &whole.arguments[..usize::from(whole.header.count)];
        // The handler was there when the first part came.
        let handler = self.handlers.of_request(whole.header.handler).ok_or(Status::BadHandler);
        match whole.refused.map_or(handler, Err) {
            Ok(handler) => self.serve(from, whole.header.id, handler, arguments, Payload::of_bytes(&whole.bytes)),
            Err(status) => self.refuse(from, whole.header.id, status),
        }
        Ok(())
    }

    pub(super) fn request_bulk(&mut self, from: Peer, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut arguments = [0; MAX_ARGUMENTS];
        let (count, rest) = arguments_of(header, message, &mut arguments)?;
        let span = span_of(rest)?;
        let verdict = self.begin(from.index(), header.handler)?;
        if span.epoch != self.core.segment.epoch && verdict.is_ok() {
            self.refuse(from, header.id, Status::BadOffset);
            return Ok(());
        }
        match verdict {
            Err(status) => self.refuse(from, header.id, status),
            Ok(handler) => {
                let memory = self.core.segment.range(span.offset, span.len).cloned().ok_or(Violation)?;
                let payload = Payload::of_segment(&memory, span.offset, span.len);
                self.serve(from, header.id, handler, &arguments[..count], payload);
            }
        }
        Ok(())
    }

    /// A bulk request that found no place in the segment as its requester knew it.
    pub(super) fn request_unplaced(&mut self, from: Peer, header: Header) -> Result<(), Violation> {
        let place = [Status::BadOffset, Status::BadLength].into_iter().find(|status| *status as u8 == header.flags);
        let status = self.begin(from.index(), header.handler)?.err().or(place).ok_or(Violation)?;
        self.refuse(from, header.id, status);
        Ok(())
    }
}
