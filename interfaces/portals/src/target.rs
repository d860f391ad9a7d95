//! Requests of others: they find an entry, or are dropped and counted.

use crate::handles::Handle;
use crate::memory::{Region, Source};
use crate::objects::{Matched, Placed};
use crate::operations::{Kind, Operation, Phase, Whom};
use crate::options;
use crate::partner::Out;
use crate::queue::Facts;
use crate::state::State;
use crate::types::{EventKind, MAX_SWAP, ProcessId};
use crate::wanted::Wanted;
use crate::wire::{self, ACK, Answer, DONE, DROPPED, GET, GETPUT, LONGEST_PARTS, OFFER, PUT, REPLY, Request};
use cci::{Endpoint, RmaHandle};

/// The parts of what is offered behind a header; `None`: they do not stand for so many bytes.
#[inline(never)]
pub(crate) fn offered(source: &Source<'_>, from: usize, length: u64) -> Option<Vec<(u64, RmaHandle)>> {
    let mut parts = [0; LONGEST_PARTS];
    let len = source.copy_to(from, &mut parts);
    (source.len() - from == len).then(|| wire::parse_parts(&parts[..len], length)).flatten()
}

/// What a request of this partner needs, which is for so many bytes.
#[inline(always)]
fn wanted(request: &Request, (initiator, uid, jid): (ProcessId, u32, u32), length: u64) -> Wanted {
    Wanted {
        initiator,
        uid,
        jid,
        portal: request.portal.into(),
        access: request.access.into(),
        bits: request.bits,
        operation: match request.kind {
            GET => options::OP_GET,
            GETPUT => options::OP_PUT | options::OP_GET,
            _ => options::OP_PUT,
        },
        offset: request.offset,
        length,
        header: request.header,
    }
}

/// Requests of one partner that may be open.
const MOST_SERVED: u32 = 4_096;

impl State {
    /// A put whose bytes are there and private to this process; false: it is malformed.
    #[inline(always)]
    pub(crate) fn take_put(&mut self, endpoint: &Endpoint, whom: Whom, bytes: &[u8]) -> bool {
        let Some((request, from)) = wire::parse_request(bytes) else { return false };
        let Some(identity) = self.identity(whom) else { return false };
        let wanted = wanted(&request, identity, (bytes.len() - from) as u64);
        self.place(endpoint, whom, &request, &wanted, (&Source::Bytes(bytes), from));
        true
    }

    /// A request; false: it is malformed.
    pub(crate) fn take_request(
        &mut self,
        endpoint: &Endpoint,
        whom: Whom,
        request: &Request,
        (source, from): (&Source<'_>, usize),
    ) -> bool {
        let Some((initiator, uid, jid)) = self.identity(whom) else { return false };
        let behind = source.len() - from;
        let mut remote = None;
        let is_right = match request.kind {
            GET => behind == 0,
            GETPUT => behind <= MAX_SWAP,
            OFFER => {
                remote = offered(source, from, request.length);
                remote.is_some() && whom != Whom::Own
            }
            _ => true,
        };
        if !is_right {
            return false;
        }
        let length = if matches!(request.kind, GET | OFFER) { request.length } else { behind as u64 };
        let wanted = wanted(request, (initiator, uid, jid), length);
        if request.kind == PUT {
            self.place(endpoint, whom, request, &wanted, (source, from));
            return true;
        }
        let found = if !self.may_serve(whom) {
            self.objects.drop_request(wanted.length);
            None
        } else {
            self.objects.take(&wanted)
        };
        match found {
            Some(matched) => self.serve(endpoint, whom, request, (wanted, matched), (source, from), remote),
            None => self.refuse(endpoint, whom, request),
        }
        true
    }

    fn may_serve(&mut self, whom: Whom) -> bool {
        let is_greedy = match whom {
            Whom::Own => false,
            Whom::Peer(peer) => self.partners.get(peer).is_none_or(|partner| partner.served >= MOST_SERVED),
        };
        !is_greedy && self.operations.reserve()
    }

    /// Tells the initiator that its request was dropped, where it waits for something.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, endpoint: &Endpoint, whom: Whom, request: &Request) {
        let kind = match request.kind {
            GET | GETPUT => REPLY,
            OFFER => wire::FIN,
            _ if request.wants_ack => ACK,
            _ => return,
        };
        let answer = Answer { kind, status: DROPPED, operation: request.operation, length: 0, offset: 0, own: 0 };
        self.post(endpoint, whom, Out::Answer(answer));
    }

