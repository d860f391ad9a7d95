//! Sends and connects.

use crate::arrivals::Arrival;
use crate::errors::{Code, Error};
use crate::partner::Control;
use crate::requests::{OWN, Outcome, Request, Stage};
use crate::state::{Sending, State};
use crate::types::{Address, Buffer, MAX_ENDPOINT_ID, MAX_SEGMENTS, Segments};
use crate::wire::{EAGER, HEADER, LONGEST, SYNC};
use cci::__binding::send_gathered;
use cci::{Connection, Endpoint, Failure, Notify};
use cci_matching::Envelope;
use cci_rendezvous::{Body, Header, MOST_KEPT, cost_of_bytes};

/// The longest data that are gathered on the stack, bytes; and those for which less of it is
/// cleared.
const SHORT: usize = 112;
const SHORTEST: usize = 8;

/// Why segments are refused.
pub(crate) fn check<B: Buffer>(segments: &Segments<B>) -> Result<(), Error> {
    match segments {
        _ if segments.are_right() => Ok(()),
        _ if segments.parts().len() > MAX_SEGMENTS => Err(Error::SegmentCount),
        _ => Err(Error::BadSegment),
    }
}

/// Sends data of this length behind a header; `None`: nothing is sent.
#[inline(always)]
fn send_short<const MOST: usize, B: Buffer>(
    endpoint: &Endpoint,
    connection: Connection,
    header: Header,
    segments: &Segments<B>,
    len: usize,
) -> Option<()> {
    let mut message = [0; MOST];
    message[..HEADER].copy_from_slice(&header.emit());
    if len > 0 && !segments.copy_out(0, message.get_mut(HEADER..HEADER + len)?) {
        return None;
    }
    endpoint.send(connection, &message[..HEADER + len], Notify::OnFailure(0)).ok()
}

impl<B: Buffer> State<B> {
    #[inline]
    pub(crate) fn send(
        &mut self,
        endpoint: &Endpoint,
        segments: Segments<B>,
        to: Address,
        (bits, context): (u64, u64),
        is_sync: bool,
    ) -> Result<Request, Error> {
        self.requests.reserve().ok_or(Error::NoResources)?;
        if to.name() == self.name {
            return Ok(self.send_to_self(segments, to.session(), (bits, context), is_sync));
        }
        let number = self.partner_of(to.name()).ok_or(Error::NoResources)?;
        if !is_sync && let Some(sent) = self.send_at_once(endpoint, number, &segments, to, bits) {
            return Ok(self.requests.insert_done(context, bits, sent));
        }
        let session = to.session();
        let request = self.requests.insert(context, bits, Stage::Queued { segments, peer: number, session, is_sync });
        if self.partner(number).is_some_and(|partner| partner.outbox.push_send(request)) {
            self.pump(endpoint, number);
        }
        Ok(request)
    }

    /// The usual work in one pass: an eager message of one segment, or a short one, to a partner
    /// for whom nothing waits. `None`: nothing has been done.
    #[inline(always)]
    fn send_at_once(
        &mut self,
        endpoint: &Endpoint,
        number: u32,
        segments: &Segments<B>,
        to: Address,
        bits: u64,
    ) -> Option<Outcome> {
        let partner = self.partners.get_mut(number as usize)?.as_mut()?;
        let connection = partner.ready()?;
        let len = segments.len();
        let cost = cost_of_bytes(len);
        if partner.outbox.has_sends() || partner.session != to.session() || !partner.credit.covers(cost) {
            return None;
        }
        if len > partner.most_eager {
            return None;
        }
        let credit = partner.window.due();
        let header = Header { credit, ..Header::new(EAGER, 0, len as u32, bits) };
        if len <= SHORTEST {
            send_short::<{ HEADER + SHORTEST }, B>(endpoint, connection, header, segments, len)?;
        } else if len <= SHORT {
            send_short::<{ HEADER + SHORT }, B>(endpoint, connection, header, segments, len)?;
        } else {
            let header = header.emit();
            let parts = [header[..].into(), segments.source()?];
            send_gathered(endpoint, connection, &parts, Notify::OnFailure(0)).ok()?;
        }
        partner.window.has_given(credit);
        partner.credit.spend(cost);
        self.counts.eager += 1;
        let (length, session) = (len as u32, to.session());
        Some(Outcome { code: Code::Success, peer: number, session, length, copied: length })
    }

