//! Requests of an endpoint to itself: their handlers run in the call.

use super::Turn;
use super::requests::Bulk;
use super::segment::accepts;
use crate::errors::Status;
use crate::mapping::Mapping;
use crate::message::{Payload, Request};
use crate::peers::Peer;
use crate::wire::{self, HEADER, Head, Kind, MAX_ARGUMENTS, Span};
use std::ops::Range;

impl<S, M: Mapping> Turn<'_, S, M> {
    pub(crate) fn run_local(&mut self, peer: Peer, (at, arguments): (u8, &[u32]), bytes: Option<&[u8]>) {
        let kind = if bytes.is_some() { Kind::RequestMedium } else { Kind::Request };
        match self.local_verdict(peer, at) {
            Ok(()) => self.run_local_with(peer, (at, arguments), Payload::of(bytes)),
            Err(status) => self.give_back(peer, &Head::new(kind, at, 0, arguments), status),
        }
    }

    fn local_verdict(&mut self, peer: Peer, at: u8) -> Result<(), Status> {
        let tag = self.core.targets.at_mut(peer.index()).map_or(0, |target| target.tag);
        if !accepts(self.core.tag, tag) {
            return Err(Status::BadTag);
        }
        self.handlers.of_request(at).map(drop).ok_or(Status::BadHandler)
    }

    fn run_local_with(&mut self, peer: Peer, (at, arguments): (u8, &[u32]), payload: Payload<'_>) {
        let tag = self.core.targets.at_mut(peer.index()).map_or(0, |target| target.tag);
        let Some(handler) = self.handlers.of_request(at) else { return };
        let outbox = &mut self.core.outbox;
        outbox.begin(0, (self.core.segment.len(), self.core.segment.epoch));
        handler(self.state, Request { arguments, payload, from: &self.core.introduction, tag, outbox });
        if !self.core.outbox.is_empty() {
            self.run_local_reply(peer);
        }
    }

    fn run_local_reply(&mut self, peer: Peer) {
        // A reply to oneself is seldom: its memory is no matter.
        let message = self.core.outbox.message().to_vec();
        let bulk = self.core.outbox.bulk.take();
        let mut arguments = [0; MAX_ARGUMENTS];
        let end = HEADER + 4 * usize::from(message[2]);
        let count = wire::arguments(&message[HEADER..end], &mut arguments);
        let arguments = &arguments[..count];
        match bulk {
            None => {
                let is_short = message[0] == Kind::Reply as u8;
                let payload = if is_short { Payload::none() } else { Payload::of_bytes(&message[end..]) };
                self.run_reply(peer, message[1], arguments, payload);
            }
            Some((buffer, span)) => {
                let mut bytes = vec![0; usize::try_from(span.len).unwrap_or_default()];
                self.core.outbox.buffers.read(buffer, 0, &mut bytes);
                self.core.outbox.buffers.free(buffer);
                if let Some(memory) = self.core.segment.range(span.offset, span.len).cloned() {
                    let _ = memory.copy_in(span.offset, &bytes);
                    let payload = Payload::of_segment(&memory, span.offset, span.len);
                    self.run_reply(peer, message[1], arguments, payload);
                }
            }
        }
    }

    /// The bytes as the program has them, or those of the segment.
    fn local_bytes(&self, bulk: &Bulk<'_>) -> Vec<u8> {
        match bulk {
            Bulk::Bytes(bytes) => bytes.to_vec(),
            Bulk::Own(range) => {
                let memory = self.core.segment.range(range.start, range.end - range.start);
                memory
                    .map(|memory| Payload::of_segment(memory, range.start, range.end - range.start).to_vec())
                    .unwrap_or_default()
            }
        }
    }

    /// The own segment, if these bytes lie within it.
    fn local_place(&self, offset: u64, len: u64) -> Result<cci::Memory, Status> {
        let memory = self.core.segment.range(offset, len).cloned();
        memory.ok_or(if self.core.segment.now.is_some() { Status::BadLength } else { Status::BadOffset })
    }

    pub(crate) fn run_local_bulk(&mut self, peer: Peer, (at, arguments): (u8, &[u32]), bulk: &Bulk<'_>, offset: u64) {
        let bytes = self.local_bytes(bulk);
        let place = self.local_verdict(peer, at).and_then(|()| self.local_place(offset, bytes.len() as u64));
        match place {
            Ok(memory) => {
                let _ = memory.copy_in(offset, &bytes);
                let payload = Payload::of_segment(&memory, offset, bytes.len() as u64);
                self.run_local_with(peer, (at, arguments), payload);
            }
            Err(status) => self.give_back(peer, &Head::new(Kind::RequestBulk, at, 0, arguments), status),
        }
    }

    pub(crate) fn run_local_get(&mut self, peer: Peer, (at, arguments): (u8, &[u32]), from: u64, into: &Range<u64>) {
        let span = Span { offset: into.start, len: into.end - into.start, epoch: 0 };
        match self.local_place(from, span.len) {
            Ok(memory) => {
                let bytes = Payload::of_segment(&memory, from, span.len).to_vec();
                let _ = memory.copy_in(span.offset, &bytes);
                self.run_reply(peer, at, arguments, Payload::of_segment(&memory, span.offset, span.len));
            }
            Err(status) => self.give_back(peer, &Head::new(Kind::RequestBulk, at, 0, arguments), status),
        }
    }
}