    #[inline(never)]
    fn serve(
        &mut self,
        endpoint: &Endpoint,
        whom: Whom,
        request: &Request,
        (wanted, matched): (Wanted, Matched),
        (source, from): (&Source<'_>, usize),
        remote: Option<Vec<(u64, RmaHandle)>>,
    ) {
        let Matched { memory, offset, length } = matched;
        let facts = wanted.facts(offset, length, self.objects.next_link());
        let start = match request.kind {
            GET => EventKind::GetStart,
            GETPUT => EventKind::GetPutStart,
            _ => EventKind::PutStart,
        };
        self.objects.report(memory, start, &facts);
        let is_read = request.kind == OFFER;
        let operation = Operation {
            kind: if is_read { Kind::Take } else { Kind::Supply },
            phase: if is_read { Phase::Reading } else { Phase::Queued },
            whom,
            on_link: self.link(whom).unwrap_or_default(),
            memory,
            source: Handle::INVALID,
            source_link: 0,
            offset,
            length,
            request: *request,
            facts,
        };
        if let Whom::Peer(peer) = whom
            && let Some(partner) = self.partners.get_mut(peer)
        {
            partner.served += 1;
        }
        let number = self.operations.insert(|_| operation);
        if let (Some(remote), Some((_, bulk))) = (remote, self.operations.get_whole(number)) {
            bulk.remote = remote;
        }
        if request.kind == GETPUT {
            self.swap(number, (source, from));
        }
        if is_read && length == 0 {
            return self.finish_reads(endpoint, number);
        }
        let out = if is_read { Out::Reads(number) } else { Out::Operation(number) };
        self.post(endpoint, whom, out);
    }

    /// Puts the bytes of a message in their place.
    #[inline(always)]
    fn place(
        &mut self,
        endpoint: &Endpoint,
        whom: Whom,
        request: &Request,
        wanted: &Wanted,
        (source, from): (&Source<'_>, usize),
    ) {
        let copy = |region: &Region, offset, len| region.copy_from(offset, source, from, len);
        let Some(Placed { offset, length, has_ack }) = self.objects.place(wanted, copy) else {
            return self.refuse(endpoint, whom, request);
        };
        if request.wants_ack {
            let status = if has_ack { DONE } else { DROPPED };
            let ack = Answer { kind: ACK, status, operation: request.operation, length, offset, own: 0 };
            self.post(endpoint, whom, Out::Answer(ack));
        }
    }

    fn swap(&mut self, number: u64, (source, from): (&Source<'_>, usize)) {
        let Some((operation, bulk)) = self.operations.get_whole(number) else { return };
        let len = operation.length as usize;
        if let Some(of) = self.objects.memories.get(operation.memory) {
            // Both inside, as the match has seen.
            let _ = of.region.copy_out(operation.offset, &mut bulk.swapped.0[..len]);
            let _ = of.region.copy_from(operation.offset, source, from, len);
        }
    }

    pub(crate) fn has_no_ack(&self, operation: &Operation) -> bool {
        let memory = self.objects.memories.get(operation.memory);
        !operation.request.wants_ack || memory.is_none_or(|memory| memory.has(options::ACK_DISABLE))
    }

    /// The reply has left, or was read.
    pub(crate) fn finish_supply(&mut self, number: u64, is_done: bool) {
        if let Some(operation) = self.operations.remove(number) {
            self.end_served(&operation, is_done);
        }
    }

    /// Ends a request of another process, with its END event.
    pub(crate) fn end_served(&mut self, operation: &Operation, is_done: bool) {
        if let Whom::Peer(peer) = operation.whom
            && let Some(partner) = self.partners.get_mut(peer)
        {
            partner.served -= 1;
        }
        let kind = match operation.request.kind {
            GET => EventKind::GetEnd,
            GETPUT => EventKind::GetPutEnd,
            _ => EventKind::PutEnd,
        };
        let mlength = if is_done { operation.facts.mlength } else { 0 };
        self.objects.end(operation.memory, kind, &Facts { mlength, failure: u32::from(!is_done), ..operation.facts });
    }
}