    /// Sends what has waited, or what is too long for one pass.
    pub(crate) fn send_queued(
        &mut self,
        endpoint: &Endpoint,
        (number, connection): (u32, Connection),
        request: Request,
    ) -> Sending {
        let Self { requests, partners, scratch, counts, .. } = self;
        let Some(partner) = partners.get_mut(number as usize).and_then(Option::as_mut) else { return Sending::Gone };
        let Some(slot) = requests.get(request) else { return Sending::Gone };
        let bits = slot.bits;
        let Stage::Queued { segments, session, is_sync, .. } = &slot.stage else { return Sending::Gone };
        let (session, is_sync, len) = (*session, *is_sync, segments.len());
        if session != partner.session {
            self.end(request.index(), Code::BadSession);
            return Sending::Gone;
        }
        if len > partner.most_eager {
            return self.offer(endpoint, (number, connection), request.index());
        }
        let cost = cost_of_bytes(len);
        if !partner.credit.covers(cost) {
            counts.stalled += 1;
            return Sending::Starved;
        }
        let credit = partner.window.due();
        let flags = if is_sync { SYNC } else { 0 };
        let header = Header { credit, ..Header::new(EAGER, flags, len as u32, bits) };
        let mut front = [0; LONGEST];
        front[..HEADER].copy_from_slice(&header.emit());
        front[HEADER..].copy_from_slice(&request.bits().to_le_bytes());
        let front = &front[..if is_sync { LONGEST } else { HEADER }];
        let sent = if let Some(bytes) = segments.source() {
            send_gathered(endpoint, connection, &[front.into(), bytes], Notify::OnFailure(0))
        } else {
            // It only grows, so that no bytes are cleared that are written anyway.
            if scratch.len() < front.len() + len {
                scratch.resize(front.len() + len, 0);
            }
            let message = &mut scratch[..front.len() + len];
            message[..front.len()].copy_from_slice(front);
            if !segments.copy_out(0, &mut message[front.len()..]) {
                self.end(request.index(), Code::NoResources);
                return Sending::Gone;
            }
            endpoint.send(connection, message, Notify::OnFailure(0))
        };
        match sent {
            Ok(()) => {}
            // A link that is lost reports its end.
            Err(_) => return Sending::Blocked,
        }
        partner.window.has_given(credit);
        partner.credit.spend(cost);
        counts.eager += 1;
        if is_sync {
            slot.stage = Stage::Sent { peer: number, session, length: len as u32 };
            // For those who wait for its memory.
            requests.changes += 1;
        } else {
            self.end(request.index(), Code::Success);
        }
        Sending::Gone
    }

    /// A send of this endpoint to itself: the next progress looks at it.
    fn send_to_self(
        &mut self,
        segments: Segments<B>,
        session: u32,
        (bits, context): (u64, u64),
        is_sync: bool,
    ) -> Request {
        if session != self.session {
            let length = segments.len() as u32;
            let outcome = Outcome { code: Code::BadSession, peer: OWN, session, length, copied: 0 };
            return self.requests.insert_done(context, bits, outcome);
        }
        let request = self.requests.insert(context, bits, Stage::Queued { segments, peer: OWN, session, is_sync });
        self.to_self.push_back(request);
        request
    }

    /// Gives a send of this endpoint to a receive that is posted. False: there is none.
    pub(crate) fn match_own(&mut self, request: Request) -> bool {
        let Some(slot) = self.requests.get(request) else { return true };
        let bits = slot.bits;
        let Stage::Queued { segments, .. } = &mut slot.stage else { return true };
        let Some(index) = self.posted.take(&Envelope { source: OWN.into(), bits }) else { return false };
        let from = std::mem::replace(segments, Segments::None);
        let length = from.len() as u32;
        self.counts.expected += 1;
        if let Some(to) = self.requests.at(index) {
            to.bits = bits;
            if let Stage::Posted { segments, .. } = &to.stage {
                let outcome = Self::copy_own(&from, segments);
                self.requests.finish(index, outcome);
            }
        }
        self.finish_own(request, length);
        true
    }

    pub(crate) fn finish_own(&mut self, request: Request, length: u32) {
        // The unexpected handler may have cancelled it.
        if self.requests.get(request).is_none() {
            return;
        }
        let outcome = Outcome { code: Code::Success, peer: OWN, session: self.session, length, copied: length };
        self.finish(request.index(), outcome);
    }

    /// The bytes of a send to itself, for the unexpected handler, and its length.
    pub(crate) fn own_bytes(&mut self, request: Request) -> Option<(u64, u32, Option<Vec<u8>>)> {
        let slot = self.requests.get(request)?;
        let Stage::Queued { segments, .. } = &slot.stage else { return None };
        let len = segments.len();
        let mut bytes = vec![0; if len <= MOST_KEPT { len } else { 0 }];
        let is_short = len <= MOST_KEPT && segments.copy_out(0, &mut bytes);
        Some((slot.bits, len as u32, is_short.then_some(bytes)))
    }

    /// A send to itself that nothing has matched: a short one is copied and done.
    pub(crate) fn keep_own(&mut self, request: Request) {
        let Some(slot) = self.requests.get(request) else { return };
        let bits = slot.bits;
        let Stage::Queued { segments, is_sync, .. } = &slot.stage else { return };
        let (len, is_sync) = (segments.len(), *is_sync);
        let cost = cost_of_bytes(len);
        let mut body = None;
        if len <= MOST_KEPT && cost <= self.own_credit {
            body = self.buffers.keep(len, |bytes| {
                segments.copy_out(0, bytes);
            });
        }
        let (is_copied, session) = (body.is_some(), self.session);
        let arrival = Arrival {
            peer: OWN,
            session,
            link: 0,
            length: len as u32,
            cost: if is_copied { cost } else { 0 },
            number: (is_sync || !is_copied).then_some(request.bits()),
            body: body.unwrap_or(Body::Own),
        };
        self.counts.unexpected += 1;
        let envelope = Envelope { source: OWN.into(), bits };
        if self.unexpected.insert(envelope, arrival).is_err() {
            return self.end(request.index(), Code::NoResources);
        }
        self.requests.changes += 1;
        if is_copied {
            self.own_credit -= cost;
            if !is_sync {
                self.finish_own(request, len as u32);
            } else if let Some(slot) = self.requests.get(request) {
                slot.stage = Stage::Sent { peer: OWN, session, length: len as u32 };
            }
        }
    }

    /// Removes the unexpected message of a send to itself whose time is over.
    pub(crate) fn forget_own(&mut self, request: Request) {
        let is_its = |arrival: &Arrival| arrival.peer == OWN && arrival.number == Some(request.bits());
        let found = self.unexpected.iter().find(|(.., arrival)| is_its(arrival)).map(|(ticket, ..)| ticket);
        if let Some((_, arrival)) = found.and_then(|ticket| self.unexpected.remove(ticket)) {
            self.own_credit += arrival.cost;
            self.buffers.give_back(arrival.body);
        }
    }

    pub(crate) fn connect(
        &mut self,
        endpoint: &Endpoint,
        (nic, id, key): (u64, u32, u32),
        (bits, context): (u64, u64),
    ) -> Result<Request, Error> {
        if id > MAX_ENDPOINT_ID {
            return Err(Error::BadEndpointId);
        }
        if nic >> 32 != 0 {
            return Err(Error::NicNotFound);
        }
        self.requests.reserve().ok_or(Error::NoResources)?;
        let name = Address::new(nic, id, 0).name();
        if name == self.name {
            let code = if key == self.key { Code::Success } else { Code::BadKey };
            let outcome = Outcome { code, peer: OWN, session: self.session, length: 0, copied: 0 };
            return Ok(self.requests.insert_done(context, bits, outcome));
        }
        let number = self.partner_of(name).ok_or(Error::NoResources)?;
        let request = self.requests.insert(context, bits, Stage::Connecting { peer: number, key });
        self.post(endpoint, number, Control::Connect(request));
        Ok(request)
    }

    /// Ends the link to a partner, and what waits for it.
    pub(crate) fn disconnect(&mut self, endpoint: &Endpoint, address: Address) {
        let known = self.partners.iter().position(|of| of.as_ref().is_some_and(|of| of.name == address.name()));
        let Some(number) = known.map(|number| number as u32) else { return };
        self.end_waiting(number, Code::EndpointClosed);
        let Some(peer) = self.partner(number).map(|partner| partner.peer) else { return };
        self.peers.hang_up(endpoint, peer);
        self.on_down(endpoint, number, Failure::Disconnected);
        self.take_changes(endpoint);
    }
}
